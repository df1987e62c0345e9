/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_CASE_H
#define NEUROSHARD_MICROBENCH_BENCH_CASE_H

#include "device/stream.h"
#include "microbench/bench_options.h"

/*
 * Cases of a benchmark: sets of tables that are fused and measured. Memory and
 * work of a case.
 */

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

/* Bytes that are kept free for each table that has not been drawn yet. */
#define TABLE_RESERVE_BYTES (64 << 10)

#endif
