/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/comm_fit.h"

#include "base/rng.h"
#include "base/stats.h"
#include "costmodel/formulas/comm_curves.h"
#include "costmodel/learning/comm_report.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_SAMPLES 800

/* Exchanges whose times follow a known law. */
struct list {
    struct comm_sample items[MAX_SAMPLES];
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
    list->items[list->n++] = sample;
}

/* Draws a load of 4 B to 512 MiB. The busiest rank's share of it varies from an
 * even share to all bytes. */
static void draw(struct rng *rng, uint32_t n_ranks, double *total, double *port)
{
    *total = floor(4 * pow(2, 27 * rng_uniform(rng)));
    *port =
        ceil(*total / n_ranks * (1 + (n_ranks - 1) * pow(rng_uniform(rng), 2)));
}

static void test_lines(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_curves fit;

    ok(!comm_fit_samples(&fit, list.items, 0, arena), "nothing to fit");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 4)
        add(&list, "copy", 4, bytes, bytes / 4, 30 + (double)bytes / 8e3);
    ok(!comm_fit_samples(&fit, list.items, 1, arena), "one size is not enough");
    ok(comm_fit_samples(&fit, list.items, 2, arena), "two sizes make a line");
    is_near(fit.curves[0].us[0], 30, 1e-6, "with its latency");
    list.items[1].total_bytes = list.items[0].total_bytes + 4;
    ok(!comm_fit_samples(&fit, list.items, 2, arena),
       "but not if the sizes are equal");
    list.items[1].total_bytes = 4 * list.items[0].total_bytes;
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "copies");
    is_i64(fit.n_curves, 1, "one curve");
    is_i64(fit.curves[0].n_knots, 2, "a line is enough");
    is_near(fit.curves[0].us[0], 30, 1e-6, "its latency");
    is_near(comm_curve_gbps(&fit.curves[0]), 8, 1e-6, "its bandwidth");
    ok(fit.rules.form == COMM_TOTAL, "the form is that of one memory");
    is_str(fit.source, "measured all-to-all (copies between ranks), 5 sizes",
           "and its source");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 16)
        add(&list, "nccl", 4, bytes, bytes / 4, 15 + (double)bytes / 400e3);
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "copies and NCCL");
    ok(fit.rules.form == COMM_PORT, "NCCL is the better witness");
    is_near(comm_curve_gbps(&fit.curves[0]), 75, 1e-6,
            "by the busiest port, less the quarter that stays");
}

static void test_odd_times(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_curves fit;

    for (unsigned i = 0; i < 16; i++)
        add(&list, "mpi", 4, (i + 1) << 20, (i + 1) << 18,
            i ? 5e3 + 3e3 * i : 1e3);
    ok(comm_fit_samples(&fit, list.items, list.n, arena) &&
           fit.curves[0].us[0] >= 0,
       "a latency is never negative");
    for (unsigned i = 0; i < 16; i++)
        list.items[i].time.median_ms = 9;
    ok(!comm_fit_samples(&fit, list.items, list.n, arena) ||
           comm_curve_gbps(&fit.curves[0]) > 0,
       "times that do not grow give no negative bandwidth");
    for (unsigned i = 0; i < 16; i++)
        list.items[i].time.median_ms = i % 2 ? NAN : 0;
    ok(!comm_fit_samples(&fit, list.items, list.n, arena), "no times at all");
}

