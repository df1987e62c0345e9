/* SPDX-License-Identifier: MIT */
#include "cli/plan_search.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/version.h"
#include "cli/planning.h"
#include "core/target_rules.h"
#include "costmodel/models/oracle_open.h"
#include "search/advice.h"
#include "search/planners.h"

#include <string.h>

/* Smallest share for --simplest-within. "0%" becomes this share: only
 * simplifications that cost nothing are accepted. */
#define NOTHING 1e-12

/* Opens the cost model at a share of the assumed bandwidth of the wire. */
static int open_at(const struct oracle **out, double share,
                   const struct oracle *oracle, struct arena *arena,
                   struct err *err)
{
    const struct wire *wire = &oracle->cost.wire;
    struct problem *slower = ARENA_NEW(arena, struct problem, 1);
    struct oracle *opened;

    *slower = *oracle->problem;
    if (wire->inter_gbps > 0)
        slower->cluster.inter_gbps = share * wire->inter_gbps;
    else
        slower->cluster.intra_gbps = share * wire->intra_gbps;
    if (oracle_open(&opened, oracle->cost.name, slower, arena, err))
        return -1;
    *out = opened;
    return 0;
}

/* Opens the cost model at the slower wires, if the bandwidth of the wire is an
 * assumption and --wire makes use of them. */
static int open_slower(struct search_options *options,
                       const struct oracle *oracle, struct cli *cli,
                       struct err *err)
{
    const struct wire *wire = &oracle->cost.wire;
    const bool is_inter = wire->inter_gbps > 0;

    options->wire = (enum wire_choice)cli_choice(cli, "wire");
    if (options->wire == WIRE_NOMINAL || !oracle->ops->exchanges ||
        !(is_inter ? wire->assumes_inter : wire->assumes_intra))
        return 0;
    for (unsigned k = 1; k < N_WIRES; k++)
        if (open_at(&options->slower[k - 1], wire_shares[k], oracle, cli->arena,
                    err))
            return -1;
    for (unsigned i = 0; i < N_WIRES_BETWEEN && options->wire == WIRE_ROBUST;
         i++)
        if (open_at(&options->between[i], wires_between[i], oracle, cli->arena,
                    err))
            return -1;
    return 0;
}

/* Sets the options of a search of the plan's problem. pool_close closes its
 * pool of threads. */
static int set_search(struct search_options *options, const struct plan *plan,
                      const struct oracle *oracle, double limit_ms,
                      struct cli *cli, struct err *err)
{
    struct oracle *torchrec = NULL;

    if (planner_torchrec_costs(&torchrec, oracle, &plan->problem, cli->arena,
                               err))
        return -1;
    planning_set_search(options, cli);
    planning_keep_found(options, plan->problem.n_tables);
    options->time_limit_ms = limit_ms;
    options->torchrec = torchrec;
    return 0;
}

int plan_search(struct plan *plan, struct plan_request *request,
                const struct oracle *oracle, double limit_ms, struct err *err)
{
    struct cli *cli = request->cli;
    const bool is_full = !strcmp(cli_string(cli, "search"), "full");
    const uint64_t limit =
        cli_given(cli, "move-limit") ? cli_u64(cli, "move-limit") : UINT64_MAX;
    struct search_options options;
    int rc;

    if (set_search(&options, plan, oracle, limit_ms, cli, err))
        return -1;
    options.reshardable = cli_given(cli, "reshardable");
    if (cli_given(cli, "simplest-within"))
        options.simplest_frac =
            fmax(cli_double(cli, "simplest-within"), NOTHING);
    else if (!cli_given(cli, "from"))
        options.simplest_frac = SIMPLEST_BY_ERROR;
    if (request->progress)
        options.label =
            arena_printf(cli->arena, "searching %s", request->progress);
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
    rc = open_slower(&options, oracle, cli, err) ? -1
         : cli_given(cli, "from")
             ? search_replan(plan, &request->from, limit, oracle, &options,
                             &request->replanned, cli->arena, err)
         : is_full ? search_advised(plan, oracle, &options, &request->advice,
                                    cli->arena, err)
                   : search_reference(plan, oracle, &options, cli->arena, err);
    if (!rc && !request->rivals.list->by && !cli_given(cli, "no-rivals"))
        rc = rivals_ask(&request->rivals, &plan->problem,
                        (struct contender_inputs){.oracle = oracle,
                                                  .torchrec = options.torchrec,
                                                  .end_ms = INFINITY},
                        err);
    pool_close(options.pool);
    if (rc)
        return -1;
    plan->version = NEUROSHARD_VERSION;
    plan->build = build_id;
    plan->inputs_hash = plan_inputs_hash(plan, cli->arena);
    return 0;
}

int plan_probe(struct plan *plan, struct plan_request *request,
               const struct oracle *oracle, uint64_t effort, double limit_ms,
               struct err *err)
{
    struct cli *cli = request->cli;
    struct search_options options;
    int rc;

    if (set_search(&options, plan, oracle, limit_ms, cli, err))
        return -1;
    options.effort = effort;
    options.label = arena_printf(cli->arena, "comparing %s", request->progress);
    rc = search_full(plan, oracle, &options, cli->arena, err);
    pool_close(options.pool);
    return rc;
}

bool plan_has_target_price(const struct cli *cli)
{
    return cli_given(cli, "target") &&
           strcmp(cli_string(cli, "target"), target_names[TARGET_ANY]) != 0 &&
           !cli_given(cli, "from") && !cli_given(cli, "no-rivals") &&
           !strcmp(cli_string(cli, "search"), "full");
}

int plan_price_target(struct plan_request *request, const struct plan *plan,
                      const struct oracle *oracle, double limit_ms,
                      struct err *err)
{
    struct cli *cli = request->cli;
    struct plan any = {.problem = plan->problem};
    struct search_options options;
    struct oracle *opened;
    int rc;

    any.problem.target = TARGET_ANY;
    any.problem.row_cut = ROW_CUT_ANY;
    if (oracle_open(&opened, oracle->cost.name, &any.problem, cli->arena, err))
        return -1;
    planning_set_search(&options, cli);
    options.time_limit_ms = limit_ms;
    options.label = "searching without the target's rules";
    rc = interrupt_requested()
             ? -1
             : search_full(&any, opened, &options, cli->arena, err);
    pool_close(options.pool);
    if (rc) { /* the plan that obeys the rules is the answer */
        *err = (struct err){0};
        return 0;
    }
    request->price =
        (struct target_price){.own_ms = request->advice.cheapest.total_ms > 0
                                            ? request->advice.cheapest.total_ms
                                            : plan->total_ms,
                              .any_ms = any.total_ms};
    return 0;
}

double plan_search_end(const struct plan_request *request)
{
    const double limit_ms = 1000 * cli_double(request->cli, "time-limit");

    return request->cli->start_ms +
           planning_search_limit_ms(limit_ms, request->problem.n_tables);
}

/* Time limit in ms of a search for which no time is left. It is above 0 because
 * a time limit of 0 means no limit. */
#define LEAST_MS 0.001

double plan_search_time_left(double end_ms)
{
    return isfinite(end_ms) ? fmax(end_ms - clock_ms(), LEAST_MS) : 0;
}
