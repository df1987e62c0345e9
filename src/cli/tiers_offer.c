/* SPDX-License-Identifier: MIT */
#include "cli/tiers_offer.h"

#include "base/interrupt.h"
#include "base/text.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/host.h"
#include "core/target_traits.h"
#include "emit/formats.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

/* Limits of the search: number of changes, milliseconds, and number of
 * tables. */
#define OFFER_EFFORT 5000
#define OFFER_MS 2000
#define OFFER_TABLES 2000
#define NAMES_SHOWN 2

/* Returns whether the command line leaves the choice of tiers open. */
static bool is_open(const struct problem *problem, struct cli *cli)
{
    return !cli_given(cli, "tiers") && !cli_given(cli, "from") &&
           !strcmp(cli_string(cli, "search"), "full") &&
           problem->memory_model == MEMORY_FULL &&
           problem_n_groups(problem) == 1 &&
           problem_target(problem)->has_tiers &&
           problem->n_tables <= OFFER_TABLES;
}

/* Appends the bytes in host memory, the first tables, and the step. */
static void append(struct err *err, const struct plan *plan)
{
    struct buf names = {0};
    uint64_t bytes = 0;
    size_t n = 0;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        bytes += plan->devices[r].memory.host;
    for (size_t i = 0; i < plan->n_shards; i = emit_shards_end(plan, i))
        if (plan->shards[i].tier != TIER_HBM && n++ < NAMES_SHOWN)
            buf_printf(&names, "%s%s", n > 1 ? ", " : "",
                       plan->problem.tables[plan->shards[i].table].name);
    if (n)
        err_suffix(err,
                   "; option '--tiers auto' keeps %s of %s%s in host memory: a "
                   "step of %.3g ms",
                   TEXT_BYTES(bytes), names.data, n > NAMES_SHOWN ? " .." : "",
                   plan_step(plan).ms);
    buf_release(&names);
}

void tiers_offer(struct err *err, const struct problem *problem,
                 double limit_ms, struct cli *cli)
{
    struct plan plan = {.problem = *problem};
    struct search_options options;
    struct oracle *oracle = NULL;
    struct err ignored = {0};

    if (err->code != ERR_NO_PLAN || !is_open(problem, cli) ||
        interrupt_requested() ||
        planning_auto_host(&plan.problem.cluster.host_bytes,
                           problem->cluster.gpu, cli, &ignored) ||
        planning_oracle(&oracle, cli, &plan.problem, &ignored) ||
        !oracle->prices_tiers)
        return;
    search_options_init(&options);
    options.effort = OFFER_EFFORT;
    options.time_limit_ms = limit_ms > 0 ? fmin(limit_ms, OFFER_MS) : OFFER_MS;
    options.gives_up = true;
    if (!search_full(&plan, oracle, &options, cli->arena, &ignored))
        append(err, &plan);
}