/* Returns the time of an exchange through host memory, in us: a latency, then
 * the rate of a cache for the first bytes and of memory for the rest. The time
 * has 3 % noise, and one measurement in 40 is disturbed. */
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
    struct comm_curves fit;
    struct rng rng;
    double worst = 0;

    rng_init(&rng, 5, 0);
    for (unsigned i = 0; i < 400; i++) {
        double total, port;

        draw(&rng, 2, &total, &port);
        add(&list, "mpi", 2, (uint64_t)total, (uint64_t)port,
            host_us(&rng, total));
    }
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "a host's memory");
    ok(fit.rules.form == COMM_TOTAL, "goes by all bytes");
    ok(fit.curves[0].n_knots > 4, "in %u knots", fit.curves[0].n_knots);
    ok(is_monotone(&fit.curves[0]), "that rise");
    for (double total = 64; total < 4e8; total *= 1.7) {
        double want = 0.5 + total / 60e3 + fmax(total - 2e6, 0) / 25e3;
        double got = comm_curve_us(&fit.curves[0], total);

        worst = tap_worst(worst, fabs(got / want - 1));
    }
    ok(worst < 0.15, "the law is found: %.1f %% off at worst", 100 * worst);
    comm_fit_validate(&errors, list.items, list.n, &list.items[0]);
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
    struct comm_curves fit;
    struct rng rng;

    rng_init(&rng, 6, 0);
    for (unsigned i = 0; i < 200; i++) {
        uint32_t n_ranks = i % 2 ? 4 : 8;
        double total, port;

        draw(&rng, n_ranks, &total, &port);
        add(&list, "mpi", n_ranks, (uint64_t)total, (uint64_t)port,
            n_ranks * (1 + port * (n_ranks - 1) / n_ranks / 10e3));
    }
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "4 and 8 ranks");
    is_i64(fit.n_curves, 2, "a curve each");
    ok(fit.rules.form == COMM_PORT,
       "the form that predicts better is chosen, for any kind: the port");
    ok(comm_fit_samples(&fit, list.items, 18, arena) &&
           fit.rules.form == COMM_TOTAL,
       "with few exchanges, the kind decides");
    ok(comm_fit_samples(&fit, list.items, list.n, arena),
       "all exchanges again");
    is_i64(fit.curves[0].n_ranks, 8, "the first that was seen");
    is_near(fit.curves[0].us[0], 8, 0.01, "its latency");
    is_near(comm_curve_gbps(&fit.curves[1]), 2.5, 0.01, "the other's rate");
    comm_fit_validate(&errors, list.items, list.n, &list.items[1]);
    is_i64((int64_t)errors.n, 100, "one group is judged");
    ok(errors.p90_frac < 0.01, "the judged group has small errors");
    comm_fit_validate(&errors, list.items, 2, &list.items[1]);
    ok(!errors.n && isnan(errors.median_frac), "too few to judge");
}

/* An exchange is validated by a line fitted to the other exchanges if there are
 * at least three others. Exchanges are held out by tenths; no two of these five
 * fall into the same tenth. */
static void test_few_others(void)
{
    static const uint64_t max_mib[] = {1, 2, 3, 4, 5};

    for (size_t n = 2; n <= 5; n++) {
        struct list list = {.n = 0};
        struct comm_errors errors;

        for (size_t i = 0; i < n; i++)
            add(&list, "nccl", 4, 4 * max_mib[i] << 20, max_mib[i] << 20,
                10 + 30 * (double)max_mib[i]);
        comm_fit_validate(&errors, list.items, n, &list.items[0]);
        is_i64((int64_t)errors.n, n >= 4 ? (int64_t)n : 0, "exchanges judged");
        add(&list, "nccl", 4, 0, 0, 10);
        add(&list, "nccl", 4, 24 << 20, 6 << 20, NAN);
        comm_fit_validate(&errors, list.items, list.n, &list.items[0]);
        is_i64((int64_t)errors.n, n >= 4 ? (int64_t)n : 0,
               "none without bytes or time");
    }
}

/* The report has one line for each kind, number of ranks and number of
 * hosts. */
static void test_report(void)
{
    static const char *const names[] = {"nccl, 4 ranks, 1 host ",
                                        "nccl, 4 ranks, 2 hosts ",
                                        "mpi, 8 ranks, 1 host "};
    struct list list = {.n = 0};
    struct buf out = {0};

    for (uint64_t i = 1; i <= 30; i++) {
        add(&list, "nccl", 4, 4 * i << 20, i << 20, 10 + 30 * (double)i);
        add(&list, "nccl", 4, 4 * i << 20, i << 20, 10 + 90 * (double)i);
        list.items[list.n - 1].n_hosts = 2;
        add(&list, "mpi", 8, 8 * i << 20, i << 20, 20 + 50 * (double)i);
    }
    comm_report_print(list.items, list.n, &out);
    buf_add(&out, "", 1);
    is_i64(strncmp(out.data,
                   "held-out exchanges                  n  median %   p90 % "
                   "uneven, median   p90 %\n",
                   79),
           0, "its heading");
    for (unsigned i = 0; i < 3; i++)
        ok(strstr(out.data, names[i]) != NULL, "%s", names[i]);
    is_i64((int64_t)(strstr(strstr(out.data, names[0]) + 1, names[0]) != NULL),
           0, "once");
    buf_release(&out);
    comm_report_print(list.items, 0, &out);
    ok(!out.len, "none, no heading");
    buf_release(&out);
}

/* Across hosts, a port is charged only for the bytes that leave its host. This
 * holds for every kind of exchange. */
