/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/planning.h"
#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec compare_options[] = {
    PLANNING_OPTIONS,
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL, "print the table as JSON"},
    {0},
};

/* One line of the table. */
struct entry {
    const char *name;
    bool valid;
    const char *reason; /* where not valid */
    double total_ms, max_over_mean, compute_ms, fwd_comm_ms, bwd_comm_ms;
    double memory_frac; /* of the fullest GPU */
    double search_ms;
};

static void fill_entry(struct entry *entry, const struct plan *plan)
{
    uint32_t n = plan->problem.cluster.n_devices;
    double busy_sum = 0, busy_max = 0;

    entry->valid = true;
    entry->total_ms = plan->total_ms;
    for (uint32_t r = 0; r < n; r++) {
        const struct device_cost *device = &plan->devices[r];
        double busy = device->compute_ms + device->bwd_comm_ms;
        double full = (double)device->memory.total /
                      (double)plan->problem.cluster.memory_bytes[r];

        busy_sum += busy;
        if (busy > busy_max)
            busy_max = busy;
        if (device->compute_ms > entry->compute_ms)
            entry->compute_ms = device->compute_ms;
        if (device->bwd_comm_ms > entry->bwd_comm_ms)
            entry->bwd_comm_ms = device->bwd_comm_ms;
        if (device->fwd_comm_ms > entry->fwd_comm_ms)
            entry->fwd_comm_ms = device->fwd_comm_ms;
        if (full > entry->memory_frac)
            entry->memory_frac = full;
    }
    entry->max_over_mean = busy_sum > 0 ? busy_max * n / busy_sum : 1;
}

/* Takes what a planner returned; a plan that does not fit is a line in the
 * table, anything else ends the command. */
static int judge(struct entry *entry, struct plan *plan, int rc,
                 double start_ms, const struct oracle *oracle,
                 struct arena *arena, struct err *err)
{
    entry->search_ms = clock_ms() - start_ms;
    if (!rc)
        rc = planning_finish(plan, oracle, arena, err);
    if (!rc) {
        fill_entry(entry, plan);
        return 0;
    }
    if (err->code != ERR_NO_PLAN)
        return -1;
    entry->reason = arena_strdup(arena, err->msg);
    *err = (struct err){0};
    return 0;
}

static int run_baselines(struct entry *entries, const struct problem *problem,
                         const struct oracle *oracle, struct cli *cli,
                         struct err *err)
{
    const struct baseline *baseline = search_baselines();

    for (; baseline->name; baseline++, entries++) {
        struct plan plan = {.problem = *problem};
        double start_ms = clock_ms();
        int rc;

        entries->name = baseline->name;
        rc = baseline->place(&plan, oracle, cli_u64(cli, "seed"),
                             cli_arena(cli), err);
        if (judge(entries, &plan, rc, start_ms, oracle, cli_arena(cli), err))
            return -1;
    }
    return 0;
}

static int run_ours(struct entry *entry, const struct problem *problem,
                    const struct oracle *oracle, struct cli *cli,
                    struct err *err)
{
    struct plan plan = {.problem = *problem};
    struct search_options options;
    double start_ms = clock_ms();
    int rc;

    entry->name = "neuroshard";
    search_options_init(&options);
    options.seed = cli_u64(cli, "seed");
    options.pool = pool_open(
        cli_given(cli, "threads") ? (unsigned)cli_u64(cli, "threads") : 0);
    rc = search_reference(&plan, oracle, &options, cli_arena(cli), err);
    pool_close(options.pool);
    return judge(entry, &plan, rc, start_ms, oracle, cli_arena(cli), err);
}

static void print_table(const struct entry *entries, size_t n,
                        const struct problem *problem,
                        const struct oracle *oracle)
{
    const struct entry *ours = &entries[n - 1];

    printf("%zu tables on %u GPUs, batch %llu, cost model %s (%s)\n\n",
           problem->n_tables, problem->cluster.n_devices,
           (unsigned long long)problem->batch, oracle->name,
           cost_basis_name(oracle->basis));
    printf("%-12s %10s %8s %10s %11s %11s %9s %9s %10s\n", "planner",
           "total ms", "x ours", "compute ms", "bwd comm ms", "fwd comm ms",
           "max/mean", "memory %", "search ms");
    for (size_t i = 0; i < n; i++) {
        const struct entry *entry = &entries[i];

        if (!entry->valid) {
            printf("%-12s does not fit: %s\n", entry->name, entry->reason);
            continue;
        }
        printf("%-12s %10.3f ", entry->name, entry->total_ms);
        if (ours->valid)
            printf("%8.3f ", entry->total_ms / ours->total_ms);
        else
            printf("%8s ", "-");
        printf("%10.3f %11.3f %11.3f %9.3f %9.1f %10.2f\n", entry->compute_ms,
               entry->bwd_comm_ms, entry->fwd_comm_ms, entry->max_over_mean,
               100 * entry->memory_frac, entry->search_ms);
    }
    fputs("\nparts are those of the slowest GPU in each; fwd comm holds "
          "waiting; max/mean is of compute + bwd comm\n",
          stdout);
}

static void print_json(const struct entry *entries, size_t n,
                       const struct oracle *oracle)
{
    json_t *rows = json_array();
    json_t *root = json_pack("{s:s, s:s, s:s, s:o}", "cost_model", oracle->name,
                             "hash", oracle->hash, "basis",
                             cost_basis_name(oracle->basis), "planners", rows);
    char *text;

    for (size_t i = 0; i < n; i++) {
        const struct entry *entry = &entries[i];
        json_t *row = json_pack("{s:s, s:b}", "planner", entry->name, "valid",
                                entry->valid);

        if (entry->valid)
            json_object_update_new(
                row,
                json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total_ms",
                          entry->total_ms, "compute_ms", entry->compute_ms,
                          "bwd_comm_ms", entry->bwd_comm_ms, "fwd_comm_ms",
                          entry->fwd_comm_ms, "max_over_mean",
                          entry->max_over_mean, "memory_frac",
                          entry->memory_frac, "search_ms", entry->search_ms));
        else
            json_object_set_new(row, "reason", json_string(entry->reason));
        json_array_append_new(rows, row);
    }
    text = json_to_text(root);
    fputs(text, stdout);
    free(text);
    json_decref(root);
}

static size_t count_baselines(void)
{
    size_t n = 0;

    while (search_baselines()[n].name)
        n++;
    return n;
}

static int run_compare(struct cli *cli, struct err *err)
{
    size_t n = count_baselines() + 1;
    struct entry *entries = ARENA_NEW(cli_arena(cli), struct entry, n);
    struct problem problem;
    struct oracle *oracle = NULL;
    int rc = -1;

    if (planning_problem(&problem, cli, err))
        goto out;
    if (planning_oracle(&oracle, cli, &problem, err))
        goto out;
    if (run_baselines(entries, &problem, oracle, cli, err))
        goto out;
    if (run_ours(&entries[n - 1], &problem, oracle, cli, err))
        goto out;
    if (cli_flag(cli, "json"))
        print_json(entries, n, oracle);
    else
        print_table(entries, n, &problem, oracle);
    rc = 0;
out:
    oracle_close(oracle);
    return rc;
}

const struct command command_compare = {
    .name = "compare",
    .synopsis = "TABLES --gpus N [options]",
    .summary = "our plan beside the published greedy baselines, in one table",
    .options = compare_options,
    .min_args = 1,
    .max_args = 1,
    .run = run_compare,
};
