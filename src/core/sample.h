/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SAMPLE_H
#define NEUROSHARD_CORE_SAMPLE_H

#include "base/lock.h"
#include "core/table.h"

EXTERN_C_BEGIN

/*
 * One measurement: tables fused on one device, and what a step took there.
 * microbench and exec make samples and hand them to a sink; cli ties the sink
 * to the store; training reads them back.
 */

/* Everything that makes two samples comparable. */
struct sample_setting {
    int64_t id;         /* database key, 0 before it is stored */
    const char *device; /* "cpu:AMD EPYC 9575F", "cuda:NVIDIA H200" */
    uint32_t n_threads; /* CPU threads; 0 on an accelerator */
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch;  /* samples looked up on this device */
    const char *isa; /* "avx512", "sm_90" */
    /* What may change under the same device; "" or NULL where unknown. */
    const char *driver; /* "570.86.15"; of a CPU the system, "Linux 6.1.0" */
    const char *cuda;   /* version of the runtime, "12.8"; of a CPU "" */
    const char *host;   /* its name */
};

/* Of such a text "" where it is NULL. */
static inline const char *setting_known(const char *text)
{
    return text ? text : "";
}

/* A table as it was measured; skew as it was generated. */
struct sample_table {
    uint64_t n_rows;
    uint32_t dim;
    double pooling_factor;
    double zipf_alpha;       /* NAN where bins were the recipe */
    double bins[REUSE_BINS]; /* reuse histogram of the stream (realised) */
    double n_unique;         /* mean unique rows a batch */
};

/* Median and spread over the iterations, in ms. */
struct timing {
    double median_ms, p10_ms, p90_ms;
};
struct timing timing_of(double *ms, size_t n); /* sorts ms in place */

enum sample_kind {
    SAMPLE_FUSED,    /* microbenchmark case: all its tables in one call */
    SAMPLE_SINGLE,   /* one table of a fused case, alone */
    SAMPLE_EXECUTED, /* a rank of an executed plan */
    SAMPLE_REPEAT,   /* a fused case measured again */
    SAMPLE_SENTINEL  /* the same case again and again, to see drift */
};
extern const char *const sample_kind_names[];

/* flags: measured while clocks were lowered or the machine was disturbed */
#define SAMPLE_THROTTLED 1u

/* The device while a sample was taken: 0 where it does not say. */
struct sample_health {
    double sm_mhz, memory_mhz; /* clocks */
    double temperature_c, power_w;
    uint64_t throttle_reasons; /* NVML's bits, or 0 */
};

struct sample {
    int64_t id; /* database key, 0 before it is stored */
    /* Borrowed; set where samples of several settings are read together, else
     * it may be NULL. */
    const struct sample_setting *setting;
    enum sample_kind kind;
    uint32_t part;               /* SAMPLE_SINGLE: 1 + table index; else 0 */
    uint64_t seed;               /* of the case list */
    uint64_t case_idx;           /* number of the case in its list */
    struct sample_table *tables; /* [n_tables] */
    uint32_t n_tables;
    struct timing forward, backward, total; /* total: both together */
    /* The parts of backward, each alone; 0 where they were not timed apart. */
    struct timing linearise, sort, update;
    struct sample_health health;
    uint32_t n_iterations;
    unsigned flags;
    const char *version;    /* of the program */
    const char *started_at; /* UTC */
};

/* Order within a setting: by seed, case, kind and part. */
int sample_compare(const struct sample *a, const struct sample *b);

/* The sentinel case over a whole run: NAN where there are too few. */
struct sentinels {
    size_t n;
    double drift_frac;  /* the later half against the earlier one */
    double spread_frac; /* (p90 - p10) / median */
};
struct sentinels sample_sentinels(const struct sample *samples, size_t n);

/* All-to-all between ranks, one size pattern. */
struct comm_sample {
    const char *kind; /* "copy" (ranks of one process), "mpi", "shm", "nccl" */
    uint32_t n_ranks;
    uint32_t n_hosts;     /* or NVLink domains that the ranks are on; 1: inside
                             one */
    uint64_t total_bytes; /* all blocks that leave their rank or stay */
    uint64_t max_bytes;   /* the largest max(sent, received) of a rank */
    struct timing time;
    uint32_t n_iterations;
};

/* Where samples go. put returns only when the sample is safe (or has failed):
 * an acknowledged sample survives a kill. */
struct sample_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct sample *sample, struct err *err);
    int (*put_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err);
    /* 1 where this (seed, case, kind, part) is stored already, so that a
     * resumed run skips it. */
    int (*has)(void *ctx, const struct sample_setting *setting, uint64_t seed,
               uint64_t case_idx, enum sample_kind kind, uint32_t part);
    /* Likewise for an exchange of this kind, ranks, hosts and bytes; NULL
     * where nothing is resumed. */
    int (*has_comm)(void *ctx, const struct sample_setting *setting,
                    const struct comm_sample *sample);
    /* The best time of the canary (device/canary.h) on the setting's device by
     * this version of the program, 0 where it is not known; and a better one.
     * Both NULL where none is kept. */
    int (*find_canary)(void *ctx, const struct sample_setting *setting,
                       double *best_ms, struct err *err);
    int (*put_canary)(void *ctx, const struct sample_setting *setting,
                      double best_ms, struct err *err);
    /* Whether this process is to measure a case of the setting: locks it until
     * lock_release, unless another one has, which leaves the lock empty. NULL
     * where no others measure. */
    int (*claim)(void *ctx, const struct sample_setting *setting, uint64_t seed,
                 uint64_t case_idx, struct lock *lock, struct err *err);
    /* Hears of each that is safe, in a line without its end; may be NULL. */
    void (*tell)(const char *line);
};
/* Put, then tell. */
int sample_sink_put(const struct sample_sink *sink,
                    const struct sample_setting *setting,
                    const struct sample *sample, struct err *err) MUST_CHECK;
/* The same, unless it is there; *n_added counts up where it was not. */
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
