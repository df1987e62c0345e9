/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_H
#define NEUROSHARD_MICROBENCH_SAMPLER_H

#include "device/stream.h"
#include "microbench/bench.h"

/*
 * Lists of cases: which tables are fused and measured. Case i is a pure
 * function of the list and i, with the same bits on every machine (no libm).
 */

struct case_list {
    uint64_t seed;
    uint32_t batch;
    uint32_t max_tables; /* 1 .. BENCH_MAX_TABLES */
    enum precision precision;
    uint64_t weight_bytes; /* that the tables of a case may take together */
};

struct case_table {
    struct stream stream; /* rows, pooling, skew */
    uint32_t dim;
};

struct bench_case {
    struct case_table tables[BENCH_MAX_TABLES];
    uint32_t n_tables;
};

/* Hash of what the cases depend on apart from batch and precision, which are
 * part of a setting: below 2^63. */
uint64_t case_list_id(const struct case_list *list);

/* Bytes of a table's weights in the arena, whole CASE_ALIGN. */
#define CASE_ALIGN 512
uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision);

void case_draw(struct bench_case *out, const struct case_list *list,
               uint64_t case_idx);
/* The one case of a list that is measured again and again. */
void case_sentinel(struct bench_case *out, const struct case_list *list);
/* Table t of a case as a case of its own; it sees the same look-ups. */
void case_single(struct bench_case *out, const struct bench_case *from,
                 uint32_t t);

/* At least lo, below hi; the logarithm is close to uniform. lo < hi. */
struct rng;
double draw_log_uniform(struct rng *rng, double lo, double hi);

#endif
