/* SPDX-License-Identifier: MIT */
#include "cli/plan_groups.h"

#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/plan_grid.h"
#include "cli/plan_search.h"
#include "cli/planning.h"
#include "core/cluster.h"
#include "core/host.h"
#include "core/plan_price.h"
#include "core/sharding_groups.h"
#include "emit/groups_line.h"
#include "search/bound.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Largest number of groups. */
#define MOST_GROUPS 65536
/* Steps from one sync to the next for which the plans of the table are
 * searched, so that they have few bytes to sync. */
#define TABLE_INTERVAL 1000

const struct option_spec groups_options[] = {
    OPTIONS_HEADED(JOB_HEADING),
    {"groups", 0, OPTION_STRING, "N|auto", NULL, 0, 0, NULL,
     "sharding groups of TorchRec's DMPCollection, each with a copy of the "
     "tables; auto: the fastest number; default: 1"},
    {"groups-layout", 0, OPTION_CHOICE, "HOW", "any", 0, 0,
     "any|contiguous|strided",
     "ranks of a group: consecutive ones, so that exchanges are fast, or every "
     "G-th one, so that syncs are; any: the faster of the two"},
    {"sync-every", 0, OPTION_U64, "K", NULL, 1, GROUPS_MAX_SYNC_EVERY, NULL,
     "with --groups: steps from one average of the copies to the next"},
    {0},
};

/* --- options --- */

static bool is_auto(const struct cli *cli)
{
    return !strcmp(cli_string(cli, "groups"), "auto");
}

/* Returns the number of --groups; 0: auto. */
static uint32_t asked_count(const struct cli *cli)
{
    uint64_t n = 0;

    if (!is_auto(cli))
        (void)text_to_u64(cli_string(cli, "groups"), &n);
    return (uint32_t)n;
}

bool plan_has_groups(const struct cli *cli)
{
    return cli_given(cli, "groups") && asked_count(cli) != 1;
}

int plan_groups_check(struct cli *cli, struct err *err)
{
    static const char *const excluded[] = {"from", "trace"};
    const bool is_given = cli_given(cli, "groups");
    uint64_t n = 0;

    if (!is_given &&
        (cli_given(cli, "sync-every") || cli_given(cli, "groups-layout")))
        return err_usage(err, "option '--%s' needs '--groups'",
                         cli_given(cli, "sync-every") ? "sync-every"
                                                      : "groups-layout");
    if (!is_given)
        return 0;
    if (!is_auto(cli) &&
        (!text_to_u64(cli_string(cli, "groups"), &n) || !n || n > MOST_GROUPS))
        return err_usage(err,
                         "option '--groups' takes 'auto' or a number from 1 to "
                         "%u, not '%s'",
                         MOST_GROUPS, cli_shown(cli, "groups"));
    if (!plan_has_groups(cli))
        return 0;
    if (plan_has_grid(cli))
        return err_usage(
            err, "option '--groups' needs one number of GPUs of one kind");
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
        if (cli_given(cli, excluded[i]))
            return err_usage(err,
                             "option '--%s' cannot be given with '--groups'",
                             excluded[i]);
    if (is_auto(cli) && !cli_given(cli, "sync-every") &&
        cli_given(cli, "output"))
        return err_usage(err, "option '--output' needs '--sync-every', as the "
                              "best number of groups depends on it");
    return 0;
}

/* --- one number of groups --- */

/* A number and layout of groups, and its plan. */
struct option_of_groups {
    uint32_t count;
    enum groups_layout layout;
    struct plan_request request; /* with the problem of one group */
    struct plan plan;
    struct oracle *oracle;
    double step_ms; /* NAN: there is no plan */
    bool is_probed; /* the plan is that of a short search */
    /* reason why there is no plan, or why it is that of a short search */
    const char *why_not;
};

