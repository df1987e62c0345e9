/* SPDX-License-Identifier: MIT */
#include "cli/plan_counts.h"

#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/plan_search.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/cluster.h"
#include "core/host.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Relative tolerance of `near`: a number of GPUs whose samples a second are
 * within 5 % of the most counts as about as fast. */
#define NEAR_FRAC 0.05

/* Result for one number of GPUs. If no plan fits, the real numbers after `fits`
 * are NAN. */
struct count {
    /* `fullest`: index of the GPU with the largest share of its memory used. */
    uint32_t n_gpus, n_hosts, fullest;
    bool hosts_assumed, fits;
    const char *hosts;   /* "2x8": hosts x GPUs per host */
    const char *why_not; /* why no plan fits: a sentence; NULL if one fits */
    /* GPU work, step with the host, samples a second: of all GPUs and of one */
    double total_ms, step_ms, rate, gpu_rate;
    /* gpu_rate as a share of that of the smallest number that fits */
    double scaling_frac;
    double bound_ms;                   /* NAN if not known */
    uint64_t used_bytes, memory_bytes; /* memory of the fullest GPU */
    double used, used_frac;
    const char *stopped, *inputs_hash;
};
#define COUNT(member) MEMBER_OF(struct count, member)
static const struct figure count_figures[] = {
    {"gpus", "GPUs", 5, 0, FIGURE_PLAIN, COUNT(n_gpus)},
    {NULL, "hosts", 6, 0, FIGURE_PLAIN, COUNT(hosts)},
    {"hosts", NULL, 0, 0, FIGURE_PLAIN, COUNT(n_hosts)},
    {"hosts_assumed", NULL, 0, 0, FIGURE_PLAIN, COUNT(hosts_assumed)},
    {"fits", "fits", -4, 0, FIGURE_PLAIN, COUNT(fits)},
    {"step_ms", "step ms", 8, 3, FIGURE_PLAIN, COUNT(step_ms)},
    {"total_ms", "GPU ms", 8, 3, FIGURE_PLAIN, COUNT(total_ms)},
    {"samples_per_second", "samples/s", 10, 0, FIGURE_PLAIN, COUNT(rate)},
    {"samples_per_second_per_gpu", "per GPU", 8, 0, FIGURE_PLAIN,
     COUNT(gpu_rate)},
    {NULL, "scale %", 7, 0, FIGURE_PERCENT, COUNT(scaling_frac)},
    {"bound_ms", NULL, 0, 0, FIGURE_PLAIN, COUNT(bound_ms)},
    {NULL, "fullest GPU", 11, 0, FIGURE_BYTES, COUNT(used)},
    {NULL, "%", 4, 0, FIGURE_PERCENT, COUNT(used_frac)},
    {"fullest_gpu", NULL, 0, 0, FIGURE_PLAIN, COUNT(fullest)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, COUNT(used_bytes)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, COUNT(memory_bytes)},
    {"stopped", NULL, 0, 0, FIGURE_PLAIN, COUNT(stopped)},
    {"inputs_hash", NULL, 0, 0, FIGURE_PLAIN, COUNT(inputs_hash)},
    {0},
};

struct counts {
    struct plan_request *request;
    struct count *list; /* [n] results */
    size_t n;           /* how many numbers of GPUs have been planned for */
    /* Time of clock_ms at which --time-limit ends; INFINITY: no limit. */
    double end_ms;
    /* Reason why some numbers of GPUs were left out: "interrupt" or "time";
     * NULL if no number was left out. */
    const char *why_so_few;
    struct progress progress; /* progress; counts numbers of GPUs */
    struct planning_counts asked;
    /* Results for the smallest number of GPUs with a plan, for the one with the
     * most samples a second, and for the smallest that is about as fast
     * (NEAR_FRAC); NULL: no plan fits. */
    const struct count *smallest, *fastest, *near;
    struct cost_source cost; /* cost model of the last number that has a plan */
    /* shortage at the last number of GPUs for which no plan fits */
    struct shortage shortage;
    struct arena arena; /* arena for data that live longer than a single plan */
    bool any_assumed;
    bool is_bound; /* the dense part is unknown: rates are upper bounds */
};

