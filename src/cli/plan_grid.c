/* SPDX-License-Identifier: MIT */
#include "cli/plan_grid.h"

#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/plan_grid_report.h"
#include "cli/plan_search.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/cluster.h"
#include "core/host.h"
#include "costmodel/modelfile/gpu_file.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Planning of all cells. */
struct cells {
    struct plan_request *request;
    struct grid grid;
    /* Time of clock_ms at which --time-limit ends; INFINITY: no limit. */
    double end_ms;
    /* Reason why some cells were left out: "interrupt" or "time"; NULL if none
     * was left out. */
    const char *why_so_few;
    struct progress progress; /* counts cells */
    struct planning_grid asked;
    /* first cell with a plan of the GPU that is planned for; NULL: none */
    const struct grid_cell *first_of_gpu;
    bool is_saved;           /* a plan was written to --output */
    bool has_plan;           /* some cell has a plan */
    struct cost_source cost; /* cost model of the last cell that has a plan */
    /* shortage of the last cell for which no plan fits */
    struct shortage shortage;
    struct arena arena; /* arena for data that live longer than a single plan */
    struct prices prices;
};

/* --- one cell --- */

static void note_price(struct grid_cell *cell, const struct plan *plan)
{
    const struct time_range step = plan_step(plan), host = plan_host(plan);

    cell->fits = true;
    cell->total_ms = plan->total_ms;
    cell->step_ms = step.ms;
    cell->least_ms = step.least_ms;
    cell->most_ms = step.most_ms;
    cell->rate =
        1000 * (double)problem_all_samples(&plan->problem) / cell->step_ms;
    cell->gpu_rate = cell->rate / cell->n_gpus;
    cell->bound_ms = plan->bound_ms;
    cell->host_ms = host.ms;
    cell->waits_for_host = plan_waits_for_host(plan);
    cell->parts = plan_step_parts(plan);
    cell->parts.cost = cell->cost;
}

static void note_plan(struct cells *cells, struct grid_cell *cell,
                      const struct plan *plan)
{
    struct arena *arena = &cells->arena;

    cells->cost = (struct cost_source){
        .name = arena_strdup(arena, plan->cost.name),
        .basis = plan->cost.basis,
        .comm = arena_strdup(arena, plan->cost.comm),
    };
    cell->cost = cells->cost.name;
    cell->basis = cost_basis_names[plan->cost.basis];
    note_price(cell, plan);
    cell->fullest = plan_fullest(plan);
    cell->used_bytes = plan->devices[cell->fullest].memory.total;
    cell->memory_bytes = plan->problem.cluster.memory_bytes[cell->fullest];
    cell->used = (double)cell->used_bytes;
    cell->used_frac = plan_used_frac(plan, cell->fullest);
    cell->stopped = arena_strdup(arena, plan->stopped);
    cell->inputs_hash = arena_strdup(arena, plan->inputs_hash);
    if (!cells->first_of_gpu ||
        strcmp(cells->first_of_gpu->gpu, cell->gpu) != 0)
        cells->first_of_gpu = cell;
    cell->scaling_frac = cell->gpu_rate / cells->first_of_gpu->gpu_rate;
    cells->has_plan = true;
    cells->grid.is_bound |= !job_knows_dense(&plan->problem.job);
}

/* Returns the time limit in ms for the next cell: an equal share of the time
 * left; 0: no limit. */
static double share_of_time(const struct cells *cells)
{
    const double now_ms = clock_ms();

    return plan_search_time_left(now_ms +
                                 (cells->end_ms - now_ms) /
                                     (double)(cells->asked.n - cells->grid.n));
}