/* All of them, the fewest groups first. */
struct options_of_groups {
    struct option_of_groups *list; /* [n], in the arena of the command */
    size_t n;
    struct option_of_groups *best; /* NULL: there is no plan */
    double least_host_ms; /* host time of the probed plan with the least */
    double end_ms;     /* clock time at which --time-limit ends, or INFINITY */
    bool has_interval; /* --sync-every is given */
};

/* Checks that the number of groups fits the cluster in the layout (-1: in one
 * of them). */
static int check_asked(const struct problem *whole, uint32_t count, int layout,
                       const struct cli *cli, struct err *err)
{
    const bool is_strided =
        layout == GROUPS_STRIDED ||
        (layout < 0 &&
         !sharding_groups_fit(&whole->cluster, count, GROUPS_CONTIGUOUS) &&
         sharding_groups_fit(&whole->cluster, count, GROUPS_STRIDED));
    struct problem ignored;

    return sharding_groups_derive(
        &ignored, whole, count, is_strided ? GROUPS_STRIDED : GROUPS_CONTIGUOUS,
        cli->arena, err);
}

/* Lists the numbers and layouts of groups that --groups asks for. */
static int list_options(struct options_of_groups *all,
                        struct plan_request *request, struct err *err)
{
    static const enum groups_layout layouts[] = {GROUPS_CONTIGUOUS,
                                                 GROUPS_STRIDED};
    struct cli *cli = request->cli;
    const struct cluster *cluster = &request->problem.cluster;
    const uint32_t asked = asked_count(cli);
    const bool has_one = !asked || !cli_given(cli, "sync-every");
    const int layout = cli_choice(cli, "groups-layout") - 1; /* -1: any */

    if (asked && check_asked(&request->problem, asked, layout, cli, err))
        return -1;
    if (sharding_groups_check(&request->problem, err))
        return -1;
    all->list = ARENA_NEW(cli->arena, struct option_of_groups,
                          2 * (size_t)cluster->n_devices);
    for (uint32_t n = 1; n <= cluster->n_devices; n++)
        for (size_t i = 0; i < 2 && (n > 1 || !i); i++) {
            const bool is_asked =
                n == 1 ? has_one
                       : (!asked || n == asked) &&
                             (layout < 0 || layout == (int)layouts[i]);
            struct err why = {0};

            if (!is_asked || !sharding_groups_fit(cluster, n, layouts[i]) ||
                (!asked && request->problem.batch % n))
                continue;
            all->list[all->n].count = n;
            all->list[all->n].layout = layouts[i];
            all->list[all->n].step_ms = NAN;
            all->list[all->n].request = *request;
            if (!sharding_groups_derive(&all->list[all->n].request.problem,
                                        &request->problem, n, layouts[i],
                                        cli->arena, &why))
                all->n++;
            else if (asked) {
                *err = why;
                return -1;
            }
        }
    return 0;
}

static const struct option_of_groups *
one_group(const struct options_of_groups *all)
{
    return all->n && all->list[0].count == 1 && !isnan(all->list[0].step_ms)
               ? &all->list[0]
               : NULL;
}

/* Returns whether no plan of these groups can be better than the best so far:
 * with --sync-every, than that of any groups, and without it, than that of one
 * group, however seldom the groups sync. */
static bool is_beaten(const struct options_of_groups *all,
                      struct option_of_groups *option)
{
    const struct option_of_groups *best =
        all->has_interval ? all->best : one_group(all);
    struct proven proven;

    if (!best || (!all->has_interval && asked_count(option->request.cli)))
        return false;
    search_bound(&proven, &option->request.problem, option->oracle,
                 option->request.cli->arena);
    if (!(proven.ms > (1 - GROUPS_LEAST_GAIN) * best->plan.total_ms))
        return false;
    option->why_not = all->has_interval
                          ? "its lower bound is above the best plan"
                          : "gains nothing, however seldom it syncs";
    return true;
}

/* Part of the changes of a search that a short search tries before it, to find
 * the numbers of groups that are worth the whole search. Least number of
 * changes of a search that has a short one before it. */