static void note_plan(struct counts *counts, struct count *count,
                      const struct plan *plan)
{
    struct arena *arena = &counts->arena;

    counts->cost = (struct cost_source){
        .name = arena_strdup(arena, plan->cost.name),
        .basis = plan->cost.basis,
        .comm = arena_strdup(arena, plan->cost.comm),
    };
    count->fits = true;
    count->total_ms = plan->total_ms;
    count->step_ms = plan_step(plan).ms;
    count->rate = 1000 * (double)plan->problem.batch / count->step_ms;
    count->gpu_rate = count->rate / count->n_gpus;
    count->bound_ms = plan->bound_ms;
    count->fullest = plan_fullest(plan);
    count->used_bytes = plan->devices[count->fullest].memory.total;
    count->memory_bytes = plan->problem.cluster.memory_bytes[count->fullest];
    count->used = (double)count->used_bytes;
    count->used_frac = plan_used_frac(plan, count->fullest);
    count->stopped = arena_strdup(arena, plan->stopped);
    count->inputs_hash = arena_strdup(arena, plan->inputs_hash);
    if (!counts->smallest)
        counts->smallest = count;
    count->scaling_frac = count->gpu_rate / counts->smallest->gpu_rate;
    if (!counts->fastest || count->rate > counts->fastest->rate)
        counts->fastest = count;
    counts->is_bound |= !job_knows_dense(&plan->problem.job);
}

/* Returns the time limit in ms for the next number of GPUs: an equal share of
 * the time left; 0: no limit. */
static double share_of_time(const struct counts *counts)
{
    const double now_ms = clock_ms();

    return plan_search_time_left(now_ms +
                                 (counts->end_ms - now_ms) /
                                     (double)(counts->asked.n - counts->n));
}

/* Plans for one number of GPUs as `plan --gpus N` does, and saves the plan if
 * it is the first that fits. Returns 0 also if no plan fits, and if an
 * interrupt comes before there is a plan; the number is then not counted. */
static int plan_count(struct counts *counts, uint32_t n_gpus, struct err *err)
{
    struct plan_request *request = counts->request;
    struct cli *cli = request->cli;
    struct count *count = &counts->list[counts->n];
    struct plan plan = {.problem = request->problem};
    const struct cluster *cluster = &plan.problem.cluster;
    struct oracle *oracle = NULL;
    int rc;

    *count = (struct count){.n_gpus = n_gpus};
    count->total_ms = count->step_ms = count->bound_ms = NAN;
    count->rate = count->gpu_rate = count->scaling_frac = NAN;
    count->used = count->used_frac = NAN;
    if (planning_set_cluster(&plan.problem, n_gpus,
                             &request->from.problem.cluster, cli, err))
        return -1;
    count->n_hosts = n_gpus / cluster->devices_per_host;
    count->hosts = arena_printf(&counts->arena, "%ux%u", count->n_hosts,
                                cluster->devices_per_host);
    count->hosts_assumed = cluster->host_size && count->n_hosts > 1;
    counts->any_assumed |= count->hosts_assumed;
    if (planning_oracle(&oracle, cli, &plan.problem, err))
        return -1;
    rc = plan_search(&plan, request, oracle, share_of_time(counts), err);
    if (!rc) {
        note_plan(counts, count, &plan);
        if (cli_given(cli, "output") && counts->smallest == count)
            rc = plan_save(&plan, cli_string(cli, "output"), err);
    } else if (err->code == ERR_NO_PLAN) {
        count->why_not = arena_strdup(&counts->arena, err->msg);
        counts->shortage = err->shortage;
        *err = (struct err){0};
        rc = 0;
    } else if (err->code == ERR_INTERRUPTED) {
        *err = (struct err){0};
        return 0;
    }
    counts->n += !rc;
    return rc;
}

