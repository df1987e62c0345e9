/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_GPU_SPEC_H
#define NEUROSHARD_COSTMODEL_GPU_SPEC_H

#include "costmodel/comm_model.h"

/* A GPU (or a CPU host) that can be planned for, as costmodel/gpu_file.h reads
 * it. Bandwidths are what benchmarks reach, not what is on the box; 10^9 bytes
 * a second. */
struct gpu_spec {
    const char *name;       /* "h100" */
    const char *full_name;  /* "NVIDIA H100 SXM5 80GB" */
    uint64_t memory_bytes;  /* as its driver reports them */
    uint32_t gpus_per_host; /* that it is sold in; 0: in none of one size */
    double dram_gbps, l2_gbps;
    double sheet_gbps; /* of its memory, as the data sheet has it; 0: not told.
                          Prices do not go by it */
    uint64_t l2_bytes; /* last-level cache */
    double clock_ghz;
    unsigned n_sms; /* or CPU threads */
    enum comm_form comm_form;
    bool skips_checks; /* look-ups of this program, which do not check first
                          that ids are inside their tables; FBGEMM's do */
    double row_cycles; /* of one SM, to issue one row's load */
    double bag_row_us; /* of a look-up in a bag when all others are done */
    double hot_rows;   /* that a look-up of a row with more than 32 issues
                          besides, as a fit found it */
    double launch_us;
    double host_ms; /* of its host, to queue a step of TorchRec; 0: not known */
    double intra_gbps, intra_alpha_us; /* all-to-all a GPU, inside a host */
    double nic_gbps;                   /* line rate of its network adapter */
    struct cost_error lookup_error;    /* of the roofline by these figures */
};

struct id_rates gpu_spec_ids(const struct gpu_spec *spec);
/* All 0 of what does not run TorchRec. */
struct dedup_rates gpu_spec_dedup(const struct gpu_spec *spec);
/* The base of a check of ids, where there is one. */
#define GPU_SPEC_CHECK_US 14
/* Its communication figures, for so many GPUs on so many hosts. */
struct comm_model gpu_spec_comm(const struct gpu_spec *spec,
                                const struct cluster *cluster);
/* What a GPU may be slower in than its figures say, by so many times. */
enum slowed {
    SLOWED_LAUNCH, /* launch_us */
    SLOWED_ISSUE,  /* row_cycles */
    SLOWED_MEMORY, /* bandwidths */
    SLOWED_BAG,    /* bag_row_us */
    SLOWED_HOT,    /* hot_rows: 1 more than so many */
    N_SLOWED
};
struct gpu_spec gpu_spec_slowed(const struct gpu_spec *spec,
                                const double factors[N_SLOWED]);
/* Of all figures that prices go by. */
uint64_t gpu_spec_hash(const struct gpu_spec *spec);

#endif
