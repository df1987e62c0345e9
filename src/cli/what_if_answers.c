/* SPDX-License-Identifier: MIT */
#include "cli/what_if_answers.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/planning.h"
#include "core/cluster.h"
#include "core/plan_fit.h"
#include "core/plan_price.h"
#include "core/settings.h"
#include "core/sharding_groups.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "search/search.h"

#include <inttypes.h>
#include <string.h>

const struct option_spec fresh_plan_options[] = {
    OPTIONS_HEADED(SEARCH_HEADING),
    {"effort", 0, OPTION_U64, "N", "200000", 0, 1e12, NULL,
     "changes that the search for each fresh plan tries"},
    {"time-limit", 0, OPTION_DOUBLE, "S", NULL, 0, 1e9, NULL,
     "end the searches after this many seconds"},
    {0},
};

/* --- the next command --- */

/* Characters that a shell takes as they are. */
#define PLAIN_CHARACTERS                                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-" \
    "./:=,+@%"

/* Prints a blank and a word of a command line, quoted if a shell needs it. */
static void print_word(const char *word, struct buf *out)
{
    if (*word && !word[strspn(word, PLAIN_CHARACTERS)]) {
        buf_printf(out, " %s", word);
        return;
    }
    buf_printf(out, " '");
    for (; *word; word++)
        buf_printf(out, *word == '\'' ? "'\\''" : "%c", *word);
    buf_printf(out, "'");
}

static const struct gpu_spec *gpu_of_plan(const struct plan *plan,
                                          struct arena *arena)
{
    const char *name = plan->problem.cluster.gpu;
    const struct gpu_spec *gpu;
    struct err ignored;

    if (!name && oracle_gpu(&name, plan->cost.name, arena, &ignored))
        return NULL;
    return name && !gpu_spec_get(&gpu, name, arena, &ignored) ? gpu : NULL;
}

/* Prints the options of the memory that the defaults would not give. */
static void print_memory(const struct plan *plan, struct arena *arena,
                         struct buf *out)
{
    const struct problem *problem = &plan->problem;
    const struct cluster *cluster = &problem->cluster;
    const struct gpu_spec *gpu = gpu_of_plan(plan, arena);
    const uint64_t memory = cluster->memory_bytes[0];
    uint64_t reserve = 0;

    if (problem->memory_model == MEMORY_WEIGHTS)
        buf_printf(out, " --memory-model weights");
    else
        text_to_share("15%", memory, &reserve);
    if (!cluster_is_even(cluster)) {
        buf_printf(out, " --cluster FILE");
        return;
    }
    if (!gpu || gpu->memory_bytes != memory)
        buf_printf(out, " --memory %" PRIu64 "B", memory);
    if (cluster->reserve)
        buf_printf(out, " --reserve %s", cluster->reserve);
    else if (cluster->reserve_bytes[0] != max_u64(reserve, cluster->nccl_bytes))
        buf_printf(out, " --reserve %" PRIu64 "B", cluster->reserve_bytes[0]);
}

/* Prints --cost, unless the cost model is the model of the plan's GPU, which
 * --from gives. */
static void print_cost(const struct plan *plan, struct arena *arena,
                       struct buf *out)
{
    const struct gpu_spec *gpu = gpu_of_plan(plan, arena);
    const char *cost = plan->cost.name;

    if (!cost ||
        (gpu && !strcmp(cost, arena_printf(arena, "model:%s.nsm", gpu->name))))
        return;
    buf_printf(out, " --cost");
    print_word(cost, out);
}

/* Prints the options of groups; they exclude --from. */
static void print_groups(const struct sharding_groups *groups, struct buf *out)
{
    buf_printf(out, " --groups %u --groups-layout %s", groups->count,
               groups_layout_names[groups->layout]);
    if (groups->sync_every)
        buf_printf(out, " --sync-every %" PRIu64, groups->sync_every);
}