/* --- the report --- */

static const char *gpus(const struct count *count)
{
    return count->n_gpus == 1 ? "GPU" : "GPUs";
}

/* Returns, for example, "44 to 65536 GPUs were not planned for"; NULL if all
 * numbers of GPUs were planned for. */
static const char *say_undone(struct counts *counts)
{
    const struct planning_counts *asked = &counts->asked;
    const uint32_t last = asked->n_gpus[asked->n - 1];

    if (counts->n == asked->n)
        return NULL;
    if (counts->n + 1 == asked->n)
        return arena_printf(&counts->arena, "%u %s not planned for", last,
                            last == 1 ? "GPU was" : "GPUs were");
    return arena_printf(&counts->arena, "%u to %u GPUs were not planned for",
                        asked->n_gpus[counts->n], last);
}

static void print_answer(struct counts *counts)
{
    const struct cli *cli = counts->request->cli;
    const struct count *smallest = counts->smallest, *fastest = counts->fastest;
    const char *undone = say_undone(counts);
    bool is_per_gpu = cli_given(cli, "batch-per-gpu");

    if (counts->any_assumed)
        cli_printf("\nhosts   of more than one: assumed, with the most "
                   "GPUs that divide them evenly\n");
    if (smallest) {
        cli_printf("\ncost    %s, %s; %s %" PRIu64
                   "\n        communication: %s\n",
                   counts->cost.name, cost_basis_names[counts->cost.basis],
                   is_per_gpu ? "batch of a GPU" : "global batch",
                   cli_u64(cli, is_per_gpu ? "batch-per-gpu" : "batch"),
                   counts->cost.comm);
        cli_printf("smallest that fits: %u %s, %.0f samples/s\n"
                   "fastest: %u %s, %.0f samples/s",
                   smallest->n_gpus, gpus(smallest), smallest->rate,
                   fastest->n_gpus, gpus(fastest), fastest->rate);
        if (counts->near != fastest)
            cli_printf("; %u %s come within %.0f %% of it",
                       counts->near->n_gpus, gpus(counts->near),
                       100 * NEAR_FRAC);
        cli_printf("\n");
        if (counts->is_bound)
            cli_printf("samples/s: upper bounds, as the dense part is not "
                       "known\n");
        if (undone && !strcmp(counts->why_so_few, "time"))
            cli_printf("the time limit was reached: %s\n", undone);
    }
}

/* --- JSON --- */

static json_t *json_gpus(const struct count *count)
{
    return count ? json_integer((json_int_t)count->n_gpus) : json_null();
}

static void print_json(const struct counts *counts)
{
    json_t *list = json_array(), *cost = NULL;

    for (size_t i = 0; i < counts->n; i++) {
        const struct count *count = &counts->list[i];

        json_array_append_new(
            list, count->fits
                      ? figures_object(count_figures, count)
                      : json_pack("{s:i, s:i, s:b, s:b, s:s}", "gpus",
                                  count->n_gpus, "hosts", count->n_hosts,
                                  "hosts_assumed", count->hosts_assumed, "fits",
                                  false, "why_not", count->why_not));
    }
    if (counts->smallest)
        cost = json_pack("{s:s, s:s, s:s}", "name", counts->cost.name, "basis",
                         cost_basis_names[counts->cost.basis], "comm",
                         counts->cost.comm);
    cli_print_json(
        json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o*}", "counts", list,
                  "interrupted", interrupt_requested(), "unplanned_gpus",
                  counts->n < counts->asked.n
                      ? json_pack("[i, i]", counts->asked.n_gpus[counts->n],
                                  counts->asked.n_gpus[counts->asked.n - 1])
                      : json_null(),
                  "smallest_gpus", json_gpus(counts->smallest), "fastest_gpus",
                  json_gpus(counts->fastest), "within_5_percent_gpus",
                  json_gpus(counts->near), "cost_model", cost));
}

