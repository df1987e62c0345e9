/* SPDX-License-Identifier: MIT */
/* Sharding groups: their shapes, ranks, hosts and memory, the tables that they
 * refuse, the bytes of a sync, and folding. */
#include "core/sharding_groups.h"

#include "core/plan_check.h"
#include "tests/tap.h"

#include <string.h>

static struct arena arena;

/* Returns a problem of one table of 1000 x 8 in fp32 with this optimizer. */
static struct problem make_problem(uint32_t n_gpus, uint32_t per_host,
                                   uint32_t per_domain,
                                   enum optimizer optimizer)
{
    struct problem problem = {
        .tables = ARENA_NEW(&arena, struct table, 1),
        .n_tables = 1,
        .batch = 1024,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = n_gpus,
                    .devices_per_host = per_host,
                    .hosts_per_domain = per_domain,
                    .memory_bytes = ARENA_NEW(&arena, uint64_t, n_gpus),
                    .reserve_bytes = ARENA_NEW(&arena, uint64_t, n_gpus)}};

    table_init(problem.tables);
    problem.tables->name = "t";
    problem.tables->num_embeddings = 1000;
    problem.tables->dim = 8;
    problem.tables->pooling_factor = 2;
    problem.tables->optimizer = optimizer;
    for (uint32_t r = 0; r < n_gpus; r++)
        problem.cluster.memory_bytes[r] = 1000000 + r;
    problem_find_hot_rows(&problem, &arena);
    return problem;
}

/* A cluster, and the group that it is divided into. */
static const struct shape {
    uint32_t n, per_host, per_domain, count;
    enum groups_layout layout;
    bool fits;
    uint32_t host, domain; /* GPUs of a host of the group, hosts of a domain */
    uint32_t near;         /* GPUs of a replica group in one host or domain */
    uint32_t per_host_groups; /* groups that share a host */
    uint32_t rank;            /* rank in the job of GPU 1 of group 1 */
} shapes[] = {
    {16, 8, 1, 2, GROUPS_CONTIGUOUS, true, 8, 1, 1, 1, 9},
    {16, 8, 1, 4, GROUPS_CONTIGUOUS, true, 4, 1, 2, 2, 5},
    {16, 8, 1, 2, GROUPS_STRIDED, true, 4, 1, 2, 2, 3},
    {16, 8, 1, 8, GROUPS_STRIDED, true, 1, 1, 8, 8, 9},
    {32, 8, 1, 2, GROUPS_CONTIGUOUS, true, 8, 1, 1, 1, 17},
    {32, 4, 2, 2, GROUPS_CONTIGUOUS, true, 4, 2, 1, 1, 17},
    {32, 4, 2, 8, GROUPS_CONTIGUOUS, true, 4, 1, 2, 1, 5},
    {32, 4, 2, 4, GROUPS_STRIDED, true, 1, 2, 4, 4, 5},
    {24, 8, 1, 2, GROUPS_CONTIGUOUS, false, 0, 0, 0, 0, 0},
    {16, 8, 1, 16, GROUPS_STRIDED, false, 0, 0, 0, 0, 0},
    {16, 8, 1, 3, GROUPS_CONTIGUOUS, false, 0, 0, 0, 0, 0},
};

static void test_shapes(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *shape = &shapes[i];
        const struct problem whole =
            make_problem(shape->n, shape->per_host, shape->per_domain,
                         OPTIMIZER_ROWWISE_ADAGRAD);
        struct problem group;
        struct cluster again;
        struct err err = {0};

        is_i64(sharding_groups_fit(&whole.cluster, shape->count, shape->layout),
               shape->fits, "fits");
        if (sharding_groups_derive(&group, &whole, shape->count, shape->layout,
                                   &arena, &err)) {
            ok(!shape->fits, "refused: %s", err.msg);
            continue;
        }
        is_i64(group.cluster.n_devices, shape->n / shape->count, "GPUs");
        is_i64(group.cluster.devices_per_host, shape->host, "GPUs of a host");
        is_i64(group.cluster.hosts_per_domain, shape->domain, "hosts");
        is_i64((int64_t)group.batch, 1024 / shape->count, "samples");
        is_i64((int64_t)problem_all_samples(&group), 1024, "all samples");
        is_i64(sharding_groups_replicas_near(&group), shape->near, "near");
        is_i64(sharding_groups_per_host(&group), shape->per_host_groups,
               "groups of a host");
        is_i64(shape->n == shape->count ? shape->rank
                                        : sharding_groups_rank(&group, 1, 1),
               shape->rank, "rank");
        for (uint32_t place = 0; place < shape->n; place++)
            if (sharding_groups_place(
                    &group, sharding_groups_rank_at(&group, place)) != place)
                ok(0, "place %u of %s groups", place,
                   groups_layout_names[shape->layout]);
        is_i64(sharding_groups_rank_at(&group, group.cluster.n_devices),
               sharding_groups_rank(&group, 1, 0), "places go by group");
        again = sharding_groups_cluster(&group);
        ok(again.n_devices == shape->n &&
               again.devices_per_host == shape->per_host &&
               again.hosts_per_domain == shape->per_domain,
           "the whole cluster comes back");
        ok(!sharding_groups_judge(&group, &err), "judged: %s", err.msg);
        is_i64((int64_t)group.cluster.memory_bytes[0], 1000000,
               "memory of the tightest GPU");
        group.cluster.devices_per_host++;
        ok(sharding_groups_judge(&group, &err), "other hosts are refused");
    }
}

