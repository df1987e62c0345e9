/* SPDX-License-Identifier: MIT */
#include "cli/plan_report.h"

#include "base/cli_answer.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/groups_gain.h"
#include "cli/planning.h"
#include "core/cluster.h"
#include "core/target_rules.h"
#include "core/what_if.h"
#include "costmodel/models/oracle_open.h"
#include "emit/first_screen.h"
#include "emit/placed_tables.h"
#include "emit/plan_diff.h"
#include "emit/report.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "search/planner_offload.h"
#include "search/planner_torchrec.h"
#include "search/planners.h"

#include <math.h>
#include <string.h>

int planner_torchrec_costs(struct oracle **out, const struct oracle *oracle,
                           const struct problem *problem, struct arena *arena,
                           struct err *err)
{
    const char *name = oracle->cost.name;

    return oracle_open(out, strncmp(name, "torchrec", 8) ? "torchrec" : name,
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

/* Returns the name of a rival in the report. */
static const char *rival_name(const struct contender *by,
                              const char *cut_short_by, struct arena *arena)
{
    if (by->rule != rival_torchrec && !by->needs_tiers)
        return arena_printf(arena, "greedy planner '%s'", by->name);
    return cut_short_by ? arena_printf(arena, "%s, cut short", by->author)
                        : by->author;
}

/* Fills the list with the results of TorchRec's planner and of the best greedy
 * planner. With host memory for tables, TorchRec's planner is its scale-up
 * rule, and the other rules for such tables count as greedy planners. */
static void list_rivals(struct compare_entry list[2],
                        const struct rivals *rivals, const struct plan *plan,
                        struct arena *arena)
{
    const bool has_tiers = plan->problem.cluster.host_bytes > 0;
    struct compare_entry ours = {0};

    compare_fill(&ours, plan);
    list[1] = (struct compare_entry){
        .planner = has_tiers ? "the other rules" : "the greedy planners",
        .ratio = NAN};
    for (size_t i = 0; i < N_RIVALS; i++) {
        const struct contender *by = rivals->list[i].by;
        struct compare_entry entry;

        if (!by)
            continue;
        entry = planner_entry(&rivals->list[i]);
        compare_pair(&entry, &ours);
        entry.planner = rival_name(by, entry.cut_short_by, arena);
        if (by->rule == (has_tiers ? rival_scale_up : rival_torchrec))
            list[0] = entry;
        else if ((by->rule || by->figure) && entry.valid &&
                 (!list[1].valid ||
                  entry.step.priced.total_ms < list[1].step.priced.total_ms))
            list[1] = entry;
    }
}

/* Fills list[] with the alternatives of the advice, compared with the plan.
 * Returns their number. */
static size_t list_alternatives(struct report_alternative *list,
                                const struct advice *advice,
                                const struct plan *plan)
{
    const struct priced_parts ours = plan_priced_parts(plan);
    const double host_ms = plan_host(plan).ms, step_ms = plan_step(plan).ms;

    for (size_t i = 0; i < advice->n; i++)
        list[i] = (struct report_alternative){
            .without = advice->list[i].without,
            .ratio = advice->list[i].priced.total_ms / plan->total_ms,
            .error = priced_ratio_error(&advice->list[i].priced, &ours),
            .step_ratio = host_ms > 0 ? advice->list[i].step_ms / step_ms : NAN,
            .keeps_training = advice->list[i].keeps_training,
            .is_chosen = advice->list[i].is_chosen};
    return advice->n;
}

/* Returns the total in ms that the plan would have if the job did not
 * deduplicate ids. Returns NAN if the job does not deduplicate ids anyway, or
 * if the plan has no price. */
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

/* Prints the first screen of a plan, or with --details its whole report. If
 * there is a request, the plan is compared with the plans of TorchRec's planner
 * and of the best greedy planner. After an interrupt all parts of the report
 * that take long are left out. */
static void plan_report(const struct plan *plan, const struct oracle *oracle,
                        const struct plan_request *request,
                        const struct cli *cli)
{
    const bool is_short = interrupt_requested();
    const bool has_rivals = request && !cli_given(cli, "no-rivals");
    struct report_alternative alternatives[MOST_ALTERNATIVES];
    struct compare_entry list[2];
    struct groups_estimate groups;
    struct report_options options = {.is_default_batch =
                                         request && !cli_given(cli, "batch") &&
                                         !cli_given(cli, "batch-per-gpu"),
                                     .path = cli_string(cli, "output"),
                                     .alternatives = alternatives,
                                     .n_columns = cli_columns(cli),
                                     .waits = oracle_waits(oracle),
                                     .rivals = list,
                                     .n_rivals = has_rivals ? 2 : 0};

    if (has_rivals)
        list_rivals(list, &request->rivals, plan, cli->arena);
    if (request)
        options.n_alternatives =
            list_alternatives(alternatives, &request->advice, plan);
    if (request && !is_short && plan_groups_estimate(&groups, plan, cli->arena))
        options.groups = &groups;
    if (!cli_given(cli, "details") && !cli_given(cli, "wide")) {
        emit_first_screen(plan, &options, cli_text());
        return;
    }
    options.without_ms =
        is_short ? NULL : what_if_without(plan, oracle, cli->arena);
    options.plain_ms = is_short ? NAN : plain_ms(plan, cli->arena);
    emit_report(plan, &options, cli_text());
}

/* --- the report of re-planning --- */

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Prints the cost of keeping the current plan, and the cost of the new one. */
static void print_gain(const struct plan_request *request,
                       const struct plan *plan)
{
    const struct replan_report *report = &request->replanned;
    const struct replan_point *standing = &report->standing;

    cli_printf("from    %s: %.4f ms as it stands",
               cli_shown(request->cli, "from"), standing->total_ms);
    if (standing->moved_bytes)
        cli_printf(" but for %s that would move",
                   TEXT_BYTES(standing->moved_bytes));
    if (!report->standing_fits)
        cli_printf(", which does not fit");
    cli_printf(", %.4f ms now", plan->total_ms);
    if (standing->total_ms > 0)
        cli_printf(", %+.2f %%",
                   100 * (plan->total_ms / standing->total_ms - 1));
    cli_printf("\n");
}

/* Prints the GPU of the new plan, and that of the current plan if it
 * differs. */
static void print_gpu(const struct plan_request *request,
                      const struct plan *plan)
{
    const char *gpu = plan->problem.cluster.gpu;
    const char *old = request->from.problem.cluster.gpu;

    if (!old)
        return;
    cli_printf("GPU     %s, ", gpu);
    if (strcmp(gpu, old) != 0)
        cli_printf("instead of %s as in %s\n", old,
                   cli_shown(request->cli, "from"));
    else
        cli_printf("as in %s\n", cli_shown(request->cli, "from"));
}

static void print_moves(const struct plan_request *request,
                        const struct plan *plan)
{
    struct plan_moves moves;
    size_t n_tables = 0;

    plan_moves_find(&moves, &request->from, plan, request->cli->arena);
    for (size_t t = 0; t < moves.n_tables; t++)
        n_tables += moves.tables[t].bytes.moved > 0;
    cli_printf("moves   %s in %zu piece%s of %zu table%s; %zu table%s new; %s "
               "stay\n",
               TEXT_BYTES(moves.bytes.moved), moves.n_moves,
               plural(moves.n_moves), n_tables, plural(n_tables),
               moves.n_fates[FATE_ADDED],
               moves.n_fates[FATE_ADDED] == 1 ? " is" : "s are",
               TEXT_BYTES(moves.bytes.kept));
}

/* Cost of rules that is reported as nothing, as a share. */
#define LEAST_RULES_FRAC 5e-4

/* Prints, for --reshardable, the most that its rules may cost. A search without
 * them would take longer, so only the lower bound is at hand, if there is
 * one. */
static void print_reshardable(const struct plan *plan)
{
    const double gain_frac = 1 - plan->bound_ms / plan->total_ms;

    cli_printf("reshard TorchRec can make all moves in the running job");
    if (plan->bound_ms > 0 && gain_frac > LEAST_RULES_FRAC)
        cli_printf("; other cuts save at most %.2g %% of the GPU work",
                   100 * gain_frac);
    else if (plan->bound_ms > 0)
        cli_printf("; other cuts save nothing");
    cli_printf("\n");
}

/* Lists the GPUs that keep more bytes than their memory less the reserve. */
static void print_excess(const struct cluster *asked,
                         const struct cluster *taken)
{
    for (uint32_t r = 0; r < asked->n_devices; r++)
        if (taken->reserve_bytes[r] < asked->reserve_bytes[r])
            cli_printf(
                "over    GPU %u holds %s more than its reserve leaves, "
                "as it does now\n",
                r,
                TEXT_BYTES(asked->reserve_bytes[r] - taken->reserve_bytes[r]));
}

/* Returns a limit to suggest to the user. Even after rounding to the few digits
 * that are printed, it is at least `bytes`. */
static double limit_of(uint64_t bytes)
{
    double limit = (double)bytes;
    uint64_t read = 0;

    while (text_to_bytes(TEXT_BYTES(limit), &read) && read < bytes)
        limit *= 1.0005;
    return limit;
}

/* Prints, for several shares of the gain of the new plan, the smallest
 * migration that brings at least this share of the gain. */
static void print_front(const struct replan_report *report)
{
    static const double shares[] = {0, 0.25, 0.5, 0.75, 0.9};
    const struct replan_point *front = report->front;
    size_t last = report->n_front - 1, i = 0;
    double gain_ms = front[0].total_ms - front[last].total_ms;

    if (!last)
        return;
    cli_printf("\nwith --move-limit        step   of the gain\n");
    for (size_t pos = 0; pos < last; pos++) {
        double share = (front[0].total_ms - front[pos].total_ms) / gain_ms;

        if (i == sizeof shares / sizeof *shares || share < shares[i])
            continue;
        while (i < sizeof shares / sizeof *shares && share >= shares[i])
            i++;
        cli_printf("%17s %8.4f ms %10.0f %%\n",
                   TEXT_BYTES(limit_of(front[pos].moved_bytes)),
                   front[pos].total_ms, 100 * share);
    }
}

/* Prints the cost of keeping the current plan and of the new one, the
 * migration, and the GPUs that hold more bytes than their memory less the
 * requested reserve. If the migration has no limit, also prints the effect of
 * some limits. */
static void replanning_report(const struct plan_request *request,
                              const struct plan *plan)
{
    cli_printf("\n");
    print_gpu(request, plan);
    print_gain(request, plan);
    print_moves(request, plan);
    if (cli_given(request->cli, "reshardable"))
        print_reshardable(plan);
    print_excess(&request->problem.cluster, &plan->problem.cluster);
    if (!cli_given(request->cli, "move-limit"))
        print_front(&request->replanned);
}

static json_t *point_to_json(const struct replan_point *point)
{
    return json_pack("{s:o, s:o}", "moved_bytes",
                     json_whole(point->moved_bytes), "total_ms",
                     json_real_or_null(point->total_ms));
}

/* Returns the report of re-planning, and every move. */
static json_t *movement_to_json(const struct plan_request *request,
                                const struct plan *plan)
{
    struct cli *cli = request->cli;
    const struct replan_report *report = &request->replanned;
    json_t *front = json_array(), *movement;
    struct plan_moves moves;

    plan_moves_find(&moves, &request->from, plan, cli->arena);
    for (size_t i = 0; i < report->n_front; i++)
        json_array_append_new(front, point_to_json(&report->front[i]));
    movement = json_pack(
        "{s:s, s:b, s:o, s:o, s:b, s:o}", "from", cli_shown(cli, "from"),
        "reshardable", cli_given(cli, "reshardable"), "limit_bytes",
        cli_given(cli, "move-limit") ? json_whole(cli_u64(cli, "move-limit"))
                                     : json_null(),
        "standing", point_to_json(&report->standing), "standing_fits",
        report->standing_fits, "front", front);
    json_object_update_new(movement, plan_moves_to_json(&moves));
    return movement;
}

/* Returns the share of the cheapest plan without rules that the rules of the
 * target cost, at least 0. */
static double rules_frac(const struct target_price *price)
{
    return fmax(price->own_ms / price->any_ms - 1, 0);
}

static void print_target(const struct target_price *price,
                         const struct plan *plan)
{
    const char *name = problem_target(&plan->problem)->name;

    if (!(price->any_ms > 0))
        return;
    if (rules_frac(price) > LEAST_RULES_FRAC)
        cli_printf("target  %s: its rules cost %.2g %% of the GPU work; "
                   "without them %.4g ms\n",
                   name, 100 * rules_frac(price), price->any_ms);
    else
        cli_printf("target  %s: its rules cost nothing; no cheaper plan was "
                   "found without them\n",
                   name);
}

/* Returns the alternatives of a plan as a JSON list. */
static json_t *alternatives_to_json(const struct advice *advice)
{
    json_t *list = json_array();

    for (size_t i = 0; i < advice->n; i++) {
        const struct alternative *one = &advice->list[i];

        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:b}", "without", one->without,
                            "total_ms", json_real_or_null(one->priced.total_ms),
                            "step_ms", json_real_or_null(one->step_ms),
                            "chosen", one->is_chosen));
    }
    return list;
}

