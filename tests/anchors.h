/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_ANCHORS_H
#define NEUROSHARD_TESTS_ANCHORS_H

/*
 * Compares published measurements (data/measurements/published-*.csv) with the
 * roofline model's predictions for the same work. Used by a table of `make
 * bench` and by a test. A lookup measurement has n_tables equal tables. If the
 * longest bag is known, one table gets this pooling factor and the others share
 * the remaining lookups. Include in one file only.
 */

#include "base/file.h"
#include "base/stats.h"
#include "costmodel/models/roofline_oracle.h"
#include "io/csv.h"
#include "tests/price_sample.h"
#include "tests/shipped_gpu.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCHOR_COLUMNS 25
/* Least number of bytes of a record. */
#define ANCHOR_RECORD 16

/* One measurement of lookups. */
struct anchor {
    /* name in roofline:GPU, or the source's name for the GPU */
    const char *gpu;
    const char *source; /* citation, as published */
    const char *phase;  /* "fwd", "bwd" or "fwd+bwd" */
    bool is_named;      /* true if the source names the GPU */
    bool is_launched;   /* host-timed: launch and kernel */
    bool is_bound;      /* true if the launch dominates the time */
    struct problem problem;
    double ms;
};

struct anchors {
    struct anchor *list;
    size_t n;
};

/* One all-to-all; `bytes` is the total that each rank sends. */
struct exchange_anchor {
    const char *gpu, *source;
    uint32_t n_ranks, per_host, hosts_per_domain;
    double bytes, ms;
    bool is_fitted; /* a constant of the model was fitted to it */
};
struct exchange_anchors {
    struct exchange_anchor *list;
    size_t n;
};

/* Time that a host takes to launch a forward pass, in ms. Added to predictions
 * for measurements that a host clock timed. Derived from the two launch-bound
 * rows by subtracting the kernel's time. */
#define ANCHOR_HOST_MS 0.278

/* Reports the result of one check: as a line of the bench or a line of TAP. */
typedef void anchor_report(bool holds, const char *what);

static const char *anchor_data(const char *name, struct arena *arena)
{
    const char *data = getenv("NEUROSHARD_DATA");

    return arena_printf(arena, "%s/%s", data ? data : "data", name);
}

__attribute__((noreturn)) static void anchor_bail(const char *what)
{
    printf("Bail out! %s\n", what);
    exit(1);
}

struct anchor_list {
    char *(*fields)[ANCHOR_COLUMNS];
    size_t n;
};

static int anchor_record(void *ctx, const struct csv *csv, struct err *err)
{
    struct anchor_list *list = ctx;

    (void)err;
    assert(csv->n_fields <= ANCHOR_COLUMNS);
    if (csv->n_records && csv->n_fields)
        memcpy(list->fields[list->n++], csv->fields,
               csv->n_fields * sizeof(char *));
    return 0;
}

/* Reads the records of a CSV file into fields[n][ANCHOR_COLUMNS], without the
 * header line, and returns n. */
static size_t anchor_records(char *(**fields)[ANCHOR_COLUMNS], const char *name,
                             struct arena *arena)
{
    const char *path = anchor_data(name, arena), *text;
    struct anchor_list list = {0};
    struct err err = {0};
    size_t len;

    if (file_read(&text, &len, path, arena, &err))
        anchor_bail(err.msg);
    *fields = list.fields =
        arena_alloc(arena, len / ANCHOR_RECORD + 1, sizeof(**fields));
    if (csv_read(text, len, path, anchor_record, &list, arena, &err))
        anchor_bail(err.msg);
    return list.n;
}

/* Returns the index of a name in a NULL-terminated list; bails out if it is
 * missing. */
static unsigned anchor_name(const char *name, const char *const *names)
{
    for (unsigned i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    anchor_bail(name);
}

/* Makes a problem of one host whose devices have practically unlimited
 * memory. */
static void anchor_problem(struct problem *problem, uint32_t n_tables,
                           uint32_t n_devices, struct arena *arena)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, n_tables),
        .n_tables = n_tables,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = n_devices,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)},
        .kinds = SHARD_ALL_KINDS,
    };
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] = (uint64_t)1 << 44;
    for (uint32_t t = 0; t < n_tables; t++) {
        table_init(&problem->tables[t]);
        problem->tables[t].name = arena_printf(arena, "%u", t);
    }
}

