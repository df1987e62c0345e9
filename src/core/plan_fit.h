/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_FIT_H
#define NEUROSHARD_CORE_PLAN_FIT_H

#include "core/plan.h"

/* Whether a plan fits the memory of its GPUs, and by how much. The memory of
 * the plan must be counted (core/plan_memory.h). */

/* Lack of memory of a plan. */
struct memory_lack {
    uint32_t n_gpus;      /* GPUs that lack memory; 0: the plan fits */
    uint32_t worst;       /* GPU that lacks most */
    uint64_t lacks_bytes; /* bytes that it lacks */
};
struct memory_lack plan_find_lack(const struct plan *plan);
/* Prints a lack, such as "GPU 1 lacks 14.30 GiB (needs 93.94 of 79.64 GiB); 2
 * other GPUs lack less". */
void plan_print_lack(const struct plan *plan, const struct memory_lack *lack,
                     struct buf *out);

/* Returns the largest reserve with which the plan fits, as a share of the
 * memory of each GPU. It is negative if the plan does not fit without a reserve
 * either. */
double plan_most_reserve_frac(const struct plan *plan);

/* Prints the fullest GPU, and the largest reserve with which the plan fits. */
void plan_print_fit(const struct plan *plan, struct buf *out);

/* Fails with ERR_NO_PLAN and the lack of memory if the plan does not fit. */
int plan_check_fit(const struct plan *plan, struct err *err) MUST_CHECK;

#endif
