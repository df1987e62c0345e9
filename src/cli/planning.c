/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"

#include "base/cli_answer.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/planning_cluster.h"
#include "cli/planning_target.h"
#include "core/canonical.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "core/plan_moves.h"
#include "core/plan_price.h"
#include "core/target_rules.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "io/plan_json.h"
#include "io/plan_torchrec.h"
#include "io/tables_io.h"
#include "io/tables_reader.h"
#include "search/bound.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

/* Number of GPUs per host that is assumed if a plan does not give it. */
#define OLD_HOST 8

/* Parses a text such as "1.5,3" into two times in ms. */
static int parse_dense_ms(double dense_ms[2], const char *text,
                          struct arena *arena, struct err *err)
{
    const char *comma = strchr(text, ',');

    if (comma &&
        text_to_double(arena_strndup(arena, text, (size_t)(comma - text)),
                       &dense_ms[0]) &&
        text_to_double(comma + 1, &dense_ms[1]) &&
        fmin(dense_ms[0], dense_ms[1]) >= 0 &&
        fmax(dense_ms[0], dense_ms[1]) <= JOB_MAX_DENSE_MS)
        return 0;
    return err_usage(err,
                     "option '--dense-ms' takes two times from 0 to %g, as "
                     "'1.5,3', not '%s'",
                     JOB_MAX_DENSE_MS, text);
}

int planning_set_job(struct problem *problem, struct cli *cli, struct err *err)
{
    struct job *job = &problem->job;

    if (cli_given(cli, "pipeline"))
        job->pipeline = (enum pipeline)cli_choice(cli, "pipeline");
    if (cli_given(cli, "chunks"))
        job->n_chunks = (uint32_t)cli_u64(cli, "chunks");
    if (cli_given(cli, "dedup")) {
        job->dedup = (enum dedup)cli_choice(cli, "dedup");
        if (problem->hot)
            problem_find_hot_rows(problem, cli->arena);
    }
    if (cli_given(cli, "host-ms")) {
        job->asks_host = true;
        job->host_ms = cli_double(cli, "host-ms");
    }
    if (cli_given(cli, "dense-ms"))
        return parse_dense_ms(job->dense_ms, cli_string(cli, "dense-ms"),
                              cli->arena, err);
    return 0;
}

int planning_set_dense(struct problem *problem, struct cli *cli,
                       struct err *err)
{
    const bool is_given = cli_given(cli, "dense");
    struct buf text = {0};
    int rc;

    if (!is_given && !problem->job.dense)
        return 0;
    if (is_given)
        buf_printf(&text, "%s", cli_string(cli, "dense"));
    else
        dense_print(problem->job.dense, &text);
    rc = dense_read(&problem->job.dense, text.data, text.len, problem->tables,
                    problem->n_tables, cli->arena, err);
    buf_release(&text);
    if (rc && is_given)
        err->code = ERR_USAGE;
    return rc ? err_prefix(err, "%s '--dense'",
                           is_given ? "option" : "the plan's dense part; see")
              : 0;
}

/* Parses a list such as "table,column" into a mask. A list that has row and
 * column also allows grid. */
static int parse_kinds(struct problem *problem, const char *text,
                       struct err *err)
{
    unsigned kinds = shard_kinds_from_list(text, ',');

    if (!kinds)
        return err_usage(err,
                         "option '--shard' takes a list of "
                         "table,column,row,grid,replicate, not '%s'",
                         text);
    problem->asks_for_grids = kinds & SHARD_GRID;
    for (size_t k = 0; k < N_SHARD_KINDS; k++) {
        unsigned made_of = shard_traits[k].made_of;

        if (made_of && (kinds & made_of) == made_of)
            kinds |= shard_traits[k].kind;
    }
    problem->kinds = kinds;
    return 0;
}

/* Lets existing rows stay where they are: a table that keeps its number of rows
 * keeps its row seed. Tables are matched by name. */
