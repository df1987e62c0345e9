/* SPDX-License-Identifier: MIT */
#include "cli/plan_grid_report.h"

#include "base/cli_answer.h"
#include "base/figures.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL(member) MEMBER_OF(struct grid_cell, member)
/* Columns of one GPU, and all members of JSON. */
static const struct figure cell_figures[] = {
    {"gpu", NULL, 0, 0, FIGURE_PLAIN, CELL(gpu)},
    {"gpus", "GPUs", 5, 0, FIGURE_PLAIN, CELL(n_gpus)},
    {NULL, "hosts", 6, 0, FIGURE_PLAIN, CELL(hosts)},
    {"hosts", NULL, 0, 0, FIGURE_PLAIN, CELL(n_hosts)},
    {"hosts_assumed", NULL, 0, 0, FIGURE_PLAIN, CELL(hosts_assumed)},
    {"fits", "fits", -4, 0, FIGURE_PLAIN, CELL(fits)},
    {"step_ms", "step ms", 8, 3, FIGURE_PLAIN, CELL(step_ms)},
    {"least_step_ms", NULL, 0, 0, FIGURE_PLAIN, CELL(least_ms)},
    {"most_step_ms", NULL, 0, 0, FIGURE_PLAIN, CELL(most_ms)},
    {"host_ms", NULL, 0, 0, FIGURE_PLAIN, CELL(host_ms)},
    {"waits_for_host", NULL, 0, 0, FIGURE_PLAIN, CELL(waits_for_host)},
    {"total_ms", "GPU ms", 8, 3, FIGURE_PLAIN, CELL(total_ms)},
    {"samples_per_second", "samples/s", 10, 0, FIGURE_PLAIN, CELL(rate)},
    {"samples_per_second_per_gpu", "per GPU", 8, 0, FIGURE_PLAIN,
     CELL(gpu_rate)},
    {NULL, "scale %", 7, 0, FIGURE_PERCENT, CELL(scaling_frac)},
    {"bound_ms", NULL, 0, 0, FIGURE_PLAIN, CELL(bound_ms)},
    {NULL, "fullest GPU", 11, 0, FIGURE_BYTES, CELL(used)},
    {NULL, "%", 4, 0, FIGURE_PERCENT, CELL(used_frac)},
    {"fullest_gpu", NULL, 0, 0, FIGURE_PLAIN, CELL(fullest)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, CELL(used_bytes)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, CELL(memory_bytes)},
    {"cost_model", NULL, 0, 0, FIGURE_PLAIN, CELL(cost)},
    {"basis", NULL, 0, 0, FIGURE_PLAIN, CELL(basis)},
    {"ratio_to_fastest", NULL, 0, 0, FIGURE_PLAIN, CELL(ratio)},
    {"ratio_error_frac", NULL, 0, 0, FIGURE_PLAIN, CELL(ratio_error_frac)},
    {"ties_fastest", NULL, 0, 0, FIGURE_PLAIN, CELL(ties)},
    {"price_per_gpu_hour", NULL, 0, 0, FIGURE_PLAIN, CELL(price_per_hour)},
    {"price_per_1e9_samples", NULL, 0, 0, FIGURE_PLAIN, CELL(price)},
    {"meets_target", NULL, 0, 0, FIGURE_PLAIN, CELL(meets_target)},
    {"cheapest_for_target", NULL, 0, 0, FIGURE_PLAIN, CELL(is_chosen)},
    {"stopped", NULL, 0, 0, FIGURE_PLAIN, CELL(stopped)},
    {"inputs_hash", NULL, 0, 0, FIGURE_PLAIN, CELL(inputs_hash)},
    {0},
};

/* Columns of the comparison. */
static const struct figure compared_figures[] = {
    {NULL, "GPU", -9, 0, FIGURE_PLAIN, CELL(gpu)},
    {NULL, "GPUs", 4, 0, FIGURE_PLAIN, CELL(n_gpus)},
    {NULL, "step ms", 7, 3, FIGURE_PLAIN, CELL(step_ms)},
    {NULL, "range ms", 10, 0, FIGURE_PLAIN, CELL(range)},
    {NULL, "GPU ms", 6, 3, FIGURE_PLAIN, CELL(total_ms)},
    {NULL, "samp/s", 6, 0, FIGURE_PLAIN, CELL(shown_rate)},
    {NULL, "speed", -9, 0, FIGURE_PLAIN, CELL(shown_ratio)},
    {NULL, "mem%", 4, 0, FIGURE_PERCENT, CELL(used_frac)},
    {NULL, "waits", -5, 0, FIGURE_PLAIN, CELL(waits)},
    {NULL, "basis", -8, 0, FIGURE_PLAIN, CELL(shown_basis)},
    {NULL, "per 1e9", 7, 3, FIGURE_SIGNIFICANT, CELL(price)},
    {NULL, "", 0, 0, FIGURE_NOTE, CELL(mark)},
    {0},
};
#define N_COMPARED (sizeof compared_figures / sizeof *compared_figures)

/* --- comparison --- */

/* Orders cells with a plan before those without, then by samples a second, GPU
 * work and the order of planning. */
