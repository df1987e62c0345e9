/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_DRAWS_H
#define NEUROSHARD_MICROBENCH_DRAWS_H

#include "base/rng.h"
#include "microbench/sampler.h"

/* How the cases of lists come about: those of plain and mixed lists by random
 * values, those of a designed list one by one. */

/* At least lo, below hi; the logarithm is close to uniform. lo < hi. */
double draw_log_uniform(struct rng *rng, double lo, double hi);
/* Fill a case, which has the list's setting so far. */
void draw_plain(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
void draw_mixed(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
/* case_idx < designed_n_cases(). */
void designed_draw(struct bench_case *out, const struct bench_options *options,
                   uint64_t case_idx);
uint64_t designed_n_cases(void);

/* Kept free for each table that is still to be drawn. */
#define TABLE_RESERVE_BYTES (64 << 10)

#endif
