/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SAMPLE_H
#define NEUROSHARD_CORE_SAMPLE_H

#include "base/lock.h"
#include "core/table.h"

EXTERN_C_BEGIN

/* A sample is one measurement: several tables looked up together on one device,
 * and the times of a training step there. microbench and exec make samples and
 * pass them to a sink, which the command-line layer connects to the database of
 * samples. The training of cost models reads the samples back. */

/* Conditions of a measurement. Two samples are comparable only if all of these
 * conditions are equal. */
struct sample_setting {
    int64_t id;         /* database key, 0 before it is stored */
    const char *device; /* such as "cpu:AMD EPYC 9575F" or "cuda:NVIDIA H200" */
    uint32_t n_threads; /* number of CPU threads; 0 on an accelerator */
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch;  /* batch of this device, in samples */
    const char *isa; /* instruction set, such as "avx512" or "sm_90" */
    /* The next three members are conditions that may change while `device`
     * stays the same. A condition is "" or NULL if it is unknown. */
    /* version of the GPU driver ("570.86.15"), or for a CPU the operating
     * system ("Linux 6.1.0") */
    const char *driver;
    /* version of the CUDA runtime ("12.8"), or "" for a CPU */
    const char *cuda;
    const char *host; /* name of the host */
};

/* Returns the text, or "" if the text is NULL. */
static inline const char *setting_known(const char *text)
{
    return text ? text : "";
}

/* A table of a measurement, with the skew of the index stream that was
 * generated for it. */
struct sample_table {
    uint64_t n_rows;
    uint32_t dim;
    double pooling_factor;
    /* Zipf exponent of the stream; NAN if the stream was generated from bins */
    double zipf_alpha;
    /* reuse histogram, counted in the generated stream */
    double bins[REUSE_BINS];
    double n_unique; /* mean number of unique rows per batch */
};

/* Median, 10 % quantile and 90 % quantile of the times of all iterations, in
 * ms. */
struct timing {
    double median_ms, p10_ms, p90_ms;
};
/* Returns the median and the quantiles of ms[n], the times of n repetitions.
 * Sorts ms in place. */
struct timing timing_of(double *ms, size_t n);

enum sample_kind {
    /* microbenchmark case: all tables of the case in one call */
    SAMPLE_FUSED,
    SAMPLE_SINGLE,   /* one table of a SAMPLE_FUSED case, measured alone */
    SAMPLE_EXECUTED, /* measurement of one rank of an executed plan */
    SAMPLE_REPEAT,   /* second measurement of a SAMPLE_FUSED case */
    SAMPLE_SENTINEL  /* reference case, which is repeated to show drift */
};
extern const char *const sample_kind_names[];

/* Bit of sample.flags: the sample was measured while the clocks were lowered or
 * the machine was disturbed. */
#define SAMPLE_THROTTLED 1u
/* Bit that replaces SAMPLE_THROTTLED while such a sample is to be used like any
 * other. It is not stored. */
#define SAMPLE_ACCEPTED 2u

/* State of the device while a sample was taken. A value is 0 if the device does
 * not report it. */
struct sample_health {
    double sm_mhz, memory_mhz; /* clock rates */
    double temperature_c, power_w;
    /* reasons for lowered clocks, as bits of NVML; or 0 */
    uint64_t throttle_reasons;
};

struct sample {
    int64_t id; /* database key, 0 before it is stored */
    /* Setting of the sample, not owned. It is set if samples of several
     * settings are read together; otherwise it may be NULL. */
    const struct sample_setting *setting;
    enum sample_kind kind;
    /* 1 + index of the table for SAMPLE_SINGLE, otherwise 0 */
    uint32_t part;
    /* seed that the list of cases was generated from */
    uint64_t seed;
    uint64_t case_idx;           /* index of the case in its list */
    struct sample_table *tables; /* [n_tables] */
    uint32_t n_tables;
    /* `total` is the time of forward and backward together. */
    struct timing forward, backward, total;
    /* Parts of the backward pass, each measured alone; 0 if not measured. */
    struct timing linearise, sort, update;
    struct sample_health health;
    uint32_t n_iterations;
    unsigned flags;
    const char *version;    /* version of the program */
    const char *started_at; /* start time, UTC */
};

