/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/text.h"
#include "cli/planning.h"
#include "core/plan_check.h"
#include "io/plan_json.h"
#include "io/plan_torchrec.h"
#include "io/tables_io.h"

#include <string.h>

/* GPUs of a host, where a plan does not say how many. */
#define OLD_HOST 8

const struct option_spec placed_options[] = {
    {"tables", 0, OPTION_STRING, "TABLES", NULL, 0, 0, NULL,
     "table list of a plan of TorchRec's, which says less of them"},
    {"gpus", 'g', OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs of such a plan, to be sure"},
    {"batch", 'b', OPTION_U64, "N", NULL, 1, PROBLEM_MAX_BATCH, NULL,
     "its global batch, where it does not say"},
    {"batch-per-gpu", 0, OPTION_U64, "N", NULL, 1, PROBLEM_MAX_BATCH, NULL,
     "the same for one GPU; wins over --batch"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables whose dim cell is empty"},
    DENSE_OPTIMIZER_OPTION,
    {0},
};

/* A plan of ours says all that these do; others may ask what if it were
 * otherwise. */
static int check_unused(const struct cli *cli, const char *source,
                        struct err *err)
{
    static const char *const of_torchrec[] = {
        "tables",  "gpus",   "dim",    "dense-optimizer",
        "cluster", "memory", "reserve"};

    for (size_t i = 0; i < sizeof of_torchrec / sizeof *of_torchrec; i++)
        if (cli_given(cli, of_torchrec[i]))
            return err_set(err, ERR_USAGE,
                           "option '--%s' is for plans of TorchRec's; '%s' "
                           "says all that itself",
                           of_torchrec[i], source);
    return 0;
}

/* Of a plan to be replaced, which need not fit what the options say of the new
 * one: hosts as it says, else as it may have had. */
static void set_old_cluster(struct problem *problem, struct cli *cli)
{
    struct cluster *cluster = &problem->cluster;
    const uint32_t n = cluster->n_devices, per_host = cluster->devices_per_host;

    cluster->memory_bytes = ARENA_NEW(cli->arena, uint64_t, n);
    cluster->reserve_bytes = ARENA_NEW(cli->arena, uint64_t, n);
    cluster_take_hosts(cluster,
                       per_host ? per_host : cluster_assumed_host(n, OLD_HOST),
                       (uint32_t)max_u64(cluster->hosts_per_domain, 1));
    for (uint32_t r = 0; r < n; r++)
        cluster->memory_bytes[r] = INT64_MAX;
    problem->batch = max_u64(problem->batch, 1);
}

/* GPUs, hosts and batch, as far as TorchRec does not say them, by the options.
 */
static int set_cluster(struct problem *problem, struct cli *cli,
                       struct err *err)
{
    const struct cluster said = problem->cluster;

    if (planning_set_cluster(problem, said.n_devices, &said, cli, err))
        return -1;
    if (problem->cluster.n_devices != said.n_devices ||
        (cli_given(cli, "gpus") && cli_u64(cli, "gpus") != said.n_devices))
        return err_set(err, ERR_INPUT,
                       "the plan is of %u ranks, not of as many GPUs as the "
                       "options say",
                       said.n_devices);
    return problem->batch
               ? 0
               : err_set(err, ERR_USAGE,
                         "option '--batch' is needed: the plan does not say "
                         "how many samples a step has");
}

/* TorchRec prints the ranks of a table sorted. */
static void warn_guessed(const struct plan *plan, const char *source,
                         struct cli *cli)
{
    size_t i = 0;

    while (i < plan->n_shards && !shard_cuts_columns(plan->shards[i].kind))
        i++;
    if (i < plan->n_shards)
        cli_warn(NULL, text_say(cli->arena,
                                "%s: which column piece of a table lies on "
                                "which of its ranks is not printed, so it is "
                                "a guess what of it moves and what stays",
                                source));
}

static int load_torchrec(struct plan *plan, const char *text, size_t len,
                         const char *source, const char *list, bool is_given,
                         struct cli *cli, struct err *err)
{
    const struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                           .warn = cli_warn};
    struct problem *problem = &plan->problem;
    struct table_list tables = {.source = source};

    if (list && tables_load(&tables, list, &options, cli->arena, err))
        return -1;
    *plan = (struct plan){
        .problem = {.tables = tables.tables,
                    .n_tables = tables.n_tables,
                    .source = tables.source,
                    .dense_optimizer = planning_dense_optimizer(cli),
                    .kinds = SHARD_ALL_KINDS},
        .total_ms = NAN,
        .bound_ms = NAN};
    if (plan_from_torchrec(plan, text, len, source, cli->arena, err))
        return -1;
    if (is_given && problem->n_tables < tables.n_tables)
        return err_set(err, ERR_INPUT,
                       "%s: the plan places %zu tables, of %zu in '%s'", source,
                       problem->n_tables, tables.n_tables, list);
    if (!is_given)
        set_old_cluster(problem, cli);
    else if (set_cluster(problem, cli, err))
        return err_prefix(err, "%s", source);
    plan_fill_kinds(plan);
    if (tables_is_stats(text) && (!is_given || cli->command->n_args[0] > 1))
        warn_guessed(plan, source, cli);
    problem_find_hot_rows(problem, cli->arena);
    if (plan_check(plan, err))
        return err_prefix(err, "%s", source);
    plan_sort_shards(plan);
    return 0;
}

int planning_load(struct plan *plan, const char *path, const char *list,
                  struct cli *cli, struct err *err)
{
    const char *source = strcmp(path, "-") ? path : "standard input", *text;
    const bool is_given = !list;
    size_t len;

    if (file_read(&text, &len, path, cli->arena, err))
        return -1;
    if (plan_is_torchrec(text))
        return load_torchrec(plan, text, len, source,
                             list ? list : cli_string(cli, "tables"), is_given,
                             cli, err);
    if (plan_from_json(plan, text, len, source, cli->arena, err))
        return -1;
    /* Of two plans the other may be TorchRec's. */
    if (!is_given || cli->command->n_args[0] > 1)
        return 0;
    return check_unused(cli, source, err) ||
                   planning_ask_what_if(&plan->problem, cli, err)
               ? -1
               : 0;
}