static void keep_row_seeds(struct problem *problem, const struct problem *like,
                           struct arena *arena)
{
    const struct plan old = {.problem = *like};
    struct table_pieces *before =
        ARENA_NEW(arena, struct table_pieces, problem->n_tables);

    table_pieces_find(before, problem->tables, problem->n_tables, &old);
    for (size_t t = 0; t < problem->n_tables; t++)
        if (before[t].table && before[t].table->num_embeddings ==
                                   problem->tables[t].num_embeddings)
            problem->tables[t].row_seed = before[t].table->row_seed;
}

int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
                     struct err *err)
{
    struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                     .pooling = cli_double(cli, "pooling"),
                                     .warn = cli_warn};
    struct planning_grid grid;
    struct table_list list;

    memset(problem, 0, sizeof(*problem));
    problem->memory_model = (enum memory_model)cli_choice(cli, "memory-model");
    if (planning_grid(&grid, &like->cluster, cli, err) ||
        planning_set_cluster(problem, &grid.cells[0], &like->cluster, cli, err))
        return -1;
    options.n_devices = problem->cluster.n_devices;
    for (size_t i = 0; i < grid.n; i++)
        options.n_devices =
            (uint32_t)max_u64(options.n_devices, grid.cells[i].n_gpus);
    problem->dense_optimizer =
        (enum dense_optimizer)cli_choice(cli, "dense-optimizer");
    problem->layout = LAYOUT_FBGEMM;
    problem->buffers = BUFFERS_TRACED;
    problem->min_width = cli_given(cli, "min-width")
                             ? (uint32_t)cli_u64(cli, "min-width")
                             : like->min_width;
    if (problem->min_width % TABLE_COLUMN_STEP)
        return err_usage(
            err, "option '--min-width' takes a multiple of %u, not '%u'",
            TABLE_COLUMN_STEP, problem->min_width);
    problem->job = like->job;
    if (planning_set_job(problem, cli, err))
        return -1;
    problem->kinds = SHARD_ALL_KINDS;
    if (cli_given(cli, "shard") &&
        parse_kinds(problem, cli_string(cli, "shard"), err))
        return -1;
    if (planning_set_target(problem, like, cli, err))
        return -1;
    if (tables_load(&list, path, &options, cli->arena, err))
        return -1;
    problem->tables = list.tables;
    problem->n_tables = list.n_tables;
    problem->source = list.source;
    if (planning_set_tiers(problem, cli, err))
        return -1;
    for (size_t i = 0; i < list.n_tables; i++)
        if (problem->row_cut == ROW_CUT_ANY && list.tables[i].rows_over)
            return err_usage(
                err,
                "option '%s' contradicts table '%s', "
                "whose rows_over is '%s'",
                cli_given(cli, "row-cut") ? "--row-cut any" : "--target",
                list.tables[i].name, rows_over_names[list.tables[i].rows_over]);
    if (planning_adopt_target(problem, cli, err) ||
        planning_set_dense(problem, cli, err))
        return -1;
    keep_row_seeds(problem, like, cli->arena);
    problem_find_hot_rows(problem, cli->arena);
    return 0;
}

static void keep_found(void)
{
    interrupt_keep(true);
}

void planning_set_search(struct search_options *options, const struct cli *cli)
{
    search_options_init(options);
    options->seed = cli_u64(cli, "seed");
    if (cli_given(cli, "effort"))
        options->effort = cli_u64(cli, "effort");
    options->time_limit_ms = 1000 * cli_double(cli, "time-limit");
    options->is_logged = cli_given(cli, "verbose");
    options->pool = pool_open((unsigned)cli_u64(cli, "threads"));
}

void planning_keep_found(struct search_options *options, size_t n_tables)
{
    const bool may_keep = n_tables <= PLANNING_MOST_KEPT;

    options->on_found = may_keep ? keep_found : NULL;
    options->gives_up = !may_keep;
}

