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

#endif