#define PROBE_FRAC 0.05
#define LEAST_PROBED 1000000
/* Changes that a search tries by default, at most. */
#define DEFAULT_EFFORT 2400000
/* Largest share by which a search is taken to lower the GPU work that the short
 * one found. On NVIDIA's medium list x 16 it is 2 %. */
#define PROBE_GAIN 0.03
/* Part of a time limit for all short searches. */
#define PROBE_TIME_FRAC 0.3

/* Returns the number of changes that a short search tries; 0: there are no
 * short searches. */
static uint64_t probe_effort(const struct cli *cli)
{
    const uint64_t effort =
        cli_given(cli, "effort") ? cli_u64(cli, "effort") : DEFAULT_EFFORT;

    return effort >= LEAST_PROBED && !strcmp(cli_string(cli, "search"), "full")
               ? (uint64_t)(PROBE_FRAC * (double)effort)
               : 0;
}

/* Searches a plan of the problem of an option. */
static int search_one(const struct options_of_groups *all,
                      struct option_of_groups *option,
                      const struct oracle *oracle, struct err *err)
{
    struct plan_request *request = &option->request;
    const double now_ms = clock_ms();
    const double share_ms =
        (all->end_ms - now_ms) / (double)(all->list + all->n - option);

    request->progress =
        arena_printf(request->cli->arena, "%u groups", option->count);
    option->plan = (struct plan){.problem = request->problem};
    return plan_search(&option->plan, request, oracle,
                       plan_search_time_left(now_ms + share_ms), err);
}

/* Searches a plan for the table, with few bytes to sync, and prices it without
 * syncs. */
static int search_for_table(const struct options_of_groups *all,
                            struct option_of_groups *option, struct err *err)
{
    struct cli *cli = option->request.cli;
    struct problem *problem = &option->request.problem;
    struct oracle *oracle;
    int rc;

    problem->groups.sync_every = option->count > 1 ? TABLE_INTERVAL : 0;
    rc = planning_oracle(&oracle, cli, problem, err) ||
         search_one(all, option, oracle, err);
    problem->groups.sync_every = 0;
    option->plan.problem.groups.sync_every = 0;
    return rc ? -1 : plan_price(&option->plan, option->oracle, cli->arena, err);
}

static int plan_one(const struct options_of_groups *all,
                    struct option_of_groups *option, struct err *err)
{
    struct cli *cli = option->request.cli;
    int rc;

    if (!option->is_probed) {
        if (planning_oracle(&option->oracle, cli, &option->request.problem,
                            err))
            return -1;
        if (is_beaten(all, option))
            return 0;
    }
    option->is_probed = false;
    option->step_ms = NAN;
    rc = all->has_interval ? search_one(all, option, option->oracle, err)
                           : search_for_table(all, option, err);
    if (!rc) {
        option->step_ms = plan_step(&option->plan).ms;
        return 0;
    }
    if (err->code != ERR_NO_PLAN ||
        (!all->best && option + 1 == all->list + all->n))
        return -1;
    option->why_not = arena_strdup(cli->arena, err->msg);
    *err = (struct err){0};
    return 0;
}

/* Returns whether an option is better than the best one with no more groups. */
static bool is_better(const struct option_of_groups *option,
                      const struct option_of_groups *best)
{
    const double least =
        best && best->count < option->count ? GROUPS_LEAST_GAIN : 0;

    return !isnan(option->step_ms) &&
           (!best || option->step_ms < (1 - least) * best->step_ms);
}

/* --- short searches --- */

/* Finds a plan of each option by a short search. */
static int probe_all(struct options_of_groups *all, uint64_t effort,
                     struct err *err)
{
    const double begin_ms = clock_ms();
    const double share_ms =
        PROBE_TIME_FRAC * (all->end_ms - begin_ms) / (double)all->n;

