/* SPDX-License-Identifier: MIT */
/*
 * Compares the price of the dense part with published measurements: matrix
 * products (data/measurements/published-gemms.csv), and whole steps of models
 * whose layers are known (published-dense-steps.csv). Nothing is fitted to the
 * steps.
 *
 *     bench_dense
 */
#include "tests/anchors.h"

#include "core/plan_price.h"
#include "costmodel/formulas/dense_cost.h"
#include "io/tables_io.h"
#include "search/search.h"

#include <inttypes.h>

/* Searches for a plan that the source does not publish. SHORT_LIST: longest
 * list of tables that is searched with SHORT_EFFORT changes. EFFORT: changes
 * for longer lists. */
#define SHORT_LIST 32
#define SHORT_EFFORT 300000
#define EFFORT 20000
#define MOST_ROWS 128

enum {
    GROUP,
    LIST,
    GPU,
    N_GPUS,
    BATCH,
    EXCHANGE,
    OPTIMIZER,
    DENSE,
    DENSE_UPDATE,
    PIPELINE,
    HOST,
    INPUT,
    TYPE_KNOWN,
    STEP,
    CAUSE,
    SOURCE
};

/* --- matrix products --- */

static void bench_products(struct arena *arena)
{
    static const char *const gpus[] = {"h100", "b200"};
    char *(*fields)[ANCHOR_COLUMNS];
    const size_t n =
        anchor_records(&fields, "measurements/published-gemms.csv", arena);

    printf("published matrix products: predicted / measured time\n");
    for (size_t g = 0; g < 2; g++)
        for (unsigned type = 0; type < N_DENSE_TYPES; type++) {
            struct anchor_errors errors = {0};

            for (size_t i = 0; i < n; i++) {
                const double m = strtod(fields[i][2], NULL);
                const double n_out = strtod(fields[i][3], NULL);
                const double k = strtod(fields[i][4], NULL);
                const double ms =
                    2 * m * n_out * k / (strtod(fields[i][5], NULL) * 1e9);

                if (!strcmp(fields[i][0], gpus[g]) &&
                    !strcmp(fields[i][1], dense_type_names[type]))
                    anchor_add(&errors,
                               dense_product_ms(shipped_gpu(gpus[g], arena),
                                                (enum dense_type)type, m, n_out,
                                                k) /
                                   ms);
            }
            if (errors.n)
                printf("%-5s %s %s %3zu: geometric mean %.2f, mean error %4.1f "
                       "%%, worst %4.1f %%\n",
                       gpus[g], dense_type_names[type],
                       g ? "held out" : "fitted  ", errors.n,
                       anchor_geometric(&errors), 100 * anchor_mape(&errors),
                       100 * errors.worst);
        }
}

/* --- whole steps --- */

/* Parts of the predicted step of a row, in ms. */
struct predicted {
    double tables_ms; /* lookups and exchanges that are not hidden */
    double dense_ms;
    double host_ms;
    double step_ms;
};

/* Fills the problem of a row. Returns false if its list is not shipped. */
static bool fill_row(struct problem *problem, char **field,
                     const struct gpu_spec *spec, struct arena *arena)
{
    const char *path =
        anchor_data(arena_printf(arena, "tables/%s.csv", field[LIST]), arena);
    struct tables_options reading = {0};
    struct table_list list;
    struct err err = {0};

    if (!file_exists(path))
        return false;
    if (tables_load(&list, path, &reading, arena, &err))
        anchor_bail(err.msg);
    anchor_problem(problem, 0, (uint32_t)strtoul(field[N_GPUS], NULL, 10),
                   arena);
    problem->tables = list.tables;
    problem->n_tables = list.n_tables;
    problem->batch = strtoull(field[BATCH], NULL, 10);
    problem->dense_optimizer = (enum dense_optimizer)anchor_name(
        field[DENSE_UPDATE], dense_optimizer_names);
    problem->job.pipeline =
        (enum pipeline)anchor_name(field[PIPELINE], pipeline_names);
    problem->job.asks_host = true; /* host time given: 0 */
    if (problem->cluster.n_devices > spec->gpus_per_host)
        problem->cluster.devices_per_host = spec->gpus_per_host;
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        problem->cluster.memory_bytes[r] = spec->memory_bytes;
    for (size_t t = 0; t < list.n_tables; t++) {
        list.tables[t].comm_precision =
            (enum precision)anchor_name(field[EXCHANGE], precision_names);
        list.tables[t].optimizer =
            (enum optimizer)anchor_name(field[OPTIMIZER], optimizer_names);
    }
    if (dense_read(&problem->job.dense, field[DENSE], strlen(field[DENSE]),
                   problem->tables, problem->n_tables, arena, &err))
        anchor_bail(err.msg);
    return true;
}

/* Prices a row by a short search. Only FBGEMM's lookups check their ids. Host
 * and GPU overlap, so the step is the root of the sum of their squares. */
static bool predict_row(struct predicted *predicted, char **field,
                        struct arena *arena)
{
    struct gpu_spec spec = *shipped_gpu(field[GPU], arena);
    struct search_options options;
    struct plan plan = {0};
    struct oracle *oracle;
    struct err err = {0};
    double gpu_ms;

