/* SPDX-License-Identifier: MIT */
#include "cli/planning_cluster.h"

#include "base/cli_answer.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/settings.h"
#include "core/target_rules.h"
#include "costmodel/modelfile/gpu_changes.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "io/cluster_json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

const struct option_spec cluster_options[] = {
    OPTIONS_HEADED(CLUSTER_HEADING),
    {"cluster", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "JSON file that describes the GPUs if they are not all alike"},
    {"gpu", 0, OPTION_STRING, "NAME|FILE", "h100", 0, 0, NULL,
     "kind of GPU, which sets memory, bandwidths and cost model; changes of "
     "its figures may follow, as in l40s:memory=24GiB,dram=1008; plan takes a "
     "list"},
    {"gpus-per-host", 0, OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "GPUs per host; default: up to as many as hosts of this GPU are sold "
     "with"},
    {"hosts-per-domain", 0, OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "hosts per NVLink domain; default: each host is its own domain"},
    {"memory", 'm', OPTION_BYTES, "SIZE", NULL, 0, 0, NULL,
     "memory per GPU; default: that of the named GPU"},
    {"reserve", 0, OPTION_STRING, "SIZE|PERCENT", "15%", 0, 0, NULL,
     "memory per GPU that must stay free; 0 with --memory-model weights"},
    {"intra-gbps", 0, OPTION_DOUBLE, "X", NULL, CLUSTER_MIN_GBPS,
     CLUSTER_MAX_GBPS, NULL,
     "bandwidth of a GPU within its host or domain, in 10^9 bytes per second"},
    {"inter-gbps", 0, OPTION_DOUBLE, "X", NULL, CLUSTER_MIN_GBPS,
     CLUSTER_MAX_GBPS, NULL,
     "bandwidth of a GPU across hosts or domains, in 10^9 bytes per second"},
    {0},
};

static int bad_reserve(const struct cluster *cluster, bool is_of_file,
                       uint32_t gpu, const struct cli *cli, struct err *err)
{
    if (is_of_file)
        return err_input(err, "%s: reserve is %s, but GPU %u has %s",
                         cli_string(cli, "cluster"), cluster->reserve, gpu,
                         TEXT_BYTES(cluster->memory_bytes[gpu]));
    return err_usage(err,
                     "option '--reserve' takes a size up to a GPU's memory or "
                     "a percentage from 0%% to 100%%, not '%s'",
                     cluster->reserve);
}

/* Adds the reserve of the file of --cluster or of --reserve. Without --reserve
 * a default reserve applies, unless memory is counted as in the papers
 * (MEMORY_WEIGHTS). */
static int add_reserve(struct problem *problem, struct cli *cli,
                       struct err *err)
{
    struct cluster *cluster = &problem->cluster;
    const bool is_of_file = cluster->reserve != NULL;
    uint32_t bad;

    if (!is_of_file &&
        (cli_given(cli, "reserve") || problem->memory_model != MEMORY_WEIGHTS))
        cluster->reserve = cli_string(cli, "reserve");
    bad = cluster_add_reserve(cluster);
    return bad < cluster->n_devices
               ? bad_reserve(cluster, is_of_file, bad, cli, err)
               : 0;
}

void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli)
{
    if (cli_given(cli, "intra-gbps"))
        cluster->intra_gbps = cli_double(cli, "intra-gbps");
    if (cli_given(cli, "inter-gbps"))
        cluster->inter_gbps = cli_double(cli, "inter-gbps");
}

/* Sets the batch from the options. If no option gives a batch, the problem
 * keeps its batch. */