/* Returns the other planners as a JSON list, without the wall-clock times of
 * their searches, so that equal plans give equal bytes. */
static json_t *rivals_to_json(const struct plan_request *request,
                              const struct plan *plan)
{
    struct compare_entry list[2];
    json_t *rows, *row;
    size_t i;

    list_rivals(list, &request->rivals, plan, request->cli->arena);
    rows = compare_entries_to_json(list, 2);
    json_array_foreach(rows, i, row)
    {
        json_object_del(row, "search_ms");
    }
    return rows;
}

/* Returns the plan as a JSON document, with more of each shard, the other
 * planners, the alternatives and, for --from, the movement. */
static json_t *request_to_json(const struct plan_request *request,
                               const struct plan *plan)
{
    struct cli *cli = request->cli;
    json_t *root = plan_document(plan);

    placed_add_json(json_object_get(root, "shards"), plan);
    if (!cli_given(cli, "no-rivals"))
        json_object_set_new(root, "rivals", rivals_to_json(request, plan));
    if (request->price.any_ms > 0)
        json_object_set_new(root, "target_price",
                            json_pack("{s:f, s:f, s:f}", "own_ms",
                                      request->price.own_ms, "any_ms",
                                      request->price.any_ms, "rules_frac",
                                      rules_frac(&request->price)));
    if (cli_given(cli, "from"))
        json_object_set_new(root, "movement", movement_to_json(request, plan));
    else if (request->advice.cheapest.total_ms > 0) {
        json_object_set_new(root, "cheapest_ms",
                            json_real(request->advice.cheapest.total_ms));
        json_object_set_new(root, "alternatives",
                            alternatives_to_json(&request->advice));
    }
    if (request->groups_tried)
        json_object_set(root, "groups_tried", request->groups_tried);
    return root;
}

int plan_answer(const struct plan *plan, const struct oracle *oracle,
                const struct plan_request *request, struct cli *cli,
                struct err *err)
{
    const char *path = cli_string(cli, "output");
    const bool is_stdout = path && !strcmp(path, "-");
    const bool is_from = request && cli_given(cli, "from");

    if (path && !is_stdout && plan_save(plan, path, err))
        return -1;
    /* If the plan was written to a file, it is safe. A report is useless until
     * it is complete. So only a plan on standard output needs protection from
     * an interrupt. */
    interrupt_keep(is_stdout);
    if (cli_given(cli, "json") && request)
        cli_print_text(
            plan_document_text(request_to_json(request, plan), cli->arena));
    else if (is_stdout || cli_given(cli, "json"))
        cli_print_text(plan_to_json(plan, cli->arena));
    else {
        plan_report(plan, oracle, request, cli);
        if (request)
            print_target(&request->price, plan);
        if (request && cli_given(cli, "tables"))
            placed_print(plan, ALL_GPUS, cli_columns(cli), cli_text());
        if (is_from)
            replanning_report(request, plan);
    }
    return 0;
}
