/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_HOST_H
#define NEUROSHARD_CORE_HOST_H

#include "core/plan_error.h"

/*
 * Time of a step including the host.
 *
 * The host of a rank queues the operations of each step, one step after the
 * other. For TorchRec this takes about 2 ms, whatever the tables. The time does
 * not depend on the GPU, because it is the time of Python and C++ on the CPU.
 *
 *     host = 2 ms + 0.5 ms x (kinds of sharding - 1)
 *
 * A kind of sharding is a sharding type of TorchRec. Each type has lookups and
 * exchanges of its own, which the host queues one by one.
 *
 *     2 ms      median of 150 jobs with one kind of sharding and less than 1 ms
 *               of GPU work, on one H100: root of (step^2 - GPU work^2).
 *               1.6 to 2.4 ms in eight of ten jobs.
 *     0.5 ms    median over 114 sets of tables on an H100 (0.26 to 0.81 in
 *               eight of ten) and over 29 sets on an H200. Only FBGEMM's
 *               operations were timed, so this is a lower end.
 *
 * Up to 55 tables, the number of tables explains nothing (2.6 +- 2.8 us per
 * table). Published times of TorchRec's benchmark of 10 to 1,000 tables suggest
 * 31 us per table. So each table above 55 adds 0 to 31 us, to the upper end
 * only.
 *
 * GPU work and host overlap in part. The step is the root of the sum of their
 * squares. On 246 measured steps below 4 ms this errs by 7.6 % in the median
 * and 10.6 % in the mean, if the host is fitted to the other lists of tables.
 * The larger of the two errs by 13.1 and 15.4 % (make bench, table host).
 */

/* A predicted time and the range in which it is expected. */
struct time_range {
    double ms, least_ms, most_ms;
};

/* Returns the number of kinds of sharding of a plan: the number of TorchRec's
 * sharding types. Pooled tables and sequence tables are in modules of their
 * own, so a type that both use counts twice. If a pooled table is cut by
 * columns, whole tables are emitted as column-wise tables of one piece, so the
 * two are one kind. Includes the kinds of tables that the plan does not place
 * (n_other_kinds of the cluster). The shards must be sorted and have their
 * kinds. */
unsigned plan_n_kinds(const struct plan *plan);

/* Returns the time that the host takes to queue a step of a job with n_kinds
 * kinds of sharding. If the job gives the time, this is the result in any case.
 * Otherwise it is 0 ms if `basis` is HOST_NONE. */
struct time_range host_time(const struct problem *problem,
                            enum host_basis basis, unsigned n_kinds);
/* Returns host_time of the plan, or 0 ms if its cost model predicts no parts of
 * the step. */
struct time_range plan_host(const struct plan *plan);

/* Returns the step time of GPU work that takes total_ms, and a host that takes
 * host_ms. */
double step_with_host_ms(double total_ms, double host_ms);
/* Returns the step time of a priced plan. The range covers the host, the error
 * of the cost model, if it is known, and at its upper end a shared network
 * (plan_shared_ms). */
struct time_range plan_step(const struct plan *plan);
/* Returns whether the host of the plan takes longer than its GPU work. */
bool plan_waits_for_host(const struct plan *plan);

/* GPU work, host time and errors of a priced step. */
struct step_parts {
    const char *cost; /* name of the cost model */
    struct priced_parts priced;
    double error_frac; /* error of the GPU work; 0: unknown */
    double host_ms, host_error_frac;
};
/* Returns the parts of the step of a priced plan. `cost` belongs to the
 * plan. */
struct step_parts plan_step_parts(const struct plan *plan);
/*
 * Returns the relative error of the ratio of two steps, whichever models priced
 * them; NAN if unknown. A step is the root of the sum of the squares of GPU
 * work and host time, so the share of an error that counts is that part's
 * square over the step's.
 *
 * Errors of the GPU work are those of priced_ratio_error for one cost
 * model, and independent for two. The host's time is that of one program,
 * whatever the GPU, so only the difference of the two shares counts.
 */
double step_ratio_error(const struct step_parts *one,
                        const struct step_parts *ours);

#endif
