/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_NEED_H
#define NEUROSHARD_EXEC_PLACEMENT_NEED_H

#include "exec/placement.h"

/* Memory that an execution needs, and the turns that fit into it. */

/* Peak memory in bytes that an execution needs in this process if each rank has
 * a turn of its own. rows_bytes shrinks with the option --scale-rows;
 * batch_bytes does not shrink. */
struct placement_need {
    double rows_bytes, batch_bytes;
    /* Bytes of the weights and states of the largest rank. They are included in
     * rows_bytes. */
    double weight_bytes;
};
void placement_need(struct placement_need *need,
                    const struct placement *placement);
/* Divides the ranks of this process into turns, each of which fits into
 * free_bytes. There is one turn if all ranks fit together. Fails with
 * ERR_DEVICE if a rank does not fit alone; the message names a --scale-rows
 * that fits. */
int placement_cut_turns(struct placement *placement, uint64_t free_bytes,
                        struct err *err) MUST_CHECK;
/*
 * Does the same with the memory that this process may use. memory_bytes: limit
 * of the device's memory, or 0 for all that is free. On CPUs the processes of a
 * host share one memory, and each gets a fraction of it in proportion to its
 * need. On GPUs each process has a memory of its own. extra_bytes: further
 * bytes that this process needs. Collective.
 */
int placement_share_memory(struct placement *placement, uint64_t memory_bytes,
                           double extra_bytes, struct err *err) MUST_CHECK;
/* Returns an upper limit of the bytes of the ids and bags of one batch. */
double placement_input_bytes(const struct placement *placement);

#endif
