/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_H
#define NEUROSHARD_MICROBENCH_BENCH_H

#include <stdbool.h>

#include "core/sample.h"
#include "device/device.h"

/*
 * The microbenchmark: cases drawn from a seed, each measured on a device and
 * handed to a sink. Case i of a list is the same on every machine and every
 * run, so a stopped run resumes by asking the sink what it has. Samples bear
 * the name of their list (case_list_id in microbench/sampler.h) as seed.
 */

#define BENCH_MAX_TABLES 64
#define BENCH_MIN_ITERATIONS 12
#define BENCH_MAX_ITERATIONS 64
#define BENCH_MIN_MEMORY_BYTES ((uint64_t)16 << 20)
/* Of ten cases the last is held out: its tables are measured alone as well, so
 * that a predictor can be compared with the sum of single costs. */
#define BENCH_HELD_OUT 10
/* One sentinel for that many cases. */
#define BENCH_SENTINEL 100

struct bench_options {
    uint64_t seed;
    uint64_t n_cases; /* fused cases; their singles come on top */
    uint64_t first_case;
    double time_limit_s; /* 0: none; ends with the case that exceeds it */
    uint32_t batch;
    enum precision precision; /* fp32 or fp16 */
    enum optimizer optimizer; /* sgd or row-wise Adagrad */
    uint32_t max_tables;      /* fused in a case, 1 .. max */
    uint64_t memory_bytes;    /* for the tables and their optimizer state */
    unsigned n_iterations;    /* timed, at least */
    bool repeat;              /* measure cases again, stored as SAMPLE_REPEAT */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
};
/* 1,000 cases of up to 15 tables, batch 4,096, fp32, row-wise Adagrad, 4 GiB,
 * seed 0. */
void bench_options_init(struct bench_options *options);

struct bench_result {
    uint64_t seed;       /* name of the case list */
    uint64_t n_measured; /* samples put into the sink now */
    uint64_t n_resumed;  /* found there already */
    uint64_t n_cases;    /* of the list that are done now */
    bool interrupted;    /* by a signal; what was measured is kept */
    bool out_of_time;
};

/* What distinguishes the samples that these options make on that device; the
 * strings are the device's. */
struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options);

/* ERR_USAGE for options that cannot be measured. */
int bench_check_options(const struct bench_options *options,
                        struct err *err) MUST_CHECK;

/* Fails with ERR_USAGE for options that make no sense, ERR_DEVICE where the
 * device has too little memory, and with what the sink says. */
int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err) MUST_CHECK;
/* All-to-all between n_ranks buffers of this process, over n_cases uneven
 * loads, small and large; comm samples of kind "copy". Forward and backward
 * exchanges alternate and are one sample: both move the same blocks. */
int bench_alltoall(struct bench_result *result, struct device *device,
                   uint32_t n_ranks, const struct bench_options *options,
                   struct sample_sink *sink, struct err *err) MUST_CHECK;

#endif
