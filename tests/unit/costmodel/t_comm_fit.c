/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_fit.h"

#include "base/rng.h"
#include "base/stats.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_SAMPLES 800

/* A list of exchanges whose times follow a law. */
struct list {
    struct comm_sample at[MAX_SAMPLES];
    size_t n;
};

static void add(struct list *list, const char *kind, uint32_t n_ranks,
                uint64_t total_bytes, uint64_t max_bytes, double us)
{
    struct comm_sample sample = {.kind = kind,
                                 .n_ranks = n_ranks,
                                 .n_hosts = 1,
                                 .total_bytes = total_bytes,
                                 .max_bytes = max_bytes};

    sample.time.median_ms = us / 1000;
    list->at[list->n++] = sample;
}

/* Loads of 4 B to 512 MiB, from even to all on one of the ranks. */
static void draw(struct rng *rng, uint32_t n_ranks, double *total, double *port)
{
    *total = floor(4 * pow(2, 27 * rng_uniform(rng)));
    *port =
        ceil(*total / n_ranks * (1 + (n_ranks - 1) * pow(rng_uniform(rng), 2)));
}

static void test_lines(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_fit fit;

    ok(!comm_fit_samples(&fit, list.at, 0, arena), "nothing to fit");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 4)
        add(&list, "copy", 4, bytes, bytes / 4, 30 + (double)bytes / 8e3);
    ok(!comm_fit_samples(&fit, list.at, 2, arena), "two sizes are not enough");
    ok(comm_fit_samples(&fit, list.at, list.n, arena), "copies");
    is_i64(fit.n_curves, 1, "one curve");
    is_i64(fit.curves[0].n_knots, 2, "a line is enough");
    is_near(fit.curves[0].us[0], 30, 1e-6, "its latency");
    is_near(comm_curve_gbps(&fit.curves[0]), 8, 1e-6, "its bandwidth");
    ok(fit.form == COMM_TOTAL, "of one memory");
    is_str(fit.source, "measured all-to-all (copies between ranks), 5 sizes",
           "and its source");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 16)
        add(&list, "nccl", 4, bytes, bytes / 4, 15 + (double)bytes / 400e3);
    ok(comm_fit_samples(&fit, list.at, list.n, arena), "copies and NCCL");
    ok(fit.form == COMM_PORT, "NCCL is the better witness");
    is_near(comm_curve_gbps(&fit.curves[0]), 75, 1e-6,
            "by the busiest port, less the quarter that stays");
}

static void test_odd_times(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_fit fit;

    for (unsigned i = 0; i < 16; i++)
        add(&list, "mpi", 4, (i + 1) << 20, (i + 1) << 18,
            i ? 5e3 + 3e3 * i : 1e3);
    ok(comm_fit_samples(&fit, list.at, list.n, arena) &&
           fit.curves[0].us[0] >= 0,
       "a latency is never negative");
    for (unsigned i = 0; i < 16; i++)
        list.at[i].time.median_ms = 9;
    ok(!comm_fit_samples(&fit, list.at, list.n, arena) ||
           comm_curve_gbps(&fit.curves[0]) > 0,
       "times that do not grow give no negative bandwidth");
    for (unsigned i = 0; i < 16; i++)
        list.at[i].time.median_ms = i % 2 ? NAN : 0;
    ok(!comm_fit_samples(&fit, list.at, list.n, arena), "no times at all");
}

/* Latency, then a cache's speed, then a memory's, by all bytes, with noise and
 * now and then a disturbed measurement. */
static double host_us(struct rng *rng, double total)
{
    double us = 0.5 + total / 60e3 + fmax(total - 2e6, 0) / 25e3;

    us *= 1 + 0.03 * rng_normal(rng);
    return rng_below(rng, 40) ? us : 5 * us;
}

static bool is_monotone(const struct comm_curve *curve)
{
    bool rises = curve->bytes[0] == 0 && curve->us[0] >= 0;

    for (uint32_t k = 1; k < curve->n_knots; k++)
        rises &= curve->bytes[k] > curve->bytes[k - 1] &&
                 curve->us[k] >= curve->us[k - 1];
    return rises;
}

static void test_host(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_errors errors;
    struct comm_fit fit;
    struct rng rng;
    double worst = 0;

    rng_init(&rng, 5, 0);
    for (unsigned i = 0; i < 400; i++) {
        double total, port;

        draw(&rng, 2, &total, &port);
        add(&list, "mpi", 2, (uint64_t)total, (uint64_t)port,
            host_us(&rng, total));
    }
    ok(comm_fit_samples(&fit, list.at, list.n, arena), "a host's memory");
    ok(fit.form == COMM_TOTAL, "goes by all bytes");
    ok(fit.curves[0].n_knots > 4, "in %u knots", fit.curves[0].n_knots);
    ok(is_monotone(&fit.curves[0]), "that rise");
    for (double total = 64; total < 4e8; total *= 1.7) {
        double want = 0.5 + total / 60e3 + fmax(total - 2e6, 0) / 25e3;
        double got = comm_curve_us(&fit.curves[0], total);

        worst = tap_worst(worst, fabs(got / want - 1));
    }
    ok(worst < 0.15, "the law is found: %.1f %% off at worst", 100 * worst);
    comm_fit_validate(&errors, list.at, list.n, &list.at[0]);
    is_i64((int64_t)errors.n, 400, "every sample is held out once");
    ok(errors.n_uneven > 200 && errors.n_uneven < 400, "most are uneven");
    ok(errors.median_frac > 0.01 && errors.median_frac < 0.05 &&
           errors.p90_frac >= errors.median_frac &&
           errors.uneven_median_frac < 0.05,
       "their errors are the noise: %.1f %%", 100 * errors.median_frac);
}

