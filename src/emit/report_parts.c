/* SPDX-License-Identifier: MIT */
#include "emit/report_parts.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/host.h"
#include "core/plan_error.h"
#include "emit/formats.h"
#include "emit/placed_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Largest number of rows in a table with rows for GPUs. If there are more GPUs,
 * similar GPUs share a row. */
#define MOST_ROWS 12u
#define N_TABLES_SHOWN 10u
/* line width in characters from which tables get more columns */
#define MORE_COLUMNS 100u
#define KINDS_COLUMNS 132u
#define ALL_COLUMNS 1000u

void report_job(const struct plan *plan, struct buf *out)
{
    if (!plan_has_parts(plan)) {
        buf_printf(out,
                   "        as the cost model's authors published it, "
                   "whatever the pipeline%s\n",
                   plan->problem.job.dedup != DEDUP_NONE
                       ? " and the de-duplication"
                       : "");
        return;
    }
    buf_printf(out, "        ");
    job_describe(&plan->problem.job, out);
    buf_printf(out, "\n");
}

void report_step(const struct plan *plan, int n_decimals, struct buf *out)
{
    const struct time_range host = plan_host(plan), step = plan_step(plan);
    const unsigned n_kinds = plan_n_kinds(plan);

    if (!(host.ms > 0)) {
        buf_printf(out, "step    %.*f ms", n_decimals, step.ms);
        plan_print_error(plan, out);
        return;
    }
    buf_printf(out, "step    %.*f ms, %.2g to %.2g: GPU work %.*f ms",
               n_decimals, step.ms, step.least_ms, step.most_ms, n_decimals,
               plan->total_ms);
    plan_print_error(plan, out);
    buf_printf(out, ", host %.2f ms", host.ms);
    if (plan->problem.job.asks_host)
        return;
    buf_printf(out, " (%u kind%s of sharding, %s)", n_kinds,
               n_kinds == 1 ? "" : "s",
               n_kinds > 1 ? host_basis_names[HOST_ASSUMED]
                           : host_basis_names[plan->cost.host]);
}

void report_bound(const struct plan *plan, int n_decimals, struct buf *out)
{
    if (!(plan->bound_ms > 0)) {
        buf_printf(out, "bound   none is proven for this cost model\n");
        return;
    }
    buf_printf(out, "bound   no plan has less GPU work than %.*f ms",
               n_decimals, plan->bound_ms);
    if (plan->bound_term)
        buf_printf(out, ", by the %s", plan->bound_term);
    for (uint32_t t = 0; plan->bound_table && t < plan->problem.n_tables; t++)
        if (!strcmp(plan->problem.tables[t].name, plan->bound_table)) {
            buf_printf(out, " (table '%.40s'", plan->bound_table);
            placed_print_where(plan, t, out);
            buf_printf(out, ")");
        }
    buf_printf(out, ": this one is within %.2f %%\n",
               100 * (plan->total_ms / plan->bound_ms - 1));
}

void report_slow_gpus(const struct plan *plan, const char *label,
                      struct buf *out)
{
    const struct cluster *cluster = &plan->problem.cluster;
    uint32_t slowest = 0, n_slow = 0;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        n_slow += cluster_slowdown(cluster, r) > 1;
        if (cluster_slowdown(cluster, r) > cluster_slowdown(cluster, slowest))
            slowest = r;
    }
    if (!n_slow)
        return;
    buf_printf(out, "%sGPU %u is %.2fx slow on its tables", label, slowest,
               cluster_slowdown(cluster, slowest));
    if (n_slow > 1)
        buf_printf(out, ", the slowest of %u slow ones", n_slow);
    buf_printf(out, "\n");
}

