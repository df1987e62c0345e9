/* SPDX-License-Identifier: MIT */
/*
 * Compares the roofline with published measurements (data/SOURCES.md): lookups,
 * all-to-alls and whole steps. Also compares its fitted constants with sources
 * that they were not fitted to. Exits with status 1 if an error bound is
 * exceeded.
 *
 *     bench_anchors
 */
#include "tests/anchors.h"

#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "costmodel/models/roofline_oracle.h"
#include "io/tables_io.h"
#include "search/search.h"

#include <inttypes.h>

#define SAMPLES 120 /* number of samples that represent a database */
/* Searches for a plan that the source does not publish. SHORT_LIST: longest
 * table list that is searched with SHORT_EFFORT changes. EFFORT: changes for
 * longer lists. Their published step takes many times as long as the
 * embeddings of any plan, so the quality of the plan hardly matters. */
#define HOT_EVERY 4
/* Searches for a plan that the source does not publish. SHORT_LIST: longest
 * table list (in tables) that is searched with SHORT_EFFORT changes. EFFORT:
 * changes for longer lists, whose published step takes many times as long as
 * that of any plan. */
#define SHORT_LIST 32
#define SHORT_EFFORT 1000000
#define EFFORT 20000

static int n_broken;

static void bound(bool holds, const char *what)
{
    printf("%-4s %s\n", holds ? "ok" : "FAIL", what);
    n_broken += !holds;
}

static void print_errors(const char *what, const struct anchor_errors *errors)
{
    printf("%-48s %3zu rows: geometric mean %.2f, mean error %4.1f %%, worst "
           "%4.1f %%\n",
           what, errors->n, anchor_geometric(errors), 100 * anchor_mape(errors),
           100 * errors->worst);
}

static void print_lookup(const struct anchor *anchor, double ratio)
{
    const struct table *table = &anchor->problem.tables[0];

    printf("%-9s%c %3zu x %9" PRIu64 " x %4" PRIu32 " %6" PRIu64
           " %6.1f %4.2f %s %-8s %-7s %9.4f %9.4f %5.2f  %.38s\n",
           anchor->gpu, anchor->is_named ? ' ' : '?', anchor->problem.n_tables,
           table->num_embeddings, table->dim, anchor->problem.batch,
           table->pooling_factor, table->zipf_alpha,
           precision_names[table->precision], optimizer_names[table->optimizer],
           anchor->phase, anchor->ms, ratio * anchor->ms, ratio,
           anchor->source);
}

static void bench_lookups(const struct anchors *anchors, struct arena *arena)
{
    static const char *const curves[] = {"h100", "a100"};
    struct anchor_errors named = {0}, raw, shape;

    printf("%-10s %s\n", "GPU",
           "tables      rows   dim  batch look-up zipf                    "
           "    measured predicted ratio  source");
    for (size_t i = 0; i < anchors->n; i++) {
        const struct anchor *anchor = &anchors->list[i];
        double ratio =
            anchor_ratio(anchor, shipped_gpu(anchor->gpu, arena), arena);

        print_lookup(anchor, ratio);
        if (anchor->is_named)
            anchor_add(&named, ratio);
    }
    print_errors("named rows", &named);
    for (size_t i = 0; i < 2; i++) {
        anchor_curve(&raw, &shape, anchors, curves[i], arena);
        print_errors(
            arena_printf(arena, "width curve of %s?, as it is", curves[i]),
            &raw);
        print_errors("  but for one scale", &shape);
    }
    anchor_check_lookups(anchors, bound, arena);
}

/* --- Leaving one source out ------------------------------------------------
 */

/* A GPU, the constants of it that are fitted, and the sources they are fitted
 * to. */
struct fitted {
    const char *gpu;
    size_t constants[2]; /* offsets in struct gpu_spec */
    const char *names;
    struct anchors sources[2]; /* one or two */
};

static double *constant_of(struct gpu_spec *spec, const struct fitted *fitted,
                           unsigned k)
{
    return (double *)(void *)((char *)spec + fitted->constants[k]);
}

/* Mean of the squared logarithms of a source's ratios, plus a penalty for each
 * change of a constant. The penalty keeps a constant that the source does not
 * determine. */
static double misfit(const struct fitted *fitted, const struct anchors *source,
                     struct gpu_spec *spec, struct arena *arena)
{
    struct gpu_spec shipped = *shipped_gpu(fitted->gpu, arena);
    double sum = 0, change = 0;

