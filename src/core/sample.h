/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SAMPLE_H
#define NEUROSHARD_CORE_SAMPLE_H

#include "base/lock.h"
#include "core/table.h"

EXTERN_C_BEGIN

/* One measurement: tables fused on one device, and the times of a step there.
 * microbench and exec make samples and pass them to a sink. The command-line
 * layer connects the sink to the store. Training reads samples back. */

/* All conditions that two samples must share to be comparable. */
struct sample_setting {
    int64_t id;         /* database key, 0 before it is stored */
    const char *device; /* "cpu:AMD EPYC 9575F", "cuda:NVIDIA H200" */
    uint32_t n_threads; /* CPU threads; 0 on an accelerator */
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch;  /* samples of the batch on this device */
    const char *isa; /* "avx512", "sm_90" */
    /* Conditions that may change while `device` stays the same; "" or NULL if
     * unknown. */
    const char *driver; /* "570.86.15"; for a CPU the system, "Linux 6.1.0" */
    const char *cuda;   /* version of the CUDA runtime, "12.8"; "" for a CPU */
    const char *host;   /* name of the host */
};

/* Returns the text, or "" if it is NULL. */
static inline const char *setting_known(const char *text)
{
    return text ? text : "";
}

/* A table as it was measured, with the skew as it was generated. */
struct sample_table {
    uint64_t n_rows;
    uint32_t dim;
    double pooling_factor;
    double zipf_alpha;       /* NAN if the stream was generated from bins */
    double bins[REUSE_BINS]; /* reuse histogram of the stream (realised) */
    double n_unique;         /* mean unique rows per batch */
};

/* Median and quantiles over the iterations, in ms. */
struct timing {
    double median_ms, p10_ms, p90_ms;
};
/* Returns the timing of n repetitions; sorts ms in place. */
struct timing timing_of(double *ms, size_t n);

enum sample_kind {
    SAMPLE_FUSED,    /* microbenchmark case: all its tables in one call */
    SAMPLE_SINGLE,   /* one table of a fused case, alone */
    SAMPLE_EXECUTED, /* one rank of an executed plan */
    SAMPLE_REPEAT,   /* a fused case measured again */
    SAMPLE_SENTINEL  /* reference case, repeated to see drift */
};
extern const char *const sample_kind_names[];

/* Bit of sample.flags: measured while clocks were lowered or the machine was
 * disturbed. */
#define SAMPLE_THROTTLED 1u

/* State of the device while a sample was taken; 0 if the device does not report
 * it. */
struct sample_health {
    double sm_mhz, memory_mhz; /* clock rates */
    double temperature_c, power_w;
    uint64_t throttle_reasons; /* bits of NVML, or 0 */
};

struct sample {
    int64_t id; /* database key, 0 before it is stored */
    /* Not owned. Set if samples of several settings are read together;
     * otherwise it may be NULL. */
    const struct sample_setting *setting;
    enum sample_kind kind;
    uint32_t part;               /* SAMPLE_SINGLE: 1 + table index; else 0 */
    uint64_t seed;               /* seed of the case list */
    uint64_t case_idx;           /* number of the case in its list */
    struct sample_table *tables; /* [n_tables] */
    uint32_t n_tables;
    /* total: forward and backward together */
    struct timing forward, backward, total;
    /* Parts of backward, each measured alone; 0 if they were not measured. */
    struct timing linearise, sort, update;
    struct sample_health health;
    uint32_t n_iterations;
    unsigned flags;
    const char *version;    /* version of the program */
    const char *started_at; /* start time, UTC */
};

/* Compares two samples of one setting by seed, case, kind and part. */
int sample_compare(const struct sample *a, const struct sample *b);

/* Drift and spread of the reference case over a whole run; NAN if there are too
 * few samples. */
struct sentinels {
    size_t n;
    /* median of the later half / median of the earlier half - 1 */
    double drift_frac;
    double spread_frac; /* (p90 - p10) / median */
};
struct sentinels sample_sentinels(const struct sample *samples, size_t n);

/* All-to-all between ranks with one pattern of sizes. */
struct comm_sample {
    const char *kind; /* "copy" (ranks of one process), "mpi", "shm", "nccl" */
    uint32_t n_ranks;
    /* number of hosts or NVLink domains with ranks; 1: all ranks are in one */
    uint32_t n_hosts;
    /* bytes of all blocks, including blocks that stay on their rank */
    uint64_t total_bytes;
    uint64_t max_bytes; /* largest max(sent, received) over the ranks */
    struct timing time;
    uint32_t n_iterations;
};

/* Destination of samples. `put` returns when the sample is stored safely or has
 * failed: an acknowledged sample survives a kill. */
struct sample_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct sample *sample, struct err *err);
    int (*put_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err);
    /* Returns 1 if this (seed, case, kind, part) is stored already, so that a
     * resumed run skips it. */
    int (*has)(void *ctx, const struct sample_setting *setting, uint64_t seed,
               uint64_t case_idx, enum sample_kind kind, uint32_t part);
    /* Returns 1 if an exchange of this kind, with these ranks, hosts and bytes,
     * is stored already. NULL if runs are not resumed. */
    int (*has_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample);
    /* find_interference_probe gets the best time of the interference probe
     * (device/interference_probe.h) on the setting's device with this version
     * of the program, 0 if unknown. put_interference_probe stores a better
     * time. Both are NULL if the sink does not store them. */
    int (*find_interference_probe)(void *ctx,
                                   const struct sample_setting *setting,
                                   double *best_ms, struct err *err);
    int (*put_interference_probe)(void *ctx,
                                  const struct sample_setting *setting,
                                  double best_ms, struct err *err);
    /* Claims a case of the setting for this process: locks the case until
     * lock_release. If another process has claimed it, the lock stays empty.
     * NULL if no other process measures. */
    int (*claim)(void *ctx, const struct sample_setting *setting, uint64_t seed,
                 uint64_t case_idx, struct lock *lock, struct err *err);
    /* Called with one line, without a newline, for each sample that is stored;
     * may be NULL. */
    void (*tell)(const char *line);
};
/* Calls put and then tell. */
int sample_sink_put(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, struct err *err) MUST_CHECK;
/* Stores the sample unless it is stored already; if it stored it, adds 1 to
 * *n_added. */
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
