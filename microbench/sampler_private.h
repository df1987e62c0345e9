/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_PRIVATE_H
#define NEUROSHARD_MICROBENCH_SAMPLER_PRIVATE_H

#include "microbench/draws.h"
#include "microbench/sampler.h"

/* What the two kinds of lists share, and nobody else sees. */

/* Kept free for each table that is still to be drawn. */
#define TABLE_RESERVE_BYTES (64 << 10)

uint64_t row_bytes(const struct case_table *table, enum precision precision);
/* Bags of more than one look-up get part / whole of them, but one at least. */
void shorten_bags(struct bench_case *out, double part, double whole);
/* Rows and skew of all tables, which have their widths and bags. */
void draw_sizes(struct bench_case *out, const struct case_list *list,
                const struct style *style, struct rng *rng);
/* Fills a case of a mixed list, which has the list's setting so far. */
void mixed_draw(struct bench_case *out, const struct case_list *list,
                struct rng *rng);
struct case_bounds mixed_bounds(const struct case_list *list);
/* Of a designed list. case_idx < designed_n_cases(). */
uint64_t designed_n_cases(void);
void designed_draw(struct bench_case *out, const struct case_list *list,
                   uint64_t case_idx);

#endif
