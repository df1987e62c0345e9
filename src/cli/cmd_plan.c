/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/version.h"
#include "cli/planning.h"
#include "io/plan_json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec count_options[] = {
    {"gpus", 'g', OPTION_RANGE, "N|N..M", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs"},
    {0},
};
/* Options for re-planning: the current plan, and limits on its changes. */
static const struct option_spec replanning_options[] = {
    {"from", 0, OPTION_STRING, "OLD", NULL, 0, 0, NULL,
     "current plan: the search starts from it and moves few bytes"},
    {"move-limit", 0, OPTION_BYTES, "SIZE", NULL, 0, 0, NULL,
     "with --from: most bytes that may move between GPUs"},
    {0},
};
static const struct option_spec own_options[] = {
    {"search", 's', OPTION_CHOICE, "NAME", "full", 0, 0, "full|reference|grid",
     "full: all kinds of cuts, by simulated annealing; reference: the "
     "published beam search over column halvings; grid: the published search "
     "of whole tables only"},
    {"effort", 0, OPTION_U64, "N", NULL, 0, 1e12, NULL,
     "changes that the full search tries; default: chosen by the tables"},
    {"time-limit", 0, OPTION_DOUBLE, "S", NULL, 0, 1e9, NULL,
     "stop the full search after this many seconds"},
    {"beam", 0, OPTION_U64, "K", "3", 1, 1024, NULL, "width of the beam"},
    {"depth", 0, OPTION_U64, "L", "10", 1, 1000, NULL,
     "most halvings that the beam tries, one per step"},
    {"simplest-within", 0, OPTION_PERCENT, "PERCENT", NULL, 0, 100, NULL,
     "of the plans that the full search finds within this percentage of the "
     "best, take the one with the fewest pieces"},
    {"trace", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "write the progress of the full search to this file, as CSV: evaluations, "
     "best cost, seconds"},
    {"no-rivals", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "leave other planners out of the report"},
    {"output", 'o', OPTION_PLAN, "FILE", NULL, 0, 0, NULL,
     "write the plan, as JSON; '-' is standard output"},
    {0},
};

/* Smallest share for --simplest-within. "0%" becomes this share: only
 * simplifications that cost nothing are accepted. */
#define NOTHING 1e-12

/* Fills a plan whose problem is set: searches the plan (from the plan of
 * --from, if given), prices it and checks it. limit_ms is the time limit of the
 * search in ms; 0: none. */
static int find_plan(struct plan *plan, struct plan_request *request,
                     const struct oracle *oracle, double limit_ms,
                     struct err *err)
{
    struct cli *cli = request->cli;
    const bool is_full = !strcmp(cli_string(cli, "search"), "full");
    const uint64_t limit =
        cli_given(cli, "move-limit") ? cli_u64(cli, "move-limit") : UINT64_MAX;
    struct search_options options;
    struct oracle *torchrec = NULL;
    int rc;

    if (planner_torchrec_costs(&torchrec, oracle, &plan->problem, cli->arena,
                               err))
        return -1;
    planning_set_search(&options, cli);
    options.time_limit_ms = limit_ms;
    if (cli_given(cli, "simplest-within"))
        options.simplest_frac =
            fmax(cli_double(cli, "simplest-within"), NOTHING);
    options.torchrec = torchrec;
    options.rivals = &request->rivals;
    options.rivals->arena = cli->arena;
    options.beam_depth = (unsigned)cli_u64(cli, "depth");
    options.beam_width = strcmp(cli_string(cli, "search"), "grid")
                             ? (unsigned)cli_u64(cli, "beam")
                             : 0;
    if (!is_full)
        /* from now on an interrupt keeps the best plan found */
        interrupt_keep(true);
    if (cli_given(cli, "trace"))
        options.trace = &request->trace;
    rc = cli_given(cli, "from")
             ? search_replan(plan, &request->from, limit, oracle, &options,
                             &request->replanned, cli->arena, err)
             : (is_full ? search_full : search_reference)(
                   plan, oracle, &options, cli->arena, err);
    if (!rc && !request->rivals.list->by && !cli_given(cli, "no-rivals") &&
        !cli_given(cli, "json"))
        rc = rivals_ask(
            &request->rivals, &plan->problem,
            (struct contender_inputs){.oracle = oracle, .torchrec = torchrec},
            err);
    pool_close(options.pool);
    if (rc)
        return -1;
    plan->version = NEUROSHARD_VERSION;
    plan->build = build_id;
    plan->inputs_hash = plan_inputs_hash(plan, cli->arena);
    return 0;
}

/* --- one number of GPUs --- */

static void tell_search(const struct plan *plan)
{
    fprintf(stderr, "searched %llu placements in %.0f ms, stopped by: %s\n",
            (unsigned long long)plan->n_evaluations, plan->search_ms,
            plan->stopped);
    if (plan->bound_ms > 0)
        fprintf(stderr,
                "lower bound %.4f ms, by the %s: the plan is within %.2f %%\n",
                plan->bound_ms, plan->bound_term,
                100 * (plan->total_ms / plan->bound_ms - 1));
}

