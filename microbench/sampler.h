/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_H
#define NEUROSHARD_MICROBENCH_SAMPLER_H

#include "base/rng.h"
#include "device/stream.h"
#include "microbench/bench.h"

/*
 * Case lists: the sets of tables that are fused and measured. The (checked)
 * options of a benchmark identify a list. Case i is a pure function of the list
 * and i. It has the same bits on every machine, because libm is not used.
 *
 * Plain list: all cases have the same batch, precision and optimizer.
 *
 * Mixed list: each case has its own setting. A fraction PUBLISHED_SHARE of the
 * cases has the published setting: the list's batch, fp32, SGD, up to 15 tables
 * of up to 128 columns. The other cases have batches from 1/64 of the list's to
 * all of it, fp32 or fp16, SGD or row-wise Adagrad, up to max_tables tables of
 * up to 512 columns, and up to 200 lookups per bag.
 *
 * Designed list: a fixed number of cases; all tables of a case are alike. Each
 * case measures one property of a device: the time of an operation that does
 * almost nothing, the time of each lookup by width, the effect of hot rows, of
 * footprints, or of pieces of a table. Some cases repeat published cases. The
 * list is measured like a mixed list; memory and max_tables may shrink its
 * cases.
 */

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

struct case_table {
    struct stream stream; /* number of rows, pooling factor, skew */
    uint32_t dim;
};

struct bench_case {
    uint32_t batch;
    enum precision precision;
    enum optimizer optimizer;
    struct case_table tables[BENCH_MAX_TABLES];
    uint32_t n_tables;
};

/* Two functions that return parts of the memory that the options allow: the
 * bytes for all tables of a case, and the bytes for their optimizer states. */
uint64_t case_weight_bytes(const struct bench_options *options);
uint64_t case_state_bytes(const struct bench_options *options);
/* Returns a hash of all options on which the cases depend. The hash is below
 * 2^63. For a plain list the hash leaves out batch, precision and optimizer,
 * because they are part of a sample's setting. */
uint64_t case_list_id(const struct bench_options *options);

/* Upper limits that hold for all cases of a list. */
struct case_bounds {
    uint64_t n_lookups; /* lookups per batch */
    uint64_t n_bags;
    /* elements of all outputs: batch x sum of the tables' dims */
    uint64_t n_outputs;
    uint32_t dim;
};
struct case_bounds case_list_bounds(const struct bench_options *options);

uint64_t case_row_bytes(const struct case_table *table,
                        enum precision precision);
/* Alignment of tables in bytes; case_table_bytes returns the bytes of a table's
 * weights in the weight block, which are a multiple of CASE_ALIGN. */
#define CASE_ALIGN 512
uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision);
/* Returns the approximate number of bytes that one step on the case moves. The
 * time of the step is roughly proportional to this number. */
double case_work(const struct bench_case *drawn);

void case_draw(struct bench_case *out, const struct bench_options *options,
               uint64_t case_idx);
/* Makes the reference case of a list, which is measured again and again to
 * detect drift. In a mixed list the reference case has the published
 * setting. */
void case_sentinel(struct bench_case *out, const struct bench_options *options);

/* Functions that draw cases. Cases of plain and mixed lists are drawn from
 * random values. Cases of designed lists come one by one from a fixed
 * sequence. */

/* Returns a random value x, lo <= x < hi (lo must be less than hi). The
 * logarithm of x is nearly uniform. */
double draw_log_uniform(struct rng *rng, double lo, double hi);
/* Two functions that draw the tables of a case. *out must already have the
 * setting of the list. */
void draw_plain(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
void draw_mixed(struct bench_case *out, const struct bench_options *options,
                struct rng *rng);
/* Makes case number case_idx of a designed list; case_idx <
 * designed_n_cases(). */
void designed_draw(struct bench_case *out, const struct bench_options *options,
                   uint64_t case_idx);
uint64_t designed_n_cases(void);

/* Bytes that are kept free for each table that has not been drawn yet. */
#define TABLE_RESERVE_BYTES (64 << 10)

#endif