void report_other_tables(const struct plan *plan, const char *label,
                         struct buf *out)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const uint32_t n_kinds = cluster->n_other_kinds;
    uint32_t busiest = 0;

    if (!cluster->busy_ms && !n_kinds)
        return;
    for (uint32_t r = 1; r < cluster->n_devices; r++)
        if (cluster_busy_ms(cluster, r) > cluster_busy_ms(cluster, busiest))
            busiest = r;
    buf_printf(out, "%stables that this plan does not place take ", label);
    if (cluster->busy_ms)
        buf_printf(out, "%.3g ms of GPU %u, the busiest",
                   cluster_busy_ms(cluster, busiest), busiest);
    if (n_kinds)
        buf_printf(out, "%s%u kind%s of sharding of the host",
                   cluster->busy_ms ? ", and " : "", n_kinds,
                   n_kinds == 1 ? "" : "s");
    buf_printf(out, "\n");
}

/* --- the GPUs --- */

const struct byte_unit byte_units[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {0}};

/* Chooses a unit for bytes and a number of decimals, so that all amounts fit
 * their columns. The unit suits the bytes of the tables. The memory reserve is
 * not considered, because it is printed above the table. */
static const struct byte_unit *choose_unit(const struct report *report,
                                           int *n_decimals)
{
    const struct byte_unit *unit = byte_units, *larger;
    double largest = 0, tables = 0;

    for (uint32_t r = 0; r < report->n_devices; r++) {
        const struct memory_items *memory = &report->devices[r].cost.memory;

        largest = fmax(largest, (double)memory->total);
        tables = fmax(tables,
                      (double)(memory->total - memory->reserve - memory->nccl));
    }
    for (larger = unit + 1; larger->name; larger++)
        if (tables >= larger->n_bytes || largest >= 1e6 * unit->n_bytes)
            unit = larger;
    *n_decimals = largest < 1e4 * unit->n_bytes   ? 2
                  : largest < 1e5 * unit->n_bytes ? 1
                                                  : 0;
    return unit;
}

/* A table with one row per GPU. A column is not printed if all its figures are
 * 0. */
#define MOST_COLUMNS (N_MEMORY_ITEMS + 2)
struct report_grid {
    const char *names[MOST_COLUMNS];
    size_t n;      /* number of columns */
    double *cells; /* [n_devices][n] figures; owned */
    /* [n_devices] order of the rows, sorted by descending key (keys are stored
     * negated); owned */
    struct ranked *order;
    int n_decimals, least_width; /* format of the columns */
    /* true for columns that are printed; set while the grid is printed */
    bool is_shown[MOST_COLUMNS];
    /* true to print the number of shards of each kind after the figures */
    bool has_kinds;
};

static void grid_init(struct report_grid *grid, const struct report *report)
{
    grid->least_width = report->options.n_columns < MORE_COLUMNS ? 7 : 9;
    grid->cells = mem_alloc(report->n_devices * grid->n, sizeof(*grid->cells));
    grid->order = mem_alloc(report->n_devices, sizeof(*grid->order));
}

static int column_width(const struct report_grid *grid, size_t column)
{
    const int len = (int)strlen(grid->names[column]);

    return len > grid->least_width ? len : grid->least_width;
}

/* Prints the number of shards by kind, such as "  TW 3 CW 2", for the GPUs
 * begin .. end of the order of the rows. */
static void print_kinds(const struct report_grid *grid,
                        const struct report *report, size_t begin, size_t end,
                        struct buf *out)
{
    size_t n_kinds = 0;

    buf_printf(out, "  ");
    for (size_t k = 0; k < N_SHARD_KINDS; k++) {
        size_t n = 0;

        for (size_t i = begin; i < end; i++)
            n += report->devices[grid->order[i].idx].n_shards[k];
        if (n)
            buf_printf(out, "%s%s %zu", n_kinds++ ? " " : "",
                       shard_traits[k].initials, n);
    }
}

/* Prints a row with means of the figures, over GPUs begin .. end of the sorted
 * order of GPUs. */
