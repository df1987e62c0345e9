/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_H
#define NEUROSHARD_MICROBENCH_BENCH_H

#include "base/progress.h"
#include "device/comm.h"

/*
 * The microbenchmark: cases drawn from a seed, each measured on a device and
 * handed to a sink. Case i of a list is the same on every machine and every
 * run, so a stopped run resumes by asking the sink what it has. Samples bear
 * the name of their list (case_list_id in microbench/sampler.h) as seed.
 */

#define BENCH_MAX_TABLES 64
/* Timed, of each case: at least, and where they are unsteady at most. */
#define BENCH_MIN_ITERATIONS 12
#define BENCH_MAX_ITERATIONS 64
#define BENCH_MIN_MEMORY_BYTES ((uint64_t)16 << 20)
/* Of ten cases the last is held out: its tables are measured alone as well, so
 * that a predictor can be compared with the sum of single costs. */
#define BENCH_HELD_OUT 10
/* One sentinel for that many cases. */
#define BENCH_SENTINEL 100
/* Cases of a mixed list with more tables have no singles. */
#define BENCH_MAX_SINGLES 15
/* Work of the usual cases of a mixed list, at most: some 15 ms a step on a GPU
 * with 4 TB/s, 20 ms on a CPU; on the mean a tenth of that. */
#define BENCH_CUDA_WORK_BYTES 50e9
#define BENCH_CPU_WORK_BYTES 0.4e9

struct bench_options {
    uint64_t seed;
    uint64_t n_cases; /* fused cases; their singles come on top. 0: until the
                         time limit, which then must be given */
    uint64_t first_case;
    double time_limit_s; /* 0: none; ends with the case that exceeds it */
    bool is_mixed;     /* each case with a batch, precision and optimizer of its
                          own, see microbench/sampler.h */
    bool is_designed;  /* the designed list, see there; needs is_mixed */
    double work_bytes; /* of a mixed list's usual cases, at most */
    uint32_t batch;    /* >= 1; of a mixed list: the largest */
    enum precision precision; /* fp32 or fp16; not of a mixed list */
    enum optimizer optimizer; /* sgd or row-wise Adagrad; not of a mixed list */
    uint32_t max_tables;      /* fused in a case, 1 .. max */
    uint64_t memory_bytes;    /* for the tables and their optimizer state; 0
                                 needs bench_fit_memory first */
    bool repeat;              /* measure cases again, stored as SAMPLE_REPEAT */
    struct progress *progress; /* of cases; or NULL */
};
/* 1,000 cases of up to 15 tables, batch 4,096, fp32, row-wise Adagrad, 4 GiB,
 * seed 0. */
void bench_options_init(struct bench_options *options);
/* Where memory_bytes is 0, sets it to what is free on the device less what
 * cases take beside it, rounded down by at most a sixteenth, so that the next
 * run finds the same. ERR_DEVICE where too little is left. */
int bench_fit_memory(struct bench_options *options, const struct device *device,
                     struct err *err) MUST_CHECK;

/* Whether what began at begin_ms (clock_ms) has used its time up. */
bool bench_is_late(const struct bench_options *options, double begin_ms);

struct bench_result {
    uint64_t seed;       /* name of the case list */
    uint64_t n_measured; /* samples put into the sink now */
    uint64_t n_resumed;  /* found there already */
    uint64_t n_flagged;  /* of the measured ones: SAMPLE_THROTTLED */
    uint64_t n_cases;    /* of the list that are done now */
    uint64_t n_left;     /* of them: to processes that were at them */
    bool interrupted;    /* by a signal; what was measured is kept */
    bool out_of_time;
};

/* What distinguishes the samples that these options make on that device (of a
 * mixed list: its published cases and sentinels); the strings are the
 * device's. */
struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options);

/* ERR_USAGE where the memory is less than BENCH_MIN_MEMORY_BYTES. All else must
 * be as struct bench_options says. */
int bench_check_options(const struct bench_options *options,
                        struct err *err) MUST_CHECK;

/* Of options that have passed bench_check_options, as are those of the next.
 * Fails with ERR_DEVICE where the device has too little memory, and with what
 * the sink says. */
int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err) MUST_CHECK;
/* All-to-all between the 2 to 1024 ranks of a comm, over n_cases loads, even
 * and uneven, of 4 B to 1 GiB or half of the memory; comm samples of the comm's
 * kind. What is stored already is not measured again. Where the comm has
 * several processes it is collective: all have the same options, the first
 * one's sink counts and the others' may be NULL. Forward and backward exchanges
 * alternate and are one sample: both move the same blocks. */
int bench_alltoall(struct bench_result *result, struct comm *comm,
                   const struct bench_options *options,
                   struct sample_sink *sink, struct err *err) MUST_CHECK;

#endif
