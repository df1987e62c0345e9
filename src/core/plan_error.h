/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_ERROR_H
#define NEUROSHARD_CORE_PLAN_ERROR_H

#include "core/plan.h"

/*
 * Errors of a plan's total and of the ratio of two totals. They follow from the
 * errors of the cost model (struct cost_error). As those, they hold nine of ten
 * times. The dense part has an error of its own, or none if the user gave its
 * time.
 */

/* Parts of a plan's total that have an error of their own. */
struct priced_parts {
    double total_ms;
    /* times of exposed lookups and exposed exchanges within total_ms; NAN if
     * the cost model predicts no parts */
    double lookup_ms, exchange_ms;
    struct cost_error lookup_error, exchange_error;
};
/* Returns the parts of a priced plan. */
struct priced_parts plan_priced_parts(const struct plan *plan);

/* Returns the relative error of total_ms, as if the errors of lookups,
 * exchanges, tables in host memory and the dense part were independent. Returns
 * 0 if the error is unknown. */
double plan_error_frac(const struct plan *plan);
/* Prints the relative error of total_ms, such as " +-16 %". If only the error
 * of the lookups is known, prints their part, " +-16 % of look-ups alone".
 * Prints nothing if that is unknown, too. */
void plan_print_error(const struct plan *plan, struct buf *out);

/*
 * Factor by which exchanges across hosts are longer on a shared network than at
 * the published bandwidth. Assumed: users of 16 hosts of eight H20 report 20
 * GB/s a GPU (NCCL issue 1792). Published measurements of such adapters are
 * about twice as fast.
 */
#define SHARED_NETWORK_TIMES 2
/* Returns the time by which exchanges across hosts would lengthen the plan's
 * total on a shared network. Returns 0 if the plan has one host, or if the
 * bandwidth was given or measured. */
double plan_shared_ms(const struct plan *plan);

/*
 * Error of the ratio of the lookup times of two plans of one list of tables, as
 * a share of the larger error of the two times. The plans hold the same tables,
 * so a part of their errors cancels. Measured with 39 plans of six lists whose
 * model saw neither the list nor its plans (bench_ranks): nine of ten ratios of
 * 109 are within this share by a roofline, and within 0.49 by a net.
 */
#define RATIO_ERROR_SHARE 0.83

/*
 * Returns the error of the ratio of `one`'s total to `ours`'s total; NAN if
 * unknown. The ratio r is within r +- error. One cost model must have priced
 * both, and they must be plans of one list.
 *
 * The error of the lookups is RATIO_ERROR_SHARE of theirs. The exchanges of
 * both plans run on the same links, so they share their prediction error, and
 * only the difference of the two exchange times contributes. The error is r
 * times the combined error divided by the larger total.
 */
double priced_ratio_error(const struct priced_parts *one,
                          const struct priced_parts *ours);

#endif
