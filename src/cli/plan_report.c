/* SPDX-License-Identifier: MIT */
#include "cli/plan_report.h"

#include "base/clock.h"
#include "core/what_if.h"
#include "costmodel/oracles.h"

#include <string.h>

int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err)
{
    return oracle_open(
        out, strncmp(oracle->name, "torchrec", 8) ? "torchrec" : oracle->name,
        problem, arena, err);
}

int planner_try(struct compare_entry *entry, const struct contender *planner,
                const struct problem *problem,
                const struct contender_inputs *inputs, struct arena *arena,
                struct err *err)
{
    struct plan plan = {.problem = *problem};
    double start_ms = clock_ms();
    int rc = contender_place(&plan, planner, inputs, arena, err);

    *entry = (struct compare_entry){.planner = planner->name,
                                    .search_ms = clock_ms() - start_ms};
    if (!rc) {
        compare_fill(entry, &plan);
        return 0;
    }
    if (err->code != ERR_NO_PLAN && err->code != ERR_USAGE)
        return -1;
    entry->reason = arena_strdup(arena, err->msg);
    *err = (struct err){0};
    return 0;
}

/* Of HugeCTR's, tables times GPUs: up to so many it takes some 40 ms, most of
 * them for the price of its row blocks. */
#define HUGECTR_MAX 2048

struct rivals {
    struct report_rival list[2]; /* TorchRec's, the best greedy one */
    size_t n;                    /* 0 where none could be asked */
};

static struct report_rival as_rival(const char *name,
                                    const struct compare_entry *entry,
                                    const struct plan *plan)
{
    struct compare_entry ours = {0};

    if (!entry->valid)
        return (struct report_rival){name, NAN, NAN};
    compare_fill(&ours, plan);
    return (struct report_rival){name, entry->total_ms,
                                 compare_gain_error(entry, &ours)};
}

static void find_rivals(struct rivals *rivals, const struct plan *plan,
                        const struct oracle *oracle, struct arena *arena)
{
    struct contender_inputs inputs = {
        .oracle = oracle,
        .limit_proposals = 1 + RIVAL_EFFORT / plan->problem.n_tables};
    const size_t size =
        plan->problem.n_tables * plan->problem.cluster.n_devices;
    struct compare_entry best = {0}, torchrec = {0};
    struct oracle *costs = NULL;
    struct err ignored = {0};
    int rc =
        planner_torchrec_costs(&costs, oracle, &plan->problem, arena, &ignored);

    inputs.torchrec = costs;
    for (const struct contender *by = search_contenders; !rc && by->name;
         by++) {
        struct compare_entry entry;

        if (!by->figure && by->rule != rival_torchrec &&
            (by->rule != rival_hugectr || size > HUGECTR_MAX))
            continue;
        rc = planner_try(&entry, by, &plan->problem, &inputs, arena, &ignored);
        if (by->rule == rival_torchrec)
            torchrec = entry;
        else if (entry.valid && (!best.valid || entry.total_ms < best.total_ms))
            best = entry;
    }
    if (!rc) {
        rivals->list[rivals->n++] =
            as_rival(torchrec.cut_short_by ? "TorchRec's planner, cut short"
                                           : "TorchRec's planner",
                     &torchrec, plan);
        rivals->list[rivals->n++] =
            as_rival(best.valid ? arena_printf(arena, "the best greedy (%s)",
                                               best.planner)
                                : "the greedy planners",
                     &best, plan);
    }
    oracle_close(costs);
}

void plan_bound(struct plan *plan, const struct oracle *oracle,
                struct arena *arena)
{
    struct proven proven;

    search_bound(&proven, &plan->problem, oracle, arena);
    if (!(proven.ms > 0) || proven.ms > plan->total_ms * (1 + 1e-9))
        return;
    plan->bound_ms = proven.ms;
    plan->bound_term = proven.term;
    plan->bound_table = proven.table;
}

/* The same plan of a job that does not de-duplicate ids; NAN: it does not. */
static double plain_ms(const struct plan *plan, struct arena *arena)
{
    struct plan plain = *plan;
    struct err err = {0};

    if (plain.problem.job.dedup != DEDUP_IDS || !plan_has_parts(plan))
        return NAN;
    plain.problem.job.dedup = DEDUP_NONE;
    problem_find_hot_rows(&plain.problem, arena);
    return oracle_price_plan(&plain, plan->cost.name, arena, &err)
               ? NAN
               : plain.total_ms;
}

void plan_report(const struct plan *plan, const struct oracle *oracle,
                 bool with_rivals, const struct cli *cli)
{
    struct rivals rivals = {0};

    if (with_rivals)
        find_rivals(&rivals, plan, oracle, cli->arena);
    emit_report(plan,
                &(struct report_options){
                    .n_columns = cli_columns(cli),
                    .waits = oracle_waits(oracle),
                    .without_ms = what_if_without(plan, oracle, cli->arena),
                    .plain_ms = plain_ms(plan, cli->arena),
                    .rivals = rivals.list,
                    .n_rivals = rivals.n},
                cli_text());
}