/* Fills the cell with its cluster. */
static void start_cell(struct cells *cells, struct grid_cell *cell,
                       const struct cluster *cluster)
{
    *cell = (struct grid_cell){
        .n_gpus = cluster->n_devices,
        .n_hosts = cluster->n_devices / cluster->devices_per_host,
        .gpu = arena_strdup(&cells->arena, cluster->gpu)};
    cell->total_ms = cell->step_ms = cell->least_ms = cell->most_ms = NAN;
    cell->rate = cell->gpu_rate = cell->scaling_frac = cell->bound_ms = NAN;
    cell->used = cell->used_frac = cell->ratio = cell->ratio_error_frac = NAN;
    cell->price_per_hour = cell->price = NAN;
    cell->hosts = arena_printf(&cells->arena, "%ux%u", cell->n_hosts,
                               cluster->devices_per_host);
    cell->hosts_assumed = cluster->host_size && cell->n_hosts > 1;
    cells->grid.any_assumed |= cell->hosts_assumed;
}

/* Finds the price of a GPU, whose name in the file may be an alias. Leaves
 * *per_hour as it is if the file has no price of it. Two prices are an
 * error. */
static int look_up_price(double *per_hour, const char *gpu,
                         const struct prices *prices, struct arena *arena,
                         struct err *err)
{
    const struct gpu_spec *spec;
    struct err ignored = {0};
    size_t n = 0;

    for (size_t i = 0; i < prices->n; i++) {
        const struct gpu_price *price = &prices->list[i];

        if (strcmp(price->gpu, gpu) != 0 &&
            (gpu_spec_get(&spec, price->gpu, arena, &ignored) ||
             strcmp(spec->name, gpu) != 0))
            continue;
        if (n++)
            return err_input(err, "%s:%zu: a second price of GPU '%s'",
                             prices->source, price->line, gpu);
        *per_hour = price->per_hour;
    }
    return 0;
}

/* Finds the price of the cell's GPU. Changed figures of a GPU do not change its
 * price, unless the file has a price of its own for them. */
static int find_price(const struct cells *cells, struct grid_cell *cell,
                      struct err *err)
{
    const struct prices *prices = cells->grid.prices;
    struct arena *arena = cells->request->cli->arena;
    const struct gpu_spec *spec;

    if (!prices)
        return 0;
    if (gpu_spec_get(&spec, cell->gpu, arena, err) ||
        look_up_price(&cell->price_per_hour, cell->gpu, prices, arena, err))
        return -1;
    if (!isfinite(cell->price_per_hour) && spec->changed_from &&
        look_up_price(&cell->price_per_hour, spec->changed_from, prices, arena,
                      err))
        return -1;
    return isfinite(cell->price_per_hour)
               ? 0
               : err_input(err, "%s: the file has no price of GPU '%s'",
                           prices->source, cell->gpu);
}

/* Plans for one cell as `plan --gpu G --gpus N` does, and saves the plan if it
 * is the first that fits. Returns 0 also if no plan fits, and if an interrupt
 * comes before there is a plan; the cell is then not counted. */
static int plan_cell(struct cells *cells, struct err *err)
{
    struct plan_request *request = cells->request;
    struct cli *cli = request->cli;
    struct grid_cell *cell = &cells->grid.cells[cells->grid.n];
    struct plan plan = {.problem = request->problem};
    struct oracle *oracle = NULL;
    int rc;

    if (planning_set_cluster(&plan.problem, &cells->asked.cells[cells->grid.n],
                             &request->from.problem.cluster, cli, err) ||
        planning_set_tiers(&plan.problem, cli, err))
        return -1;
    start_cell(cells, cell, &plan.problem.cluster);
    if (find_price(cells, cell, err) ||
        planning_oracle(&oracle, cli, &plan.problem, err))
        return -1;
    request->progress =
        arena_printf(cli->arena, "%u x %s", cell->n_gpus, cell->gpu);
    rc = plan_search(&plan, request, oracle, share_of_time(cells), err);
    if (!rc) {
        note_plan(cells, cell, &plan);
        if (cli_given(cli, "output") && !cells->is_saved) {
            rc = plan_save(&plan, cli_string(cli, "output"), err);
            cells->is_saved = true;
        }
    } else if (err->code == ERR_NO_PLAN) {
        cell->why_not = arena_strdup(&cells->arena, err->msg);
        cells->shortage = err->shortage;
        *err = (struct err){0};
        rc = 0;
    } else if (err->code == ERR_INTERRUPTED) {
        *err = (struct err){0};
        return 0;
    }
    cells->grid.n += !rc;
    return rc;
}

