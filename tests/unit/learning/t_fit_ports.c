/* SPDX-License-Identifier: MIT */
/* Fits to exchanges across hosts whose ranks share a port or have their own. */
#include "costmodel/learning/comm_fit.h"

#include "base/rng.h"
#include "tests/tap.h"

#define N_SAMPLES 40

/* Two ranks of each host share a port, or each has its own. The fit finds out
 * if the bytes of the hosts are known and there are enough exchanges. */
static void test_shared_port(struct arena *arena)
{
    static const char *const kinds[] = {"nccl", "mpi"};

    for (int i = 0; i < 8; i++) {
        const char *kind = kinds[i % 2];
        const bool is_shared = i / 2 % 2, is_known = i < 4;
        struct comm_sample samples[N_SAMPLES];
        struct comm_curves fit;
        struct rng rng;

        rng_init(&rng, 9, (uint64_t)i);
        for (unsigned k = 0; k < N_SAMPLES; k++) {
            const double max = floor(1e6 * (1 + 9 * rng_uniform(&rng)));
            /* the neighbour of the busiest rank sends less than it */
            const double host = floor(max * 3 / 4 * (1 + rng_uniform(&rng)));

            struct comm_sample sample = {.kind = kind,
                                         .n_ranks = 8,
                                         .n_hosts = 4,
                                         .total_bytes = (uint64_t)(6 * max),
                                         .max_bytes = (uint64_t)max,
                                         .host_bytes =
                                             is_known ? (uint64_t)host : 0};

            sample.time.median_ms =
                (20 + (is_shared ? host / 2 : max * 3 / 4) / 12e3) / 1000;
            samples[k] = sample;
        }
        ok(comm_fit_samples(&fit, samples, N_SAMPLES, arena) &&
               fit.rules.shares_port == (is_shared && is_known),
           "%s, %s port, bytes of hosts %s", kind, is_shared ? "one" : "own",
           is_known ? "known" : "unknown");
        if (is_known || !is_shared)
            is_near(comm_curve_gbps(&fit.curves[0]), 12, 1e-3,
                    "the bandwidth of a rank");
        ok(!strstr(fit.source, "one port for a host") == !fit.rules.shares_port,
           "the source tells: %s", fit.source);
        if (is_known)
            ok(comm_fit_samples(&fit, samples, 19, arena) &&
                   fit.rules.shares_port == (i % 2),
               "with few exchanges, the kind decides");
    }
}

int main(void)
{
    struct arena arena = {0};

    test_shared_port(&arena);
    arena_release(&arena);
    return tap_done();
}