    for (size_t i = 0; i < all->n && !interrupt_requested(); i++) {
        struct option_of_groups *option = &all->list[i];
        struct plan_request *request = &option->request;
        const double end_ms = begin_ms + share_ms * (double)(i + 1);

        if (planning_oracle(&option->oracle, request->cli, &request->problem,
                            err))
            return -1;
        if (is_beaten(all, option))
            continue;
        request->progress =
            arena_printf(request->cli->arena, "%u groups", option->count);
        option->plan = (struct plan){.problem = request->problem};
        if (plan_probe(&option->plan, request, option->oracle, effort,
                       plan_search_time_left(end_ms), err)) {
            if (err->code != ERR_NO_PLAN)
                return -1;
            *err = (struct err){0}; /* the whole search gives the reason */
            continue;
        }
        option->is_probed = true;
        option->step_ms = plan_step(&option->plan).ms;
        all->least_host_ms =
            fmin(all->least_host_ms, plan_step_parts(&option->plan).host_ms);
        if (is_better(option, all->best))
            all->best = option;
    }
    return 0;
}

/* Returns whether the whole search of a probed option would not change the
 * choice, even if it lowered the GPU work by PROBE_GAIN, and the host's time to
 * that of the plan with the least. Its plan has the least GPU work, whatever
 * its kinds of sharding, but each kind takes time of the host. */
static bool is_far(const struct options_of_groups *all,
                   const struct option_of_groups *option)
{
    const struct option_of_groups *best = all->best;
    struct option_of_groups least = *option;

    if (!option->is_probed || !best)
        return false;
    least.step_ms = step_with_host_ms((1 - PROBE_GAIN) * option->plan.total_ms,
                                      all->least_host_ms);
    return option->count < best->count ? is_better(best, &least)
                                       : !is_better(&least, best);
}

/* --- all numbers of groups --- */

/* Chooses the best option of those with a whole search. If N groups are asked
 * for, the plan of one group is only for the table. */
static void choose(struct options_of_groups *all, uint32_t asked)
{
    all->best = NULL;
    for (size_t i = 0; i < all->n; i++) {
        struct option_of_groups *option = &all->list[i];

        if (!option->is_probed && (!asked || option->count == asked) &&
            is_better(option, all->best))
            all->best = option;
    }
}

/* Searches the plan of an option, unless it is known not to be the best. */
static int plan_unless_far(struct options_of_groups *all,
                           struct option_of_groups *option, uint32_t asked,
                           struct err *err)
{
    if (option->why_not)
        return 0;
    if (interrupt_requested() && all->best)
        option->why_not = "interrupted";
    else if (is_far(all, option))
        option->why_not = "a short search found it slower";
    else if (plan_one(all, option, err))
        return -1;
    choose(all, asked);
    return 0;
}

/* Searches the plans of all options, the most promising one first. */
static int plan_all(struct options_of_groups *all, struct plan_request *request,
                    struct err *err)
{
    const uint32_t asked = asked_count(request->cli);
    const uint64_t effort =
        all->has_interval && all->n > 1 ? probe_effort(request->cli) : 0;
    struct option_of_groups *first;

    all->end_ms = plan_search_end(request);
    all->least_host_ms = INFINITY;
    if (effort && probe_all(all, effort, err))
        return -1;
    first = all->best;
    all->best = NULL;
    if (first && plan_unless_far(all, first, asked, err))
        return -1;
    for (size_t i = 0; i < all->n; i++)
        if (&all->list[i] != first &&
            plan_unless_far(all, &all->list[i], asked, err))
            return -1;
    return 0;
}

/* --- the table of groups and intervals --- */

static const uint64_t intervals[] = {1, 100, 1000, 10000};
#define N_INTERVALS (sizeof intervals / sizeof *intervals)

/* Returns the interval from which the groups are faster than one group; 0:
 * none. */
static uint64_t pays_from(const struct options_of_groups *all,
                          const struct option_of_groups *option)
{
    const struct option_of_groups *one = one_group(all);

    return one && option->count > 1
               ? groups_pay_from(option->plan.sync.ms, option->step_ms,
                                 one->step_ms)
               : 0;
}