/* --- the report of one GPU --- */

static const char *gpus(const struct grid_cell *cell)
{
    return cell->n_gpus == 1 ? "GPU" : "GPUs";
}

/* Returns, for example, "44 to 65536 GPUs were not planned for"; NULL if all
 * cells were planned for. */
static const char *say_undone(struct cells *cells)
{
    const struct planning_grid *asked = &cells->asked;
    const uint32_t last = asked->cells[asked->n - 1].n_gpus;
    const size_t n = cells->grid.n;

    if (n == asked->n)
        return NULL;
    if (asked->cells[asked->n - 1].gpu != asked->cells[0].gpu)
        return arena_printf(&cells->arena,
                            "%zu of %zu rows were not planned for",
                            asked->n - n, asked->n);
    if (n + 1 == asked->n)
        return arena_printf(&cells->arena, "%u %s not planned for", last,
                            last == 1 ? "GPU was" : "GPUs were");
    return arena_printf(&cells->arena, "%u to %u GPUs were not planned for",
                        asked->cells[n].n_gpus, last);
}

static void print_answer(struct cells *cells)
{
    const struct cli *cli = cells->request->cli;
    const struct grid *grid = &cells->grid;
    const struct grid_cell *smallest = grid->smallest, *fastest = grid->fastest;
    bool is_per_gpu = cli_given(cli, "batch-per-gpu");

    if (grid->any_assumed)
        cli_printf("\nhosts   of more than one: assumed, with the most "
                   "GPUs that divide them evenly\n");
    if (!smallest)
        return;
    cli_printf("\ncost    %s, %s; %s %" PRIu64 "\n        communication: %s\n",
               cells->cost.name, cost_basis_names[cells->cost.basis],
               is_per_gpu ? "batch of a GPU" : "global batch",
               cli_u64(cli, is_per_gpu ? "batch-per-gpu" : "batch"),
               cells->cost.comm);
    cli_printf("smallest that fits: %u %s, %.0f samples/s\n"
               "fastest: %u %s, %.0f samples/s",
               smallest->n_gpus, gpus(smallest), smallest->rate,
               fastest->n_gpus, gpus(fastest), fastest->rate);
    if (grid->near != fastest)
        cli_printf("; %u %s come within %.0f %% of it", grid->near->n_gpus,
                   gpus(grid->near), 100 * GRID_NEAR_FRAC);
    cli_printf("\n");
    if (grid->is_bound)
        cli_printf("samples/s: upper bounds, as the dense part is not "
                   "known\n");
}

static void print_report(struct cells *cells)
{
    const char *undone = say_undone(cells);

    if (cells->grid.is_compared)
        grid_print_compared(&cells->grid, cells->request->cli);
    else
        print_answer(cells);
    if (cells->grid.smallest && undone && !strcmp(cells->why_so_few, "time"))
        cli_printf("the time limit was reached: %s\n", undone);
}

/* --- JSON --- */

static json_t *json_gpus(const struct grid_cell *cell)
{
    return cell ? json_integer((json_int_t)cell->n_gpus) : json_null();
}

static json_t *json_of_cell(const struct grid_cell *cell)
{
    return cell
               ? json_pack("{s:s, s:i}", "gpu", cell->gpu, "gpus", cell->n_gpus)
               : json_null();
}