static void anchor_tables(struct problem *problem, char **fields,
                          struct arena *arena)
{
    const uint32_t n = (uint32_t)strtoul(fields[1], NULL, 10);
    const double mean = strtod(fields[5], NULL);
    const double longest = *fields[6] ? strtod(fields[6], NULL) : mean;

    anchor_problem(problem, n, 1, arena);
    problem->batch = strtoull(fields[4], NULL, 10);
    for (uint32_t t = 0; t < n; t++) {
        struct table *table = &problem->tables[t];

        table->num_embeddings = strtoull(fields[2], NULL, 10);
        table->dim = (uint32_t)strtoul(fields[3], NULL, 10);
        table->pooling_factor =
            t || n == 1 ? (n * mean - longest) / fmax(n - 1, 1) : longest;
        if (n == 1)
            table->pooling_factor = mean;
        table->zipf_alpha =
            strcmp(fields[7], "uniform") ? strtod(fields[7], NULL) : 0;
        table->precision =
            (enum precision)anchor_name(fields[8], precision_names);
        table->optimizer =
            (enum optimizer)anchor_name(fields[9], optimizer_names);
    }
}

/* Returns all published lookup measurements. If a source does not name the GPU
 * of a row, the GPU was inferred from the measured bandwidth. */
__attribute__((unused)) static struct anchors
anchor_lookups(struct arena *arena)
{
    char *(*fields)[ANCHOR_COLUMNS];
    struct anchors anchors;

    anchors.n =
        anchor_records(&fields, "measurements/published-lookups.csv", arena);
    anchors.list = ARENA_NEW(arena, struct anchor, anchors.n + 1);
    for (size_t i = 0; i < anchors.n; i++) {
        struct anchor *anchor = &anchors.list[i];
        char *gpu = fields[i][0];
        const size_t len = strlen(gpu);

        anchor->is_named = gpu[len - 1] != '?';
        if (!anchor->is_named)
            gpu[len - 1] = '\0';
        anchor->gpu = strcmp(gpu, "v100") ? gpu : "v100-32gb";
        anchor->phase = fields[i][10];
        anchor->ms = strtod(fields[i][11], NULL);
        anchor->source = fields[i][12];
        anchor->is_launched = strstr(anchor->source, "launch");
        anchor->is_bound = strstr(anchor->source, "launch bound");
        anchor_tables(&anchor->problem, fields[i], arena);
    }
    return anchors;
}

/* Predicts the phase times, in ms, of lookups that check no ids (benchmarks
 * check none). Tables are dealt to the devices in turn, and the result is that
 * of the first device: one device has all tables, several have one each. */
__attribute__((unused)) static void anchor_phases(double phases_ms[N_PHASES],
                                                  const struct problem *problem,
                                                  const struct gpu_spec *spec,
                                                  struct arena *arena)
{
    const uint32_t n_devices = problem->cluster.n_devices;
    struct arena_mark mark = arena_mark(arena);
    double(*ranks_ms)[N_PHASES] =
        arena_alloc(arena, n_devices, sizeof(*ranks_ms));
    double *compute_ms = ARENA_NEW(arena, double, n_devices);
    double *vector, *sums;
    struct gpu_spec unchecked = *spec;
    struct oracle *oracle;

    unchecked.skips_checks = true;
    oracle = roofline_oracle(&unchecked, problem, arena);
    vector = ARENA_NEW(arena, double, oracle->width);
    sums = ARENA_NEW(arena, double, (size_t)n_devices * oracle->width);
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        struct shard shard = shard_whole(problem, t, t % n_devices);

        oracle->ops->embed(oracle, &shard, 1, vector);
        oracle_add_shards(oracle, &shard, vector, 1, 1, sums);
    }
    oracle->ops->compute(oracle, sums, n_devices, compute_ms);
    oracle->ops->phases(oracle, sums, compute_ms, ranks_ms);
    memcpy(phases_ms, ranks_ms[0], sizeof(ranks_ms[0]));
    arena_rewind(arena, mark);
}

/* Returns predicted time divided by measured time. */
__attribute__((unused)) static double anchor_ratio(const struct anchor *anchor,
                                                   const struct gpu_spec *spec,
                                                   struct arena *arena)
{
    double phases_ms[N_PHASES], ms = 0;

    anchor_phases(phases_ms, &anchor->problem, spec, arena);
    if (strstr(anchor->phase, "fwd"))
        ms += phases_ms[PHASE_FORWARD];
    if (strstr(anchor->phase, "bwd"))
        ms += phases_ms[PHASE_BACKWARD];
    if (anchor->is_launched)
        ms += ANCHOR_HOST_MS;
    return ms / anchor->ms;
}