/* Time in ms per table to write and report a plan. For 200,000 tables on 64
 * GPUs this is 10 s. */
#define ANSWER_MS_PER_TABLE 0.05
/* Largest share of a time limit that is kept for writing and reporting. */
#define MAX_ANSWER_FRAC 0.5

double planning_search_limit_ms(double limit_ms, size_t n_tables)
{
    const double answer_ms = fmin(ANSWER_MS_PER_TABLE * (double)n_tables,
                                  MAX_ANSWER_FRAC * limit_ms);

    return limit_ms > 0 ? limit_ms - answer_ms : INFINITY;
}

/* Prints warnings about a cost model. `spec` is the value of --cost that chose
 * the cost model; NULL if the model was chosen by the GPU. */
static void tell_doubts(const struct oracle *oracle, const char *spec,
                        struct cli *cli)
{
    const char *folder;

    if (oracle->warning)
        cli_warn(NULL, oracle->warning);
    /* for a list of GPUs, a table names the cost model of each */
    if (oracle->warning || spec || !cli_given(cli, "gpu") ||
        planning_asked_gpus(cli)[1] || oracle->cost.basis != BASIS_ANALYTIC)
        return;
    folder = file_find_data("models", cli->arena);
    cli_warn(NULL,
             text_say(cli->arena,
                      "no model of '%s' is in %s, so '%s' prices the plan",
                      cli_string(cli, "gpu"),
                      folder ? folder : "the data folder (none was found)",
                      oracle->cost.name));
}

/* Lists those options of a mask that the user has given, as in "options
 * '--chunks', '--dedup' change". Returns NULL if none of the options was
 * given. */
static const char *list_given(unsigned mask, const struct cli *cli)
{
#define HEED_NAME(name, option) option,
    static const char *const options[] = {HEEDS(HEED_NAME)};
    const char *list = "";
    size_t n = 0;

    for (size_t i = 0; i < N_HEEDS; i++)
        if (mask & (1u << i) && cli_given(cli, options[i]))
            list = arena_printf(cli->arena, "%s%s'--%s'", list, n++ ? ", " : "",
                                options[i]);
    if (!n)
        return NULL;
    return n == 1 ? arena_printf(cli->arena, "option %s changes", list)
                  : arena_printf(cli->arena, "options %s change", list);
}

/* Warns of options that have no effect under the cost model `spec`. If spec is
 * NULL, the GPU's own model is used, in which all options have an effect. If
 * the model has nets for communication, options that give a bandwidth are
 * refused, but bandwidths in a plan or a cluster file are accepted. */
static int check_heeded(struct cli *cli, const char *spec,
                        const struct problem *problem, struct err *err)
{
    const unsigned heeds = spec ? oracle_heeds(spec) : HEED_ALL;
    const unsigned bandwidths = HEED_INTRA | HEED_INTER;
    const char *unheeded = list_given(~heeds, cli);

    if (!(heeds & HEED_NETWORK) && list_given(bandwidths, cli))
        return err_usage(err,
                         "cost model '%s' predicts communication by nets and "
                         "takes no bandwidths",
                         spec);
    if (unheeded)
        cli_warn(NULL, text_say(cli->arena, "%s no price under cost model '%s'",
                                unheeded, spec));
    if (heeds & HEED_PIPELINE && cli_given(cli, "pipeline") &&
        cli_choice(cli, "pipeline") == PIPELINE_PREFETCH &&
        !problem->cluster.host_bytes)
        cli_warn(NULL, "option '--pipeline prefetch' costs the same as 'sdd', "
                       "as no table is cached");
    return 0;
}

/* Opens the cost model `spec`. If spec is NULL, opens the cost model of the
 * GPU. */
static int open_oracle(struct oracle **out, const char *spec, const char *gpu,
                       const struct problem *problem, struct cli *cli,
                       struct err *err)
{
    return spec ? oracle_open(out, spec, problem, cli->arena, err)
                : oracle_open_for_gpu(out, gpu, problem, cli->arena, err);
}