static void print_json(const struct cells *cells)
{
    const struct grid *grid = &cells->grid;
    const struct planning_grid *asked = &cells->asked;
    json_t *root, *cost = NULL;

    if (grid->smallest)
        cost = json_pack("{s:s, s:s, s:s}", "name", cells->cost.name, "basis",
                         cost_basis_names[cells->cost.basis], "comm",
                         cells->cost.comm);
    root = json_pack(
        "{s:o, s:b, s:o, s:o, s:o, s:o}", "counts", grid_cells_to_json(grid),
        "interrupted", interrupt_requested(), "unplanned_gpus",
        grid->n < asked->n ? json_pack("[i, i]", asked->cells[grid->n].n_gpus,
                                       asked->cells[asked->n - 1].n_gpus)
                           : json_null(),
        "smallest_gpus", json_gpus(grid->smallest), "fastest_gpus",
        json_gpus(grid->fastest), "within_5_percent_gpus",
        json_gpus(grid->near));
    if (grid->is_compared)
        json_object_set_new(root, "fastest", json_of_cell(grid->fastest));
    else if (cost)
        json_object_set(root, "cost_model", cost);
    json_decref(cost);
    if (grid->target > 0) {
        json_object_set_new(root, "target", json_real(grid->target));
        json_object_set_new(root, "cheapest_for_target",
                            json_of_cell(grid->chosen));
    }
    cli_print_json(root);
}

/* --- all cells --- */

static int plan_all(struct cells *cells, struct err *err)
{
    struct cli *cli = cells->request->cli;

    while (cells->grid.n < cells->asked.n && !cells->why_so_few) {
        const size_t n = cells->grid.n;
        struct arena_mark mark = arena_mark(cli->arena);

        progress_update(&cells->progress, n);
        if (plan_cell(cells, err))
            return -1;
        arena_rewind(cli->arena, mark);
        progress_finish(&cells->progress);
        if (cells->grid.n > n && !cells->grid.is_compared) {
            grid_print_last(&cells->grid);
            cli_print_report();
            fflush(stdout);
        }
        /* an interrupt keeps the results that exist */
        interrupt_keep(cells->grid.n > 0);
        if (interrupt_requested())
            cells->why_so_few = "interrupt";
        else if (clock_ms() >= cells->end_ms)
            cells->why_so_few = "time";
    }
    grid_compare(&cells->grid);
    return 0;
}

/* Sets the error if no plan fits any of the numbers of GPUs tried so far. */
static int conclude_without_plan(const struct cells *cells, const char *undone,
                                 struct err *err)
{
    const struct grid_cell *last;

    if (undone && (!cells->grid.n || !strcmp(cells->why_so_few, "interrupt")))
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted before a plan that fits was found: %s",
                       undone);
    assert(cells->grid.n);
    last = &cells->grid.cells[cells->grid.n - 1];
    err_set(err, ERR_NO_PLAN, "with %u %s %s%s%s", last->n_gpus, gpus(last),
            last->why_not, undone ? "; then the time limit was reached: " : "",
            undone ? undone : "");
    err->shortage = cells->shortage;
    return -1;
}

/* Sets ERR_INTERRUPTED if an interrupt left out some numbers of GPUs. If the
 * time limit left them out, only warns: the result is then a valid answer. */
static int conclude(struct cells *cells, struct err *err)
{
    const char *undone = say_undone(cells);
    const struct grid_cell *last;

    if (!cells->has_plan)
        return conclude_without_plan(cells, undone, err);
    if (undone && !strcmp(cells->why_so_few, "time")) {
        cli_warn(NULL, arena_printf(&cells->arena,
                                    "the time limit was reached: %s", undone));
        return 0;
    }
    last = &cells->grid.cells[cells->grid.n - 1];
    if (last->stopped && !strcmp(last->stopped, "interrupt"))
        return err_set(
            err, ERR_INTERRUPTED,
            "interrupted: the plan for %u %s is the best until then%s%s",
            last->n_gpus, gpus(last), undone ? ", and " : "",
            undone ? undone : "");
    if (undone)
        return err_set(err, ERR_INTERRUPTED, "interrupted: %s", undone);
    return 0;
}

