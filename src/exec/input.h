/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_INPUT_H
#define NEUROSHARD_EXEC_INPUT_H

#include "exec/batches.h"
#include "exec/verify.h"

/*
 * Input of a step, exchanged as in a training job. Each rank draws the ids of
 * its own samples for all tables, and sends them to the ranks that hold the
 * pieces. A column-wise piece gets its own copy of all ids, a row-wise piece
 * only the ids of its rows, and a replica no ids. Messages stay inside a
 * sharding group; messages to ranks of other groups are empty. If the job
 * de-duplicates ids, a rank sends an id of a sequence only once. The receiver
 * permutes the ids into the order of its lookups (described in batches.h).
 *
 * A message contains, for each piece of the receiver in the order of the
 * placement:
 *
 *     lengths   4 bytes for each bag: number of its ids
 *     padding   up to the next multiple of 8
 *     ids       8 bytes each
 *
 * The host always packs and permutes, even if a GPU does the lookups. Messages
 * travel from host to host, or from GPU to GPU if the processes have GPUs.
 */

/* Way by which the messages travel. */
struct input_link {
    /* CPU device that transfers messages between hosts, owned together with
     * `comm`. NULL if messages travel between GPUs. In that case `comm` is the
     * comm of the placement. */
    struct device *host;
    struct comm *comm;
};
/* Opens a link over a world with the processes of the placement. If its world
 * is not that of the placement, a link between hosts can be used at the same
 * time as the exchanges of the placement, by another thread. The caller has to
 * call input_link_close even after a failure. Collective. */
int input_link_open(struct input_link *link, const struct placement *placement,
                    struct world *world, struct err *err) MUST_CHECK;
void input_link_close(struct input_link *link); /* accepts a zeroed struct */

struct input {
    const struct placement *placement;
    const struct input_link *link; /* not owned */
    struct arena arena;            /* memory of the arrays in this struct */
    unsigned number;               /* number of the batch */
    /* [R][n_tables]: ids of each rank's own samples. Zeroed for ranks in other
     * processes. */
    struct bags *own;
    /* [R][n_tables]: ids that each rank sends, if they are fewer than its own
     * ids because the job de-duplicates them. Otherwise zeroed. */
    struct bags *unique;
    /* [R][R]: bytes of the messages that this process sends, by sender and
     * receiver. */
    uint64_t *own_sizes;
    /* [R][R]: bytes of all messages, by sender and receiver. */
    uint64_t *sizes;
    /* [R][R]: messages sent and received, by sender and receiver. NULL if the
     * message is empty or not in this process. */
    char **sent, **came;
    /* [R][R]: `sent` and `came` in the memory of the device that transfers the
     * messages. On a GPU they are owned copies; on a CPU they are the messages
     * themselves. */
    char **d_sent, **d_came;
    /* [R]: received bags of each rank, for all its pieces one after the
     * other. */
    struct bags *came_bags;
    /* [n_pieces]: received bags of each piece to which ids are sent, part of
     * came_bags. Valid after input_permute. */
    struct bags *piece_bags;
};

/*
 * Draws the ids of batch `number` for the ranks of this process and exchanges
 * them once. The caller has to call input_close even after a failure.
 * Collective.
 */
int input_open(struct input *input, const struct placement *placement,
               const struct input_link *link, unsigned number,
               struct err *err) MUST_CHECK;
void input_close(struct input *input); /* accepts a zeroed struct */

/* Does the work of a rank of this process before the exchange: de-duplicates
 * ids if the job does, finds the ids that belong to the rows of each piece, and
 * writes the rank's messages. */
void input_pack(struct input *input, uint32_t rank);
/* Exchanges first the sizes of the messages, then the messages. Between GPUs it
 * sends the messages that input_open has uploaded, even if input_pack has run
 * since then. Collective. */
int input_exchange(struct input *input, struct err *err) MUST_CHECK;
/* Downloads the messages that came between GPUs to the host. Does nothing if
 * they travel between hosts. */
int input_bring_back(struct input *input, struct err *err) MUST_CHECK;
/* Overwrites all messages that came with zeros, which stand for empty bags. */
int input_forget(struct input *input, struct err *err) MUST_CHECK;
/* Does the work of a rank of this process after the exchange: permutes the
 * received ids into the order of the rank's lookups. If `verify` is not NULL,
 * also checks that the received ids equal the ids that the rank draws for
 * itself. */
void input_permute(struct input *input, uint32_t rank, struct verify *verify);

#endif
