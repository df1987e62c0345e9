/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_H
#define NEUROSHARD_MICROBENCH_SAMPLER_H

#include "base/rng.h"
#include "device/stream.h"
#include "microbench/bench.h"

/*
 * Lists of cases: which tables are fused and measured. A list is named by the
 * options of a bench, which have been checked. Case i is a pure function of
 * the list and i, with the same bits on every machine (no libm).
 *
 * All cases of a plain list have one batch, precision and optimizer. In a
 * mixed list each has its own: PUBLISHED_SHARE of the cases are at the
 * published setting (the list's batch, fp32, SGD, up to 15 tables of up to 128
 * columns), the others have batches from 1/64 of the list's to all of it,
 * fp32 or fp16, SGD or row-wise Adagrad, up to max_tables tables of up to 512
 * columns, and up to 200 look-ups a bag.
 *
 * A designed list has a fixed number of cases, each of tables that are all
 * alike, from which one reads what a device's figures are: the time of an
 * operation that does next to nothing, of each look-up by width, of hot rows,
 * of footprints, of pieces of a table, and cases that were published. It is
 * measured as a mixed list is; memory and max_tables cut its cases short.
 */

/* Of a mixed list: most cases have up to work_bytes of case_work, one in ten up
 * to LONG_CASE times as much. */
#define PUBLISHED_SHARE 0.45
#define LONG_CASE 4.0

struct case_table {
    struct stream stream; /* rows, pooling, skew */
    uint32_t dim;
};

struct bench_case {
    uint32_t batch;
    enum precision precision;
    enum optimizer optimizer;
    struct case_table tables[BENCH_MAX_TABLES];
    uint32_t n_tables;
};

/* Of the memory that the options name: what the tables of a case may take
 * together, and what their optimizer states may. */
uint64_t case_weight_bytes(const struct bench_options *options);
uint64_t case_state_bytes(const struct bench_options *options);
/* Hash of what the cases depend on, below 2^63; of a plain list apart from
 * batch, precision and optimizer, which are part of a setting. */
uint64_t case_list_id(const struct bench_options *options);

/* What no case of the list exceeds. */
struct case_bounds {
    uint64_t n_lookups; /* a batch */
    uint64_t n_bags;
    uint64_t n_outputs; /* elements: batch x sum of dims */
    uint32_t dim;
};
struct case_bounds case_list_bounds(const struct bench_options *options);

uint64_t case_row_bytes(const struct case_table *table,
                        enum precision precision);
/* Bytes of a table's weights in the arena, whole CASE_ALIGN. */
#define CASE_ALIGN 512
uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision);
/* Bytes that a step on the case moves, roughly: what its time goes with. */
double case_work(const struct bench_case *drawn);

void case_draw(struct bench_case *out, const struct bench_options *options,
               uint64_t case_idx);
/* The one case of a list that is measured again and again; of a mixed list at
 * the published setting. */
void case_sentinel(struct bench_case *out, const struct bench_options *options);

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
