/* SPDX-License-Identifier: MIT */
/*
 * Compares exchanges that were measured in the wire lab (tests/wire/bench.py)
 * with two predictions: by the formulas, given the rate and the latency of the
 * links, and by a model that was trained on other exchanges of the same links.
 *
 *     bench_wire LIST
 *
 * Each line of LIST is a measured setting:
 *
 *     MBIT GBPS LATENCY.db MEASURED.db UNSEEN.db MODEL
 *
 * MBIT: rate of a link, for people. GBPS: bandwidth of a link for payload.
 * LATENCY.db: exchanges of a few bytes. The formulas are judged by MEASURED.db
 * and UNSEEN.db. MODEL was trained on MEASURED.db, so it is judged by UNSEEN.db
 * only.
 */
#include "base/file.h"
#include "base/stats.h"
#include "costmodel/formulas/comm_curves.h"
#include "costmodel/formulas/gpu_spec.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/modelfile/model_file.h"
#include "io/store.h"
#include "io/store_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CASES 4096
/* An exchange is even if no rank sends more than this multiple of the mean. */
#define EVEN 1.05

/* One measured exchange and its predictions. */
struct exchange {
    uint32_t n_hosts, n_ranks;
    unsigned mbit;
    bool is_even;
    double by_formulas, by_model; /* errors as fractions; NAN: not judged */
};
struct exchanges {
    struct exchange items[MAX_CASES];
    size_t n;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_wire: %s\n", what);
    exit(1);
}

/* Reads all exchanges of a database. */
static size_t read_samples(struct comm_sample **samples, const char *path,
                           struct arena *arena)
{
    struct sample_setting *settings;
    struct store *store;
    struct err err = {0};
    size_t n_settings, n = 0;

    if (store_open(&store, path, STORE_READ, &err) ||
        store_settings(store, &settings, &n_settings, arena, &err) ||
        !n_settings ||
        store_comm_samples(store, &settings[0], STORE_DEVICE, samples, &n,
                           arena, &err))
        fail(err.msg[0] ? err.msg : "no exchanges");
    store_close(store);
    return n;
}

static double latency_us(const char *path, struct arena *arena)
{
    struct comm_sample *samples;
    size_t n = read_samples(&samples, path, arena);
    double *us = ARENA_NEW(arena, double, n);

    for (size_t i = 0; i < n; i++)
        us[i] = 1000 * samples[i].time.median_ms;
    return stats_median(us, n);
}

/* Returns the relative error of a predicted exchange across hosts. */
static double error_of(const struct comm_model *model,
                       const struct comm_sample *sample)
{
    const double us =
        comm_curve_us(&model->inter, comm_rules_bytes(model->rules, sample));

    return fabs(us / (1000 * sample->time.median_ms) - 1);
}

/* Adds the exchanges of a database. `trained` is NULL if the model has seen
 * them. */
static void add(struct exchanges *all, const char *path, unsigned mbit,
                const struct comm_model *formulas,
                const struct comm_model *trained, struct arena *arena)
{
    struct comm_sample *samples;
    const size_t n = read_samples(&samples, path, arena);

    for (size_t i = 0; i < n && all->n < MAX_CASES; i++) {
        const struct comm_sample *sample = &samples[i];
        const double mean = (double)sample->total_bytes / sample->n_ranks;

        all->items[all->n++] = (struct exchange){
            .n_hosts = sample->n_hosts,
            .n_ranks = sample->n_ranks / sample->n_hosts,
            .mbit = mbit,
            .is_even = (double)sample->max_bytes <= EVEN * mean,
            .by_formulas = error_of(formulas, sample),
            .by_model = trained ? error_of(trained, sample) : NAN};
    }
}

/* Returns the communication model of the CPU for the ranks and hosts of a
 * sample, with the bandwidth of a link in GB/s. */
static struct comm_model cpu_model(const struct comm_sample *like, double gbps,
                                   struct cluster *cluster, struct arena *arena)
{
    const struct gpu_spec *spec;
    struct comm_model model;
    struct err err = {0};