    for (size_t i = 0; i < source->n; i++)
        sum += pow(log(anchor_ratio(&source->list[i], spec, arena)), 2);
    for (unsigned k = 0; k < 2; k++)
        change += pow(log(*constant_of(spec, fitted, k) /
                          *constant_of(&shipped, fitted, k)),
                      2);
    return sum / (double)source->n + 0.01 * change;
}

/* Fits the constants by multiplicative steps up and down that shrink. */
static void refit(struct gpu_spec *spec, const struct fitted *fitted,
                  const struct anchors *source, struct arena *arena)
{
    double best = misfit(fitted, source, spec, arena);

    for (double step = 1.5; step > 1.02;) {
        bool is_better = false;

        for (unsigned k = 0; k < 4; k++) {
            struct gpu_spec other = *spec;
            double found;

            *constant_of(&other, fitted, k / 2) *= k % 2 ? step : 1 / step;
            found = misfit(fitted, source, &other, arena);
            if (found < best) {
                best = found;
                *spec = other;
                is_better = true;
            }
        }
        if (!is_better)
            step = sqrt(step);
    }
}

/* Prior knowledge of a GPU without its only source: the constants of an
 * H100. */
static void take_h100(struct gpu_spec *spec, const struct fitted *fitted,
                      struct arena *arena)
{
    struct gpu_spec h100 = *shipped_gpu("h100", arena);

    for (unsigned k = 0; k < 2; k++)
        *constant_of(spec, fitted, k) = *constant_of(&h100, fitted, k);
}

static void print_source(struct gpu_spec *spec, const struct fitted *fitted,
                         const struct anchors *source, const char *how,
                         struct arena *arena)
{
    struct anchor_errors errors = {0};

    for (size_t i = 0; i < source->n; i++)
        anchor_add(&errors, anchor_ratio(&source->list[i], spec, arena));
    print_errors(arena_printf(arena, "%.22s, %s: %.4g, %.3g",
                              source->list[0].source, how,
                              *constant_of(spec, fitted, 0),
                              *constant_of(spec, fitted, 1)),
                 &errors);
}

static struct anchors rows_of(const struct anchors *all, const char *gpu,
                              bool is_named, struct arena *arena)
{
    struct anchors rows = {ARENA_NEW(arena, struct anchor, all->n), 0};

    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->list[i].gpu, gpu) && all->list[i].is_named == is_named)
            rows.list[rows.n++] = all->list[i];
    return rows;
}

/* Forward and backward of SAMPLES shipped samples. */
static struct anchors rows_of_samples(const char *db, struct arena *arena)
{
    struct anchors rows = {0};
    struct sample *samples;
    struct err err = {0};
    size_t n;

    if (read_samples(&samples, &n, anchor_data(db, arena), arena, &err))
        anchor_bail(err.msg);
    rows.list = ARENA_NEW(arena, struct anchor, n);
    for (size_t i = 0; i < n; i += n / SAMPLES) {
        struct anchor *row = &rows.list[rows.n++];

        fill_problem(&row->problem, &samples[i], arena);
        row->source = "samples that ship";
        row->phase = "fwd+bwd";
        row->ms = samples[i].forward.median_ms + samples[i].backward.median_ms;
    }
    return rows;
}

static void bench_left_out(const struct fitted *fitted, struct arena *arena)
{
    printf("\n%s: %s, fitted without a source\n", fitted->gpu, fitted->names);
    for (unsigned k = 0; k < 2 && fitted->sources[k].n; k++) {
        struct gpu_spec spec = *shipped_gpu(fitted->gpu, arena);

        print_source(&spec, fitted, &fitted->sources[k], "as it is", arena);
        if (fitted->sources[!k].n)
            refit(&spec, fitted, &fitted->sources[!k], arena);
        else
            take_h100(&spec, fitted, arena);
        print_source(&spec, fitted, &fitted->sources[k], "left out", arena);
    }
}

/* --- Hot rows --------------------------------------------------------------
 */

static bool is_hot(const struct sample *sample)
{
    for (uint32_t t = 0; t < sample->n_tables; t++) {
        const struct sample_table *table = &sample->tables[t];

        if (table->n_unique * table->bins[REUSE_BINS - 1] >= 0.5)
            return true;
    }
    return false;
}

/* Compares the ratio of backward to forward for samples whose hottest row is
 * looked up more than 32,768 times. For a production job a ratio is published,
 * but no shapes. */