/* Refuses cost models whose total is a published formula if the plan has
 * several groups, because they price no sync. */
static int check_groups(const struct oracle *oracle,
                        const struct problem *problem, struct err *err)
{
    return problem_n_groups(problem) == 1 || oracle->step
               ? 0
               : err_usage(err, "cost model '%s' cannot price groups",
                           oracle->cost.name);
}

int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err)
{
    const char *spec = cli_string(cli, "cost");
    struct oracle *oracle;
    unsigned missing;

    if (check_heeded(cli, spec, problem, err) ||
        open_oracle(&oracle, spec, problem->cluster.gpu, problem, cli, err))
        return -1;
    /* The model must be able to price every kind of shard that --shard
     * names. */
    missing = problem->kinds & ~oracle->kinds & ~(unsigned)SHARD_GRID;
    if (cli_given(cli, "shard") && missing)
        return err_usage(
            err, "cost model '%s' cannot price %s shards", oracle->cost.name,
            shard_kind_name((enum shard_kind)(missing & -missing)));
    if (check_groups(oracle, problem, err))
        return -1;
    tell_doubts(oracle, spec, cli);
    *out = oracle;
    return 0;
}

int planning_price(struct oracle **out, struct cli *cli, struct plan *plan,
                   struct err *err)
{
    const char *spec = cli_string(cli, "cost");
    bool is_own = !spec && !cli_given(cli, "gpu") && plan->cost.name;
    struct cluster *cluster = &plan->problem.cluster;
    struct proven proven;

    if (is_own)
        spec = plan->cost.name;
    if (planning_ask_gpu(cluster, cli, err))
        return -1;
    planning_set_bandwidths(cluster, cli);
    if (check_heeded(cli, spec, &plan->problem, err) ||
        planning_set_job(&plan->problem, cli, err) ||
        planning_set_dense(&plan->problem, cli, err))
        return -1;
    if (open_oracle(out, spec, cluster->gpu, &plan->problem, cli, err)) {
        if (!is_own)
            return -1;
        /* ERR_USAGE is for options; here the wrong value is in the plan */
        if (err->code == ERR_USAGE)
            err->code = ERR_INPUT;
        return err_prefix(err, "%s: cost_model.name (--cost sets another)",
                          cli->args[0]);
    }
    if (check_groups(*out, &plan->problem, err))
        return -1;
    tell_doubts(*out, spec, cli);
    if (plan_price(plan, *out, cli->arena, err))
        return -1;
    search_bound(&proven, &plan->problem, *out, cli->arena);
    if (proven.ms > 0 && proven.ms <= plan->total_ms * (1 + 1e-9)) {
        plan->bound_ms = proven.ms;
        plan->bound_term = proven.term;
        plan->bound_table = proven.table;
    }
    return 0;
}

/* --- existing plans --- */

/* Refuses the options that describe a TorchRec plan if the plan is of this
 * program, because such a plan contains the values itself. Options that change
 * the plan's job or cluster for a what-if are allowed. */
static int check_unused(const struct cli *cli, const char *source,
                        struct err *err)
{
    static const char *const of_torchrec[] = {
        "tables",          "gpus",    "dim",   "pooling",
        "dense-optimizer", "cluster", "memory"};

    for (size_t i = 0; i < sizeof of_torchrec / sizeof *of_torchrec; i++)
        if (cli_given(cli, of_torchrec[i]))
            return err_usage(err,
                             "option '--%s' is only for TorchRec plans; '%s' "
                             "contains this itself",
                             of_torchrec[i], source);
    return 0;
}

/* Sets the cluster of a current plan that is to be replaced. The cluster need
 * not match the options, because the options describe the new plan. The hosts
 * come from the current plan; if the plan has none, they are assumed. */
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

