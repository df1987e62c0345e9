/* SPDX-License-Identifier: MIT */
/*
 * Published figures of the devices that can be planned for. Memory is the total
 * that the driver reports and a program can have, not what is on the box. What
 * no source gives is an estimate and marked [E]:
 *
 * - row_cycles: 5.5 from Hopper on. Rows of 64 and 32 floats cost 1.1 to 1.15
 *   and 1.55 to 1.75 times what their bytes say (Lin et al., HiPC 2022;
 *   TorchRec's planner): a row costs as much as 128 further bytes from L2;
 * - launch_us: a backward of 12 to 15 kernels has a floor of 30 to 50 us;
 * - l2_gbps: look-ups get 0.71 of what gpu-benches streams from the L2 of an
 *   H200 (9.7 TB/s, where 6.9 fit the look-ups);
 * - alpha: NCCL's tuning tables give 12 to 20 us over NVLink. Of Hopper there
 * is a measurement: 10.5 to 11.1 us up to 4 KiB among eight H20 (NCCL tests,
 *   DeepEP issue 303).
 *
 * All-to-all bandwidths inside a host are those of NVIDIA's GTC 2025 talk
 * S72583 (NCCL tests, bus bandwidth, 8 GPUs; 500 MB among four H100 reached
 * 335 GB/s, NCCL issue 2169).
 */
#include "costmodel/gpu_spec.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static const struct gpu_spec specs[] = {
    {
        .name = "h100",
        .full_name = "NVIDIA H100 SXM5 80GB",
        .memory_bytes = 81559 * MIB, /* nvidia-smi */
        .gpus_per_host = 8,          /* DGX H100 */
        .dram_gbps = 2900,           /* BabelStream copy */
        .l2_gbps = 6900,             /* fitted to look-ups by FBGEMM */
        .l2_bytes = 50 * MIB,
        .clock_ghz = 1.755,
        .n_sms = 132,
        .row_cycles = 5.5,  /* [E] */
        .bag_row_us = 0.22, /* fitted likewise */
        .launch_us = 3,     /* [E] */
        .comm_form = COMM_PORT,
        .intra_gbps = 320,
        .intra_alpha_us = 10.6,
        .nic_gbps = 50, /* 8 x 400 Gb/s a host */
        .source = "nvidia-smi (memory), Azure ND H100 v5 BabelStream (HBM), "
                  "FBGEMM measured (L2), NVIDIA GTC25 S72583 (all-to-all), "
                  "DeepEP issue 303 (latency, of H20)",
    },
    {
        .name = "h200",
        .full_name = "NVIDIA H200 SXM5 141GB",
        .memory_bytes = 143771 * MIB, /* nvidia-smi */
        .gpus_per_host = 8,           /* DGX H200 */
        .dram_gbps = 4010,            /* BabelStream copy */
        .l2_gbps = 6900,              /* the H100's die */
        .l2_bytes = 50 * MIB,
        .clock_ghz = 1.755,
        .n_sms = 132,
        .row_cycles = 5.5,  /* [E] */
        .bag_row_us = 0.22, /* the H100's die */
        .launch_us = 3,     /* [E] */
        .comm_form = COMM_PORT,
        .intra_gbps = 320, /* the H100's links */
        .intra_alpha_us = 10.6,
        .nic_gbps = 50,
        .source =
            "nvidia-smi (memory), Azure ND H200 v5 BabelStream (HBM), FBGEMM "
            "measured (H100's L2), NVIDIA GTC25 S72583 (all-to-all of H100), "
            "DeepEP issue 303 (latency, of H20)",
    },
    {
        .name = "b200",
        .full_name = "NVIDIA B200 SXM6 180GB",
        .memory_bytes = 183359 * MIB, /* nvidia-smi */
        .gpus_per_host = 8,           /* DGX B200 */
        .dram_gbps = 7350,            /* measured on Azure's GB200 */
        .l2_gbps = 8660,              /* [E] the H100's, by SMs and clock */
        .l2_bytes = 126 * MIB,
        .clock_ghz = 1.965,
        .n_sms = 148,
        .row_cycles = 5.5,  /* [E] */
        .bag_row_us = 0.22, /* [E] the H100's */
        .launch_us = 3,     /* [E] */
        .comm_form = COMM_PORT,
        .intra_gbps = 640,
        .intra_alpha_us = 10.6, /* [E] the H100's */
        .nic_gbps = 50,         /* 8 x 400 Gb/s a host */
        .source = "nvidia-smi (memory), Azure ND GB200 v6 (HBM), Chips and "
                  "Cheese (SMs, L2's size), NVIDIA GTC25 S72583 (all-to-all); "
                  "the rest as an H100 estimated",
    },
    {
        .name = "a100",
        .full_name = "NVIDIA A100 SXM4 80GB",
        /* nvidia-smi of driver 470 and cudaMemGetInfo; from 510 on nvidia-smi
         * counts what the driver keeps, too: 81920 */
        .memory_bytes = 81251 * MIB,
        .gpus_per_host = 8, /* DGX A100 */
        .dram_gbps = 1700,  /* BabelStream triad */
        .l2_gbps = 3840,    /* [E] 0.71 of 5.42 TB/s (gpu-benches) */
        .l2_bytes = 40 * MIB,
        .clock_ghz = 1.41,
        .n_sms = 108,
        .row_cycles = 10,   /* fitted to TorchRec pull request 2365 (4 tables),
                               whose GPU is not named */
        .bag_row_us = 0.27, /* [E] the H100's, by the clock */
        .launch_us = 3,     /* [E] */
        .comm_form = COMM_PORT,
        .intra_gbps = 210,
        .intra_alpha_us = 15,
        .nic_gbps = 25, /* 8 x 200 Gb/s a host */
        .source = "nvidia-smi (memory), Azure ND A100 v4 BabelStream (HBM), "
                  "gpu-benches (L2), NVIDIA GTC25 S72583 (all-to-all)",
    },
    {
        .name = "v100-32gb",
        .full_name = "NVIDIA V100 SXM2 32GB",
        .memory_bytes = 32510 * MIB, /* nvidia-smi of drivers 450 to 470 */
        .gpus_per_host = 8,          /* DGX-1 */
        .dram_gbps = 817.0, /* measured peak of the 16 GB card, same HBM2 */
        .l2_gbps = 2847.5,  /* measured peak */
        .l2_bytes = 6 * MIB,
        .clock_ghz = 1.53,
        .n_sms = 80,
        .row_cycles = 10,   /* [E] the A100's */
        .bag_row_us = 0.55, /* fitted, as the next, to a trace of DLRM-DCNv2 */
        .launch_us = 2.3,
        .comm_form = COMM_PORT,
        .intra_gbps = 120, /* 6 links of 20 GB/s, NCCL's constant for sm_70 */
        .intra_alpha_us = 15,
        .nic_gbps = 12.5, /* [E] one 100 Gb/s adapter a GPU */
        .source = "nvidia-smi (memory), Lin et al. HiPC 2022 (HBM, L2), NCCL's "
                  "link constant "
                  "(NVSwitch assumed), 100 Gb/s a GPU assumed",
    },
    {
        /* Two threads of a server: bandwidths and cycles are fitted to the
         * shipped samples; messages of Open MPI over shared memory move 20
         * GB/s in all. */
        .name = "cpu",
        .full_name = "two threads of an AMD EPYC",
        .memory_bytes = 16 * GIB, /* [E] */
        .dram_gbps = 202,
        .l2_gbps = 61.6,
        .l2_bytes = 32 * MIB,
        .clock_ghz = 3.0,
        .n_sms = 2,
        .row_cycles = 5, /* 0.83 ns over two threads */
        .launch_us = 2.2,
        .comm_form = COMM_TOTAL,
        .intra_gbps = 20,
        .intra_alpha_us = 5,
        .nic_gbps = 1.25, /* [E] 10 Gb/s Ethernet */
        .source = "look-ups and MPI measured on two threads of an AMD EPYC; "
                  "memory estimated",
    },
    {0},
};

