/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_BENCH_OPTIONS_H
#define NEUROSHARD_MICROBENCH_BENCH_OPTIONS_H

#include "base/err.h"
#include "base/progress.h"
#include "core/table.h"

/* Options and results of benchmarks. */

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
    /* Time limit of the run; 0: no limit. The sample that exceeds the limit is
     * still measured, and then the run ends. At least one sample is
     * measured. */
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
    /* Sizes of measured exchanges, in bytes of all ranks together. min_bytes 0:
     * any size, with some exchanges of a few bytes. max_bytes 0: as large as
     * the memory allows. */
    uint64_t min_bytes, max_bytes;
    /* true to measure cases again, as SAMPLE_REPEAT */
    bool repeat;
    struct progress *progress; /* counter of cases; may be NULL */
};
/* Sets the defaults: 1,000 cases of up to 15 tables, batch 4,096, fp32,
 * row-wise Adagrad, 4 GiB, seed 0. */
void bench_options_init(struct bench_options *options);

/* Returns true if the time limit of the options has passed. begin_ms is the
 * time at which the work began, as given by clock_ms. */
bool bench_is_late(const struct bench_options *options, double begin_ms);
/* Returns the time on clock_ms() at which the limit ends, or INFINITY. */
double bench_end_ms(const struct bench_options *options, double begin_ms);

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

/* Returns the bytes of the largest exchange that the options allow, of all
 * ranks together. */
uint64_t bench_max_exchange(const struct bench_options *options);
/* Checks the memory of the options: ERR_USAGE if it is less than
 * BENCH_MIN_MEMORY_BYTES, or if no exchange of min_bytes is
 * allowed. All other options must be as struct bench_options
 * requires, which is asserted. */
int bench_check_options(const struct bench_options *options,
                        struct err *err) MUST_CHECK;

#endif
