/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SEQUENCE_EXCHANGE_H
#define NEUROSHARD_EXEC_SEQUENCE_EXCHANGE_H

#include "exec/placement.h"

/*
 * All-to-all of the vectors of sequences. Numbers of vectors differ between
 * pairs of ranks (exec/sequences.h).
 *
 * Exchange k carries group k of each rank, counting only groups of sequences
 * that are not replicas. A rank receives one block of each of these groups, its
 * own included, ordered by rank. A block has the vectors of the receiver's
 * samples, in the order of its lookups.
 */
struct sequence_exchange {
    const struct group **groups; /* [R]; NULL: the rank has no group k */
    /* [R]: receive buffer of each rank, part of d_block; NULL if the rank is in
     * another process */
    char **d_recv;
    void *d_block; /* memory of all receive buffers; owned */
};
struct sequence_set {
    const struct placement *placement;
    struct sequence_exchange *exchanges; /* [n], in the arena */
    size_t n;
};

/* Opens the exchanges of the placement's sequences; there may be none. Fails
 * with ERR_DEVICE if device memory is short. The caller calls
 * sequence_exchange_close also after a failure. */
int sequence_exchange_open(struct sequence_set *set,
                           const struct placement *placement,
                           struct arena *arena, struct err *err) MUST_CHECK;
void sequence_exchange_close(struct sequence_set *set);

/* Starts all exchanges; the arguments are those of exchange_start. */
int sequence_exchange_start(const struct sequence_set *set, bool is_backward,
                            uint32_t part, uint32_t n_parts,
                            struct err *err) MUST_CHECK;

/* Returns the vectors of a group at a receiver in this process, in device
 * memory, as placement_outputs outputs one after the other. The group is not a
 * replica. */
void *sequence_exchange_block(const struct sequence_set *set,
                              const struct group *group, uint32_t receiver);

#endif