static int compare_cells(const void *left, const void *right)
{
    const struct grid_cell *a = *(const struct grid_cell *const *)left;
    const struct grid_cell *b = *(const struct grid_cell *const *)right;

    if (a->fits != b->fits)
        return a->fits ? -1 : 1;
    if (a->fits && a->rate != b->rate)
        return a->rate > b->rate ? -1 : 1;
    if (a->fits && a->total_ms != b->total_ms)
        return a->total_ms < b->total_ms ? -1 : 1;
    return a < b ? -1 : 1;
}

/* If only some cells have a time of the host, derives all samples a second from
 * GPU work. */
static void unmix_hosts(struct grid *grid)
{
    size_t n_fit = 0, n_hosts = 0;

    for (size_t i = 0; i < grid->n; i++) {
        n_fit += grid->cells[i].fits;
        n_hosts += grid->cells[i].fits && grid->cells[i].host_ms > 0;
    }
    grid->is_mixed = n_hosts && n_hosts < n_fit;
    for (size_t i = 0; grid->is_mixed && i < grid->n; i++) {
        struct grid_cell *cell = &grid->cells[i];

        cell->rate *= cell->step_ms / cell->total_ms;
        cell->gpu_rate = cell->rate / cell->n_gpus;
        cell->parts.host_ms = 0;
    }
}

/* Returns whether cell a is a better choice for the target than b. */
static bool is_cheaper(const struct grid_cell *a, const struct grid_cell *b)
{
    if (isfinite(a->price) && a->price != b->price)
        return a->price < b->price;
    return a->n_gpus != b->n_gpus ? a->n_gpus < b->n_gpus : a->rate > b->rate;
}

static void compare_cell(struct grid *grid, struct grid_cell *cell,
                         const struct grid_cell *first)
{
    cell->price = cell->price_per_hour * cell->n_gpus / 3600 * 1e9 / cell->rate;
    cell->meets_target = grid->target > 0 && cell->rate >= grid->target;
    if (!cell->fits)
        return;
    cell->ratio = cell->rate / first->rate;
    cell->ratio_error_frac =
        cell == first ? 0 : step_ratio_error(&cell->parts, &first->parts);
    cell->ties =
        cell != first && fabs(cell->ratio - 1) <= cell->ratio_error_frac;
    if (cell->meets_target && (!grid->chosen || is_cheaper(cell, grid->chosen)))
        grid->chosen = cell;
}

/* Sets the texts of the table. */
static void show_cell(const struct grid *grid, struct grid_cell *cell)
{
    struct buf rate = {0};

    if (!cell->fits) {
        cell->mark = "does not fit";
        return;
    }
    text_print_rate(cell->rate, &rate);
    cell->shown_rate = arena_strdup(grid->arena, rate.data);
    buf_release(&rate);
    cell->range = cell->most_ms > cell->least_ms
                      ? arena_printf(grid->arena, "%.3g-%.3g", cell->least_ms,
                                     cell->most_ms)
                      : NULL;
    cell->waits = cell->waits_for_host ? "host" : "GPU";
    cell->shown_basis =
        strncmp(cell->cost, "roofline:", 9) ? cell->basis : "roofline";
    cell->shown_ratio = arena_printf(grid->arena, "%.2f%s", cell->ratio,
                                     cell->ties ? " ties" : "");
    if (cell->is_chosen)
        cell->mark = "<-";
}

void grid_compare(struct grid *grid)
{
    unmix_hosts(grid);
    grid->order = ARENA_NEW(grid->arena, const struct grid_cell *, grid->n + 1);
    grid->smallest = grid->fastest = NULL;
    for (size_t i = 0; i < grid->n; i++) {
        const struct grid_cell *cell = &grid->cells[i];

        grid->order[i] = cell;
        if (cell->fits &&
            (!grid->smallest || cell->n_gpus < grid->smallest->n_gpus))
            grid->smallest = cell;
        if (cell->fits && (!grid->fastest || cell->rate > grid->fastest->rate))
            grid->fastest = cell;
    }
    qsort(grid->order, grid->n, sizeof(*grid->order), compare_cells);
    for (size_t i = 0; grid->fastest && i < grid->n; i++) {
        const struct grid_cell *cell = &grid->cells[i];

        /* If no plan fits a number of GPUs, its rate is NAN. */
        if (cell->rate >= grid->fastest->rate * (1 - GRID_NEAR_FRAC) &&
            (!grid->near || cell->n_gpus < grid->near->n_gpus))
            grid->near = cell;
        compare_cell(grid, &grid->cells[i], grid->order[0]);
    }
    for (size_t i = 0; i < grid->n; i++) {
        grid->cells[i].is_chosen = &grid->cells[i] == grid->chosen;
        show_cell(grid, &grid->cells[i]);
    }
}

/* --- text --- */

void grid_print_last(const struct grid *grid)
{
    if (grid->n == 1)
        figures_heading(cell_figures, cli_text());
    figures_row(cell_figures, &grid->cells[grid->n - 1], cli_text());
}