/* Spread of the ratios predicted / measured. */
struct anchor_errors {
    double log_sum, absolute; /* sums of log(ratio) and |ratio - 1| */
    double worst;
    size_t n;
};

__attribute__((unused)) static void anchor_add(struct anchor_errors *errors,
                                               double ratio)
{
    errors->log_sum += log(ratio);
    errors->absolute += fabs(ratio - 1);
    errors->worst = fmax(errors->worst, fabs(ratio - 1));
    errors->n++;
}

__attribute__((unused)) static double
anchor_geometric(const struct anchor_errors *errors)
{
    return exp(errors->log_sum / (double)errors->n);
}

__attribute__((unused)) static double
anchor_mape(const struct anchor_errors *errors)
{
    return errors->absolute / (double)errors->n;
}

/* Collects the ratios of all rows of an unnamed GPU, which form a curve over
 * the width: `raw` as they are, `shape` after division by their geometric mean,
 * which removes a common scale. */
__attribute__((unused)) static void anchor_curve(struct anchor_errors *raw,
                                                 struct anchor_errors *shape,
                                                 const struct anchors *anchors,
                                                 const char *gpu,
                                                 struct arena *arena)
{
    *raw = *shape = (struct anchor_errors){0};
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < anchors->n; i++) {
            const struct anchor *anchor = &anchors->list[i];
            double ratio;

            if (anchor->is_named || anchor->is_bound ||
                strcmp(anchor->gpu, gpu) != 0)
                continue;
            ratio = anchor_ratio(anchor, shipped_gpu(gpu, arena), arena);
            anchor_add(pass ? shape : raw,
                       pass ? ratio / anchor_geometric(raw) : ratio);
        }
}

__attribute__((unused)) static void
anchor_check_lookups(const struct anchors *anchors, anchor_report *report,
                     struct arena *arena)
{
    static const char *const curves[] = {"h100", "a100"};
    struct anchor_errors named = {0}, raw, shape;
    double mean;

    for (size_t i = 0; i < anchors->n; i++) {
        const struct anchor *anchor = &anchors->list[i];
        double ratio =
            anchor_ratio(anchor, shipped_gpu(anchor->gpu, arena), arena);

        if (anchor->is_named)
            anchor_add(&named, ratio);
        else if (!strcmp(anchor->gpu, "v100-32gb") &&
                 !strcmp(anchor->phase, "fwd"))
            report(ratio >= 0.7 && ratio <= 1.4,
                   arena_printf(arena,
                                "forward of FBGEMM on a V100?: %.2f, 0.7 to "
                                "1.4",
                                ratio));
    }
    mean = anchor_geometric(&named);
    report(named.n >= 20 && mean >= 0.9 && mean <= 1.1,
           arena_printf(arena, "named rows: geometric mean %.2f, 0.9 to 1.1",
                        mean));
    mean = 100 * anchor_mape(&named);
    report(mean <= 15,
           arena_printf(arena, "their mean error: %.1f, <= 15 %%", mean));
    for (size_t i = 0; i < 2; i++) {
        anchor_curve(&raw, &shape, anchors, curves[i], arena);
        mean = 100 * anchor_mape(&shape);
        report(shape.n >= 7 && mean <= 15,
               arena_printf(arena, "width curve of %s?: shape %.1f, <= 15 %%",
                            curves[i], mean));
    }
}

/* Returns the relative error that 9 of 10 further measurements would stay
 * within, by split conformal prediction from n absolute log-ratios. Sorts
 * `logs`. */
__attribute__((unused)) static double anchor_error_frac(double *logs, size_t n)
{
    /* rank, counted from 1 */
    const double k = fmin(ceil(0.9 * (double)(n + 1)), (double)n);

    return exp(stats_quantile(logs, n, (k - 1) / (double)(n - 1))) - 1;
}

/* Returns the error bound from every `every`-th sample of a shipped
 * database. */
static double anchor_error_of_samples(const struct gpu_spec *spec,
                                      const char *db, size_t every,
                                      struct arena *arena)
{
    struct sample *samples;
    struct err err = {0};
    double *logs;
    size_t n, n_logs = 0;

