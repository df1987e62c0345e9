/* SPDX-License-Identifier: MIT */
#include "core/sharding_groups.h"

#include "core/cluster.h"

#include <inttypes.h>
#include <string.h>

/* --- the shape of the groups --- */

/* Returns whether a divides b, or b divides a. */
static bool divides(uint32_t a, uint32_t b)
{
    return a % b == 0 || b % a == 0;
}

bool sharding_groups_fit(const struct cluster *whole, uint32_t count,
                         enum groups_layout layout)
{
    const uint32_t n = count ? whole->n_devices / count : 0;

    if (!n || whole->n_devices % count)
        return false;
    if (layout == GROUPS_STRIDED)
        return whole->devices_per_host % count == 0;
    return divides(n, whole->devices_per_host) &&
           divides(n, cluster_group(whole));
}

static int check_shape(const struct problem *whole, uint32_t count,
                       enum groups_layout layout, struct err *err)
{
    const struct cluster *cluster = &whole->cluster;

    if (cluster->n_devices % count)
        return err_usage(err, "%u GPUs do not form %u equal groups",
                         cluster->n_devices, count);
    if (whole->batch % count)
        return err_usage(err,
                         "a batch of %" PRIu64
                         " samples cannot be divided by %u groups",
                         whole->batch, count);
    if (cluster->busy_ms)
        return err_usage(err, "groups cannot be planned beside tables that "
                              "another planner places");
    if (cluster->slowdown)
        return err_usage(err, "groups cannot be planned with a slowdown of a "
                              "GPU, as all groups have the same plan");
    if (sharding_groups_fit(cluster, count, layout))
        return 0;
    return err_usage(
        err, "%u %s groups do not divide hosts of %u GPUs%s evenly", count,
        groups_layout_names[layout], cluster->devices_per_host,
        cluster->hosts_per_domain > 1 ? " and NVLink domains" : "");
}

int sharding_groups_check(const struct problem *problem, struct err *err)
{
    static const bool is_averaged[N_OPTIMIZERS] = {
        [OPTIMIZER_SGD] = true,
        [OPTIMIZER_ADAGRAD] = true,
        [OPTIMIZER_ROWWISE_ADAGRAD] = true,
    };

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        if (!is_averaged[table->optimizer])
            return err_input(err,
                             "table '%.80s': groups need sgd, adagrad or "
                             "rowwise_adagrad, as TorchRec cannot average the "
                             "state of %s",
                             table->name, optimizer_names[table->optimizer]);
        if (table->precision == PRECISION_INT8)
            return err_input(err,
                             "table '%.80s': groups need weights that can be "
                             "averaged, not int8",
                             table->name);
    }
    return 0;
}

static int check_pins(const struct problem *group, struct err *err)
{
    for (size_t t = 0; t < group->n_tables; t++)
        if (group->tables[t].device >= group->cluster.n_devices)
            return err_usage(err,
                             "table '%.80s' is pinned to GPU %" PRId64
                             ", but a group has %u GPUs",
                             group->tables[t].name, group->tables[t].device,
                             group->cluster.n_devices);
    return 0;
}

/* Sets the hosts of one group. */
static void take_hosts(struct problem *group)
{
    const struct sharding_groups *groups = &group->groups;
    const uint32_t per_host = groups->layout == GROUPS_STRIDED
                                  ? groups->devices_per_host / groups->count
                                  : groups->devices_per_host;

    cluster_take_hosts(&group->cluster, per_host, groups->hosts_per_domain);
    group->cluster.asked_host = group->cluster.asked_domain = 0;
}

/* Gives each GPU of a group the memory of the tightest GPU in its place. */
static void take_memory(struct problem *group, const struct cluster *whole,
                        struct arena *arena)
{
    struct cluster *cluster = &group->cluster;
    const uint32_t n = cluster->n_devices;

