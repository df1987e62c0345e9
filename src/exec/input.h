/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_INPUT_H
#define NEUROSHARD_EXEC_INPUT_H

#include "exec/verify.h"

/*
 * The input of a step as a job has it: each rank draws the ids of its own
 * samples, of all tables, and sends them to the ranks that hold the pieces. A
 * piece of columns is sent a copy of its own, a piece of rows the ids of its
 * rows alone, and replicas nothing. Who gets them puts them in the order of its
 * look-ups, which is that of batches.h.
 *
 * A message says of the receiver's pieces, one behind the other as in its
 * groups, how many ids each bag has, 4 bytes each; and from the next multiple
 * of 8 on it has the ids, 8 bytes each.
 */

/* Of a table, for some samples. */
struct id_bags {
    uint64_t n_bags, n_ids;
    uint32_t *lengths; /* [n_bags] */
    uint64_t *ids;     /* [n_ids] */
};

struct input_rank {
    struct id_bags *own;   /* [n_tables], of its samples */
    void *d_sent, *d_came; /* owned: all messages from it, and to it */
    char *sent, *came;     /* the same on the host */
    uint64_t *offsets;     /* [bags + 1] of all its pieces in order */
    uint32_t *indices;
};

struct input {
    const struct placement *placement;
    struct arena arena; /* of what follows */
    unsigned number;    /* of its batch */
    /* Those that are sent ids, by rank and group, and where each rank's begin.
     */
    const struct piece **pieces; /* [first_piece[R]] */
    size_t *first_piece;         /* [R + 1] */
    uint64_t *own_sizes;         /* [ranks that are here][R] */
    uint64_t *sizes;             /* [R][R]: bytes from a rank to a rank */
    struct input_rank *ranks;    /* [R]; zeroed where not here */
};

/* Draws what the ranks that are here have of batch `number`. Collective. */
int input_open(struct input *input, const struct placement *placement,
               unsigned number, struct err *err) MUST_CHECK;
void input_close(struct input *input); /* a zeroed one is fine */

/* What a rank that is here does before the exchange: it finds the ids of row
 * pieces and writes its messages. And behind it: it puts what came in order.
 * One thread of the host does it; on a GPU the messages go there, and come from
 * there. */
int input_pack(struct input *input, uint32_t rank, struct err *err) MUST_CHECK;
int input_permute(struct input *input, uint32_t rank,
                  struct err *err) MUST_CHECK;
/* The sizes of the messages, and they; queued as comm_move is. Collective. */
int input_exchange(struct input *input, struct err *err) MUST_CHECK;

/* What came must be the look-ups that the holders draw for themselves. */
int input_check(const struct input *input, struct verify *verify,
                struct err *err) MUST_CHECK;

#endif