    if (read_samples(&samples, &n, anchor_data(db, arena), arena, &err))
        anchor_bail(err.msg);
    logs = ARENA_NEW(arena, double, n);
    for (size_t i = 0; i < n; i += every) {
        const double ms =
            samples[i].forward.median_ms + samples[i].backward.median_ms;
        struct arena_mark mark = arena_mark(arena);
        double phases_ms[N_PHASES];
        struct problem problem;

        if (!(ms > 0))
            continue;
        fill_problem(&problem, &samples[i], arena);
        anchor_phases(phases_ms, &problem, spec, arena);
        logs[n_logs++] = fabs(
            log((phases_ms[PHASE_FORWARD] + phases_ms[PHASE_BACKWARD]) / ms));
        arena_rewind(arena, mark);
    }
    return anchor_error_frac(logs, n_logs);
}

/* Returns the error bound from published lookups of this GPU. If there are
 * none, it uses the lookups of all GPUs, with the constants that were fitted to
 * an H100. */
static double anchor_error_of_lookups(const struct gpu_spec *spec,
                                      const struct anchors *anchors,
                                      struct arena *arena)
{
    double *logs = ARENA_NEW(arena, double, anchors->n);
    const struct gpu_spec *h100 = shipped_gpu("h100", arena);
    size_t n = 0;

    for (size_t i = 0; i < anchors->n; i++)
        if (!strcmp(anchors->list[i].gpu, spec->name))
            logs[n++] = fabs(log(anchor_ratio(&anchors->list[i], spec, arena)));
    for (size_t i = 0; !n && i < anchors->n; i++) {
        struct gpu_spec other = *shipped_gpu(anchors->list[i].gpu, arena);

        other.row_cycles = h100->row_cycles;
        other.bag_row_us = h100->bag_row_us * h100->clock_ghz / other.clock_ghz;
        other.launch_us = h100->launch_us;
        logs[i] = fabs(log(anchor_ratio(&anchors->list[i], &other, arena)));
    }
    return anchor_error_frac(logs, n ? n : anchors->n);
}

/* Checks the lookup error that each shipped GPU's file states. If the GPU has a
 * database of measurements, the stated error may differ from that of every
 * `every`-th sample by the fraction `slack`. */
__attribute__((unused)) static void
anchor_check_errors(const struct anchors *anchors, size_t every, double slack,
                    anchor_report *report, struct arena *arena)
{
    static const char *const of_samples[][2] = {
        {"h100", "measurements/fbgemm-nvidia-h100.db"},
        {"h200", "measurements/fbgemm-nvidia-h200.db"},
        {"cpu", "measurements/cpu-amd-epyc-2t.db"},
    };

    for (const char *const *name = gpu_names(arena); *name; name++) {
        const struct gpu_spec *spec = shipped_gpu(*name, arena);
        const char *db = NULL;
        double frac;

        for (size_t i = 0; i < sizeof of_samples / sizeof *of_samples; i++)
            if (!strcmp(of_samples[i][0], *name))
                db = of_samples[i][1];
        frac = db ? anchor_error_of_samples(spec, db, every, arena)
                  : anchor_error_of_lookups(spec, anchors, arena);
        report(fabs(frac - spec->lookup_error.frac) <=
                   0.01 + (db ? slack * frac : 0),
               arena_printf(arena,
                            "%s: nine in ten look-ups within %.3f, its file "
                            "says %.2f",
                            *name, frac, spec->lookup_error.frac));
    }
}

/* Returns a GPU description for exchanges only; its lookup figures are
 * unused. */
static struct gpu_spec anchor_exchange_spec(const char *gpu,
                                            struct arena *arena)
{
    /* Per GPU: all-to-all rate inside a host or domain, its latency, and the
     * rate of the NIC. */
    static const struct {
        const char *gpu;
        double intra_gbps, alpha_us, nic_gbps;
    } others[] = {
        {"h800", 160, 10.6, 50},    {"b300", 640, 10.6, 100},
        {"gb300", 640, 10.6, 100},  {"instinct", 361, 30, 50},
        {"100gb", 320, 10.6, 12.5}, {"50gb", 210, 15, 6.25},
    };
    const struct gpu_spec *shipped = shipped_gpu(gpu, arena);
    struct gpu_spec spec = *shipped_gpu("h100", arena);

    if (shipped)
        return *shipped;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].gpu, gpu)) {
            spec.intra_gbps = others[i].intra_gbps;
            spec.intra_alpha_us = others[i].alpha_us;
            spec.nic_gbps = others[i].nic_gbps;
            return spec;
        }
    anchor_bail(gpu);
}

