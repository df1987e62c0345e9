/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_GPU_SPEC_H
#define NEUROSHARD_COSTMODEL_GPU_SPEC_H

#include "costmodel/comm_model.h"

/* Figures of a GPU (or of a CPU host) that can be planned for, read from a file
 * by costmodel/gpu_file.h. Bandwidths are in 10^9 bytes a second and are those
 * that benchmarks reach, not those of the data sheet. */
struct gpu_spec {
    const char *name;      /* "h100" */
    const char *full_name; /* "NVIDIA H100 SXM5 80GB" */
    uint64_t memory_bytes; /* as its driver reports it */
    /* GPUs of a host as sold; 0: there is no usual number. */
    uint32_t gpus_per_host;
    double dram_gbps, l2_gbps;
    /* Memory bandwidth of the data sheet; 0: unknown. Prices do not depend on
     * it. */
    double sheet_gbps;
    uint64_t l2_bytes; /* last-level cache */
    double clock_ghz;
    unsigned n_sms; /* or CPU threads */
    enum comm_form comm_form;
    /* True if lookups do not first check that ids are inside their tables.
     * Lookups of this program do not; FBGEMM's do. */
    bool skips_checks;
    double row_cycles; /* cycles of one SM to issue the load of one row */
    /* us for a lookup of a bag when all other bags are done. */
    double bag_row_us;
    /* Extra issue cost of each lookup of a hot row (a row with more than 32
     * lookups), as a fit found it. */
    double hot_rows;
    double launch_us;
    double host_ms; /* ms of a host to queue a step of TorchRec; 0: unknown */
    /* Bandwidth and latency of an all-to-all inside a host, for each GPU. */
    double intra_gbps, intra_alpha_us;
    /* Line rate of the GPU's network adapter. */
    double nic_gbps;
    /* Error of lookup times by the roofline with these figures. */
    struct cost_error lookup_error;
};

struct id_rates gpu_spec_ids(const struct gpu_spec *spec);
/* Returns the rates of deduplication; all are 0 for a device that does not run
 * TorchRec. */
struct dedup_rates gpu_spec_dedup(const struct gpu_spec *spec);
/* Base time in us of a check of ids, if the lookups have one. */
#define GPU_SPEC_CHECK_US 14
/* Returns the communication figures for the GPUs and hosts of the cluster. */
struct comm_model gpu_spec_comm(const struct gpu_spec *spec,
                                const struct cluster *cluster);
/* Quantities in which a GPU may be slower than its figures. gpu_spec_slowed
 * multiplies each by a factor. */
enum slowed {
    SLOWED_LAUNCH, /* launch_us */
    SLOWED_ISSUE,  /* row_cycles */
    SLOWED_MEMORY, /* times of memory accesses; bandwidths are divided */
    SLOWED_BAG,    /* bag_row_us */
    SLOWED_HOT,    /* hot_rows, to which the factor - 1 is added */
    N_SLOWED
};
struct gpu_spec gpu_spec_slowed(const struct gpu_spec *spec,
                                const double factors[N_SLOWED]);
/* Returns the hash of all figures that prices depend on. */
uint64_t gpu_spec_hash(const struct gpu_spec *spec);

#endif
