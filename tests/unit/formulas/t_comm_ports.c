/* SPDX-License-Identifier: MIT */
/* Exchanges across hosts whose devices share one port. */
#include "costmodel/formulas/comm_model.h"

#include "base/rng.h"
#include "tests/tap.h"

#define MAX_DEVICES 8

static void no_compute(const struct oracle *oracle, const double *sums,
                       size_t n, double *compute_ms)
{
    (void)oracle, (void)sums;
    memset(compute_ms, 0, n * sizeof(*compute_ms));
}

/* Returns the priced time of the exchange of outputs, given the bytes that each
 * device sends. Sets *has_terms to true if the oracle has terms of devices. */
static double priced_ms(const struct comm_model *model, uint32_t n,
                        uint32_t per_host, const double bytes[MAX_DEVICES],
                        bool *has_terms)
{
    const struct problem problem = {
        .batch = 1000,
        .cluster = {.n_devices = n, .devices_per_host = per_host}};
    struct comm_oracle oracle = {
        .base = {.problem = &problem, .width = COMM_LANES}, .comm = *model};
    double sums[MAX_DEVICES * COMM_LANES] = {0};
    double compute_ms[MAX_DEVICES] = {0}, phases_ms[MAX_DEVICES][N_PHASES];

    comm_oracle_init(&oracle, &(struct oracle_ops){.compute = no_compute});
    for (uint32_t r = 0; r < n; r++)
        sums[r * COMM_LANES + COMM_LANE_OUTPUT] = bytes[r];
    oracle.ops.phases(&oracle.base, sums, compute_ms, phases_ms);
    *has_terms = oracle.ops.terms != NULL;
    return phases_ms[0][PHASE_OUTPUT];
}

/* Counts the bytes that the busiest host sends to other hosts or receives from
 * them, over all pairs of devices. */
static double busiest_host(const double bytes[MAX_DEVICES], uint32_t n,
                           uint32_t per_host)
{
    double most = 0;

    for (uint32_t host = 0; host * per_host < n; host++) {
        double sent = 0, received = 0;

        for (uint32_t r = 0; r < n; r++)
            for (uint32_t q = 0; q < n; q++) {
                const bool from = r / per_host == host;
                const bool to = q / per_host == host;

                sent += from && !to ? bytes[r] / n : 0;
                received += to && !from ? bytes[r] / n : 0;
            }
        most = fmax(most, fmax(sent, received));
    }
    return most;
}

/* If the devices of a host share a port, the bytes of the busiest host decide.
 * A measured exchange of the same load counts the same bytes. There are no
 * terms of single devices. */
static void check_shared(void)
{
    double worst = 0, worst_sample = 0;
    unsigned n_terms = 0;
    struct rng rng;

    rng_init(&rng, 15, 0);
    for (int i = 0; i < 5000; i++) {
        const uint32_t per_host = 1 + (uint32_t)rng_below(&rng, 4);
        const uint32_t n =
            per_host + 1 + (uint32_t)rng_below(&rng, MAX_DEVICES - per_host);
        const struct comm_model model = {
            .rules = {COMM_PORT, .shares_port = true},
            .intra = comm_line(0, 1e6),
            .inter =
                comm_line(60 * rng_uniform(&rng), 1 + 100 * rng_uniform(&rng))};
        struct comm_sample sample = {.n_ranks = n,
                                     .n_hosts = (n - 1) / per_host + 1,
                                     .max_bytes = UINT64_MAX};
        double bytes[MAX_DEVICES], want;
        bool has_terms;

        for (uint32_t r = 0; r < n; r++)
            bytes[r] = rng_below(&rng, 3) ? 150e6 * rng_uniform(&rng) : 0;
        bytes[rng_below(&rng, n)] = 170e6;
        want = busiest_host(bytes, n, per_host) / per_host;
        worst = tap_worst(
            worst, fabs(priced_ms(&model, n, per_host, bytes, &has_terms) -
                        comm_curve_us(&model.inter, want) / 1000));
        n_terms += has_terms;
        if (n % per_host)
            continue;
        sample.host_bytes = (uint64_t)(want * per_host + 0.5);
        worst_sample =
            tap_worst(worst_sample,
                      fabs(comm_rules_bytes(model.rules, &sample) / want - 1));
    }
    is_near(worst, 0, 1e-9, "the busiest host decides");
    is_near(worst_sample, 0, 1e-6, "a measured exchange counts the same bytes");
    is_i64(n_terms, 0, "there are no terms of single devices");
}

/* If one of two devices of a host sends all bytes, a shared port takes half as
 * long as a port of its own, at the same bandwidth of a device. */
static void check_neighbours(void)
{
    const double bytes[MAX_DEVICES] = {80e6, 0, 80e6, 0};
    struct comm_model model = {.rules = {COMM_PORT, .shares_port = false},
                               .intra = comm_line(0, 1e6),
                               .inter = comm_line(0, 10)};
    bool has_terms;

    is_near(priced_ms(&model, 4, 2, bytes, &has_terms), 4, 1e-12,
            "40 MB through a port of 10 GB/s");
    ok(has_terms, "terms of devices");
    model.rules.shares_port = true;
    is_near(priced_ms(&model, 4, 2, bytes, &has_terms), 2, 1e-12,
            "40 MB through the port of a host");
}

int main(void)
{
    check_shared();
    check_neighbours();
    return tap_done();
}