/* Sets the GPUs, hosts and batch from the options if the TorchRec plan does not
 * contain them. */
static int set_cluster(struct problem *problem, struct cli *cli,
                       struct err *err)
{
    const struct cluster said = problem->cluster;

    if (planning_set_cluster(problem,
                             &(struct planning_cell){NULL, said.n_devices},
                             &said, cli, err))
        return -1;
    if (problem->cluster.n_devices != said.n_devices ||
        (cli_given(cli, "gpus") && cli_u64(cli, "gpus") != said.n_devices))
        return err_input(err,
                         "the plan has %u ranks, but the options give another "
                         "number of GPUs",
                         said.n_devices);
    return problem->batch
               ? 0
               : err_usage(err, "option '--batch' is needed: the plan does not "
                                "give the samples of a step");
}

/* Warns that the placement of column pieces is a guess: TorchRec prints the
 * ranks of a table in sorted order, so it is unknown which column piece is on
 * which rank. */
static void warn_guessed(const struct plan *plan, const char *source,
                         struct cli *cli)
{
    size_t i = 0;

    while (i < plan->n_shards && !shard_cuts_columns(plan->shards[i].kind))
        i++;
    if (i < plan->n_shards)
        cli_warn(
            NULL,
            text_say(cli->arena,
                     "%s: the plan does not show which rank has which column "
                     "piece of a table, so the bytes that move are a guess",
                     source));
}

static int load_torchrec(struct plan *plan, const char *text, size_t len,
                         const char *source, const char *list, bool is_given,
                         struct cli *cli, struct err *err)
{
    const struct tables_options options = {.dim = (uint32_t)cli_u64(cli, "dim"),
                                           .pooling =
                                               cli_double(cli, "pooling"),
                                           .warn = cli_warn};
    struct problem *problem = &plan->problem;
    struct table_list tables = {.source = source};

    if (list && tables_load(&tables, list, &options, cli->arena, err))
        return -1;
    *plan = (struct plan){.problem = {.tables = tables.tables,
                                      .n_tables = tables.n_tables,
                                      .source = tables.source,
                                      .dense_optimizer = (enum dense_optimizer)
                                          cli_choice(cli, "dense-optimizer"),
                                      .layout = LAYOUT_FBGEMM,
                                      .buffers = BUFFERS_TRACED,
                                      .kinds = SHARD_ALL_KINDS},
                          .total_ms = NAN,
                          .bound_ms = NAN};
    if (is_given && !plan_says_ranks(text)) {
        if (!cli_given(cli, "gpus"))
            return err_usage(err,
                             "option '--gpus' is needed: '%s' does not give "
                             "the number of ranks",
                             source);
        problem->cluster.n_devices = (uint32_t)cli_u64(cli, "gpus");
        if (cli_given(cli, "gpus-per-host"))
            problem->cluster.devices_per_host =
                (uint32_t)cli_u64(cli, "gpus-per-host");
    }
    if (plan_from_torchrec(plan, text, len, source, &options, cli->arena, err))
        return -1;
    if (is_given && problem->n_tables < tables.n_tables)
        return err_input(
            err, "%s: the plan places only %zu of the %zu tables of '%s'",
            source, problem->n_tables, tables.n_tables, list);
    if (!is_given)
        set_old_cluster(problem, cli);
    else if (set_cluster(problem, cli, err))
        return err_prefix(err, "%s", source);
    if (!list)
        tables_draw_row_seeds(problem->tables, problem->n_tables);
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
    const char *source = file_source(path), *text;
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
    planning_know_gpu(&plan->problem.cluster, plan->cost.name, cli->arena);
    /* If the command takes two plans, the options may describe the other
     * plan. */
    if (!is_given || cli->command->n_args[0] > 1)
        return 0;
    if (check_unused(cli, source, err))
        return -1;
    return planning_ask_what_if(&plan->problem, cli, err);
}