const struct gpu_spec *gpu_specs(void)
{
    return specs;
}

const struct gpu_spec *gpu_spec_find(const char *name)
{
    for (const struct gpu_spec *spec = specs; spec->name; spec++)
        if (!strcmp(spec->name, name))
            return spec;
    return NULL;
}

int gpu_spec_get(const struct gpu_spec **out, const char *name, struct err *err)
{
    struct arena scratch;
    const char *names = "";

    *out = gpu_spec_find(name);
    if (*out)
        return 0;
    arena_init(&scratch);
    for (const struct gpu_spec *spec = specs; spec->name; spec++)
        names = arena_printf(&scratch, "%s%s%s", names, *names ? ", " : "",
                             spec->name);
    err_set(err, ERR_USAGE, "no figures for a GPU '%s'; there are %s", name,
            names);
    arena_release(&scratch);
    return -1;
}

/* Of GPUs one whole curve is published, RCCL's among eight in a host, 128 B to
 * 128 MiB a GPU. Latency and transfer overlap: from 256 B on the root of the
 * sum of their squares is within 17 %, where their sum is up to 38 % off. */
static struct comm_curve overlapped(double alpha_us, double gbps)
{
    static const double ratios[] = {0, 0.25, 0.5, 1, 2, 4, 8, 16};
    struct comm_curve curve = {.n_knots = sizeof(ratios) / sizeof(ratios[0])};

    for (uint32_t k = 0; k < curve.n_knots; k++) {
        curve.bytes[k] = ratios[k] * alpha_us * gbps * 1e3;
        curve.us[k] = alpha_us * sqrt(1 + ratios[k] * ratios[k]);
    }
    return curve;
}

