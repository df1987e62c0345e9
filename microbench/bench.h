/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_H
#define NEUROSHARD_MICROBENCH_BENCH_H

#include "base/progress.h"
#include "device/comm.h"

/*
 * Microbenchmark: draws cases from a seed, measures each case on a device and
 * passes the samples to a sink.
 *
 * Case i of a list is the same on every machine and in every run. So a run that
 * was stopped can be resumed: it asks the sink which samples are already there.
 * The seed field of a sample holds the id of its case list (case_list_id in
 * microbench/sampler.h).
 */

#define BENCH_MAX_TABLES 64
/* Number of timed iterations of each case: the minimum, and the maximum, to
 * which the number grows if times are unsteady. */
#define BENCH_MIN_ITERATIONS 12
#define BENCH_MAX_ITERATIONS 64
#define BENCH_MIN_MEMORY_BYTES ((uint64_t)16 << 20)
/* Distance between held-out cases: the last of every ten cases is held out. The
 * tables of a held-out case are also measured alone, so that a predictor can be
 * compared with the sum of the costs of single tables. */
#define BENCH_HELD_OUT 10
/* Number of cases after which the reference case is measured again. */
#define BENCH_SENTINEL 100
/* Largest number of tables that a held-out case in a mixed list may have if its
 * tables are also measured alone. */
#define BENCH_MAX_SINGLES 15
/* Limit on the work of a usual case in a mixed list, in bytes (see case_work).
 * A step at the limit takes about 15 ms on a GPU with 4 TB/s, or 20 ms on a
 * CPU. The mean over the cases is a tenth of the limit. */
#define BENCH_CUDA_WORK_BYTES 50e9
#define BENCH_CPU_WORK_BYTES 0.4e9

struct bench_options {
    uint64_t seed;
    /* Number of fused cases to measure. Measurements of single tables come on
     * top. 0: as many cases as the time limit allows. In this case a time limit
     * must be set. */
    uint64_t n_cases;
    uint64_t first_case;
    /* Time limit of the run; 0: no limit. The case that exceeds the limit is
     * still measured, and then the run ends. */
    double time_limit_s;
    /* True for a mixed list, in which each case has its own batch, precision
     * and optimizer (see microbench/sampler.h). */
    bool is_mixed;
    /* True for a designed list (see microbench/sampler.h). is_mixed must be
     * true, too. */
    bool is_designed;
    /* Limit on the work of a usual case in a mixed list, in bytes (see
     * case_work). */
    double work_bytes;
    uint32_t batch;           /* >= 1; for a mixed list, the largest batch */
    enum precision precision; /* fp32 or fp16; not used by mixed lists */
    /* SGD or row-wise Adagrad; not used by mixed lists */
    enum optimizer optimizer;
    /* largest number of tables of a case, 1 .. BENCH_MAX_TABLES */
    uint32_t max_tables;
    /* Bytes for tables and their optimizer states. If it is 0, the caller must
     * run bench_fit_memory before the benchmark. */
    uint64_t memory_bytes;
    /* true to measure cases again, as SAMPLE_REPEAT */
    bool repeat;
    struct progress *progress; /* counter of cases; may be NULL */
};
/* Sets the defaults: 1,000 cases of up to 15 tables, batch 4,096, fp32,
 * row-wise Adagrad, 4 GiB, seed 0. */
void bench_options_init(struct bench_options *options);
/* If memory_bytes is 0, sets it to the free memory of the device minus the
 * memory that cases need in addition to their tables. The result is rounded
 * down by at most a sixteenth, so that the next run gets the same value.
 * ERR_DEVICE if too little memory is left. */
int bench_fit_memory(struct bench_options *options, const struct device *device,
                     struct err *err) MUST_CHECK;

/* Returns true if the time limit of the options has passed. begin_ms is the
 * time at which the work began, as given by clock_ms. */
bool bench_is_late(const struct bench_options *options, double begin_ms);

struct bench_result {
    uint64_t seed;       /* id of the case list */
    uint64_t n_measured; /* samples that this run put into the sink */
    uint64_t n_resumed;  /* samples that were in the sink already */
    /* number of measured samples that are flagged SAMPLE_THROTTLED */
    uint64_t n_flagged;
    uint64_t n_cases; /* cases of the list that are complete now */
    /* cases that were left to other processes; counted in n_cases, too */
    uint64_t n_left;
    /* stopped by a signal; samples measured so far are kept */
    bool interrupted;
    bool out_of_time;
};

/* Returns the setting under which the samples of these options and this device
 * are stored. For a mixed list it is the setting of the published cases and of
 * the reference case. The strings in the setting belong to the device. */
struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options);

/* Checks the memory of the options: ERR_USAGE if it is less than
 * BENCH_MIN_MEMORY_BYTES. All other options must be as struct bench_options
 * requires, which is asserted. */
int bench_check_options(const struct bench_options *options,
                        struct err *err) MUST_CHECK;

/* Measures the cases of a list. The options must have passed
 * bench_check_options, as for bench_alltoall. ERR_DEVICE if the device has too
 * little memory. Errors of the sink are passed on. */
int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err) MUST_CHECK;
/*
 * Measures the all-to-all between the 2 to 1024 ranks of a comm, for n_cases
 * loads. Loads are even or uneven, and have a size of 4 B to 1 GiB or to half
 * of the memory. Stores comm samples of the comm's kind, and skips loads that
 * are stored already. Forward and backward exchanges alternate. They form one
 * sample, because both move the same blocks.
 *
 * With several processes the call is collective: all processes pass the same
 * options, and only the sink of the first process is used (the others may be
 * NULL).
 */
int bench_alltoall(struct bench_result *result, struct comm *comm,
                   const struct bench_options *options,
                   struct sample_sink *sink, struct err *err) MUST_CHECK;

#endif
