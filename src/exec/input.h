/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_INPUT_H
#define NEUROSHARD_EXEC_INPUT_H

#include "exec/batches.h"
#include "exec/verify.h"

/*
 * Input of a step, exchanged as in a training job. Each rank draws the ids of
 * its own samples for all tables, and sends them to the ranks that hold the
 * pieces. A piece of columns is sent its own copy of the ids, a piece of rows
 * only the ids of its rows, and a replica nothing. The receiver permutes the
 * ids into the order of its lookups, as in batches.h.
 *
 * A message covers the receiver's pieces in the order of the placement:
 *
 *     lengths   4 bytes for each bag: number of its ids
 *     padding   up to the next multiple of 8
 *     ids       8 bytes each
 *
 * The host always packs and permutes, even if a GPU does the lookups. Messages
 * travel from host to host, or from GPU to GPU if the processes have GPUs.
 */

struct input {
    const struct placement *placement;
    /* CPU device that carries the messages, owned together with `comm`. NULL if
     * messages travel between GPUs; `comm` is then the placement's. */
    struct device *host;
    struct comm *comm;
    struct arena arena; /* memory of the arrays below */
    unsigned number;    /* number of the batch */
    /* [R][n_tables]: ids of a rank's own samples; zeroed if the rank is
     * elsewhere. */
    struct bags *own;
    /* [R][R]: bytes of the messages that this process sends. */
    uint64_t *own_sizes;
    /* [R][R]: bytes of all messages, by sender and receiver. */
    uint64_t *sizes;
    /* [R][R]: messages, by sender and receiver; NULL if not in this process. */
    char **sent, **came;
    /* [R][R]: these messages in the memory of the device that transfers them.
     * The GPU's buffers are owned; on a CPU they are `sent` and `came`
     * themselves. */
    char **d_sent, **d_came;
    /* [R]: received bags of a rank's pieces, one piece after the other. */
    struct bags *came_bags;
};

/* Draws the ids of batch `number` for the ranks of this process and exchanges
 * them once. After a failure the caller still has to call input_close.
 * Collective. */
int input_open(struct input *input, const struct placement *placement,
               unsigned number, struct err *err) MUST_CHECK;
void input_close(struct input *input); /* a zeroed struct is fine */

/* Work before the exchange, of a rank of this process: finds the ids of each
 * piece's rows and writes the rank's messages. */
void input_pack(struct input *input, uint32_t rank);
/* Exchanges the sizes of the messages, then the messages. Between GPUs it sends
 * the messages as they were after input_open. Collective. */
int input_exchange(struct input *input, struct err *err) MUST_CHECK;
/* Work after the exchange, of a rank of this process: permutes the received ids
 * into the order of its lookups. If `verify` is not NULL, checks that they
 * equal the ids that the rank draws for itself. */
void input_permute(struct input *input, uint32_t rank, struct verify *verify);

#endif
