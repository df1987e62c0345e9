/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_H
#define NEUROSHARD_MICROBENCH_SAMPLER_H

#include "base/rng.h"
#include "device/stream.h"
#include "microbench/bench.h"

/*
 * Case lists: which tables are fused and measured. The (checked) options of a
 * benchmark identify a list. Case i is a pure function of the list and i, with
 * the same bits on every machine (no libm).
 *
 * Plain list: all cases have the same batch, precision and optimizer.
 *
 * Mixed list: each case has its own setting. PUBLISHED_SHARE of the cases have
 * the published setting: the list's batch, fp32, SGD, up to 15 tables of up to
 * 128 columns. The other cases have batches from 1/64 of the list's to all of
 * it, fp32 or fp16, SGD or row-wise Adagrad, up to max_tables tables of up to
 * 512 columns, and up to 200 lookups per bag.
 *
 * Designed list: a fixed number of cases; all tables of a case are alike. Its
 * cases measure one property of a device each: the time of an operation that
 * does almost nothing, of each lookup by width, of hot rows, of footprints, and
 * of pieces of a table. Others repeat published cases. The list is measured
 * like a mixed list; memory and max_tables may shrink its cases.
 */

/* Mixed lists. PUBLISHED_SHARE: share of the cases that have the published
 * setting. LONG_CASE: most cases have a case_work of up to work_bytes; one case
 * in ten is long and has up to LONG_CASE times as much. */
#define PUBLISHED_SHARE 0.45
#define LONG_CASE 4.0

struct case_table {
    struct stream stream; /* rows, pooling factor, skew */
    uint32_t dim;
};

struct bench_case {
    uint32_t batch;
    enum precision precision;
    enum optimizer optimizer;
    struct case_table tables[BENCH_MAX_TABLES];
    uint32_t n_tables;
};

/* Shares of the memory that the options name: bytes for all tables of a case,
 * and bytes for their optimizer states. */
uint64_t case_weight_bytes(const struct bench_options *options);
uint64_t case_state_bytes(const struct bench_options *options);
/* Returns a hash of everything that the cases depend on, below 2^63. For a
 * plain list it leaves out batch, precision and optimizer, which are part of a
 * sample's setting. */
uint64_t case_list_id(const struct bench_options *options);

/* Upper limits of all cases of a list. */
struct case_bounds {
    uint64_t n_lookups; /* per batch */
    uint64_t n_bags;
    uint64_t n_outputs; /* elements of all outputs: batch x sum of dims */
    uint32_t dim;
};
struct case_bounds case_list_bounds(const struct bench_options *options);

uint64_t case_row_bytes(const struct case_table *table,
                        enum precision precision);
/* Bytes of a table's weights in the weight block, a multiple of CASE_ALIGN. */
#define CASE_ALIGN 512
uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision);
/* Approximate number of bytes that a step on the case moves. The time of the
 * step is roughly proportional to it. */
double case_work(const struct bench_case *drawn);

void case_draw(struct bench_case *out, const struct bench_options *options,
               uint64_t case_idx);
/* Reference case of a list, which is measured again and again to see drift. In
 * a mixed list it has the published setting. */
void case_sentinel(struct bench_case *out, const struct bench_options *options);

/* Drawing of cases: from random values for plain and mixed lists, one by one
 * from a fixed sequence for designed lists. */

/* Returns a value of at least lo and below hi, lo < hi, whose logarithm is
 * nearly uniform. */
double draw_log_uniform(struct rng *rng, double lo, double hi);
/* Draw a case; *out already has the list's setting. */
void draw_plain(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
void draw_mixed(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
/* Draws case case_idx < designed_n_cases(). */
void designed_draw(struct bench_case *out, const struct bench_options *options,
                   uint64_t case_idx);
uint64_t designed_n_cases(void);

/* Bytes kept free for each table that is still to be drawn. */
#define TABLE_RESERVE_BYTES (64 << 10)

#endif