/*
 * All-to-alls across hosts. What a network adapter yields of its rate falls
 * with the hosts: 0.91 of 400 Gb/s at two (1 GiB among 2 x 8 H100 over
 * EFA, 11.8 ms), 0.74 at four (GTC 2025 S72583). An MI355X, by which nothing
 * was fitted, has 0.92 and 0.78. Of two NVLink domains of 72 GB200 the bus
 * bandwidth is 24 GB/s, and so 12 across them of a GPU's 50; of two of 64
 * GB300, which are held out, 23.8 of 100 go across. Latency grows with the
 * messages, one for each rank: 30 to 50 us at 16 to 32 ranks (NCCL's tuning
 * tables), and 0.32 ms for 8 MiB among 8 x 8 H800 (NCCL issue 1531), of which
 * 0.24 are bytes.
 */
#define DOMAINS_FRAC 0.24
#define HOSTS_ALPHA_US 30
#define RANK_ALPHA_US 0.6

static struct comm_curve across_hosts(const struct gpu_spec *spec,
                                      const struct cluster *cluster)
{
    const double n_ranks = cluster->n_devices;
    const double n_hosts = fmax(2, n_ranks / fmax(1, cluster_group(cluster)));
    const double frac = cluster->hosts_per_domain > 1
                            ? DOMAINS_FRAC
                            : 1 / (1.1 + 0.25 * (log2(n_hosts) - 1));

    return comm_line(HOSTS_ALPHA_US + RANK_ALPHA_US * n_ranks,
                     frac * spec->nic_gbps);
}

/*
 * What ids take before they are looked up: 180 cases of FBGEMM's operations on
 * an H100 each (data/measurements/fbgemm-nvidia-h100-input.csv), within 3 and
 * 4 % on average. Bags go by what SMs issue (an H200 takes 0.96 and 1.02 of the
 * H100's), ids by the bandwidth (0.80 and 0.79, of 0.72). Of a CPU, which
 * copies: bytes read and written, and a step of the loop [E].
 */
struct id_rates gpu_spec_ids(const struct gpu_spec *spec)
{
    const double h100_issues = 132 * 1.755, h100_gbps = 2900;
    const double per_bag = h100_issues / (spec->n_sms * spec->clock_ghz);
    const double per_id = h100_gbps / spec->dram_gbps;
    const struct id_rate of_cpu = {
        .base_us = spec->launch_us,
        .bag_ns = spec->row_cycles / (spec->n_sms * spec->clock_ghz),
        .id_ns = 2 * PROBLEM_ID_BYTES / spec->dram_gbps,
    };

    if (spec->comm_form == COMM_TOTAL)
        return (struct id_rates){of_cpu, of_cpu};
    return (struct id_rates){
        .permute = {19.3, 0.1715 * per_bag, 0.00406 * per_id},
        .bucketize = {20.7, 0.46 * per_bag, 0.0212 * per_id},
    };
}

/*
 * What of its time a phase costs others beside it: the medians of 56 sets of
 * tables on an H200 (data/measurements/fbgemm-nvidia-h200-overlap.csv). A copy
 * by SMs, as a collective moves bytes, costs look-ups 0.22 to 0.42 of itself;
 * look-ups beside matrix products 0.91 to 1.06; an upload by the copy engine
 * 0.01 to 0.03. Threads of a CPU do one thing after the other.
 */
static void add_overlap_costs(const struct gpu_spec *spec,
                              struct comm_model *model)
{
    static const double of_gpu[N_PHASES] = {
        [PHASE_INPUT] = 0.3,    [PHASE_OUTPUT] = 0.3, [PHASE_PERMUTE] = 0.95,
        [PHASE_FORWARD] = 0.95, [PHASE_CACHE] = 0.02,
    };

    for (unsigned p = 0; p < N_PHASES; p++)
        model->overlap_cost[p] = spec->comm_form == COMM_PORT ? of_gpu[p] : 1;
}

struct comm_model gpu_spec_comm(const struct gpu_spec *spec,
                                const struct cluster *cluster)
{
    struct comm_model model = {
        .form = spec->comm_form,
        .intra = spec->comm_form == COMM_PORT
                     ? overlapped(spec->intra_alpha_us, spec->intra_gbps)
                     : comm_line(spec->intra_alpha_us, spec->intra_gbps),
        .inter = across_hosts(spec, cluster),
        .source = spec->comm_form == COMM_TOTAL
                      ? "latency and copy bandwidth of a host's memory"
                      : "published latency and all-to-all bandwidth of the GPU",
        .ids = gpu_spec_ids(spec),
    };

    add_overlap_costs(spec, &model);
    return model;
}

uint64_t gpu_spec_hash(const struct gpu_spec *spec)
{
    const double figures[] = {
        spec->dram_gbps,      spec->l2_gbps,    (double)spec->l2_bytes,
        spec->clock_ghz,      spec->n_sms,      spec->row_cycles,
        spec->bag_row_us,     spec->launch_us,  spec->comm_form,
        spec->intra_alpha_us, spec->intra_gbps, spec->nic_gbps,
        DOMAINS_FRAC,         HOSTS_ALPHA_US,   RANK_ALPHA_US,
    };

    return hash_bytes(figures, sizeof(figures), 0);
}