    cluster->memory_bytes = ARENA_NEW(arena, uint64_t, n);
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, n);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t g = 0; g < group->groups.count; g++) {
            const uint32_t rank = sharding_groups_rank(group, g, r);
            const uint64_t memory = whole->memory_bytes[rank];
            const uint64_t reserve = whole->reserve_bytes[rank];

            if (g && memory - reserve >=
                         cluster->memory_bytes[r] - cluster->reserve_bytes[r])
                continue;
            cluster->memory_bytes[r] = memory;
            cluster->reserve_bytes[r] = reserve;
        }
}

/* Counts NCCL's buffers, if they are known. Each GPU keeps at least their size
 * free. */
static void take_nccl(struct problem *group)
{
    struct cluster *cluster = &group->cluster;

    if (!cluster->nccl_bytes)
        return;
    cluster->nccl_bytes = sharding_groups_nccl_bytes(group);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->reserve_bytes[r] =
            max_u64(cluster->reserve_bytes[r],
                    min_u64(cluster->nccl_bytes, cluster->memory_bytes[r]));
}

int sharding_groups_derive(struct problem *group, const struct problem *whole,
                           uint32_t count, enum groups_layout layout,
                           struct arena *arena, struct err *err)
{
    const struct cluster *cluster = &whole->cluster;

    *group = *whole;
    if (count == 1)
        return 0;
    if (check_shape(whole, count, layout, err) ||
        sharding_groups_check(whole, err))
        return -1;
    group->groups = (struct sharding_groups){
        .count = count,
        .layout = layout,
        .devices_per_host = cluster->devices_per_host,
        .hosts_per_domain = cluster->hosts_per_domain,
        .sync_every = whole->groups.sync_every,
    };
    group->batch = whole->batch / count;
    group->cluster.n_devices = cluster->n_devices / count;
    take_hosts(group);
    take_memory(group, cluster, arena);
    take_nccl(group);
    problem_find_hot_rows(group, arena);
    return check_pins(group, err);
}

int sharding_groups_judge(const struct problem *problem, struct err *err)
{
    const struct sharding_groups *groups = &problem->groups;
    const struct cluster whole = sharding_groups_cluster(problem);
    struct problem group = *problem;

    if (!groups->devices_per_host ||
        (uint64_t)groups->count * problem->cluster.n_devices > UINT32_MAX)
        return err_input(err, "the groups have no hosts, or too many GPUs");
    if (cluster_check_hosts(&whole, err))
        return -1;
    take_hosts(&group);
    if (!sharding_groups_fit(&whole, groups->count, groups->layout) ||
        problem->cluster.devices_per_host != group.cluster.devices_per_host ||
        max_u64(problem->cluster.hosts_per_domain, 1) !=
            max_u64(group.cluster.hosts_per_domain, 1))
        return err_input(err,
                         "%u %s groups do not divide hosts of %u GPUs into "
                         "groups of %u GPUs, %u a host",
                         groups->count, groups_layout_names[groups->layout],
                         groups->devices_per_host, problem->cluster.n_devices,
                         problem->cluster.devices_per_host);
    return sharding_groups_check(problem, err);
}

struct cluster sharding_groups_cluster(const struct problem *problem)
{
    const struct sharding_groups *groups = &problem->groups;
    struct cluster whole = problem->cluster;

    if (problem_n_groups(problem) == 1)
        return whole;
    whole.n_devices = problem_all_devices(problem);
    whole.devices_per_host = groups->devices_per_host;
    whole.hosts_per_domain = groups->hosts_per_domain;
    return whole;
}

uint32_t sharding_groups_rank(const struct problem *problem, uint32_t group,
                              uint32_t device)
{
    return problem->groups.layout == GROUPS_STRIDED
               ? device * problem_n_groups(problem) + group
               : group * problem->cluster.n_devices + device;
}

uint32_t sharding_groups_rank_at(const struct problem *problem, uint32_t place)
{
    const uint32_t n = problem->cluster.n_devices;

    return sharding_groups_rank(problem, place / n, place % n);
}