    if (!fill_row(&plan.problem, field, &spec, arena))
        return false;
    spec.skips_checks = strcmp(field[PIPELINE], "sdd") != 0;
    oracle = roofline_oracle(&spec, &plan.problem, arena);
    search_options_init(&options);
    options.effort =
        plan.problem.n_tables <= SHORT_LIST ? SHORT_EFFORT : EFFORT;
    if (roofline_add_dense(oracle, &err) ||
        search_full(&plan, oracle, &options, arena, &err) ||
        plan_price(&plan, oracle, arena, &err))
        anchor_bail(err.msg);
    gpu_ms = plan.total_ms;
    if (!strcmp(field[INPUT], "none"))
        gpu_ms -= plan.exposed_ms[STEP_INPUT];
    predicted->dense_ms = plan_dense_ms(&plan);
    predicted->tables_ms = gpu_ms - predicted->dense_ms;
    predicted->host_ms = strtod(field[HOST], NULL);
    predicted->step_ms = hypot(gpu_ms, predicted->host_ms);
    return true;
}

struct row {
    const char *group;
    bool is_type_known;
    double ratio; /* predicted / measured */
};

/* Prints all rows and fills rows[]. Returns the number of priced rows. */
static size_t print_steps(struct row *rows, struct arena *arena)
{
    char *(*fields)[ANCHOR_COLUMNS];
    const size_t n = anchor_records(
        &fields, "measurements/published-dense-steps.csv", arena);
    size_t n_rows = 0;

    printf("\n%-26s %-9s %4s %6s %-22s %7s %6s %6s %8s %8s %5s  %s\n", "list",
           "GPU", "GPUs", "batch", "dense part", "tables", "dense", "host",
           "modelled", "measured", "ratio", "missing; source");
    for (size_t i = 0; i < n && n_rows < MOST_ROWS; i++) {
        struct arena_mark mark = arena_mark(arena);
        char **field = fields[i];
        const double ms = strtod(field[STEP], NULL);
        struct predicted predicted;

        printf("%-26s %-9s %4s %6s %-22.22s ", field[LIST], field[GPU],
               field[N_GPUS], field[BATCH], field[DENSE]);
        if (!predict_row(&predicted, field, arena)) {
            printf("%37s %8.3f %5s  %s; %s\n", "-", ms, "-", field[CAUSE],
                   field[SOURCE]);
            continue;
        }
        arena_rewind(arena, mark);
        rows[n_rows] =
            (struct row){field[GROUP], !strcmp(field[TYPE_KNOWN], "yes"),
                         predicted.step_ms / ms};
        printf("%7.3f %6.3f %6.2f %8.3f %8.3f %5.2f  %s; %s\n",
               predicted.tables_ms, predicted.dense_ms, predicted.host_ms,
               predicted.step_ms, ms, rows[n_rows].ratio, field[CAUSE],
               field[SOURCE]);
        n_rows++;
    }
    return n_rows;
}

/* Prints the geometric mean of a group, and whether the rows of the group are
 * inside an interval that the other groups give: nine in ten of their ratios.
 */
static void print_groups(const struct row *rows, size_t n)
{
    size_t n_inside = 0, n_all = 0;
    double widths = 0;

    printf("\n%-10s %4s %9s %6s %6s   interval of measured / modelled by the "
           "other groups\n",
           "group", "rows", "geo. mean", "least", "most");
    for (size_t begin = 0, end; begin < n; begin = end) {
        double others[MOST_ROWS], sum = 0, least = INFINITY, most = 0;
        size_t n_others = 0, inside = 0;
        double low, high;

        for (end = begin;
             end < n && !strcmp(rows[end].group, rows[begin].group); end++) {
            sum += log(rows[end].ratio);
            least = fmin(least, rows[end].ratio);
            most = fmax(most, rows[end].ratio);
        }
        for (size_t i = 0; i < n; i++)
            if (i < begin || i >= end)
                others[n_others++] = 1 / rows[i].ratio;
        low = stats_quantile(others, n_others, 0.05);
        high = stats_quantile(others, n_others, 0.95);
        for (size_t i = begin; i < end; i++)
            inside += 1 / rows[i].ratio >= low && 1 / rows[i].ratio <= high;
        printf("%-10s %4zu %9.2f %6.2f %6.2f   %.2f to %.2f: %zu of %zu "
               "inside\n",
               rows[begin].group, end - begin, exp(sum / (double)(end - begin)),
               least, most, low, high, inside, end - begin);
        n_inside += inside;
        n_all += end - begin;
        widths += (double)(end - begin) * log(high / low);
    }
    printf("left out one by one: %.0f %% of %zu rows inside, intervals of a "
           "factor of %.1f from end to end\n",
           100 * (double)n_inside / (double)n_all, n_all,
           exp(widths / (double)n_all));
}

static void print_goals(const struct row *rows, size_t n)
{
    size_t n_above = 0, n_hugectr = 0, n_far = 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        n_above += rows[i].ratio > 1.3;
        if (strcmp(rows[i].group, "hugectr") != 0)
            continue;
        n_hugectr++;
        n_far += fabs(log(rows[i].ratio)) > log(1.5);
        sum += log(rows[i].ratio);
    }
    printf("%zu of %zu rows above 1.3 times the measured step; HugeCTR's %zu: "
           "geometric mean %.2f, %zu beyond a factor of 1.5\n",
           n_above, n, n_hugectr, exp(sum / (double)n_hugectr), n_far);
}

int main(void)
{
    struct row rows[MOST_ROWS];
    struct arena arena = {0};
    size_t n;

    bench_products(&arena);
    n = print_steps(rows, &arena);
    print_groups(rows, n);
    print_goals(rows, n);
    arena_release(&arena);
    return 0;
}