static void print_option(const struct options_of_groups *all,
                         const struct option_of_groups *option)
{
    const uint64_t from = pays_from(all, option);

    cli_printf("%6u %-10s", option->count,
               option->count > 1 ? groups_layout_names[option->layout] : "-");
    if (isnan(option->step_ms)) {
        cli_printf(" %s\n", option->why_not);
        return;
    }
    cli_printf(" %8.2f", option->plan.sync.ms);
    for (size_t k = 0; k < N_INTERVALS; k++)
        cli_printf(" %8.2f", option->step_ms +
                                 option->plan.sync.ms / (double)intervals[k]);
    cli_printf(" %8.2f", option->step_ms);
    if (from)
        cli_printf(" %7" PRIu64, from);
    cli_printf("\n");
}

/* Prints the step of each number of groups, by the interval between syncs. */
static void print_table(const struct options_of_groups *all)
{
    cli_printf("groups layout      sync ms");
    for (size_t k = 0; k < N_INTERVALS; k++)
        cli_printf(" %8" PRIu64, intervals[k]);
    cli_printf("  no sync    pays\n");
    for (size_t i = 0; i < all->n; i++)
        print_option(all, &all->list[i]);
    cli_printf(
        "\nstep in ms by the steps from one sync to the next; --sync-every "
        "gives them\n");
    cli_printf("TorchRec's pipelines sync in each step unless told "
               "otherwise\n");
}

static json_t *options_to_json(const struct options_of_groups *all)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < all->n; i++) {
        const struct option_of_groups *option = &all->list[i];
        const bool is_planned = !isnan(option->step_ms);
        const uint64_t from = is_planned ? pays_from(all, option) : 0;

        json_array_append_new(
            rows,
            json_pack(
                "{s:i, s:s, s:o, s:o, s:o, s:o}", "groups", option->count,
                "layout", groups_layout_names[option->layout], "step_ms",
                json_real_or_null(option->step_ms), "sync_ms",
                json_real_or_null(is_planned ? option->plan.sync.ms : NAN),
                "pays_from", from ? json_whole(from) : json_null(), "why_not",
                option->why_not ? json_string(option->why_not) : json_null()));
    }
    return rows;
}

/* --- the command --- */

/* Searches the plan of --groups N without --sync-every. The time of the syncs
 * is unknown, so this plan is the fastest one without them. */
static int plan_without_syncs(struct options_of_groups *all, struct err *err)
{
    struct option_of_groups *best = all->best;

    all->list = best;
    all->n = 1;
    mem_free(best->request.trace.points);
    best->request.rivals = (struct rivals){0};
    best->request.advice = (struct advice){0};
    return search_one(all, best, best->oracle, err);
}

/* Prints the groups that were tried, and answers with the best plan. */
static int answer(struct options_of_groups *all, json_t *tried, struct cli *cli,
                  struct err *err)
{
    if (!all->has_interval) {
        print_table(all);
        if (is_auto(cli)) {
            cli_print_json(json_pack("{s:O}", "groups_tried", tried));
            return 0;
        }
        cli_printf("\n");
        if (plan_without_syncs(all, err))
            return -1;
    }
    all->best->request.groups_tried = tried;
    return plan_answer(&all->best->plan, all->best->oracle, &all->best->request,
                       cli, err);
}

int plan_groups(struct plan_request *request, struct err *err)
{
    struct cli *cli = request->cli;
    struct options_of_groups all = {.has_interval =
                                        cli_given(cli, "sync-every")};
    json_t *tried;
    int rc;

    request->problem.groups.sync_every = cli_u64(cli, "sync-every");
    if (list_options(&all, request, err) || plan_all(&all, request, err))
        return -1;
    if (!all.best)
        return err_set(err, ERR_NO_PLAN, "no number of groups has a plan");
    tried = options_to_json(&all);
    rc = answer(&all, tried, cli, err);
    json_decref(tried);
    return rc;
}