const char *what_if_command(const struct plan *plan, const char *path,
                            struct arena *arena)
{
    const struct problem *problem = &plan->problem;
    const struct cluster *cluster = &problem->cluster;
    const struct cluster whole = sharding_groups_cluster(problem);
    const char *source = problem->source;
    struct buf out = {0};
    const char *text;

    buf_printf(&out, "neuroshard plan");
    if (source && strcmp(source, path) != 0)
        print_word(source, &out);
    else
        buf_printf(&out, " TABLES");
    if (cluster_is_even(cluster))
        buf_printf(&out, " --gpus %u", whole.n_devices);
    if (whole.devices_per_host < whole.n_devices)
        buf_printf(&out, " --gpus-per-host %u", whole.devices_per_host);
    if (problem_n_groups(problem) > 1)
        print_groups(&problem->groups, &out);
    else {
        buf_printf(&out, " --from");
        print_word(path, &out);
    }
    buf_printf(&out, " --batch %" PRIu64, problem_all_samples(problem));
    print_memory(plan, arena, &out);
    print_cost(plan, arena, &out);
    text = arena_strdup(arena, out.data);
    buf_release(&out);
    return text;
}

/* --- fresh plans --- */

static void keep_found(void)
{
    interrupt_keep(true);
}

/* Searches a plan for the problem, and stores it in the scenario. If no plan is
 * found, stores the reason. Any other failure is an error. */
static int plan_fresh(struct scenario *scenario, const struct problem *problem,
                      const char *cost, struct cli *cli, struct err *err)
{
    const double limit_ms = 1000 * cli_double(cli, "time-limit");
    struct plan *plan = ARENA_NEW(cli->arena, struct plan, 1);
    struct search_options options;
    struct oracle *oracle = NULL;
    int rc;

    plan->problem = *problem;
    search_options_init(&options);
    options.effort = cli_u64(cli, "effort");
    if (limit_ms > 0)
        options.time_limit_ms =
            fmax(cli->start_ms + limit_ms - clock_ms(), 0.001);
    options.is_logged = cli_given(cli, "verbose");
    options.on_found = keep_found;
    options.pool = pool_open(0);
    rc = oracle_open(&oracle, cost, problem, cli->arena, err) ||
         search_full(plan, oracle, &options, cli->arena, err);
    pool_close(options.pool);
    scenario->is_fresh = true;
    if (!rc)
        scenario->plan = plan;
    else if (err->code == ERR_NO_PLAN) {
        scenario->why_not = arena_strdup(cli->arena, err->msg);
        *err = (struct err){0};
    } else
        return -1;
    return 0;
}

/* Lets a plan on one host grow to further hosts. They have the number of GPUs
 * that the plan's GPU is sold with; 8 if it is not known. */
static void assume_hosts(struct problem *problem, const struct plan *plan,
                         struct arena *arena)
{
    const struct gpu_spec *gpu = gpu_of_plan(plan, arena);
    struct cluster *cluster = &problem->cluster;

    if (cluster->devices_per_host == cluster->n_devices)
        cluster->host_size =
            (uint32_t)max_u64(gpu ? gpu->gpus_per_host : 8, cluster->n_devices);
}

/* --- the answers --- */

/* Stores the plan in the scenario, and if it does not fit, the reason and the
 * next command. */
static void judge_fit(struct scenario *scenario, const struct plan *plan,
                      struct cli *cli)
{
    struct err lack = {0};

    scenario->plan = plan;
    if (!plan_check_fit(plan, &lack))
        return;
    scenario->why_not = arena_strdup(cli->arena, lack.msg);
    scenario->command = what_if_command(plan, cli->args[0], cli->arena);
}