    *cluster =
        (struct cluster){.n_devices = like->n_ranks,
                         .devices_per_host = like->n_ranks / like->n_hosts,
                         .inter_gbps = gbps * like->n_hosts / like->n_ranks};
    if (gpu_spec_get(&spec, "cpu", arena, &err))
        fail(err.msg);
    model = gpu_spec_comm(spec, cluster);
    comm_model_ask(&model, cluster, arena);
    return model;
}

static void add_line(struct exchanges *all, char *line, struct arena *arena)
{
    char *rest = NULL, *words[6];
    struct comm_model formulas, trained;
    struct comm_sample *samples;
    struct cluster cluster;
    struct model model;
    struct err err = {0};

    for (size_t i = 0; i < 6; i++)
        if (!(words[i] = strtok_r(i ? NULL : line, " \n", &rest)))
            fail("a line of the list has fewer than 6 words");
    if (!read_samples(&samples, words[4], arena))
        fail("no exchanges");
    formulas = cpu_model(samples, atof(words[1]), &cluster, arena);
    formulas.inter = comm_line(latency_us(words[2], arena), cluster.inter_gbps);
    if (model_load(&model, words[5], arena, &err))
        fail(err.msg);
    trained = formulas;
    if (!model.has_comm ||
        !comm_curves_apply(&model.comm, &cluster, arena, &trained))
        fail("the model has no exchanges");
    add(all, words[3], (unsigned)atoi(words[0]), &formulas, NULL, arena);
    add(all, words[4], (unsigned)atoi(words[0]), &formulas, &trained, arena);
}

/* Selects exchanges; 0 selects all. */
struct filter {
    uint32_t n_hosts, n_ranks;
    unsigned mbit;
    int evenness; /* 1: even, -1: uneven */
};

static void print_row(const char *name, const struct exchanges *all,
                      struct filter only)
{
    static double formulas[MAX_CASES], model[MAX_CASES];
    size_t n = 0, n_unseen = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct exchange *one = &all->items[i];

        if ((only.n_hosts && only.n_hosts != one->n_hosts) ||
            (only.n_ranks && only.n_ranks != one->n_ranks) ||
            (only.mbit && only.mbit != one->mbit) ||
            (only.evenness && (only.evenness > 0) != one->is_even))
            continue;
        formulas[n++] = one->by_formulas;
        if (!isnan(one->by_model))
            model[n_unseen++] = one->by_model;
    }
    if (n)
        printf("%-24s %5zu %9.1f %7.1f %8zu %9.1f %7.1f\n", name, n,
               100 * stats_median(formulas, n),
               100 * stats_quantile(formulas, n, 0.9), n_unseen,
               100 * stats_median(model, n_unseen),
               100 * stats_quantile(model, n_unseen, 0.9));
}

static void print_table(const struct exchanges *all)
{
    char name[64];

    printf("%-24s %5s %9s %7s %8s %9s %7s\n", "exchanges", "n", "formulas",
           "p90", "unseen", "model", "p90");
    for (uint32_t hosts = 1; hosts < 100; hosts++)
        for (uint32_t ranks = 1; ranks < 100; ranks++) {
            snprintf(name, sizeof(name), "%u hosts x %u rank%s", hosts, ranks,
                     ranks == 1 ? "" : "s");
            print_row(name, all,
                      (struct filter){.n_hosts = hosts, .n_ranks = ranks});
        }
    for (unsigned mbit = 1; mbit < 100000; mbit++) {
        snprintf(name, sizeof(name), "%u Mbit/s", mbit);
        print_row(name, all, (struct filter){.mbit = mbit});
    }
    print_row("even loads", all, (struct filter){.evenness = 1});
    print_row("uneven loads", all, (struct filter){.evenness = -1});
    print_row("all", all, (struct filter){0});
    printf(
        "median and p90 of the error, %%; goal: 15 by the formulas, 8 by the "
        "model\n");
}

int main(int argc, char **argv)
{
    static struct exchanges all;
    struct arena arena = {0};
    char line[4096];
    FILE *list = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!list)
        fail("usage: bench_wire LIST");
    while (fgets(line, sizeof(line), list))
        add_line(&all, line, &arena);
    fclose(list);
    print_table(&all);
    arena_release(&arena);
    return 0;
}