static void print_row(const struct report_grid *grid,
                      const struct report *report, const char *name,
                      size_t begin, size_t end, struct buf *out)
{
    buf_printf(out, "%-10s", name);
    for (size_t c = 0; c < grid->n; c++) {
        double sum = 0;

        for (size_t i = begin; i < end; i++)
            sum += grid->cells[grid->order[i].idx * grid->n + c];
        if (grid->is_shown[c])
            buf_printf(out, " %*.*f", column_width(grid, c), grid->n_decimals,
                       sum / (double)(end - begin));
    }
    if (grid->has_kinds)
        print_kinds(grid, report, begin, end, out);
    buf_printf(out, "\n");
}

static void grid_print(struct report_grid *grid, const struct report *report,
                       const char *unit, struct buf *out)
{
    const uint32_t n = report->n_devices;
    const bool is_folded =
        n > MOST_ROWS && report->options.n_columns <= ALL_COLUMNS;
    size_t example = 0, n_alike = 0;
    double share;

    for (size_t i = 0; i < n * grid->n; i++)
        grid->is_shown[i % grid->n] |=
            grid->cells[i] >= 0.5 * pow(10, -grid->n_decimals);
    ranked_sort(grid->order, n);
    share = is_folded ? ranked_share(grid->order, n, MOST_ROWS) : 0;
    buf_printf(out, "\nGPU, %-5s", unit);
    for (size_t c = 0; c < grid->n; c++)
        if (grid->is_shown[c])
            buf_printf(out, " %*s", column_width(grid, c), grid->names[c]);
    buf_printf(out, "%s\n", grid->has_kinds ? "  shards" : "");
    for (size_t i = 0, end; i < n; i = end) {
        char name[32];
        int len = snprintf(name, sizeof(name), "%u", grid->order[i].idx);

        end = is_folded ? ranked_run_end(grid->order, n, i, share) : i + 1;
        if (end - i > 1) {
            snprintf(name + len, sizeof(name) - (size_t)len, " +%zu",
                     end - i - 1);
            example = i;
            n_alike = end - i - 1;
        }
        print_row(grid, report, name, i, end, out);
    }
    if (n > 1)
        print_row(grid, report, "mean", 0, n, out);
    if (n_alike)
        buf_printf(out,
                   "%u +%zu: GPU %u and %zu others about alike, in the mean\n",
                   grid->order[example].idx, n_alike, grid->order[example].idx,
                   n_alike);
}

static void grid_release(struct report_grid *grid)
{
    mem_free(grid->cells);
    mem_free(grid->order);
}

/* Returns the largest number of decimals, at most three, with which all figures
 * fit their columns. */
static int decimals_of(const struct report_grid *grid, double most)
{
    int n = grid->least_width - 2;

    for (; most >= 1 && n > 0; most /= 10)
        n--;
    return n < 3 ? n : 3;
}

/* Fills the figures of one device: the times of its phases, their sum, and the
 * waiting time. If phases are unknown, the three parts of the step replace
 * them. */
static void fill_phases(const struct report_device *device, bool has_parts,
                        double *cells)
{
    const struct device_cost *cost = &device->cost;
    const double parts_ms[] = {cost->compute_ms, cost->bwd_comm_ms,
                               cost->fwd_comm_ms};
    const size_t n = has_parts ? N_STEP_PARTS : 3;

    memcpy(cells, has_parts ? cost->parts_ms : parts_ms, n * sizeof(*cells));
    for (size_t p = 0; p < n; p++)
        cells[n] += cells[p];
    cells[n + 1] = device->waiting_ms;
}