/* Writes one line for each better plan that the search has found. Only the last
 * column, seconds, differs from run to run. */
static int write_trace(const struct search_trace *trace, const char *path,
                       struct err *err)
{
    struct buf out = {0};
    int rc;

    buf_printf(&out, "evaluations,total_ms,seconds\n");
    for (size_t i = 0; i < trace->n; i++)
        buf_printf(&out, "%" PRIu64 ",%.17g,%.3f\n",
                   trace->points[i].n_evaluations, trace->points[i].total_ms,
                   trace->points[i].seconds);
    rc = file_write(path, out.data, out.len, err);
    buf_release(&out);
    return rc;
}

/* Returns the clock time in ms at which a search has to end for --time-limit,
 * or INFINITY without a limit. The limit counts from the start of the command,
 * so it covers reading the list and opening the cost model. */
static double end_of_search(const struct plan_request *request)
{
    const double limit_ms = 1000 * cli_double(request->cli, "time-limit");

    return request->cli->start_ms +
           planning_search_limit_ms(limit_ms, request->problem.n_tables);
}

/* Time limit in ms of a search for which no time is left. It is above 0 because
 * a time limit of 0 means no limit. */
#define LEAST_MS 0.001

/* Returns the time limit in ms of a search that must end at the clock time
 * end_ms; 0: no limit. */
static double time_left(double end_ms)
{
    return isfinite(end_ms) ? fmax(end_ms - clock_ms(), LEAST_MS) : 0;
}

static int plan_once(struct plan_request *request, struct err *err)
{
    struct plan plan = {.problem = request->problem};
    struct oracle *oracle = NULL;
    const char *path = cli_string(request->cli, "trace");
    int rc = planning_oracle(&oracle, request->cli, &plan.problem, err) ||
             find_plan(&plan, request, oracle,
                       time_left(end_of_search(request)), err);

    if (!rc) {
        tell_search(&plan);
        rc = plan_answer(&plan, oracle, request, request->cli, err) ||
             (path && write_trace(&request->trace, path, err));
    }
    mem_free(request->trace.points);
    return rc ? -1 : 0;
}

/* --- a range of numbers of GPUs --- */

/* Relative tolerance of `near`: a number of GPUs whose total is within 5 % of
 * the least total counts as about as fast. */
#define NEAR_FRAC 0.05

/* Result for one number of GPUs. If no plan fits, the real numbers after `fits`
 * are NAN. */
struct count {
    /* `fullest`: index of the GPU with the largest share of its memory used. */
    uint32_t n_gpus, n_hosts, fullest;
    bool hosts_assumed, fits;
    const char *hosts;   /* "2x8": hosts x GPUs per host */
    const char *why_not; /* why no plan fits: a sentence; NULL if one fits */
    double total_ms, bound_ms, gap_frac, gpu_ms; /* NAN if not known */
    uint64_t used_bytes, memory_bytes;           /* memory of the fullest GPU */
    double used, used_frac;
    const char *stopped, *inputs_hash;
};
#define COUNT(member) MEMBER_OF(struct count, member)
static const struct figure count_figures[] = {
    {"gpus", "GPUs", 5, 0, FIGURE_PLAIN, COUNT(n_gpus)},
    {NULL, "hosts", 7, 0, FIGURE_PLAIN, COUNT(hosts)},
    {"hosts", NULL, 0, 0, FIGURE_PLAIN, COUNT(n_hosts)},
    {"hosts_assumed", NULL, 0, 0, FIGURE_PLAIN, COUNT(hosts_assumed)},
    {"fits", "fits", -4, 0, FIGURE_PLAIN, COUNT(fits)},
    {"total_ms", "total ms", 10, 4, FIGURE_PLAIN, COUNT(total_ms)},
    {"bound_ms", "bound ms", 10, 4, FIGURE_PLAIN, COUNT(bound_ms)},
    {NULL, "gap %", 6, 2, FIGURE_PERCENT, COUNT(gap_frac)},
    {NULL, "GPU ms", 10, 3, FIGURE_PLAIN, COUNT(gpu_ms)},
    {NULL, "fullest GPU", 11, 0, FIGURE_BYTES, COUNT(used)},
    {NULL, "%", 5, 1, FIGURE_PERCENT, COUNT(used_frac)},
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
    /* Results for the smallest number of GPUs with a plan, for the fastest, and
     * for the smallest that is about as fast (NEAR_FRAC); NULL: no plan fits.
     */
    const struct count *smallest, *fastest, *near;
    struct cost_source cost; /* cost model of the last number that has a plan */
    /* shortage at the last number of GPUs for which no plan fits */
    struct shortage shortage;
    struct arena arena; /* arena for data that live longer than a single plan */
    bool any_assumed;
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
    count->gpu_ms = plan->total_ms * count->n_gpus;
    count->bound_ms = plan->bound_ms;
    if (plan->bound_ms > 0)
        count->gap_frac = plan->total_ms / plan->bound_ms - 1;
    count->fullest = plan_fullest(plan);
    count->used_bytes = plan->devices[count->fullest].memory.total;
    count->memory_bytes = plan->problem.cluster.memory_bytes[count->fullest];
    count->used = (double)count->used_bytes;
    count->used_frac = plan_used_frac(plan, count->fullest);
    count->stopped = arena_strdup(arena, plan->stopped);
    count->inputs_hash = arena_strdup(arena, plan->inputs_hash);
    if (!counts->smallest)
        counts->smallest = count;
    if (!counts->fastest || count->total_ms < counts->fastest->total_ms)
        counts->fastest = count;
}