static void bench_hot_rows(struct arena *arena)
{
    const struct gpu_spec *spec = shipped_gpu("h100", arena);
    double measured = 0, predicted = 0;
    struct sample *samples;
    struct err err = {0};
    size_t n, n_hot = 0;

    if (read_samples(&samples, &n,
                     anchor_data("measurements/fbgemm-nvidia-h100.db", arena),
                     arena, &err))
        anchor_bail(err.msg);
    for (size_t i = 0; i < n; i += HOT_EVERY) {
        struct arena_mark mark = arena_mark(arena);
        double phases_ms[N_PHASES];
        struct problem problem;

        if (!is_hot(&samples[i]))
            continue;
        fill_problem(&problem, &samples[i], arena);
        anchor_phases(phases_ms, &problem, spec, arena);
        measured +=
            log(samples[i].backward.median_ms / samples[i].forward.median_ms);
        predicted += log(phases_ms[PHASE_BACKWARD] / phases_ms[PHASE_FORWARD]);
        n_hot++;
        arena_rewind(arena, mark);
    }
    measured = exp(measured / (double)n_hot);
    predicted = exp(predicted / (double)n_hot);
    printf("\nbackward / forward of %zu samples with hot rows (h100): %.2f "
           "measured, %.2f predicted; 4.88 in a production shard (TorchRec "
           "pull request 4757: 10.695 and 2.193 ms)\n",
           n_hot, measured, predicted);
    bound(fabs(predicted / measured - 1) <= 0.15,
          "backward of hot rows: within 15 %");
}

/* --- Exchanges -------------------------------------------------------------
 */

static void bench_exchanges(struct arena *arena)
{
    const struct exchange_anchors all = anchor_exchanges(arena);
    struct anchor_errors fitted = {0}, held = {0};

    printf("\n%-9s %6s %5s %7s %11s %10s %10s %5s %-4s %s\n", "GPU", "ranks",
           "/host", "/domain", "bytes", "measured", "predicted", "ratio", "use",
           "source");
    for (size_t i = 0; i < all.n; i++) {
        const struct exchange_anchor *anchor = &all.list[i];
        double ratio = anchor_exchange_ratio(anchor, arena);

        printf("%-9s %6" PRIu32 " %5" PRIu32 " %7" PRIu32
               " %11.0f %10.4f %10.4f %5.2f %-4s %s\n",
               anchor->gpu, anchor->n_ranks, anchor->per_host,
               anchor->hosts_per_domain, anchor->bytes, anchor->ms,
               ratio * anchor->ms, ratio, anchor->is_fitted ? "fit" : "held",
               anchor->source);
        anchor_add(anchor->is_fitted ? &fitted : &held, ratio);
    }
    print_errors("all-to-alls that constants rest on", &fitted);
    print_errors("all-to-alls held out", &held);
    anchor_check_exchanges(&all, bound, arena);
}

/* --- Steps -----------------------------------------------------------------
 */

/*
 * Time of the embedding part of a step, from a short search in TorchRec's
 * pipeline, with and without the cost of the input. These jobs run in HugeCTR
 * and TensorFlow. Their input and host differ from TorchRec's, and they do not
 * check ids before each lookup as FBGEMM does. NAN if the GPU or the table list
 * is missing.
 */
struct embeddings {
    double ms, with_input_ms;
};

static struct embeddings embeddings_of(char **field, struct arena *arena)
{
    const struct gpu_spec *spec = shipped_gpu(field[1], arena);
    const char *path =
        anchor_data(arena_printf(arena, "tables/%s.csv", field[0]), arena);
    struct tables_options reading = {0};
    struct search_options options;
    struct gpu_spec unchecked;
    struct table_list list;
    struct plan plan = {0};
    struct oracle *oracle;
    struct err err = {0};

