/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file_write.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/plan_check.h"
#include "core/plan_moves.h"
#include "costmodel/models/oracle_open.h"
#include "microbench/tasks.h"
#include "search/planners.h"

#define MAX_FILES 1000
#define MAX_TASKS 100000

static const struct option_spec count_options[] = {
    OPTIONS_HEADED(CLUSTER_HEADING),
    {"gpus", 'g', OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs"},
    {0},
};
static const struct option_spec own_options[] = {
    OPTIONS_HEADED(PROBLEM_HEADING),
    {"tasks", 0, OPTION_U64, "N", NULL, 1, MAX_TASKS, NULL,
     "draw this many tasks from each table list"},
    OPTIONS_HEADED(COST_HEADING),
    {"rival-cost", 0, OPTION_STRING, "COST", NULL, 0, 0, NULL,
     "cost model that TorchRec's planner and the published search use"},
    OPTIONS_HEADED(SEARCH_HEADING),
    {"effort", 0, OPTION_U64, "N", NULL, 0, 1e12, NULL,
     "changes that our search tries; default: as for plan"},
    {"time-limit", 0, OPTION_DOUBLE, "S", "0", 0, 1e9, NULL,
     "stop our search of a task after this many seconds; 0: no limit"},
    {"rival-limit", 0, OPTION_DOUBLE, "S", "60", 0, 1e6, NULL,
     "seconds that TorchRec's planner may take for a task; 0: no limit"},
    {"plan", 0, OPTION_STRING, "PLAN", NULL, 0, 0, NULL,
     "also compare this plan, of neuroshard or of TorchRec"},
    OPTIONS_HEADED(OUTPUT_HEADING),
    {"csv", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "write a line per task and planner to this file, as CSV"},
    {0},
};

/* Inputs that all tasks share, and the results of the tasks. */
struct tournament {
    struct cli *cli;
    struct arena *arena;
    struct contender_inputs given;
    struct search_options search;
    struct comparison comparison;
    struct progress progress; /* progress; counts plans */
};

/* Prices the plan of --plan for the same problem that the planners get. The
 * entry is invalid if the plan does not fit this problem. */
static int price_given(struct compare_entry *entry,
                       const struct problem *problem,
                       const struct oracle *oracle,
                       const struct tournament *run, struct err *err)
{
    const char *path = cli_string(run->cli, "plan");
    struct plan plan = {0}, listed = {.problem = *problem};
    const size_t n = problem->n_tables;
    struct table_pieces *found = ARENA_NEW(run->arena, struct table_pieces, n);
    struct err unfit = {0};

    entry->planner = "given";
    if (planning_load(&plan, path, run->cli->args[0], run->cli, err))
        return -1;
    if (plan.problem.cluster.n_devices != problem->cluster.n_devices ||
        plan.problem.n_tables != n)
        return err_set(err, ERR_INPUT,
                       "%s: the plan has %zu tables on %u GPUs, but the "
                       "comparison has %zu on %u",
                       path, plan.problem.n_tables,
                       plan.problem.cluster.n_devices, n,
                       problem->cluster.n_devices);
    table_pieces_find(found, plan.problem.tables, n, &listed);
    for (size_t t = 0; t < n; t++)
        if (!found[t].table)
            return err_input(err, "%s: table '%s' is not in the table list",
                             path, plan.problem.tables[t].name);
    plan.problem.cluster = problem->cluster;
    plan.problem.batch = problem->batch;
    plan.problem.job = problem->job;
    problem_find_hot_rows(&plan.problem, run->arena);
    if (oracle_price_plan(&plan, oracle->cost.name, run->arena, err))
        return -1;
    if (!plan_check(&plan, &unfit))
        compare_fill(entry, &plan);
    else
        entry->reason = arena_strdup(run->arena, unfit.msg);
    return 0;
}

static int run_task(struct tournament *run, const char *name,
                    const struct problem *problem, struct err *err)
{
    struct comparison *comparison = &run->comparison;
    struct compare_task *task = &comparison->tasks[comparison->n_tasks++];
    struct compare_entry *entries =
        ARENA_NEW(run->arena, struct compare_entry, comparison->n_planners);
    const char *rival_cost = cli_string(run->cli, "rival-cost");
    struct oracle *oracle = NULL, *torchrec = NULL;
    struct rival rival;
    size_t n = 0;

    *task = (struct compare_task){.name = name, .entries = entries};
    if (planning_oracle(&oracle, run->cli, problem, err) ||
        (rival_cost
             ? oracle_open(&torchrec, rival_cost, problem, run->arena, err)
             : planner_torchrec_costs(&torchrec, oracle, problem, run->arena,
                                      err)))
        return -1;
    planning_keep_found(&run->search, problem->n_tables);
    run->given.oracle = oracle;
    run->given.torchrec = run->search.torchrec = torchrec;
    run->given.reference = rival_cost ? torchrec : oracle;
    comparison->problem = problem;
    comparison->job = oracle->step ? &problem->job : NULL;
    comparison->cost = oracle->cost;
    for (size_t p = 0; search_contenders[p].name; p++) {
        const bool is_ours = !search_contenders[p + 1].name;

        if (!contender_is_for(&search_contenders[p], problem))
            continue;
        if (is_ours && cli_given(run->cli, "plan") &&
            price_given(&entries[n], problem, oracle, run, err))
            return -1;
        if (rival_ask(&rival, &search_contenders[p], problem, &run->given,
                      run->arena, err))
            return -1;
        entries[is_ours ? comparison->n_planners - 1 : n++] =
            planner_entry(&rival);
        progress_update(&run->progress, run->progress.done + 1);
    }
    return 0;
}

/* Returns true if an interrupt came and at least one task has a result to
 * report. */
static bool is_ended(const struct tournament *run)
{
    return run->comparison.n_tasks && interrupt_requested();
}

static int run_file(struct tournament *run, const char *path, struct err *err)
{
    struct problem *pool = ARENA_NEW(run->arena, struct problem, 1);

    if (planning_problem(pool, path, &(struct problem){0}, run->cli, err))
        return -1;
    if (!cli_given(run->cli, "tasks"))
        return run_task(run, pool->source, pool, err);
    for (uint64_t i = 0; i < cli_u64(run->cli, "tasks") && !is_ended(run);
         i++) {
        struct problem *task = ARENA_NEW(run->arena, struct problem, 1);
        const char *name = arena_printf(run->arena, "%s#%llu", pool->source,
                                        (unsigned long long)i);
        struct rng rng;

        rng_init(&rng, cli_u64(run->cli, "seed"), i);
        run->given.seed = cli_u64(run->cli, "seed") + i;
        if (task_draw(task, pool, &rng, run->arena, err) ||
            run_task(run, name, task, err))
            return -1;
    }
    return 0;
}

static int run_compare(struct cli *cli, struct err *err)
{
    size_t n_tasks = cli_given(cli, "tasks") ? cli_u64(cli, "tasks") : 1;
    struct tournament run = {
        .cli = cli,
        .arena = cli->arena,
        .given = {.search = &run.search,
                  .seed = cli_u64(cli, "seed"),
                  .limit_ms = 1000 * cli_double(cli, "rival-limit")},
        .comparison = {.tasks = ARENA_NEW(cli->arena, struct compare_task,
                                          n_tasks * cli->n_args)}};
    struct comparison *comparison = &run.comparison;
    struct buf csv = {0};
    int rc = 0;

    for (const struct contender *by = search_contenders; by->name; by++)
        comparison->n_planners += !by->needs_tiers || cli_given(cli, "tiers");
    comparison->n_planners += cli_given(cli, "plan");
    comparison->means =
        ARENA_NEW(cli->arena, struct compare_mean, comparison->n_planners);
    if (cli_given(cli, "plan") && (cli->n_args > 1 || cli_given(cli, "tasks")))
        return err_usage(
            err, "option '--plan' needs a single table list and no '--tasks'");
    planning_set_search(&run.search, cli);
    progress_start(&run.progress, "plans",
                   n_tasks * cli->n_args * comparison->n_planners,
                   run.search.is_logged);
    for (size_t i = 0; !rc && i < cli->n_args && !is_ended(&run); i++)
        rc = run_file(&run, cli->args[i], err);
    progress_finish(&run.progress);
    if (!rc) {
        compare_means(comparison);
        cli_print_json(compare_to_json(comparison));
        compare_print(comparison, cli_text());
    }
    if (!rc && cli_given(cli, "csv")) {
        compare_to_csv(comparison, &csv);
        rc = file_write(cli_string(cli, "csv"), csv.data, csv.len, err);
    }
    buf_release(&csv);
    pool_close(run.search.pool);
    return rc;
}

const struct command command_compare = {
    .name = "compare",
    .synopsis = "TABLES... --gpus N [options]",
    .summary = "compare our plan with those of other planners, in one table",
    .example = "neuroshard compare data/tables/criteo_kaggle_26.csv --gpus 4",
    .options = {batch_options, count_options, cluster_options, problem_options,
                job_options, planning_options, own_options, seed_options,
                progress_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, MAX_FILES},
    .run = run_compare,
};