static void test_groups(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_errors errors;
    struct comm_fit fit;
    struct rng rng;

    rng_init(&rng, 6, 0);
    for (unsigned i = 0; i < 200; i++) {
        uint32_t n_ranks = i % 2 ? 4 : 8;
        double total, port;

        draw(&rng, n_ranks, &total, &port);
        add(&list, "mpi", n_ranks, (uint64_t)total, (uint64_t)port,
            n_ranks * (1 + port * (n_ranks - 1) / n_ranks / 10e3));
    }
    ok(comm_fit_samples(&fit, list.at, list.n, arena), "4 and 8 ranks");
    is_i64(fit.n_curves, 2, "a curve each");
    ok(fit.form == COMM_PORT,
       "whatever the kind, what predicts better decides: the port");
    is_i64(fit.curves[0].n_ranks, 8, "the first that was seen");
    is_near(fit.curves[0].us[0], 8, 0.01, "its latency");
    is_near(comm_curve_gbps(&fit.curves[1]), 2.5, 0.01, "the other's rate");
    comm_fit_validate(&errors, list.at, list.n, &list.at[1]);
    is_i64((int64_t)errors.n, 100, "one group is judged");
    ok(errors.p90_frac < 0.01, "by what it is told");
    comm_fit_validate(&errors, list.at, 2, &list.at[1]);
    ok(!errors.n && isnan(errors.median_frac), "too few to judge");
}

/* Across hosts a port carries what leaves its host, whatever the kind. */
static void test_hosts(struct arena *arena)
{
    static const char *const kinds[] = {"nccl", "mpi"};

    for (int k = 0; k < 2; k++) {
        struct list list = {.n = 0};
        struct comm_fit fit;

        for (uint64_t max = 1 << 16; max <= 1 << 26; max *= 2) {
            add(&list, kinds[k], 8, 7 * max, max,
                10 + (double)max * 3 / 4 / 25e3);
            list.at[list.n - 1].n_hosts = 4;
        }
        ok(comm_fit_samples(&fit, list.at, list.n, arena), "%s, 4 hosts of 2",
           kinds[k]);
        is_i64(fit.curves[0].n_hosts, 4, "hosts");
        is_near(comm_curve_gbps(&fit.curves[0]), 25, 1e-6,
                "three quarters leave the host");
        is_near(fit.curves[0].us[0], 10, 1e-6, "latency");
    }
}

/* A line under much noise: more knots would fit what is there better, and
 * predict what is held out worse. */
static void test_noise(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_fit fit;
    struct rng rng;

    rng_init(&rng, 7, 0);
    for (unsigned i = 0; i < 120; i++) {
        double total = floor(4096 * pow(2, 14 * rng_uniform(&rng)));

        add(&list, "copy", 4, (uint64_t)total, (uint64_t)total / 4,
            (30 + total / 8e3) * exp(0.4 * rng_normal(&rng)));
    }
    ok(comm_fit_samples(&fit, list.at, list.n, arena), "a noisy line");
    ok(fit.curves[0].n_knots <= 4, "needs no %u knots", fit.curves[0].n_knots);
}

/* What a sample is judged by has not seen it, so it is off by more than what
 * has. */
static void test_held_out(void)
{
    double fitted = 0, held_out = 0;
    size_t n_wrong = 0;
    struct arena arena;
    struct rng rng;

    arena_init(&arena);
    rng_init(&rng, 8, 0);
    for (unsigned round = 0; round < 50; round++) {
        const uint64_t n_busy = round % 2 ? 2 : 4; /* of four: uneven, even */
        struct list list = {.n = 0};
        struct comm_errors errors;
        struct comm_fit fit;
        double all[20];

        for (size_t i = 0; i < 20; i++) {
            double total = floor(4096 * pow(2, 14 * rng_uniform(&rng)));

            add(&list, "copy", 4, (uint64_t)total, (uint64_t)total / n_busy,
                (30 + total / 8e3) * exp(0.2 * rng_normal(&rng)));
        }
        if (!comm_fit_samples(&fit, list.at, list.n, &arena))
            ok(0, "round %u is fitted", round);
        for (size_t i = 0; i < list.n; i++) {
            const struct comm_sample *sample = &list.at[i];

            all[i] = fabs(
                comm_curve_us(&fit.curves[0], (double)sample->total_bytes) /
                    (1000 * sample->time.median_ms) -
                1);
        }
        fitted += stats_median(all, list.n);
        comm_fit_validate(&errors, list.at, list.n, &list.at[0]);
        held_out += errors.median_frac;
        n_wrong += round % 2
                       ? errors.n_uneven != errors.n ||
                             errors.uneven_median_frac != errors.median_frac ||
                             errors.uneven_p90_frac != errors.p90_frac
                       : errors.n_uneven != 0;
        n_wrong += !(errors.p90_frac > errors.median_frac);
    }
    is_i64((int64_t)n_wrong, 0, "where all are uneven they are those, or none");
    ok(held_out > 1.05 * fitted,
       "held out, samples are %.1f %% off, fitted %.1f %%", 2 * held_out,
       2 * fitted);
    arena_release(&arena);
}

int main(void)
{
    struct arena arena;

    arena_init(&arena);
    test_lines(&arena);
    test_odd_times(&arena);
    test_host(&arena);
    test_groups(&arena);
    test_hosts(&arena);
    test_noise(&arena);
    test_held_out();
    arena_release(&arena);
    return tap_done();
}
