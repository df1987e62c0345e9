/* SPDX-License-Identifier: MIT */
#include "cli/find_plan.h"

#include "cli/planning.h"
#include "search/search.h"

#include <string.h>

static void choose_search(struct search_options *options, const struct cli *cli)
{
    search_options_init(options);
    options->seed = cli_u64(cli, "seed");
    options->beam_width = (unsigned)cli_u64(cli, "beam");
    options->beam_depth = (unsigned)cli_u64(cli, "depth");
    if (cli_given(cli, "effort"))
        options->effort = cli_u64(cli, "effort");
    if (cli_given(cli, "time-limit"))
        options->time_limit_ms = 1000 * cli_double(cli, "time-limit");
    if (!strcmp(cli_string(cli, "search"), "grid"))
        options->beam_width = 0;
}

static int search(struct plan *plan, const struct plan *from,
                  struct replan_report *report, const struct oracle *oracle,
                  const struct search_options *options, struct cli *cli,
                  struct err *err)
{
    if (cli_given(cli, "from"))
        return search_replan(plan, from,
                             cli_given(cli, "move-limit")
                                 ? cli_u64(cli, "move-limit")
                                 : UINT64_MAX,
                             oracle, options, report, cli_arena(cli), err);
    if (!strcmp(cli_string(cli, "search"), "full"))
        return search_full(plan, oracle, options, cli_arena(cli), err);
    return search_reference(plan, oracle, options, cli_arena(cli), err);
}

int find_plan(struct plan *plan, const struct plan *from,
              struct replan_report *report, const struct oracle *oracle,
              struct cli *cli, struct err *err)
{
    struct search_options options;
    int rc;

    choose_search(&options, cli);
    options.pool = pool_open((unsigned)cli_u64(cli, "threads"));
    rc = search(plan, from, report, oracle, &options, cli, err);
    pool_close(options.pool);
    if (rc)
        return -1;
    plan->version = NEUROSHARD_VERSION;
    plan->inputs_hash = plan_inputs_hash(plan, cli_arena(cli));
    return 0;
}