static int set_batch(struct problem *problem, struct cli *cli, struct err *err)
{
    const uint64_t batch = problem->batch;

    if (!batch || cli_given(cli, "batch"))
        problem->batch = cli_u64(cli, "batch") / problem_n_groups(problem);
    if (cli_given(cli, "batch") &&
        cli_u64(cli, "batch") % problem_n_groups(problem))
        return err_usage(
            err, "option '--batch': %u groups cannot share %" PRIu64 " samples",
            problem_n_groups(problem), cli_u64(cli, "batch"));
    if (cli_given(cli, "batch-per-gpu")) {
        problem->device_batch = cli_u64(cli, "batch-per-gpu");
        problem->batch = problem->device_batch * problem->cluster.n_devices;
    }
    if ((double)problem->batch > PROBLEM_MAX_BATCH)
        return err_usage(
            err,
            "option '--batch-per-gpu' makes a global batch of %" PRIu64
            ", above %.0f",
            problem->batch, PROBLEM_MAX_BATCH);
    if (problem->hot && problem->batch != batch)
        problem_find_hot_rows(problem, cli->arena);
    return 0;
}

static uint32_t asked_per_domain(const struct cli *cli)
{
    return (uint32_t)max_u64(cli_u64(cli, "hosts-per-domain"), 1);
}

/* Returns true if n_gpus is a whole number of hosts, and these are a whole
 * number of domains. */
static bool are_whole(uint32_t n_gpus, uint32_t per_host, uint32_t per_domain)
{
    struct cluster cluster = {.n_devices = n_gpus};
    struct err ignored = {0};

    cluster_take_hosts(&cluster, per_host, per_domain);
    return !cluster_check_hosts(&cluster, &ignored);
}

/* Returns the GPU that --gpu names, or NULL if the option is not given. A list
 * of GPUs is refused. */
static int one_asked_gpu(const char **name, struct cli *cli, struct err *err)
{
    *name = cli_given(cli, "gpu") ? cli_string(cli, "gpu") : NULL;
    if (!*name || !gpu_changes_split(*name, cli->arena)[1])
        return 0;
    return err_usage(err,
                     "option '--gpu' takes one GPU here, not '%s'; only 'plan' "
                     "takes a list",
                     cli_shown(cli, "gpu"));
}

int planning_choose_gpu(const struct gpu_spec **gpu, struct cluster *cluster,
                        const char *asked, const char *of_plan, struct cli *cli,
                        struct err *err)
{
    const bool is_of_file = cluster->gpu != NULL;
    const char *name = cluster->gpu ? cluster->gpu : asked;

    if (!name && one_asked_gpu(&name, cli, err))
        return -1;
    if (!name && cli_given(cli, "cost") &&
        oracle_gpu(&name, cli_string(cli, "cost"), cli->arena, err))
        return -1;
    if (!name)
        name = of_plan;
    cluster->is_default_gpu = !name;
    if (!gpu_spec_get(gpu, name ? name : cli_string(cli, "gpu"), cli->arena,
                      err)) {
        cluster->gpu = (*gpu)->name;
        return 0;
    }
    if (!is_of_file)
        return -1;
    /* in an option this is wrong usage, but here the wrong value is in the
     * file */
    err->code = ERR_INPUT;
    return err_prefix(err, "%s: gpu", cli_string(cli, "cluster"));
}

const char *const *planning_asked_gpus(struct cli *cli)
{
    static const char *const none[] = {NULL};

    return cli_given(cli, "gpu")
               ? gpu_changes_split(cli_string(cli, "gpu"), cli->arena)
               : none;
}

/* Adds a cell for each number of GPUs that --gpus asks for. `gpu` is one of
 * --gpu, or NULL. */
static int add_counts(struct planning_grid *grid, const char *gpu,
                      const struct cluster *like, struct cli *cli,
                      struct err *err)
{
    const struct option_value *asked = cli_value(cli, "gpus");
    const struct gpu_spec *spec;
    const size_t n = grid->n;
    uint32_t per_host = 0;

