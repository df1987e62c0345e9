/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_INPUT_H
#define NEUROSHARD_EXEC_INPUT_H

#include "exec/batches.h"
#include "exec/verify.h"

/*
 * The input of a step as a job has it: each rank draws the ids of its own
 * samples, of all tables, and sends them to the ranks that hold the pieces. A
 * piece of columns is sent a copy of its own, a piece of rows the ids of its
 * rows alone, and replicas nothing. Who gets them puts them in the order of its
 * look-ups, which is that of batches.h.
 *
 * A message says of the receiver's pieces, one behind the other as in the
 * placement, how many ids each bag has, 4 bytes each; and from the next
 * multiple of 8 on it has the ids, 8 bytes each. Packing and permuting are the
 * host's work, whatever looks up; messages travel from host to host, or, where
 * processes have GPUs, from GPU to GPU.
 */

struct input {
    const struct placement *placement;
    struct device *host; /* owned, like the comm that goes over it; NULL where
                            messages travel between GPUs, by the placement's */
    struct comm *comm;
    struct arena arena;      /* of what follows */
    unsigned number;         /* of its batch */
    struct bags *own;        /* [R][n_tables], of a rank's own samples; zeroed
                                where it is not here */
    uint64_t *own_sizes;     /* [R][R], of what is sent from here */
    uint64_t *sizes;         /* [R][R]: bytes from a rank to a rank */
    char **sent, **came;     /* [R][R], messages; NULL where not here */
    char **d_sent, **d_came; /* the same where they travel; of GPUs owned */
    struct bags *came_bags;  /* [R], of its pieces, one behind the other */
};

/* Draws what the ranks that are here have of batch `number`, and exchanges it
 * once. What a failure leaves is input_close's. Collective. */
int input_open(struct input *input, const struct placement *placement,
               unsigned number, struct err *err) MUST_CHECK;
void input_close(struct input *input); /* a zeroed one is fine */

/* Before the exchange, a rank that is here finds the ids of its rows for each
 * piece and writes its messages. */
void input_pack(struct input *input, uint32_t rank);
/* The sizes of the messages, and they; between GPUs what they were when it was
 * opened. Collective. */
int input_exchange(struct input *input, struct err *err) MUST_CHECK;
/* Behind it, a rank puts what came in order. With verify it must be what the
 * rank draws for itself. */
void input_permute(struct input *input, uint32_t rank, struct verify *verify);

#endif
