/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/gpu_spec.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

/*
 * Returns a curve on which latency and transfer overlap: its time is the root
 * of the sum of their squares.
 *
 * The only published curve of an all-to-all among GPUs over all sizes is
 * RCCL's, among eight GPUs of a host, from 128 B to 128 MiB a GPU. From 256 B
 * on, the root of the sum of squares is within 17 % of this curve; the plain
 * sum is up to 38 % off.
 */
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
 * Constants of all-to-alls across hosts.
 *
 * The share of its line rate that a network adapter reaches falls with the
 * number of hosts:
 *
 *   hosts  share  measured
 *   2      0.91   of 400 Gb/s: 1 GiB among 2 x 8 H100 over EFA, 11.8 ms
 *   4      0.74   GTC 2025 S72583
 *   2      0.92   MI355X; not used for the fit
 *   4      0.78   MI355X; not used for the fit
 *
 * Across NVLink domains the share is lower. Two domains of 72 GB200 have a bus
 * bandwidth of 24 GB/s, so 12 of the 50 GB/s of a GPU cross. Two domains of 64
 * GB300, which were not used for the fit, have 23.8 of 100 GB/s.
 *
 * Latency grows with the number of messages, one for each rank. It is 30 to 50
 * us at 16 to 32 ranks (NCCL's tuning tables). 8 MiB among 8 x 8 H800 take 0.32
 * ms (NCCL issue 1531), of which 0.24 ms are transfer.
 */
#define DOMAINS_FRAC 0.24
/* Largest number of GPUs of a host. A larger group is an NVLink domain, even if
 * the user calls it a host. */
#define MOST_OF_HOST 16
#define HOSTS_ALPHA_US 30
#define RANK_ALPHA_US 0.6

static struct comm_curve across_hosts(const struct gpu_spec *spec,
                                      const struct cluster *cluster)
{
    const double n_ranks = cluster->n_devices;
    const uint32_t group = cluster_group(cluster);
    const double n_hosts = fmax(2, n_ranks / fmax(1, group));
    const double frac = group > MOST_OF_HOST
                            ? DOMAINS_FRAC
                            : 1 / (1.1 + 0.25 * (log2(n_hosts) - 1));

    return comm_line(HOSTS_ALPHA_US + RANK_ALPHA_US * n_ranks,
                     frac * spec->nic_gbps);
}

/* Returns whether the figures are those of a GPU on which TorchRec runs. The
 * CPU and the kernels of this program do not run TorchRec. */
static bool runs_torchrec(const struct gpu_spec *spec)
{
    return spec->comm_form != COMM_TOTAL && !spec->skips_checks;
}

/* Returns the basis of the host's time, which was measured on a host with an
 * H100. */
static enum host_basis host_of(const struct gpu_spec *spec)
{
    const char *gpu = spec->changed_from ? spec->changed_from : spec->name;

    if (!runs_torchrec(spec))
        return HOST_NONE;
    return strcmp(gpu, "h100") ? HOST_ASSUMED : HOST_MEASURED;
}

/*
 * Latency of an all-reduce across hosts. It grows with the depth of NCCL's
 * trees, not with the number of ranks: 46 us among 2 x 8 H20 (NCCL issue 1244),
 * 62 us among 16 x 8 H100 (NCCL issue 1469).
 */
static double reduce_us(const struct cluster *cluster)
{
    return 25 + 5.3 * log2(fmax(1, cluster->n_devices));
}

/*
 * Rates of the operations on ids before the lookups.
 *
 * Permuting and bucketizing: fitted to 180 cases of each of FBGEMM's operations
 * on an H100 (data/measurements/fbgemm-nvidia-h100-input.csv), within 3 and 4 %
 * on average. The time for bags scales with the issue rate of the SMs, the time
 * for ids with the bandwidth. The table has an H200's time as a share of the
 * H100's time:
 *
 *             permute  bucketize  expected
 *   for bags  0.96     1.02       1
 *   for ids   0.80     0.79       0.72
 *
 * TorchRec permutes nothing in a job of one device: its exchange of ids
 * (KJTAllToAllTensorsAwaitable) returns the batch as it came. The steps of 92
 * such jobs that take more than 4 ms agree
 * (data/measurements/torchrec-nvidia-h100-steps.csv).
 *
 * A CPU copies the ids. Its time is that of the bytes read and written, plus
 * one step of the loop for each bag (estimated [E]).
 *
 * Check of ids: FBGEMM's kernel has a warp for each bag, and its time follows a
 * sum of bags and ids. In 183 cases on an H100
 * (data/measurements/fbgemm-nvidia-h100-checks.csv), half of the predictions
 * are within 2 % and nine in ten within 7 %. TorchRec leaves the check on.
 */
struct id_rates gpu_spec_ids(const struct gpu_spec *spec, uint32_t n_devices)
{
    const double h100_issues = 132 * 1.755, h100_gbps = 2900;
    const double per_bag = h100_issues / (spec->n_sms * spec->clock_ghz);
    const double per_id = h100_gbps / spec->dram_gbps;
    const struct id_rate of_cpu = {
        .base_us = spec->launch_us,
        .bag_ns = spec->row_cycles / (spec->n_sms * spec->clock_ghz),
        .id_ns = 2 * PROBLEM_ID_BYTES / spec->dram_gbps,
    };
    struct id_rates rates = {.permute = of_cpu, .bucketize = of_cpu};

    if (spec->comm_form == COMM_TOTAL)
        return rates;
    if (n_devices > 1 || !runs_torchrec(spec))
        rates.permute =
            (struct id_rate){19.3, 0.1715 * per_bag, 0.00406 * per_id};
    else
        rates.permute = (struct id_rate){0};
    rates.bucketize = (struct id_rate){20.7, 0.46 * per_bag, 0.0212 * per_id};
    if (!spec->skips_checks)
        rates.check = (struct id_rate){GPU_SPEC_CHECK_US, 0.2304 * per_bag,
                                       0.00223 * per_id};
    return rates;
}

/*
 * Rates of TorchRec's operations that deduplicate ids, measured with 95 sets of
 * tables on an H100 (data/measurements/fbgemm-nvidia-h100-dedup.csv). The
 * prediction is within 6 % for half of the held-out sets and within 20 % for
 * nine in ten. The times of other GPUs are scaled by bandwidth (estimated [E]).
 */
struct dedup_rates gpu_spec_dedup(const struct gpu_spec *spec)
{
    const double scale = 2900 / spec->dram_gbps;

    if (!runs_torchrec(spec))
        return (struct dedup_rates){0};
    return (struct dedup_rates){.find = {239, 0, 0.213 * scale},
                                .copy = {16.6, 0.00196 * scale, 0.679 * scale}};
}

/*
 * Extra time that a phase causes in phases that run at the same time, as a
 * fraction of the time of the phase that causes it. The values are the medians
 * of 56 sets of tables on an H200
 * (data/measurements/fbgemm-nvidia-h200-overlap.csv). The medians of 48 sets on
 * an H100 are within 0.07 of these values.
 *
 *   phase                            slows            by
 *   copy by SMs, as in a collective  lookups          0.22 to 0.42
 *   lookups                          matrix products  0.91 to 1.06
 *   upload by the copy engine        lookups          0.01 to 0.03
 *
 * Threads of a CPU run one phase after the other, so for a CPU every fraction
 * is 1.
 */
static const double overlap_of_gpu[N_PHASES] = {
    [PHASE_INPUT] = 0.3,    [PHASE_OUTPUT] = 0.3, [PHASE_PERMUTE] = 0.95,
    [PHASE_FORWARD] = 0.95, [PHASE_CACHE] = 0.02,
};

/* Error of predicted exchange times, as a fraction, on 16 published all-to-alls
 * (data/measurements/published-alltoalls.csv). These 16 were not used to fit
 * any figure. */
#define EXCHANGE_ERROR_FRAC 0.16

struct comm_model gpu_spec_comm(const struct gpu_spec *spec,
                                const struct cluster *cluster)
{
    const bool is_gpu = spec->comm_form == COMM_PORT;
    struct comm_model model = {
        .rules = {spec->comm_form, .shares_port = !is_gpu},
        .intra = comm_line(spec->intra_alpha_us, spec->intra_gbps),
        .inter = across_hosts(spec, cluster),
        .reduce_us = spec->comm_form == COMM_PORT ? reduce_us(cluster) : 0,
        .source = "latency and copy bandwidth of a host's memory",
        .ids = gpu_spec_ids(spec, cluster->n_devices),
        .dedup = gpu_spec_dedup(spec),
        .host = host_of(spec),
    };

    for (unsigned p = 0; p < N_PHASES; p++)
        model.overlap_cost[p] = is_gpu ? overlap_of_gpu[p] : 1;
    if (is_gpu) {
        model.intra = overlapped(spec->intra_alpha_us, spec->intra_gbps);
        model.source = "published latency and all-to-all bandwidth of the GPU";
        model.error = (struct cost_error){.frac = EXCHANGE_ERROR_FRAC,
                                          .ground = "16 published all-to-alls"};
    }
    return model;
}

struct gpu_spec gpu_spec_slowed(const struct gpu_spec *spec,
                                const double factors[N_SLOWED])
{
    struct gpu_spec slowed = *spec;

    slowed.launch_us *= factors[SLOWED_LAUNCH];
    slowed.row_cycles *= factors[SLOWED_ISSUE];
    slowed.dram_gbps /= factors[SLOWED_MEMORY];
    slowed.l2_gbps /= factors[SLOWED_MEMORY];
    slowed.bag_row_us *= factors[SLOWED_BAG];
    slowed.hot_rows = fmax(0, spec->hot_rows + factors[SLOWED_HOT] - 1);
    return slowed;
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