/* --- all numbers --- */

/* Prints the line for the number of GPUs that was planned for last. */
static void print_last(const struct counts *counts)
{
    if (counts->n == 1)
        figures_heading(count_figures, cli_text());
    figures_row(count_figures, &counts->list[counts->n - 1], cli_text());
    cli_print_report();
    fflush(stdout);
}

static int plan_all(struct counts *counts, struct err *err)
{
    struct cli *cli = counts->request->cli;

    while (counts->n < counts->asked.n && !counts->why_so_few) {
        const size_t n = counts->n;
        struct arena_mark mark = arena_mark(cli->arena);

        progress_update(&counts->progress, n);
        if (plan_count(counts, counts->asked.n_gpus[n], err))
            return -1;
        arena_rewind(cli->arena, mark);
        progress_finish(&counts->progress);
        if (counts->n > n)
            print_last(counts);
        /* an interrupt keeps the results that exist */
        interrupt_keep(counts->n > 0);
        if (interrupt_requested())
            counts->why_so_few = "interrupt";
        else if (clock_ms() >= counts->end_ms)
            counts->why_so_few = "time";
    }
    /* If no plan fits a number of GPUs, its rate is NAN. */
    for (size_t i = 0; counts->fastest && !counts->near; i++)
        if (counts->list[i].rate >= counts->fastest->rate * (1 - NEAR_FRAC))
            counts->near = &counts->list[i];
    return 0;
}

/* Sets the error if no plan fits any of the numbers of GPUs tried so far. */
static int conclude_without_plan(const struct counts *counts,
                                 const char *undone, struct err *err)
{
    const struct count *last;

    if (undone && (!counts->n || !strcmp(counts->why_so_few, "interrupt")))
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted before a plan that fits was found: %s",
                       undone);
    assert(counts->n);
    last = &counts->list[counts->n - 1];
    err_set(err, ERR_NO_PLAN, "with %u %s %s%s%s", last->n_gpus, gpus(last),
            last->why_not, undone ? "; then the time limit was reached: " : "",
            undone ? undone : "");
    err->shortage = counts->shortage;
    return -1;
}

/* Sets ERR_INTERRUPTED if an interrupt left out some numbers of GPUs. If the
 * time limit left them out, only warns: the result is then a valid answer. */
static int conclude(struct counts *counts, struct err *err)
{
    const char *undone = say_undone(counts);
    const struct count *last;

    if (!counts->smallest)
        return conclude_without_plan(counts, undone, err);
    if (undone && !strcmp(counts->why_so_few, "time")) {
        cli_warn(NULL, arena_printf(&counts->arena,
                                    "the time limit was reached: %s", undone));
        return 0;
    }
    last = &counts->list[counts->n - 1];
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

int plan_counts(struct plan_request *request, struct err *err)
{
    struct cli *cli = request->cli;
    const char *path = cli_string(cli, "output");
    struct counts counts = {.request = request,
                            .end_ms = plan_search_end(request)};
    int rc;

    if (path && !strcmp(path, "-"))
        return err_usage(err,
                         "option '--output' needs a file, not '-', with a "
                         "range of GPUs: it gets the plan for the fewest GPUs");
    if (planning_counts(&counts.asked, &request->from.problem.cluster, cli,
                        err))
        return -1;
    counts.list = ARENA_NEW(cli->arena, struct count, counts.asked.n);
    progress_start(&counts.progress, "numbers of GPUs", counts.asked.n, false);
    counts.progress.limit_s = plan_search_time_left(counts.end_ms) / 1000;
    rc = plan_all(&counts, err);
    progress_finish(&counts.progress);
    if (!rc) {
        print_json(&counts);
        print_answer(&counts);
        rc = conclude(&counts, err);
    }
    arena_release(&counts.arena);
    return rc;
}