static void test_hosts(struct arena *arena)
{
    static const char *const kinds[] = {"nccl", "mpi"};

    for (int k = 0; k < 2; k++) {
        struct list list = {.n = 0};
        struct comm_curves fit;

        for (uint64_t max = 1 << 16; max <= 1 << 26; max *= 2) {
            add(&list, kinds[k], 8, 7 * max, max,
                10 + (double)max * 3 / 4 / 25e3);
            list.items[list.n - 1].n_hosts = 4;
        }
        ok(comm_fit_samples(&fit, list.items, list.n, arena),
           "%s, 4 hosts of 2", kinds[k]);
        is_i64(fit.curves[0].n_hosts, 4, "hosts");
        is_near(comm_curve_gbps(&fit.curves[0]), 25, 1e-6,
                "three quarters leave the host");
        is_near(fit.curves[0].us[0], 10, 1e-6, "latency");
    }
}

/* A straight line with strong noise. More knots would fit these samples better,
 * but would predict held-out samples worse. */
static void test_noise(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_curves fit;
    struct rng rng;

    rng_init(&rng, 7, 0);
    for (unsigned i = 0; i < 120; i++) {
        double total = floor(4096 * pow(2, 14 * rng_uniform(&rng)));

        add(&list, "copy", 4, (uint64_t)total, (uint64_t)total / 4,
            (30 + total / 8e3) * exp(0.4 * rng_normal(&rng)));
    }
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "a noisy line");
    ok(fit.curves[0].n_knots <= 4, "needs no %u knots", fit.curves[0].n_knots);
}

/* Each sample is validated by a fit without it. So the validated error is
 * larger than the error of a fit to all samples. */
