/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"

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

struct compare_entry planner_entry(const struct rival *rival)
{
    struct compare_entry entry = {.planner = rival->by->name,
                                  .search_ms = rival->plan.search_ms,
                                  .reason = rival->why_not};

    if (!rival->why_not)
        compare_fill(&entry, &rival->plan);
    return entry;
}

/* TorchRec's, and the best greedy one. */
static void list_rivals(struct compare_entry list[2],
                        const struct rivals *rivals, const struct plan *plan,
                        struct arena *arena)
{
    struct compare_entry ours = {0};

    compare_fill(&ours, plan);
    list[1] =
        (struct compare_entry){.planner = "the greedy planners", .ratio = NAN};
    for (size_t i = 0; i < N_RIVALS; i++) {
        const struct contender *by = rivals->of[i].by;
        struct compare_entry entry = planner_entry(&rivals->of[i]);

        compare_pair(&entry, &ours);
        if (by->rule == rival_torchrec) {
            list[0] = entry;
            list[0].planner = entry.cut_short_by
                                  ? "TorchRec's planner, cut short"
                                  : "TorchRec's planner";
        } else if ((by->rule || by->figure) && entry.valid &&
                   (!list[1].valid || entry.total_ms < list[1].total_ms)) {
            list[1] = entry;
            list[1].planner =
                arena_printf(arena, "the best greedy (%s)", entry.planner);
        }
    }
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

bool plan_is_printed(const struct cli *cli)
{
    const char *path = cli_string(cli, "output");

    return cli_given(cli, "json") || (path && !strcmp(path, "-"));
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
                 const struct rivals *rivals, const struct cli *cli)
{
    struct compare_entry list[2];

    if (rivals)
        list_rivals(list, rivals, plan, cli->arena);
    emit_report(plan,
                &(struct report_options){
                    .n_columns = cli_columns(cli),
                    .waits = oracle_waits(oracle),
                    .without_ms = what_if_without(plan, oracle, cli->arena),
                    .plain_ms = plain_ms(plan, cli->arena),
                    .rivals = list,
                    .n_rivals = rivals ? 2 : 0},
                cli_text());
}