/* Compares two samples of one setting by seed, case, kind and part. */
int sample_compare(const struct sample *a, const struct sample *b);

/* Drift and spread of the times of the reference case over a whole run. Both
 * are NAN if there are too few samples. */
struct sentinels {
    size_t n;
    /* median of the later half of the run divided by median of the earlier
     * half, minus 1 */
    double drift_frac;
    double spread_frac; /* (90 % quantile - 10 % quantile) / median */
};
struct sentinels sample_sentinels(const struct sample *samples, size_t n);

/* Samples of a disturbed machine among others. The spread of a sample is the
 * 10th to the 90th percentile of its time, divided by the median; the members
 * here are medians over the samples, NAN if there are none. */
struct disturbed_samples {
    size_t n_left_out;  /* samples with SAMPLE_THROTTLED */
    size_t n_used;      /* samples with SAMPLE_ACCEPTED */
    double spread_frac; /* spread of the samples with either bit */
    double others_spread_frac;
};
struct disturbed_samples sample_disturbed(const struct sample *samples,
                                          size_t n);

/* One measurement of an all-to-all between ranks, with one pattern of message
 * sizes. */
struct comm_sample {
    /* transport: "copy" (ranks of one process), "mpi", "shm" or "nccl" */
    const char *kind;
    uint32_t n_ranks;
    /* number of hosts (or NVLink domains) that the ranks are on; 1: all ranks
     * are on one host */
    uint32_t n_hosts;
    /* bytes of all blocks, including the blocks that a rank sends to itself */
    uint64_t total_bytes;
    /* largest value over the ranks of max(bytes sent, bytes received) */
    uint64_t max_bytes;
    /* largest value over the hosts of max(bytes sent to other hosts, bytes
     * received from other hosts); 0: unknown, or there is only one host */
    uint64_t host_bytes;
    struct timing time;
    uint32_t n_iterations;
};

/* Destination of samples. `put` returns only when the sample is stored safely,
 * or when storing it has failed. So a sample for which `put` has returned
 * success survives if the process is killed. */
struct sample_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct sample *sample, struct err *err);
    int (*put_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err);
    /* Returns 1 if a sample with this seed, case, kind and part is stored
     * already. A resumed run then skips the sample. */
    int (*has)(void *ctx, const struct sample_setting *setting, uint64_t seed,
               uint64_t case_idx, enum sample_kind kind, uint32_t part);
    /* Returns 1 if an exchange of this kind, with these ranks, hosts and bytes,
     * is stored already. The member is NULL if runs are not resumed. */
    int (*has_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample);
    /* find_interference_probe finds the best time of the interference probe
     * (device/interference_probe.h) on the setting's device with this version
     * of the program; 0 if no time is known. put_interference_probe stores a
     * better time. Both members are NULL if the sink does not store times of
     * the interference probe. */
    int (*find_interference_probe)(void *ctx,
                                   const struct sample_setting *setting,
                                   double *best_ms, struct err *err);
    int (*put_interference_probe)(void *ctx,
                                  const struct sample_setting *setting,
                                  double best_ms, struct err *err);
    /* Claims a case of the setting for this process: locks the case until
     * lock_release is called. If another process has claimed the case, *lock
     * stays empty. The member is NULL if no other process measures. */
    int (*claim)(void *ctx, const struct sample_setting *setting, uint64_t seed,
                 uint64_t case_idx, struct lock *lock, struct err *err);
    /* Called for each sample that is stored, with one line of text without a
     * newline; may be NULL. */
    void (*tell)(const char *line);
};
/* Stores the sample by sink->put and then reports it by sink->tell. */
int sample_sink_put(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, struct err *err) MUST_CHECK;
/* Stores the sample unless the sink has it already. Adds 1 to *n_added if the
 * sample was new. */
int sample_sink_add(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, uint32_t *n_added,
                    struct err *err) MUST_CHECK;
int sample_sink_put_comm(const struct sample_sink *sink,
                         const struct sample_setting *setting,
                         const struct comm_sample *sample,
                         struct err *err) MUST_CHECK;

EXTERN_C_END

#endif