    if (cli_given(cli, "gpus-per-host"))
        per_host = (uint32_t)cli_u64(cli, "gpus-per-host");
    else if (asked->is_range) {
        if (planning_choose_gpu(&spec, &(struct cluster){0}, gpu, like->gpu,
                                cli, err))
            return -1;
        per_host = spec->gpus_per_host;
    }
    for (size_t i = 0; i < asked->n_numbers; i++) {
        const struct option_number *number = &asked->numbers[i];

        if (number->is_listed || !per_host ||
            are_whole((uint32_t)number->n, per_host, asked_per_domain(cli)))
            grid->cells[grid->n++] =
                (struct planning_cell){gpu, (uint32_t)number->n};
    }
    /* The option takes one number, or --cluster gives the number. */
    if (!asked->n_numbers)
        grid->cells[grid->n++] =
            (struct planning_cell){gpu, (uint32_t)asked->u64};
    if (grid->n > n)
        return 0;
    return err_usage(err,
                     "no number of GPUs from %" PRIu64 " to %" PRIu64
                     " fills whole hosts of %u GPUs each%s",
                     asked->u64, asked->numbers[asked->n_numbers - 1].n,
                     per_host,
                     asked_per_domain(cli) > 1 ? ", in whole domains" : "");
}

int planning_grid(struct planning_grid *grid, const struct cluster *like,
                  struct cli *cli, struct err *err)
{
    const char *const *gpus = planning_asked_gpus(cli);
    const struct option_value *asked = cli_value(cli, "gpus");
    size_t n_gpus = 0;

    if (!asked->given && !cli_given(cli, "cluster"))
        return err_usage(
            err, "option '--gpus' is needed: how many GPUs to plan for");
    while (gpus[n_gpus])
        n_gpus++;
    *grid = (struct planning_grid){
        .cells = ARENA_NEW(cli->arena, struct planning_cell,
                           max_u64(n_gpus, 1) * max_u64(asked->n_numbers, 1))};
    for (size_t g = 0; g < max_u64(n_gpus, 1); g++)
        if (add_counts(grid, gpus[g], like, cli, err))
            return -1;
    return 0;
}

/* Returns true if the hosts of the current plan `like` can be used for n GPUs,
 * too. A plan on a single host does not apply to another number of GPUs. */
static bool is_like(const struct cluster *like, uint32_t n_gpus)
{
    if (!like->devices_per_host)
        return false;
    if (n_gpus == like->n_devices)
        return true;
    if (like->devices_per_host == like->n_devices)
        return false;
    return are_whole(n_gpus, like->devices_per_host, like->hosts_per_domain);
}

/* Assumes hosts of the size in which this GPU is sold, because neither options
 * nor files give the hosts. If this only gives hosts of one GPU each, a single
 * number of GPUs is refused; in a range such a number is kept. */
static int assume_hosts(struct cluster *cluster, uint32_t host_size,
                        struct cli *cli, struct err *err)
{
    uint32_t n = cluster->n_devices;

    cluster->host_size = host_size;
    cluster->devices_per_host =
        host_size ? cluster_assumed_host(n, host_size) : n;
    if (n > cluster->devices_per_host && cluster->devices_per_host == 1 &&
        !cli_value(cli, "gpus")->is_range)
        return err_usage(err,
                         "%u GPUs do not fill whole hosts of 2 to %u GPUs "
                         "each: option '--gpus-per-host' is needed",
                         n, host_size);
    return 0;
}

/* Sets the hosts. They come from the options, or else from the current plan, or
 * else from the assumption for this GPU (assume_hosts). */
static int set_hosts(struct cluster *cluster, const struct cluster *like,
                     const struct gpu_spec *gpu, struct cli *cli,
                     struct err *err)
{
    if (cli_given(cli, "gpus-per-host")) {
        cluster->asked_host = (uint32_t)cli_u64(cli, "gpus-per-host");
        cluster->asked_domain = asked_per_domain(cli);
        cluster_take_hosts(cluster, cluster->asked_host, cluster->asked_domain);
    } else if (cli_given(cli, "hosts-per-domain"))
        return err_usage(err,
                         "option '--hosts-per-domain' needs '--gpus-per-host'");
    else if (is_like(like, cluster->n_devices))
        cluster_take_hosts(cluster, like->devices_per_host,
                           like->hosts_per_domain);
    else {
        /* `gpu` is NULL only for a loaded plan; it always has hosts of its
         * own */
        assert(gpu);
        return assume_hosts(cluster, gpu->gpus_per_host, cli, err);
    }
    if (!cluster_check_hosts(cluster, err))
        return 0;
    err->code = ERR_USAGE;
    return -1;
}