/* Reads --price and --target-rate. */
static int read_comparison(struct cells *cells, struct err *err)
{
    struct cli *cli = cells->request->cli;
    const char *path = cli_string(cli, "price"), *text;
    size_t len;

    if (path) {
        if (file_read(&text, &len, path, cli->arena, err) ||
            prices_read(&cells->prices, text, len, path, cli->arena, err))
            return -1;
        cells->grid.prices = &cells->prices;
    }
    if (!cli_given(cli, "target-rate"))
        return 0;
    if (!text_to_rate(cli_string(cli, "target-rate"), &cells->grid.target))
        return err_usage(
            err,
            "option '--target-rate' takes samples a second above 0, "
            "such as 30M or 1.5G, not '%s'",
            cli_shown(cli, "target-rate"));
    if (!job_knows_dense(&cells->request->problem.job))
        return err_usage(
            err, "option '--target-rate' needs '--dense' or '--dense-ms': "
                 "without the dense part samples a second are only an "
                 "upper bound");
    return 0;
}

/* Refuses options that a list of GPUs contradicts, and a GPU named twice. */
static int check_gpus(struct cli *cli, struct err *err)
{
    const char *const *names = planning_asked_gpus(cli);
    const struct gpu_spec *one, *other;

    if (!names[0] || !names[1])
        return 0;
    if (cli_given(cli, "cost"))
        return err_usage(err, "option '--cost' prices one GPU; a list of GPUs "
                              "takes the cost model of each");
    if (cli_given(cli, "output"))
        return err_usage(err, "option '--output' writes one plan; it needs one "
                              "GPU, not a list");
    for (size_t i = 0; names[i]; i++) {
        if (gpu_spec_get(&one, names[i], cli->arena, err))
            return -1;
        for (size_t j = 0; j < i; j++)
            if (gpu_spec_get(&other, names[j], cli->arena, err) ||
                !strcmp(one->name, other->name))
                return err_usage(err, "option '--gpu' names '%s' twice",
                                 one->name);
    }
    return 0;
}

bool plan_has_grid(struct cli *cli)
{
    const char *const *gpus = planning_asked_gpus(cli);

    return cli_value(cli, "gpus")->is_range || cli_given(cli, "price") ||
           cli_given(cli, "target-rate") || (gpus[0] && gpus[1]);
}

int plan_grid(struct plan_request *request, struct err *err)
{
    struct cli *cli = request->cli;
    const char *path = cli_string(cli, "output");
    struct cells cells = {.request = request,
                          .end_ms = plan_search_end(request)};
    const char *const *names = planning_asked_gpus(cli);
    int rc;

    if (path && !strcmp(path, "-"))
        return err_usage(err,
                         "option '--output' needs a file, not '-', with a "
                         "range of GPUs: it gets the plan for the fewest GPUs");
    if (check_gpus(cli, err) || read_comparison(&cells, err) ||
        planning_grid(&cells.asked, &request->from.problem.cluster, cli, err))
        return -1;
    cells.grid.arena = &cells.arena;
    cells.grid.is_compared =
        cells.grid.prices || cells.grid.target > 0 || (names[0] && names[1]);
    cells.grid.cells = ARENA_NEW(cli->arena, struct grid_cell, cells.asked.n);
    progress_start(&cells.progress, "numbers of GPUs", cells.asked.n, false);
    cells.progress.limit_s = plan_search_time_left(cells.end_ms) / 1000;
    rc = plan_all(&cells, err);
    progress_finish(&cells.progress);
    if (!rc) {
        print_json(&cells);
        print_report(&cells);
        rc = conclude(&cells, err);
    }
    arena_release(&cells.arena);
    return rc;
}