/* Prices the plan's placement for the problem, and finds whether it fits. */
static int price_same(struct scenario *scenario, const struct problem *problem,
                      const struct plan *plan, struct cli *cli, struct err *err)
{
    struct plan *priced = ARENA_NEW(cli->arena, struct plan, 1);
    struct oracle *oracle;

    *priced = *plan;
    priced->problem = *problem;
    if (oracle_open(&oracle, plan->cost.name, problem, cli->arena, err) ||
        plan_price(priced, oracle, cli->arena, err))
        return -1;
    judge_fit(scenario, priced, cli);
    return 0;
}

static int answer(struct scenario *scenario, const char *text,
                  const struct plan *plan, struct cli *cli, struct err *err)
{
    struct problem problem = plan->problem;
    struct settings settings;

    *scenario = (struct scenario){.name = text};
    if (settings_parse(&settings, text, strlen(text), cli->arena, err))
        return -1;
    if (settings.n_devices) {
        assume_hosts(&problem, plan, cli->arena);
        problem.row_cut = plan_row_cut(plan);
    }
    if (settings_apply(&settings, &problem, cli->arena, err))
        return -1;
    return settings.n_devices
               ? plan_fresh(scenario, &problem, plan->cost.name, cli, err)
               : price_same(scenario, &problem, plan, cli, err);
}

int what_if_answers(const struct scenario **list, size_t *n,
                    const struct plan *plan, struct cli *cli, struct err *err)
{
    const struct option_value *asked = cli_value(cli, "what-if");
    struct scenario *scenarios;

    *n = 0;
    if (!asked->given)
        return 0;
    scenarios = ARENA_NEW(cli->arena, struct scenario, asked->n_texts + 1);
    scenarios[0] = (struct scenario){.name = "as it is"};
    judge_fit(&scenarios[(*n)++], plan, cli);
    for (size_t i = 0; i < asked->n_texts && !interrupt_requested(); i++) {
        if (answer(&scenarios[*n], asked->texts[i], plan, cli, err))
            return err_prefix(err, "option '--what-if'");
        ++*n;
    }
    *list = scenarios;
    return 0;
}

static void halve_weights(struct problem *problem, struct arena *arena)
{
    struct table *tables = ARENA_NEW(arena, struct table, problem->n_tables);

    for (size_t t = 0; t < problem->n_tables; t++) {
        tables[t] = problem->tables[t];
        if (tables[t].precision == PRECISION_FP32)
            tables[t].precision = PRECISION_FP16;
    }
    problem->tables = tables;
}

/* Returns the next larger number of GPUs: one more GPU in a host that is not
 * full, and else one more host. */
static uint32_t more_gpus(const struct cluster *cluster)
{
    const uint32_t n = cluster->n_devices;

    if (cluster->host_size && n % cluster->host_size == 0)
        return n + cluster->host_size;
    return cluster_whole_hosts(cluster, n + 1);
}

#define N_ANEW 3
int what_if_anew(const struct scenario **list, size_t *n,
                 const struct plan *plan, struct cli *cli, struct err *err)
{
    struct scenario *anew = ARENA_NEW(cli->arena, struct scenario, N_ANEW);
    struct problem problems[N_ANEW] = {plan->problem, plan->problem,
                                       plan->problem};
    struct settings more = {0};

    if (problem_n_groups(&plan->problem) > 1)
        return err_usage(err, "option '--anew' needs a plan of one group");
    assume_hosts(&problems[1], plan, cli->arena);
    more.n_devices = more_gpus(&problems[1].cluster);
    if (settings_apply(&more, &problems[1], cli->arena, err))
        return -1;
    halve_weights(&problems[2], cli->arena);
    anew[0].name = "as it is";
    anew[1].name = arena_printf(cli->arena, "on %u GPUs", more.n_devices);
    anew[2].name = "with fp16 weights";
    for (*n = 0; *n < N_ANEW && !interrupt_requested(); ++*n) {
        problems[*n].row_cut = plan_row_cut(plan);
        if (plan_fresh(&anew[*n], &problems[*n], plan->cost.name, cli, err))
            return -1;
    }
    *list = anew;
    return 0;
}