/* Refuses options for values that the file of --cluster also gives. */
static int check_said_once(const struct cluster *cluster, struct cli *cli,
                           struct err *err)
{
    const struct {
        const char *option;
        bool is_said;
    } said[] = {
        {"gpus", true},
        {"gpus-per-host", true},
        {"hosts-per-domain", true},
        {"memory", true},
        {"gpu", cluster->gpu != NULL},
        {"reserve", cluster->reserve != NULL},
        {"intra-gbps", cluster->intra_gbps > 0},
        {"inter-gbps", cluster->inter_gbps > 0},
    };

    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].is_said && cli_given(cli, said[i].option))
            return err_usage(err,
                             "option '--%s' cannot be given with '--cluster': "
                             "'%s' already gives it",
                             said[i].option, cli_string(cli, "cluster"));
    return 0;
}

/* Sets the memory of those GPUs for which the file of --cluster gives no
 * memory. It is the value of --memory, or else the memory with which the GPU is
 * sold. NCCL's buffers are counted only if all GPUs have the memory with which
 * they are sold. */
static int set_memory(struct problem *problem, const struct gpu_spec *gpu,
                      struct cli *cli, struct err *err)
{
    struct cluster *cluster = &problem->cluster;
    bool is_as_sold = !cli_given(cli, "memory");

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        if (cluster->memory_bytes[r]) {
            is_as_sold = false;
            continue;
        }
        cluster->memory_bytes[r] = cli_given(cli, "memory")
                                       ? cli_u64(cli, "memory")
                                       : gpu->memory_bytes;
        if (cluster->reserve_bytes[r] > cluster->memory_bytes[r])
            return err_set(
                err, ERR_INPUT,
                "%s: used is %s for GPU %u, but a GPU of kind %s has %s",
                cli_string(cli, "cluster"),
                TEXT_BYTES(cluster->reserve_bytes[r]), r, gpu->name,
                TEXT_BYTES(gpu->memory_bytes));
    }
    if (is_as_sold && problem->memory_model == MEMORY_FULL &&
        strcmp(cluster->gpu, "cpu") != 0)
        cluster->nccl_bytes = cluster_nccl_bytes(cluster);
    return 0;
}

/* Share of the memory of a host that --tiers auto gives to tables. The rest is
 * assumed to be enough for the job. */
#define AUTO_SHARE 0.8

int planning_auto_host(uint64_t *bytes, const char *gpu, struct cli *cli,
                       struct err *err)
{
    const struct gpu_spec *spec;

    if (gpu_spec_get(&spec, gpu, cli->arena, err))
        return -1;
    if (!spec->host_memory_bytes)
        return err_usage(err,
                         "option '--tiers auto': the memory of a host of GPU "
                         "'%s' is not known; give it by host=SIZE",
                         gpu);
    *bytes = (uint64_t)(AUTO_SHARE * (double)spec->host_memory_bytes);
    return 0;
}

/* Reads --tiers. */
static int read_tiers(uint64_t *bytes, const char *gpu, struct cli *cli,
                      struct err *err)
{
    static const char prefix[] = "host=";
    const char *text = cli_string(cli, "tiers");

    if (!strncmp(text, prefix, strlen(prefix)) &&
        text_to_bytes(text + strlen(prefix), bytes) && *bytes)
        return 0;
    if (strcmp(text, "auto") != 0)
        return err_usage(err,
                         "option '--tiers' takes 'auto' or 'host=SIZE', such "
                         "as host=512GiB, not '%s'",
                         cli_shown(cli, "tiers"));
    return planning_auto_host(bytes, gpu, cli, err);
}

/* Returns the option that contradicts --tiers, or NULL. */
static const char *against_tiers(const struct problem *problem)
{
    if (problem->memory_model != MEMORY_FULL)
        return "--memory-model";
    if (problem_n_groups(problem) > 1)
        return "--groups";
    return problem_target(problem)->has_tiers ? NULL : "--target";
}