static void test_held_out(void)
{
    double fitted = 0, held_out = 0;
    size_t n_wrong = 0;
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 8, 0);
    for (unsigned round = 0; round < 50; round++) {
        /* busy ranks of four: two (uneven) or all (even) */
        const uint64_t n_busy = round % 2 ? 2 : 4;
        struct list list = {.n = 0};
        struct comm_errors errors;
        struct comm_curves fit;
        double all[20];

        for (size_t i = 0; i < 20; i++) {
            double total = floor(4096 * pow(2, 14 * rng_uniform(&rng)));

            add(&list, "copy", 4, (uint64_t)total, (uint64_t)total / n_busy,
                (30 + total / 8e3) * exp(0.2 * rng_normal(&rng)));
        }
        if (!comm_fit_samples(&fit, list.items, list.n, &arena))
            ok(0, "round %u is fitted", round);
        for (size_t i = 0; i < list.n; i++) {
            const struct comm_sample *sample = &list.items[i];

            all[i] = fabs(
                comm_curve_us(&fit.curves[0], (double)sample->total_bytes) /
                    (1000 * sample->time.median_ms) -
                1);
        }
        fitted += stats_median(all, list.n);
        comm_fit_validate(&errors, list.items, list.n, &list.items[0]);
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

/* A fit with one line per group. The latencies are 1 us for 8 ranks, 2 us for 2
 * ranks, 3 us for 4 ranks, and 4 us for 8 ranks on 2 hosts. */
static struct comm_curves make_fit(uint32_t n_curves)
{
    static const uint32_t n_ranks[] = {8, 2, 4, 8};
    struct comm_curves fit = {
        .rules.form = COMM_TOTAL, .n_curves = n_curves, .source = "measured"};

    for (uint32_t i = 0; i < n_curves; i++) {
        fit.curves[i] = comm_line(1 + i, 1 + i);
        fit.curves[i].n_ranks = n_ranks[i];
        fit.curves[i].n_hosts = i < 3 ? 1 : 2;
    }
    return fit;
}

#define GROWN "measured, of other numbers of ranks"
static void test_apply(struct arena *arena)
{
    static const struct {
        uint32_t n_curves, n_devices, per_host;
        double intra_us, inter_us;
        const char *source, *what;
    } cases[] = {
        {3, 2, 2, 2, 40, "measured", "2 devices"},
        {3, 4, 4, 3, 40, "measured", "4 devices"},
        {3, 5, 5, 3, 40, GROWN, "5 are more like 4 than like 8"},
        {3, 128, 128, 1, 40, GROWN, "128 are most like 8"},
        {3, 8, 2, 2, 40, "measured; across hosts published",
         "hosts of 2: no network was measured"},
        {4, 8, 4, 3, 4, "measured", "hosts of 4: it was"},
        {4, 8, 8, 1, 40, "measured", "one host of 8 has no network"},
        {3, 1, 1, 10, 40, "measured", "one device exchanges nothing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct comm_curves fit = make_fit(cases[i].n_curves);
        const struct cluster cluster = {.n_devices = cases[i].n_devices,
                                        .devices_per_host = cases[i].per_host};
        struct comm_model model = {.intra = comm_line(10, 100),
                                   .inter = comm_line(40, 10),
                                   .source = "published"};
        const bool is_measured =
            comm_curves_apply(&fit, &cluster, arena, &model);

        ok(is_measured && model.intra.us[0] == cases[i].intra_us &&
               model.inter.us[0] == cases[i].inter_us &&
               (model.rules.form == COMM_TOTAL) == (cases[i].n_devices > 1),
           "%s", cases[i].what);
        is_str(model.source, cases[i].source, "the source says so");
    }
}

/* If a fit covers only one level (inside a host or across hosts), the other
 * level keeps its published curve and form. If the fit covers no level that the
 * cluster uses, nothing is called measured. */
static void test_one_level(struct arena *arena)
{
    static const struct {
        bool is_inter;
        uint32_t per_host;
        bool is_measured;
        enum comm_form form;
        const char *source;
    } cases[] = {
        {true, 8, false, COMM_PORT, "published (none measured inside a host)"},
        {true, 4, true, COMM_PORT, "measured; inside a host published"},
        {true, 1, true, COMM_PORT, GROWN},
        {false, 8, true, COMM_TOTAL, "measured"},
        {false, 4, true, COMM_TOTAL, GROWN "; across hosts published"},
        {false, 1, false, COMM_PORT, "published (none measured across hosts)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cluster cluster = {.n_devices = 8,
                                        .devices_per_host = cases[i].per_host};
        struct comm_curves fit = make_fit(4);
        struct comm_model model = {.source = "published"};

        fit.n_curves = 1;
        if (cases[i].is_inter)
            fit.curves[0] = fit.curves[3];
        ok(comm_curves_apply(&fit, &cluster, arena, &model) ==
                   cases[i].is_measured &&
               model.rules.form == cases[i].form,
           "%s alone, hosts of %u", cases[i].is_inter ? "across" : "inside",
           cases[i].per_host);
        is_str(model.source, cases[i].source, "the source says so");
    }
}

/* A law for all numbers of ranks and hosts. The tests measure it for a few
 * groups and sizes. */
struct law {
    double alpha_us, rank_us; /* latency: constant part, and per rank */
    /* rate at one host; relative growth of a byte's time at each doubling of
     * hosts */
    double gbps, doubling;
};

static double law_us(const struct law *law, double n_ranks, double n_hosts,
                     double bytes)
{
    return law->alpha_us + law->rank_us * n_ranks +
           1e-3 * bytes / law->gbps * (1 + law->doubling * log2(n_hosts));
}

/* Adds even exchanges on hosts of 8 ranks, for message sizes as nccl-tests
 * prints them. */
static void add_group(struct list *list, const struct law *law,
                      uint32_t n_hosts, unsigned n_sizes, double noise,
                      struct rng *rng)
{
    const uint32_t n_ranks = 8 * n_hosts;

    for (unsigned i = 0; i < n_sizes; i++) {
        const uint64_t sent = (uint64_t)1 << (18 + 10 * i / (n_sizes - 1));
        const double near = n_hosts > 1 ? 1.0 / n_hosts : 1.0 / n_ranks;

        add(list, "nccl", n_ranks, n_ranks * sent, sent,
            law_us(law, n_ranks, n_hosts, (double)sent * (1 - near)) *
                exp(noise * rng_normal(rng)));
        list->items[list->n - 1].n_hosts = n_hosts;
    }
}

/* Returns the largest relative error across hosts, for 2 to 128 hosts. Returns
 * INFINITY if a predicted time is not finite and positive, or does not grow
 * with the bytes. */
static double worst_across(const struct comm_curves *fit, const struct law *law,
                           struct arena *arena)
{
    double worst = 0;

    for (uint32_t n_hosts = 2; n_hosts <= 128; n_hosts++) {
        const struct cluster cluster = {.n_devices = 8 * n_hosts,
                                        .devices_per_host = 8};
        struct comm_model model = {0};
        double last = 0;

        if (!comm_curves_apply(fit, &cluster, arena, &model))
            return INFINITY;
        for (double bytes = 1; bytes < 1e12; bytes *= 7) {
            const double us = comm_curve_us(&model.inter, bytes);
            const double want = law_us(law, 8.0 * n_hosts, n_hosts, bytes);

            if (!(us > last) || !isfinite(us))
                return INFINITY;
            last = us;
            worst = tap_worst(worst, fabs(us / want - 1));
        }
    }
    return worst;
}

static void test_growth(void)
{
    /* growth to assume if only one group was measured */
    struct law published = {30, 0.6, 40, 0.294};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 9, 0);
    for (unsigned round = 0; round < (unsigned)tap_size(40, 2000); round++) {
        const struct law law = {5 + 50 * rng_uniform(&rng), rng_uniform(&rng),
                                1 + 400 * rng_uniform(&rng), rng_uniform(&rng)};
        struct list exact = {.n = 0}, one = {.n = 0}, noisy = {.n = 0};
        const struct arena_mark mark = arena_mark(&arena);
        struct comm_curves fit;
        double worst;

        add_group(&exact, &law, 1, 2, 0, &rng);
        for (uint32_t n_hosts = 2; n_hosts <= 8; n_hosts *= 2) {
            add_group(&exact, &law, n_hosts, 2 + round % 3, 0, &rng);
            add_group(&noisy, &law, n_hosts, 5, 0.05, &rng);
        }
        worst = comm_fit_samples(&fit, exact.items, exact.n, &arena)
                    ? worst_across(&fit, &law, &arena)
                    : INFINITY;
        if (!(worst < 0.02) || fit.n_curves != 4)
            ok(0, "round %u: three groups tell all others, %g off", round,
               worst);
        worst = comm_fit_samples(&fit, noisy.items, noisy.n, &arena)
                    ? worst_across(&fit, &law, &arena)
                    : INFINITY;
        if (!isfinite(worst))
            ok(0, "round %u: under noise it rises", round);
        add_group(&one, &published, 2, 2, 0, &rng);
        worst = comm_fit_samples(&fit, one.items, one.n, &arena)
                    ? worst_across(&fit, &published, &arena)
                    : INFINITY;
        if (!(worst < 0.01))
            ok(0, "round %u: one group grows as published, %g off", round,
               worst);
        arena_rewind(&arena, mark);
    }
    ok(1, "two constants and their growth are found");
    arena_release(&arena);
}

/* If two groups have the same number of ranks, the group with the cluster's
 * number of hosts is used. */
static void test_alike(struct arena *arena)
{
    const struct cluster cluster = {.n_devices = 16, .devices_per_host = 4};
    struct comm_curves fit = {.n_curves = 3, .source = "measured"};
    struct comm_model model = {.source = "published"};

    for (uint32_t i = 0; i < 3; i++) {
        fit.curves[i] = comm_line(10 * (i + 1), 40);
        fit.curves[i].n_ranks = 16;
        fit.curves[i].n_hosts = UINT32_C(2) << i;
    }
    ok(comm_curves_apply(&fit, &cluster, arena, &model), "2, 4 and 8 hosts");
    is_near(model.inter.us[0], 20, 0, "as it was measured on 4");
    is_str(model.source, "measured; inside a host published",
           "which needs no label");
}

/* Inside a host, for any number of ranks that was not measured. */
static void test_inside(struct arena *arena)
{
    struct list list = {.n = 0};
    struct comm_curves fit;
    double last = 0;

    for (uint32_t n_ranks = 2; n_ranks <= 8; n_ranks *= 4)
        for (uint64_t bytes = 1 << 20; bytes <= 1 << 24; bytes *= 16)
            add(&list, "nccl", n_ranks, n_ranks * bytes, bytes,
                10 + n_ranks +
                    (double)bytes * (1 - 1.0 / n_ranks) / 200e3 *
                        (1 + 0.1 * log2(n_ranks)));
    ok(comm_fit_samples(&fit, list.items, list.n, arena), "2 and 8 in a host");
    for (uint32_t n = 2; n <= 1024; n++) {
        const struct cluster cluster = {.n_devices = n, .devices_per_host = n};
        const double want = 10 + n + 1e6 / 200e3 * (1 + 0.1 * log2(n));
        struct comm_model model = {0};
        double us;

        if (!comm_curves_apply(&fit, &cluster, arena, &model))
            ok(0, "%u ranks are complete", n);
        us = comm_curve_us(&model.intra, 1e6);
        if (!(us > last) || !(fabs(us / want - 1) < 0.02))
            ok(0, "%u ranks: %g us, not %g", n, us, want);
        last = us;
    }
}

int main(void)
{
    struct arena arena = {0};

    test_lines(&arena);
    test_apply(&arena);
    test_one_level(&arena);
    test_growth();
    test_alike(&arena);
    test_inside(&arena);
    test_odd_times(&arena);
    test_host(&arena);
    test_groups(&arena);
    test_few_others();
    test_report();
    test_hosts(&arena);
    test_noise(&arena);
    test_held_out();
    arena_release(&arena);
    return tap_done();
}
