/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_GPU_SPEC_H
#define NEUROSHARD_COSTMODEL_FORMULAS_GPU_SPEC_H

#include "core/dense.h"
#include "costmodel/formulas/comm_model.h"
#include "costmodel/formulas/interval.h"

/* Figures of a GPU (or of a CPU host) for which plans can be made.
 * costmodel/modelfile/gpu_file.h reads them from a file. Bandwidths are in 10^9
 * bytes a second. They are the bandwidths that benchmarks reach, not the
 * bandwidths of the data sheet. */
struct gpu_spec {
    const char *name;      /* short name, "h100" */
    const char *full_name; /* full name, "NVIDIA H100 SXM5 80GB" */
    /* name of the GPU whose figures the user has changed (gpu_changes.h); NULL:
     * none were changed */
    const char *changed_from;
    /* True if figures of lookups were changed, so that lookups measured on the
     * GPU do not apply. */
    bool has_own_lookups;
    /* other short names, such as "h100-sxm5"; NULL-terminated */
    const char *const *aliases;
    uint64_t memory_bytes; /* memory, as the driver reports it */
    /* Number of GPUs of a host as sold; 0: there is no usual number. */
    uint32_t gpus_per_host;
    double dram_gbps, l2_gbps;
    /* Memory bandwidth of the data sheet; 0: unknown. Prices do not depend on
     * it. */
    double sheet_gbps;
    uint64_t l2_bytes; /* bytes of the last-level cache */
    double clock_ghz;
    unsigned n_sms; /* number of SMs, or of CPU threads */
    enum comm_form comm_form;
    /* True if lookups do not first check that ids are inside their tables.
     * Lookups of this program do not check ids; FBGEMM's lookups do. */
    bool skips_checks;
    double row_cycles; /* cycles of one SM to issue the load of one row */
    /* Time in us of one lookup of a bag, after all other bags are finished. */
    double bag_row_us;
    /* Extra issue cost of each lookup of a hot row (a row with more than 32
     * lookups). The value comes from a fit. */
    double hot_rows;
    double launch_us;
    /* Rates of matrix products in 10^12 operations a second, by type, as the
     * data sheet gives them for dense matrices; 0: the GPU has no units for
     * this type, or the rate is unknown. */
    double tflops[N_DENSE_TYPES];
    /* Bandwidth and latency of an all-to-all inside a host, for each GPU. */
    double intra_gbps, intra_alpha_us;
    /* Line rate of the GPU's network adapter. */
    double nic_gbps;
    /* Tables in the host's memory; 0: unknown. host_gbps is the bandwidth of
     * the GPU's link to its host, for rows that kernels read from the host and
     * write back. The GPUs of a host share its memory and the bandwidth of its
     * memory. */
    double host_gbps;
    uint64_t host_memory_bytes;
    double host_memory_gbps;
    /* Time in ns of a lookup, in addition to a lookup in a table without cache,
     * to manage a cache of rows: forward and backward, without the fills. 0:
     * unknown. */
    double cache_id_ns;
    /* Error of the lookup times that the roofline predicts from these
     * figures. */
    struct cost_error lookup_error;
    /* Error of the lookup times of each class of devices (interval_classes),
     * as a fraction; 0: the error of the class is lookup_error. */
    double class_error_frac[MAX_INTERVALS];
};

/* Returns the rates of the operations on ids in a job of n_devices devices. */
struct id_rates gpu_spec_ids(const struct gpu_spec *spec, uint32_t n_devices);
/* Returns the rates of deduplicating ids; all rates are 0 for a device that
 * does not run TorchRec. */
struct dedup_rates gpu_spec_dedup(const struct gpu_spec *spec);
/* Base time in us of the check that ids are inside their tables. It counts only
 * for lookups that have the check. */
#define GPU_SPEC_CHECK_US 14
/* Returns the constants of communication for the GPUs and hosts of the
 * cluster. */
struct comm_model gpu_spec_comm(const struct gpu_spec *spec,
                                const struct cluster *cluster);
/* Quantities in which a GPU may be slower than its figures. gpu_spec_slowed
 * multiplies each quantity by a factor. */
enum slowed {
    SLOWED_LAUNCH, /* launch_us */
    SLOWED_ISSUE,  /* row_cycles */
    SLOWED_MEMORY, /* times of memory accesses; bandwidths are divided */
    SLOWED_BAG,    /* bag_row_us */
    SLOWED_HOT,    /* hot_rows; the factor - 1 is added to it */
    N_SLOWED
};
struct gpu_spec gpu_spec_slowed(const struct gpu_spec *spec,
                                const double factors[N_SLOWED]);
/* Returns the hash of all figures that prices depend on. */
uint64_t gpu_spec_hash(const struct gpu_spec *spec);

#endif