void report_phases(const struct report *report, struct buf *out)
{
    static const char *const part_names[] = {"compute", "bwd comm", "fwd comm"};
    const bool has_parts = plan_has_parts(report->plan);
    const size_t n = has_parts ? N_STEP_PARTS : 3;
    struct report_grid grid = {.n = n + 2};

    memcpy(grid.names, has_parts ? step_part_names : part_names,
           n * sizeof(*grid.names));
    grid.names[n] = "busy";
    grid.names[n + 1] = "waiting";
    grid_init(&grid, report);
    for (uint32_t r = 0; r < report->n_devices; r++) {
        fill_phases(&report->devices[r], has_parts, grid.cells + r * grid.n);
        grid.order[r] = (struct ranked){-report->devices[r].own_ms, r};
    }
    grid.n_decimals = decimals_of(&grid, report->plan->total_ms);
    grid_print(&grid, report, "ms", out);
    if (has_parts) {
        buf_printf(out, "%-10s", "exposed");
        for (size_t p = 0; p < n; p++)
            if (grid.is_shown[p])
                buf_printf(out, " %*.*f", column_width(&grid, p),
                           grid.n_decimals, report->plan->exposed_ms[p]);
        buf_printf(out, "\n");
    }
    grid_release(&grid);
}

void report_memory(const struct report *report, struct buf *out)
{
    struct report_grid grid = {.n = N_MEMORY_ITEMS + 2,
                               .has_kinds =
                                   report->options.n_columns >= KINDS_COLUMNS};
    const struct byte_unit *unit = choose_unit(report, &grid.n_decimals);

    memcpy(grid.names, memory_item_names, N_MEMORY_ITEMS * sizeof(*grid.names));
    grid.names[N_MEMORY_ITEMS] = "all";
    grid.names[N_MEMORY_ITEMS + 1] = "%";
    grid_init(&grid, report);
    for (uint32_t r = 0; r < report->n_devices; r++) {
        const struct memory_items *memory = &report->devices[r].cost.memory;
        const double used_frac = plan_used_frac(report->plan, r);
        double *cells = grid.cells + r * grid.n;

        for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
            cells[i] = (double)memory->item[i] / unit->n_bytes;
        cells[N_MEMORY_ITEMS] = (double)memory->total / unit->n_bytes;
        cells[N_MEMORY_ITEMS + 1] = 100 * used_frac;
        grid.order[r] = (struct ranked){-used_frac, r};
    }
    grid_print(&grid, report, unit->name, out);
    grid_release(&grid);
}

/* --- the most expensive tables --- */

/* Widths of the columns after the name, in characters: the columns that every
 * table has, the additional columns of wide lines, and the least width of the
 * list of GPUs. */
#define TABLE_REST 46u
#define TABLE_MORE 16u
#define LEAST_HOLDERS 10u

/* Returns the width of the name column in characters: the width of the longest
 * name, limited to the space that the line leaves. */
static unsigned name_width(const struct report *report)
{
    const struct problem *problem = &report->plan->problem;
    const size_t n = report->options.n_columns;
    const size_t rest =
        TABLE_REST + LEAST_HOLDERS + (n >= MORE_COLUMNS ? TABLE_MORE : 0);
    size_t most = strlen("without this table");

    for (size_t t = 0; t < problem->n_tables; t++)
        most = max_u64(most, text_length(problem->tables[t].name));
    return (unsigned)(most + rest < n ? most : n > rest + 1 ? n - rest : 1);
}

static void print_table(const struct report *report,
                        const struct saving *saving, unsigned width,
                        struct buf *out)
{
    const struct plan *plan = report->plan;
    const struct shard *shard = &plan->shards[saving->begin];
    const struct table *table = &plan->problem.tables[saving->table];
    const bool has_more = report->options.n_columns >= MORE_COLUMNS;
    size_t used = width + TABLE_REST + (has_more ? TABLE_MORE : 0);
    char kinds[32];