__attribute__((unused)) static struct exchange_anchors
anchor_exchanges(struct arena *arena)
{
    char *(*fields)[ANCHOR_COLUMNS];
    struct exchange_anchors all;

    all.n =
        anchor_records(&fields, "measurements/published-alltoalls.csv", arena);
    all.list = ARENA_NEW(arena, struct exchange_anchor, all.n + 1);
    for (size_t i = 0; i < all.n; i++) {
        struct exchange_anchor *anchor = &all.list[i];
        char **field = fields[i];
        double n = strtod(field[1], NULL);

        anchor->gpu = field[0];
        anchor->n_ranks = (uint32_t)n;
        anchor->per_host = (uint32_t)strtoul(field[2], NULL, 10);
        anchor->hosts_per_domain = (uint32_t)strtoul(field[3], NULL, 10);
        anchor->bytes = *field[4] ? strtod(field[4], NULL) : ldexp(1, 33);
        anchor->ms = *field[5] ? strtod(field[5], NULL)
                               : anchor->bytes * (n - 1) / n /
                                     strtod(field[6], NULL) / 1e6;
        anchor->is_fitted = !strcmp(field[7], "fit");
        anchor->source = field[8];
    }
    return all;
}

/* Returns predicted time divided by measured time of an all-to-all. The
 * simulated job has one table per rank, and its output is all that the rank
 * sends. */
__attribute__((unused)) static double
anchor_exchange_ratio(const struct exchange_anchor *anchor, struct arena *arena)
{
    const struct gpu_spec spec = anchor_exchange_spec(anchor->gpu, arena);
    struct arena_mark mark = arena_mark(arena);
    double phases_ms[N_PHASES];
    struct problem problem;

    anchor_problem(&problem, anchor->n_ranks, anchor->n_ranks, arena);
    problem.cluster.devices_per_host = anchor->per_host;
    problem.cluster.hosts_per_domain = anchor->hosts_per_domain;
    problem.batch = (uint64_t)(anchor->bytes / 16);
    for (uint32_t t = 0; t < anchor->n_ranks; t++) {
        problem.tables[t].num_embeddings = 1;
        problem.tables[t].dim = 4;
        problem.tables[t].pooling_factor = 1;
        problem.tables[t].num_outputs = 1;
    }
    anchor_phases(phases_ms, &problem, &spec, arena);
    arena_rewind(arena, mark);
    return phases_ms[PHASE_OUTPUT] / anchor->ms;
}

/* Compares the error of the held-out exchanges with the error that plans
 * state. */
static void anchor_check_exchange_error(const struct exchange_anchors *all,
                                        anchor_report *report,
                                        struct arena *arena)
{
    const struct cluster cluster = {.n_devices = 8, .devices_per_host = 8};
    const struct comm_model model =
        gpu_spec_comm(shipped_gpu("h100", arena), &cluster);
    double *logs = ARENA_NEW(arena, double, all->n), frac;
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (!all->list[i].is_fitted)
            logs[n++] = fabs(log(anchor_exchange_ratio(&all->list[i], arena)));
    frac = anchor_error_frac(logs, n);
    report(n == 16 && fabs(frac - model.error.frac) <= 0.01,
           arena_printf(arena,
                        "%zu exchanges held out: nine in ten within %.3f, "
                        "plans say %.2f",
                        n, frac, model.error.frac));
}

/* Checks each exchange across hosts or NVLink domains. Some constants of the
 * model are fitted to some of these measurements, but no constant is fitted to
 * those of an MI355X. */
__attribute__((unused)) static void
anchor_check_exchanges(const struct exchange_anchors *all,
                       anchor_report *report, struct arena *arena)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct exchange_anchor *anchor = &all->list[i];
        const uint32_t per_group = anchor->per_host * anchor->hosts_per_domain;

        if (per_group && anchor->n_ranks > per_group) {
            double ratio = anchor_exchange_ratio(anchor, arena);

            report(fabs(ratio - 1) <= 0.15,
                   arena_printf(arena,
                                "all-to-all of %u x %u %s%s: %.2f, within "
                                "15 %%",
                                anchor->n_ranks / per_group, per_group,
                                anchor->gpu,
                                anchor->is_fitted ? "" : ", held out", ratio));
        }
    }
    anchor_check_exchange_error(all, report, arena);
}

#endif