/* Prints the target, and the cheapest cell that meets it. */
static void print_target(const struct grid *grid)
{
    const struct grid_cell *chosen = grid->chosen, *first = grid->order[0];
    struct buf rate = {0};

    text_print_rate(grid->target, &rate);
    cli_printf("target  %s samples/s: ", rate.data);
    if (!chosen)
        cli_printf("no row meets it; the fastest has %s\n", first->shown_rate);
    else
        cli_printf("%u x %s is the %s that meets it, with %s\n", chosen->n_gpus,
                   chosen->gpu, grid->prices ? "cheapest" : "smallest",
                   chosen->shown_rate);
    buf_release(&rate);
}

static void print_misfits(const struct grid *grid)
{
    for (size_t i = 0; i < grid->n; i++)
        if (!grid->order[i]->fits)
            cli_printf("no fit  %u x %s: %s\n", grid->order[i]->n_gpus,
                       grid->order[i]->gpu, grid->order[i]->why_not);
}

/* Prints the cost models, if the table has no room for their basis. */
static void print_costs(const struct grid *grid)
{
    const char *last = "";

    cli_printf("cost    ");
    for (size_t i = 0; i < grid->n; i++) {
        const struct grid_cell *cell = &grid->cells[i];

        if (cell->fits && strcmp(cell->cost, last) != 0)
            cli_printf("%s%s, %s", *last ? "; " : "", cell->cost, cell->basis);
        last = cell->fits ? cell->cost : last;
    }
    cli_printf("\n");
}

/* Prints the table. A number of GPUs that all rows have has no column. To keep
 * to 80 columns, a table of numbers and prices has no column for the basis.
 * Returns whether it has one. */
static bool print_table(const struct grid *grid, bool has_counts)
{
    const bool has_basis = !has_counts || !grid->prices;
    struct figure figures[N_COMPARED];
    size_t n = 0;

    for (size_t f = 0; f < N_COMPARED; f++) {
        const size_t offset = compared_figures[f].offset;

        if ((offset == offsetof(struct grid_cell, n_gpus) && !has_counts) ||
            (offset == offsetof(struct grid_cell, shown_basis) && !has_basis) ||
            (offset == offsetof(struct grid_cell, price) && !grid->prices))
            continue;
        figures[n++] = compared_figures[f];
    }
    figures[n - 1] = (struct figure){0};
    for (size_t i = 0; i < grid->n; i++)
        if (-(int)strlen(grid->cells[i].gpu) < figures[0].width)
            figures[0].width = -(int)strlen(grid->cells[i].gpu);
    figures_heading(figures, cli_text());
    for (size_t i = 0; i < grid->n; i++)
        figures_row(figures, grid->order[i], cli_text());
    return has_basis;
}

static bool has_counts(const struct grid *grid)
{
    for (size_t i = 1; i < grid->n; i++)
        if (grid->cells[i].n_gpus != grid->cells[0].n_gpus)
            return true;
    return false;
}

void grid_print_compared(const struct grid *grid, const struct cli *cli)
{
    const bool is_per_gpu = cli_given(cli, "batch-per-gpu");
    bool any_ties = false;
    const bool has_basis = print_table(grid, has_counts(grid));

    if (!grid->smallest)
        return;
    for (size_t i = 0; i < grid->n; i++)
        any_ties = any_ties || grid->cells[i].ties;
    cli_printf("\nbatch   %s, %" PRIu64, is_per_gpu ? "of a GPU" : "global",
               cli_u64(cli, is_per_gpu ? "batch-per-gpu" : "batch"));
    if (!has_counts(grid))
        cli_printf("; %u GPU%s in each row", grid->cells[0].n_gpus,
                   grid->cells[0].n_gpus == 1 ? "" : "s");
    cli_printf("\n");
    if (!has_basis)
        print_costs(grid);
    cli_printf("speed   samples/s over those of the first row%s%s\n",
               any_ties ? "; ties: within the error of the ratio" : "",
               grid->is_mixed ? "; by GPU work alone, as some rows have no "
                                "time of the host"
                              : "");
    if (grid->prices)
        cli_printf("price   per 10^9 samples, of GPU-hours as in %s\n",
                   grid->prices->source);
    print_misfits(grid);
    if (grid->target > 0)
        print_target(grid);
    if (grid->is_bound)
        cli_printf("samples/s: upper bounds, as the dense part is not known\n");
    if (grid->any_assumed)
        cli_printf("hosts   of more than one: assumed, with the most "
                   "GPUs that divide them evenly\n");
}

/* --- JSON --- */

json_t *grid_cells_to_json(const struct grid *grid)
{
    json_t *list = json_array();

    for (size_t i = 0; i < grid->n; i++) {
        const struct grid_cell *cell =
            grid->is_compared ? grid->order[i] : &grid->cells[i];

        json_array_append_new(
            list,
            cell->fits
                ? figures_object(cell_figures, cell)
                : json_pack("{s:s, s:i, s:i, s:b, s:b, s:s}", "gpu", cell->gpu,
                            "gpus", cell->n_gpus, "hosts", cell->n_hosts,
                            "hosts_assumed", cell->hosts_assumed, "fits", false,
                            "why_not", cell->why_not));
    }
    return list;
}