uint32_t sharding_groups_place(const struct problem *problem, uint32_t rank)
{
    const uint32_t n = problem_n_groups(problem);

    return problem->groups.layout == GROUPS_STRIDED
               ? rank % n * problem->cluster.n_devices + rank / n
               : rank;
}

uint32_t sharding_groups_per_host(const struct problem *problem)
{
    const uint32_t n = problem_n_groups(problem);
    const uint32_t per_host =
        n > 1 ? problem->groups.devices_per_host / problem->cluster.n_devices
              : 1;

    if (problem->groups.layout == GROUPS_STRIDED)
        return n;
    return per_host ? per_host : 1;
}

uint32_t sharding_groups_replicas_near(const struct problem *problem)
{
    const struct cluster whole = sharding_groups_cluster(problem);
    const uint32_t n =
        (uint32_t)min_u64(cluster_group(&whole), whole.n_devices) /
        problem->cluster.n_devices;

    if (problem->groups.layout == GROUPS_STRIDED)
        return problem_n_groups(problem);
    return n ? n : 1;
}

uint64_t sharding_groups_nccl_bytes(const struct problem *problem)
{
    return cluster_nccl_bytes(&problem->cluster) +
           cluster_nccl_ring_bytes(problem_n_groups(problem),
                                   sharding_groups_replicas_near(problem));
}

/* --- the sync --- */

double shard_sync_bytes(const struct problem *problem,
                        const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    struct table averaged = *table;
    struct memory_items items;

    if (shard_is_replica(shard->kind))
        return 0;
    averaged.row_overhead_bytes = 0;
    items = cells_memory(&averaged, table->optimizer, problem->layout, shard);
    return (double)items.weights + (double)items.optimizer;
}

double plan_sync_bytes(const struct plan *plan)
{
    const uint32_t n = plan->problem.cluster.n_devices;
    double *bytes = mem_alloc(n, sizeof(*bytes)), most = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        bytes[plan->shards[i].device] +=
            shard_sync_bytes(&plan->problem, &plan->shards[i]);
    for (uint32_t r = 0; r < n; r++)
        most = max_of(bytes[r], most);
    mem_free(bytes);
    return most;
}

/* --- folding --- */

/* Adds a table that is cut by rows over all GPUs, or a replicated table: a
 * block or a replica for each device of the group. */
static struct shard *spread(struct shard *out, const struct shard *first,
                            const struct problem *group)
{
    const uint64_t rows = group->tables[first->table].num_embeddings;
    const uint32_t n = group->cluster.n_devices;
    const bool is_replica = shard_is_replica(first->kind);
    const uint64_t block = is_replica ? rows : (rows - 1) / n + 1;

    for (uint32_t r = 0; r < n && (is_replica || r * block < rows); r++) {
        *out = *first;
        out->row_begin = is_replica ? 0 : r * block;
        out->row_end = min_u64(rows, out->row_begin + block);
        out->device = r;
        out++;
    }
    return out;
}

void sharding_groups_fold(struct plan *out, const struct plan *plan,
                          const struct problem *group, struct arena *arena)
{
    const uint32_t n = group->cluster.n_devices;
    const uint32_t n_all = plan->problem.cluster.n_devices;
    struct shard *next;

    *out =
        (struct plan){.problem = *group,
                      .shards = ARENA_NEW(arena, struct shard, plan->n_shards),
                      .total_ms = NAN,
                      .bound_ms = NAN};
    next = out->shards;
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const bool is_first = !i || shard[-1].table != shard->table;
        const bool is_spread =
            shard_is_replica(shard->kind) ||
            (shard->kind == SHARD_ROW &&
             shard_row_ranks(&plan->problem, shard) == n_all);

        if (is_spread && is_first)
            next = spread(next, shard, group);
        else if (!is_spread) {
            *next = *shard;
            next->device = shard->device % n;
            next++;
        }
    }
    out->n_shards = (size_t)(next - out->shards);
    plan_derive_kinds(out);
    (void)plan_join_columns(out, false, arena);
}