    if (!spec || !file_exists(path))
        return (struct embeddings){NAN, NAN};
    if (tables_load(&list, path, &reading, arena, &err))
        anchor_bail(err.msg);
    anchor_problem(&plan.problem, 0, (uint32_t)strtoul(field[2], NULL, 10),
                   arena);
    plan.problem.job.asks_host = true; /* host time given: 0 */
    plan.problem.tables = list.tables;
    plan.problem.n_tables = list.n_tables;
    plan.problem.batch = strtoull(field[3], NULL, 10);
    if (plan.problem.cluster.n_devices > spec->gpus_per_host)
        plan.problem.cluster.devices_per_host = spec->gpus_per_host;
    for (uint32_t r = 0; r < plan.problem.cluster.n_devices; r++)
        plan.problem.cluster.memory_bytes[r] = spec->memory_bytes;
    for (size_t t = 0; t < list.n_tables; t++) {
        list.tables[t].comm_precision =
            (enum precision)anchor_name(field[4], precision_names);
        list.tables[t].optimizer =
            (enum optimizer)anchor_name(field[5], optimizer_names);
    }
    unchecked = *spec;
    unchecked.skips_checks = true;
    oracle = roofline_oracle(&unchecked, &plan.problem, arena);
    search_options_init(&options);
    options.effort = list.n_tables <= SHORT_LIST ? SHORT_EFFORT : EFFORT;
    if (search_full(&plan, oracle, &options, arena, &err) ||
        plan_price(&plan, oracle, arena, &err))
        anchor_bail(err.msg);
    return (struct embeddings){plan.total_ms - plan.exposed_ms[STEP_INPUT],
                               plan.total_ms};
}

static void bench_steps(void)
{
    struct arena arena = {0};
    char *(*fields)[ANCHOR_COLUMNS], **first = NULL;
    double first_ms = NAN;
    unsigned n_above = 0, n_priced = 0;
    size_t n;

    n = anchor_records(&fields, "measurements/published-steps.csv", &arena);
    printf("\n%-27s %-5s %5s %7s %9s %10s %8s %6s %9s %9s  %s\n", "list", "GPU",
           "GPUs", "batch", "step ms", "embeddings", "+ input", "share",
           "measured", "predicted", "source");
    for (size_t i = 0; i < n; i++) {
        struct arena_mark mark = arena_mark(&arena);
        char **field = fields[i];
        const double ms = strtod(field[6], NULL);
        const struct embeddings type = embeddings_of(field, &arena);

        arena_rewind(&arena, mark);
        printf("%-27s %-5s %5s %7s %9.3f ", field[0], field[1], field[2],
               field[3], ms);
        if (isnan(type.ms)) {
            printf("no figures of this %s  %s\n",
                   shipped_gpu(field[1], &arena) ? "list" : "GPU", field[7]);
            continue;
        }
        if (!first || strcmp(first[0], field[0]) ||
            strcmp(first[1], field[1]) || strcmp(first[3], field[3])) {
            first = field;
            first_ms = type.ms;
        }
        printf("%10.3f %8.3f %6.2f %9.2f %9.2f  %s\n", type.ms,
               type.with_input_ms, type.ms / ms, ms / strtod(first[6], NULL),
               type.ms / first_ms, field[7]);
        n_above += !(type.with_input_ms < ms);
        n_priced++;
    }
    bound(n_priced >= 18 && !n_above,
          "the embedding part, with TorchRec's input, is below each step");
    arena_release(&arena);
}

int main(void)
{
    struct anchors anchors;
    struct arena arena = {0};

    anchors = anchor_lookups(&arena);
    bench_lookups(&anchors, &arena);
    bench_left_out(
        &(struct fitted){"v100-32gb",
                         {offsetof(struct gpu_spec, launch_us),
                          offsetof(struct gpu_spec, bag_row_us)},
                         "launch_us and bag_row_us",
                         {rows_of(&anchors, "v100-32gb", true, &arena),
                          rows_of(&anchors, "v100-32gb", false, &arena)}},
        &arena);
    bench_left_out(&(struct fitted){"a100",
                                    {offsetof(struct gpu_spec, row_cycles),
                                     offsetof(struct gpu_spec, bag_row_us)},
                                    "row_cycles and bag_row_us",
                                    {rows_of(&anchors, "a100", false, &arena)}},
                   &arena);
    bench_left_out(
        &(struct fitted){
            "h100",
            {offsetof(struct gpu_spec, l2_gbps),
             offsetof(struct gpu_spec, bag_row_us)},
            "l2_gbps and bag_row_us",
            {rows_of(&anchors, "h100", true, &arena),
             rows_of_samples("measurements/fbgemm-nvidia-h100.db", &arena)}},
        &arena);
    printf("\n");
    anchor_check_errors(&anchors, 1, 0, bound, &arena);
    bench_hot_rows(&arena);
    bench_exchanges(&arena);
    bench_steps();
    arena_release(&arena);
    return n_broken ? 1 : 0;
}
