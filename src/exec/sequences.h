/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SEQUENCES_H
#define NEUROSHARD_EXEC_SEQUENCES_H

#include "exec/batches.h"

/*
 * Tables with sequence output: one vector per lookup.
 *
 * A rank asks for the lookups of its own samples. A lookup belongs to the row
 * block that holds its row, so each piece gives a rank as many vectors as the
 * rank has lookups in the piece's rows. These vectors are in the order of the
 * rank's lookups. The numbers differ between ranks, pieces and samples. If the
 * job de-duplicates ids, a rank asks for a row once, at its first lookup, and
 * gets one vector for all its lookups of the row.
 *
 * Ranks need no message about the numbers: each computes them from the streams
 * of lookups (exec/batches.h).
 */

/* Sets the members `vectors` and n_bags of all groups of sequences, from the
 * batch of the compared step. The vectors are in the arena. */
void sequences_count(struct placement *placement, struct arena *arena);

/*
 * Places of a table's vectors at a receiver: for each lookup of the receiver's
 * samples and each piece of the table, the number of the vector that the piece
 * gives the lookup. Pieces with the same first column share one list. A row is
 * in only one of them, or they are replicas, which number their vectors alike.
 */
struct places {
    struct bags bags; /* all own lookups of the receiver; owned */
    uint64_t n;       /* number of own lookups */
    /* [n_pieces]: pieces of the table in the receiver's sharding group */
    const struct piece *pieces;
    /* [n_pieces], owned: one list for each of these pieces */
    struct place_list {
        /* [n]: number of the vector among those that the piece gives the
         * receiver, if the piece holds the row of the lookup */
        uint32_t *slots;
        uint64_t n_vectors; /* number of vectors of the piece */
        bool is_shared;     /* `slots` belongs to an earlier piece */
    } * lists;
    size_t n_pieces;
};
/* Computes the places of the table's vectors in batch `number`. The caller
 * releases *places. */
void places_init(struct places *places, const struct placement *placement,
                 size_t table_idx, uint32_t receiver, unsigned number);
void places_release(struct places *places); /* accepts a zeroed struct */

#endif
