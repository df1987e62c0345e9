/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_PRIVATE_H
#define NEUROSHARD_MICROBENCH_SAMPLER_PRIVATE_H

#include "base/rng.h"
#include "microbench/sampler.h"

/* What the two kinds of lists share, and nobody else sees. */

/* Kept free for each table that is still to be drawn. */
#define TABLE_RESERVE_BYTES (64 << 10)

uint64_t row_bytes(const struct case_table *table, enum precision precision);
/* Fills a case of a mixed list, which has the list's setting so far. */
void mixed_draw(struct bench_case *out, const struct case_list *list,
                struct rng *rng);
struct case_bounds mixed_bounds(const struct case_list *list);
/* Of a designed list. case_idx < designed_n_cases(). */
uint64_t designed_n_cases(void);
void designed_draw(struct bench_case *out, const struct case_list *list,
                   uint64_t case_idx);

#endif