/* Each GPU has NCCL's buffers for the exchanges of its group and for the ring
 * of its replica group, and keeps them free. */
static void test_nccl(void)
{
    struct problem whole = make_problem(16, 8, 1, OPTIMIZER_SGD), group;
    struct cluster half = whole.cluster;
    struct err err = {0};

    half.n_devices = 8;
    whole.cluster.nccl_bytes = cluster_nccl_bytes(&whole.cluster);
    for (uint32_t r = 0; r < 16; r++)
        whole.cluster.memory_bytes[r] = (uint64_t)80 << 30;
    ok(!sharding_groups_derive(&group, &whole, 2, GROUPS_CONTIGUOUS, &arena,
                               &err),
       "groups that are hosts %s", err.msg);
    is_i64((int64_t)group.cluster.nccl_bytes,
           (int64_t)(cluster_nccl_bytes(&half) + ((uint64_t)128 << 20)),
           "the ring of the sync has network buffers");
    is_i64((int64_t)group.cluster.reserve_bytes[7],
           (int64_t)group.cluster.nccl_bytes, "they stay free");
    ok(!sharding_groups_derive(&group, &whole, 2, GROUPS_STRIDED, &arena, &err),
       "groups over hosts %s", err.msg);
    half.devices_per_host = 4;
    is_i64((int64_t)group.cluster.nccl_bytes,
           (int64_t)(cluster_nccl_bytes(&half) + ((uint64_t)32 * 12 << 20)),
           "a ring inside a host has channels");
    is_i64((int64_t)cluster_nccl_ring_bytes(1, 1), 0, "one rank has no ring");
}

static void test_refusals(void)
{
    struct problem whole = make_problem(16, 8, 1, OPTIMIZER_ADAM), group;
    struct err err = {0};

    ok(sharding_groups_derive(&group, &whole, 2, GROUPS_CONTIGUOUS, &arena,
                              &err),
       "Adam");
    is_str(
        err.msg,
        "table 't': groups need sgd, adagrad or rowwise_adagrad, as TorchRec "
        "cannot average the state of adam",
        "names the table");
    whole.tables->optimizer = OPTIMIZER_SGD;
    whole.tables->precision = PRECISION_INT8;
    ok(sharding_groups_check(&whole, &err), "int8");
    is_str(err.msg,
           "table 't': groups need weights that can be averaged, not int8",
           "names the table");
    whole.tables->precision = PRECISION_FP32;
    whole.tables->device = 8;
    ok(sharding_groups_derive(&group, &whole, 2, GROUPS_CONTIGUOUS, &arena,
                              &err),
       "a pin");
    is_str(err.msg, "table 't' is pinned to GPU 8, but a group has 8 GPUs",
           "names the table");
    whole.tables->device = -1;
    whole.batch = 1023;
    ok(sharding_groups_derive(&group, &whole, 2, GROUPS_CONTIGUOUS, &arena,
                              &err),
       "a batch");
    is_str(err.msg, "a batch of 1023 samples cannot be divided by 2 groups",
           "says why");
}

/* Bytes of weights and of the state `sum`, per optimizer. */
static void test_sync_bytes(void)
{
    static const struct {
        enum optimizer optimizer;
        double state;
    } cases[] = {{OPTIMIZER_SGD, 0},
                 {OPTIMIZER_ROWWISE_ADAGRAD, 4 * 1000},
                 {OPTIMIZER_ADAGRAD, 4 * 8000}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct problem problem = make_problem(2, 2, 1, cases[i].optimizer);
        struct shard shard = shard_whole(&problem, 0, 1);

        problem.tables->row_overhead_bytes = 3;
        is_near(shard_sync_bytes(&problem, &shard), 32000 + cases[i].state, 0,
                optimizer_names[cases[i].optimizer]);
        shard.kind = SHARD_REPLICATE;
        is_near(shard_sync_bytes(&problem, &shard), 0, 0, "none of a replica");
    }
}

/* A plan of 4 GPUs on two hosts, folded into groups of 2. */
static void test_fold(void)
{
    struct problem whole = make_problem(4, 2, 1, OPTIMIZER_SGD), group;
    struct shard rows[4];
    struct plan plan = {.problem = whole,
                        .shards = rows,
                        .n_shards = 4,
                        .total_ms = NAN,
                        .bound_ms = NAN};
    struct plan folded;
    struct err err = {0};

    for (uint32_t r = 0; r < 4; r++) {
        rows[r] = shard_whole(&whole, 0, r);
        rows[r].row_begin = 250 * r;
        rows[r].row_end = 250 * (r + 1);
    }
    plan_derive_kinds(&plan);
    ok(!sharding_groups_derive(&group, &whole, 2, GROUPS_CONTIGUOUS, &arena,
                               &err),
       "derived");
    sharding_groups_fold(&folded, &plan, &group, &arena);
    ok(!plan_check(&folded, &err), "rows over all GPUs: %s", err.msg);
    is_i64((int64_t)folded.n_shards, 2, "a block for each GPU of the group");
    plan.n_shards = 1;
    rows[0] = shard_whole(&whole, 0, 3);
    plan_derive_kinds(&plan);
    sharding_groups_fold(&folded, &plan, &group, &arena);
    ok(!plan_check(&folded, &err), "a whole table: %s", err.msg);
    is_i64(folded.shards[0].device, 1, "GPU 3 is GPU 1 of the second group");
}

int main(void)
{
    test_shapes();
    test_nccl();
    test_refusals();
    test_sync_bytes();
    test_fold();
    arena_release(&arena);
    return tap_done();
}
