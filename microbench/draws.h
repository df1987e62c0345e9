/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_DRAWS_H
#define NEUROSHARD_MICROBENCH_DRAWS_H

#include "base/rng.h"
#include "microbench/bench_case.h"

/* Random cases of plain and mixed lists (microbench/sampler.h). */

/*
 * Constants of mixed lists:
 *
 *   PUBLISHED_SHARE  fraction of the cases that have the published setting
 *   LONG_CASE        largest work of a long case, in units of work_bytes
 *
 * The case_work of most cases is up to work_bytes. One case in ten is long: its
 * work is up to LONG_CASE times as much.
 */
#define PUBLISHED_SHARE 0.45
#define LONG_CASE 4.0

/* Upper limits that hold for all cases of a list. */
struct case_bounds {
    uint64_t n_lookups; /* lookups per batch */
    uint64_t n_bags;
    /* elements of all outputs: batch x sum of the tables' dims */
    uint64_t n_outputs;
    uint32_t dim;
};
struct case_bounds case_list_bounds(const struct bench_options *options);

/* Returns a random value x, lo <= x < hi (lo must be less than hi). The
 * logarithm of x is nearly uniform. */
double draw_log_uniform(struct rng *rng, double lo, double hi);
/* Two functions that draw the tables of a case. *out must already have the
 * setting of the list. */
void draw_plain(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
void draw_mixed(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);

#endif