int planning_set_tiers(struct problem *problem, struct cli *cli,
                       struct err *err)
{
    struct cluster *cluster = &problem->cluster;
    const char *other;

    if (cli_given(cli, "tiers")) {
        other = against_tiers(problem);
        if (other)
            return err_usage(err, "option '--tiers' contradicts '%s'", other);
        return read_tiers(&cluster->host_bytes, cluster->gpu, cli, err);
    }
    for (size_t t = 0; t < problem->n_tables; t++)
        if (!(problem->tables[t].tiers & 1u << TIER_HBM))
            return err_usage(err,
                             "table '%s' may not be in the memory of GPUs; "
                             "option '--tiers' gives it memory of the host",
                             problem->tables[t].name);
    return 0;
}

int planning_set_cluster(struct problem *problem,
                         const struct planning_cell *cell,
                         const struct cluster *like, struct cli *cli,
                         struct err *err)
{
    const uint32_t n_gpus = cell->n_gpus;
    const char *path = cli_string(cli, "cluster");
    struct cluster *cluster = &problem->cluster;
    const struct gpu_spec *gpu;

    *cluster = (struct cluster){0};
    if (path && (cluster_load(cluster, path, cli->arena, err) ||
                 check_said_once(cluster, cli, err)))
        return -1;
    if (planning_choose_gpu(&gpu, cluster, cell->gpu, like->gpu, cli, err))
        return -1;
    if (!path) {
        cluster->n_devices = n_gpus;
        cluster->memory_bytes = ARENA_NEW(cli->arena, uint64_t, n_gpus);
        cluster->reserve_bytes = ARENA_NEW(cli->arena, uint64_t, n_gpus);
        if (set_hosts(cluster, like, gpu, cli, err))
            return -1;
    }
    planning_set_bandwidths(cluster, cli);
    if (set_memory(problem, gpu, cli, err) || set_batch(problem, cli, err))
        return -1;
    return add_reserve(problem, cli, err);
}

void planning_know_gpu(struct cluster *cluster, const char *cost,
                       struct arena *arena)
{
    struct err ignored = {0};

    if (!cluster->gpu && cost &&
        oracle_gpu(&cluster->gpu, cost, arena, &ignored))
        cluster->gpu = NULL;
}

int planning_ask_gpu(struct cluster *cluster, struct cli *cli, struct err *err)
{
    const char *own = cluster->gpu;
    const struct gpu_spec *gpu;

    cluster->gpu = NULL;
    if (planning_choose_gpu(&gpu, cluster, NULL, own, cli, err))
        return -1;
    if (own && !cli_given(cli, "gpu") && strcmp(gpu->name, own) != 0)
        cli_warn(NULL, text_say(cli->arena,
                                "cost model '%s' prices GPU '%s', but the plan "
                                "is for '%s'",
                                cli_string(cli, "cost"), gpu->name, own));
    return 0;
}

int planning_ask_what_if(struct problem *problem, struct cli *cli,
                         struct err *err)
{
    const struct settings asked = {.reserve = cli_given(cli, "reserve")
                                                  ? cli_string(cli, "reserve")
                                                  : NULL};
    struct cluster *cluster = &problem->cluster;
    const struct cluster said = *cluster;

    if (problem_n_groups(problem) > 1 && cli_given(cli, "gpus-per-host"))
        return err_usage(err,
                         "option '--gpus-per-host' cannot change a plan of %u "
                         "groups",
                         problem_n_groups(problem));
    if (set_hosts(cluster, &said, NULL, cli, err))
        return -1;
    if (cluster->nccl_bytes && cli_given(cli, "gpus-per-host"))
        cluster->nccl_bytes = cluster_nccl_bytes(cluster);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->reserve_bytes[r] =
            max_u64(cluster->reserve_bytes[r], cluster->nccl_bytes);
    if (settings_apply(&asked, problem, cli->arena, err))
        return bad_reserve(cluster, false, 0, cli, err);
    return set_batch(problem, cli, err);
}