    snprintf(kinds, sizeof(kinds), "%s %zu",
             shard_traits[shard_kind_idx(shard->kind)].initials,
             saving->end - saving->begin);
    text_column(out, table->name, width);
    buf_printf(out, " %8.3f", saving->ms);
    if (has_more)
        buf_printf(out, " %5.1f %9.3f", 100 * saving->ms / plan->total_ms,
                   saving->alone_ms);
    buf_printf(out, " %11" PRIu64 " %6u %8.2f  %-7s ", table->num_embeddings,
               table->dim, table->pooling_factor, kinds);
    placed_print_holders(plan, saving->begin, saving->end,
                         report->options.n_columns > used + 1
                             ? report->options.n_columns - used - 1
                             : 0,
                         out);
    buf_printf(out, "\n");
}

/* Returns whether two tables are on the same single GPU and save the same. A
 * GPU whose load counts allows each of its tables the same saving: the time
 * until another GPU takes its place. */
static bool is_alike(const struct plan *plan, const struct saving *a,
                     const struct saving *b)
{
    return a->end - a->begin == 1 && b->end - b->begin == 1 &&
           savings_equal(a, b) &&
           plan->shards[a->begin].device == plan->shards[b->begin].device;
}

/* Removes the savings that are alike savings[0], if there are at least 2, from
 * savings[1] .. savings[n - 1]. Returns the number of savings that are left. */
static size_t drop_alike(struct saving *savings, size_t n,
                         const struct plan *plan)
{
    size_t n_alike = 0, left = 1;

    for (size_t i = 1; i < n; i++)
        n_alike += is_alike(plan, &savings[0], &savings[i]);
    if (n_alike < 2)
        return n;
    for (size_t i = 1; i < n; i++)
        if (!is_alike(plan, &savings[0], &savings[i]))
            savings[left++] = savings[i];
    return left;
}

/* Prints at most `most` rows, one for tables that are alike, and the number of
 * tables that are left. Prints all tables if `most` is SIZE_MAX. */
static void print_savings(const struct report *report, struct saving *savings,
                          size_t n, size_t most, struct buf *out)
{
    const struct plan *plan = report->plan;
    const unsigned width = name_width(report);

    for (size_t row = 0; n && row < most; row++) {
        const size_t left = most < SIZE_MAX ? drop_alike(savings, n, plan) : n;

        print_table(report, savings, width, out);
        if (left < n)
            buf_printf(out, "... %zu others on GPU %u save as much\n", n - left,
                       plan->shards[savings->begin].device);
        savings++;
        n = left - 1;
    }
    if (n)
        buf_printf(out, "... and %zu more\n", n);
}

/* Prints the meaning of the abbreviations that occur in the report. */
static void print_legend(const struct report *report, struct buf *out)
{
    bool occurs[N_SHARD_KINDS] = {false};

    for (size_t i = 0; i < report->plan->n_shards; i++)
        occurs[shard_kind_idx(report->plan->shards[i].kind)] = true;
    buf_printf(out, "shards: ");
    for (size_t i = 0, n = 0; i < N_SHARD_KINDS; i++)
        if (occurs[i])
            buf_printf(out, "%s%s %s", n++ ? ", " : "",
                       shard_traits[i].initials, shard_traits[i].pieces);
    buf_printf(out, "\n");
}

void report_tables(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    const bool has_more = report->options.n_columns >= MORE_COLUMNS;
    const size_t most =
        report->options.n_columns > ALL_COLUMNS ? SIZE_MAX : N_TABLES_SHOWN;
    struct saving *savings;
    size_t n;

    if (!report->options.without_ms)
        return;
    savings = mem_alloc(plan->problem.n_tables, sizeof(*savings));
    n = savings_find(savings, plan, report->options.without_ms);
    if (n)
        buf_printf(out,
                   "\n%-*s  ms less%s        rows    dim  pooling  "
                   "shards  GPUs\n",
                   (int)name_width(report), "without this table",
                   has_more ? "     %  alone ms" : "");
    else
        buf_printf(out, "\nwithout any one table the step is as long\n");
    print_savings(report, savings, n, most, out);
    if (n || report->options.n_columns >= KINDS_COLUMNS)
        print_legend(report, out);
    mem_free(savings);
}