/* Returns the time limit in ms for the next number of GPUs: an equal share of
 * the time left; 0: no limit. */
static double share_of_time(const struct counts *counts)
{
    const double now_ms = clock_ms();

    return time_left(now_ms + (counts->end_ms - now_ms) /
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
    count->total_ms = count->bound_ms = count->gap_frac = count->gpu_ms = NAN;
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
    rc = find_plan(&plan, request, oracle, share_of_time(counts), err);
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
        cli_printf("smallest that fits: %u %s, %.4f ms\n"
                   "fastest: %u %s, %.4f ms",
                   smallest->n_gpus, gpus(smallest), smallest->total_ms,
                   fastest->n_gpus, gpus(fastest), fastest->total_ms);
        if (counts->near != fastest)
            cli_printf("; %u %s come within %.0f %% of it",
                       counts->near->n_gpus, gpus(counts->near),
                       100 * NEAR_FRAC);
        cli_printf("\n");
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
    /* If no plan fits a number of GPUs, its total is NAN. */
    for (size_t i = 0; counts->fastest && !counts->near; i++)
        if (counts->list[i].total_ms <=
            counts->fastest->total_ms * (1 + NEAR_FRAC))
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

/*
 * Plans for each number of GPUs in the range of --gpus. Prints a line for each
 * number on stdout as soon as its result is known (with --json: all results at
 * the end). Then prints the smallest number for which a plan fits, and the
 * fastest one. The plan of the smallest number is written to --output.
 * --time-limit applies to all numbers together; each gets an equal share of the
 * time left. SIGINT and the end of the time leave out the larger numbers. If no
 * plan fits any number, fails with ERR_NO_PLAN and suggests remedies for the
 * largest number.
 */
static int find_plans_by_count(struct plan_request *request, struct err *err)
{
    struct cli *cli = request->cli;
    const char *path = cli_string(cli, "output");
    struct counts counts = {.request = request,
                            .end_ms = end_of_search(request)};
    int rc;

    if (path && !strcmp(path, "-"))
        return err_usage(err,
                         "option '--output' needs a file, not '-', with a "
                         "range of GPUs: it gets the plan for the fewest GPUs");
    if (planning_counts(&counts.asked, cli, err))
        return -1;
    counts.list = ARENA_NEW(cli->arena, struct count, counts.asked.n);
    progress_start(&counts.progress, "numbers of GPUs", counts.asked.n, false);
    counts.progress.limit_s = time_left(counts.end_ms) / 1000;
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

/* --- the command --- */

static int check_search(const struct cli *cli, struct err *err)
{
    static const struct {
        const char *option, *search;
    } of_one[] = {{"from", "full"},       {"simplest-within", "full"},
                  {"trace", "full"},      {"effort", "full"},
                  {"time-limit", "full"}, {"beam", "reference"},
                  {"depth", "reference"}};
    const char *search = cli_string(cli, "search");

    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
        if (cli_given(cli, of_one[i].option) &&
            strcmp(search, of_one[i].search) != 0)
            return err_usage(err, "option '--%s' needs the %s search, not '%s'",
                             of_one[i].option, of_one[i].search, search);
    if (cli_given(cli, "trace") &&
        (cli_given(cli, "from") || cli_value(cli, "gpus")->is_range))
        return err_usage(err, "option '--trace' needs one full search, without "
                              "a range of GPUs and without '--from'");
    if (cli_given(cli, "move-limit") && !cli_given(cli, "from"))
        return err_usage(
            err, "option '--move-limit' needs '--from', the plan that moves");
    return 0;
}

static int run_plan(struct cli *cli, struct err *err)
{
    struct plan_request request = {.cli = cli};

    if (check_search(cli, err) ||
        (cli_given(cli, "from") &&
         planning_load(&request.from, cli_string(cli, "from"), cli->args[0],
                       cli, err)) ||
        planning_problem(&request.problem, cli->args[0], &request.from.problem,
                         cli, err))
        return -1;
    if (cli_value(cli, "gpus")->is_range)
        return find_plans_by_count(&request, err);
    return plan_once(&request, err);
}

const struct command command_plan = {
    .name = "plan",
    .synopsis = "TABLES --gpus N|N..M [options]",
    .summary = "find the best placement of the tables and report it",
    .options = {count_options, cluster_options, job_options, planning_options,
                replanning_options, progress_options, own_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 1},
    .run = run_plan,
};
