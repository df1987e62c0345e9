/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_H
#define NEUROSHARD_MICROBENCH_BENCH_H

#include "base/progress.h"
#include "device/comm.h"

/*
 * Microbenchmark: draws cases from a seed, measures each of them on a device
 * and hands the samples to a sink. Case i of a list is the same on every
 * machine and in every run. So a stopped run resumes by asking the sink for the
 * samples it has. The seed field of a sample holds the id of its case list
 * (case_list_id in microbench/sampler.h).
 */

#define BENCH_MAX_TABLES 64
/* Timed iterations of each case: the minimum, and the maximum if times are
 * unsteady. */
#define BENCH_MIN_ITERATIONS 12
#define BENCH_MAX_ITERATIONS 64
#define BENCH_MIN_MEMORY_BYTES ((uint64_t)16 << 20)
/* Distance between held-out cases: the last of every ten cases is held out. Its
 * tables are also measured alone, so that a predictor can be compared with the
 * sum of single-table costs. */
#define BENCH_HELD_OUT 10
/* Number of cases per measurement of the reference case. */
#define BENCH_SENTINEL 100
/* Largest number of tables of a held-out case in a mixed list whose tables are
 * also measured alone. */
#define BENCH_MAX_SINGLES 15
/* Limit on the work of usual cases in a mixed list, in bytes (case_work). A
 * step at the limit takes about 15 ms on a GPU with 4 TB/s, or 20 ms on a CPU;
 * the mean over the cases is a tenth of that. */
#define BENCH_CUDA_WORK_BYTES 50e9
#define BENCH_CPU_WORK_BYTES 0.4e9

struct bench_options {
    uint64_t seed;
    /* Fused cases; measurements of single tables come on top. 0: as many as the
     * time limit allows; the time limit must then be set. */
    uint64_t n_cases;
    uint64_t first_case;
    /* 0: no limit. The run ends with the case that exceeds the limit. */
    double time_limit_s;
    /* Mixed list: each case has its own batch, precision and optimizer, see
     * microbench/sampler.h. */
    bool is_mixed;
    /* Designed list, see microbench/sampler.h; needs is_mixed. */
    bool is_designed;
    /* Limit on the work of a mixed list's usual cases, in bytes (case_work). */
    double work_bytes;
    uint32_t batch;           /* >= 1; the largest batch of a mixed list */
    enum precision precision; /* fp32 or fp16; ignored by mixed lists */
    /* sgd or row-wise Adagrad; ignored by mixed lists */
    enum optimizer optimizer;
    uint32_t max_tables; /* tables of a case, 1 .. BENCH_MAX_TABLES */
    /* Memory for tables and their optimizer states. If it is 0,
     * bench_fit_memory must be called first. */
    uint64_t memory_bytes;
    bool repeat;               /* measure cases again, as SAMPLE_REPEAT */
    struct progress *progress; /* counts cases; or NULL */
};
/* Sets the defaults: 1,000 cases of up to 15 tables, batch 4,096, fp32,
 * row-wise Adagrad, 4 GiB, seed 0. */
void bench_options_init(struct bench_options *options);
/* If memory_bytes is 0, sets it to the free memory of the device minus the
 * memory that cases need apart from their tables. Rounds down by at most a
 * sixteenth, so that the next run gets the same value. ERR_DEVICE if too little
 * is left. */
int bench_fit_memory(struct bench_options *options, const struct device *device,
                     struct err *err) MUST_CHECK;

/* Returns true if the time limit has passed for work that began at begin_ms
 * (clock_ms). */
bool bench_is_late(const struct bench_options *options, double begin_ms);

struct bench_result {
    uint64_t seed;       /* id of the case list */
    uint64_t n_measured; /* samples that this run put into the sink */
    uint64_t n_resumed;  /* samples that the sink had already */
    uint64_t n_flagged;  /* measured samples that are SAMPLE_THROTTLED */
    uint64_t n_cases;    /* cases of the list that are done now */
    uint64_t n_left;     /* part of n_cases: left to other processes */
    bool interrupted;    /* by a signal; measured samples are kept */
    bool out_of_time;
};

/* Returns the setting that identifies samples made with these options on the
 * device. For a mixed list it is the setting of the published cases and of the
 * reference case. The strings belong to the device. */
struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options);

/* ERR_USAGE if the memory is less than BENCH_MIN_MEMORY_BYTES. All other
 * options must be as struct bench_options requires; this is asserted. */
int bench_check_options(const struct bench_options *options,
                        struct err *err) MUST_CHECK;

/* Measures the cases of a list. The options must have passed
 * bench_check_options, here and in bench_alltoall. ERR_DEVICE if the device has
 * too little memory; errors of the sink are passed on. */
int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err) MUST_CHECK;
/* Measures the all-to-all between the 2 to 1024 ranks of a comm, for n_cases
 * loads, even and uneven, of 4 B to 1 GiB or half of the memory. Stores comm
 * samples of the comm's kind, and skips loads that are stored already. With
 * several processes the call is collective: all processes pass the same
 * options, and only the sink of the first process is used (the others may be
 * NULL). Forward and backward exchanges alternate and form one sample, because
 * both move the same blocks. */
int bench_alltoall(struct bench_result *result, struct comm *comm,
                   const struct bench_options *options,
                   struct sample_sink *sink, struct err *err) MUST_CHECK;

#endif
