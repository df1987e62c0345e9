/* SPDX-License-Identifier: MIT */
/* The price of sharding groups on random plans, against its definition. */
#include "core/sharding_groups.h"

#include "core/plan_price.h"
#include "costmodel/formulas/comm_model.h"
#include "costmodel/models/oracle_open.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define N_PLANS 20
#define N_GPUS 8
#define PER_HOST 4
#define GPU "roofline:h100"

static struct arena arena;
static struct rng rng;

static void draw_problem(struct problem *whole, uint64_t sync_every)
{
    static const enum optimizer optimizers[] = {
        OPTIMIZER_SGD, OPTIMIZER_ADAGRAD, OPTIMIZER_ROWWISE_ADAGRAD};

    fake_random(whole, &rng, 2, &arena);
    fake_cluster(whole, N_GPUS, UINT64_C(1) << 40, &arena);
    whole->cluster.devices_per_host = PER_HOST;
    whole->cluster.intra_gbps = 300;
    whole->cluster.inter_gbps = 40;
    whole->batch = 4096;
    whole->groups.sync_every = sync_every;
    for (size_t t = 0; t < whole->n_tables; t++)
        whole->tables[t].optimizer = optimizers[t % 3];
    problem_find_hot_rows(whole, &arena);
}

/* Returns a plan of the problem with whole tables, and replicas if asked. */
static struct plan draw_plan(const struct problem *problem, bool has_replicas)
{
    const uint32_t n = problem->cluster.n_devices;
    struct plan plan = {.problem = *problem};

    plan.shards = ARENA_NEW(&arena, struct shard, n * problem->n_tables);
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const bool is_replica = has_replicas && t % 4 == 0;

        for (uint32_t r = 0; r < (is_replica ? n : 1); r++) {
            struct shard *shard = &plan.shards[plan.n_shards++];

            *shard = shard_whole(problem, t, is_replica ? r : t * 7 % n);
            if (is_replica)
                shard->kind = SHARD_REPLICATE;
        }
    }
    plan_derive_kinds(&plan);
    return plan;
}

/* Prices the plan for this problem. */
static struct plan priced(const struct plan *plan,
                          const struct problem *problem)
{
    struct plan out = *plan;
    struct oracle *oracle;
    struct err err = {0};

    out.problem = *problem;
    if (oracle_open(&oracle, GPU, problem, &arena, &err) ||
        plan_price(&out, oracle, &arena, &err))
        ok(0, "priced: %s", err.msg);
    return out;
}

static struct problem derived(const struct problem *whole, uint32_t count,
                              enum groups_layout layout)
{
    struct problem group = {0};
    struct err err = {0};

    if (sharding_groups_derive(&group, whole, count, layout, &arena, &err))
        ok(0, "derived: %s", err.msg);
    return group;
}

/* Without syncs and replicas, contiguous groups cost what a job of the size of
 * one group costs. */
static void test_like_small_jobs(void)
{
    for (unsigned i = 0; i < N_PLANS; i++) {
        const uint32_t count = i % 2 ? 2 : 4;
        struct problem whole, group, small;
        struct plan plan, ours, theirs;

        draw_problem(&whole, 0);
        group = derived(&whole, count, GROUPS_CONTIGUOUS);
        small = whole;
        cluster_resize(&small.cluster, N_GPUS / count);
        small.batch = whole.batch / count;
        problem_find_hot_rows(&small, &arena);
        plan = draw_plan(&group, false);
        ours = priced(&plan, &group);
        theirs = priced(&plan, &small);
        ok(ours.total_ms == theirs.total_ms && ours.total_ms > 0,
           "%u groups cost %.9g ms, a small job %.9g ms", count, ours.total_ms,
           theirs.total_ms);
        is_i64((int64_t)ours.devices[0].memory.total,
               (int64_t)theirs.devices[0].memory.total, "as much memory");
    }
}

/* Returns the bytes of the device with most to sync, by the definition. */
static double most_bytes(const struct plan *plan)
{
    double most = 0;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        double sum = 0;

        for (size_t i = 0; i < plan->n_shards; i++) {
            const struct shard *shard = &plan->shards[i];
            const struct table *table = &plan->problem.tables[shard->table];
            const double rows = (double)table->num_embeddings;
            const double state = table->optimizer == OPTIMIZER_SGD ? 0
                                 : table->optimizer == OPTIMIZER_ADAGRAD
                                     ? rows * table->dim
                                     : rows;

            if (shard->device == r && !shard_is_replica(shard->kind))
                sum += 4 * (rows * table->dim + state);
        }
        most = fmax(most, sum);
    }
    return most;
}

/* A step has 1 / K of a sync: 2 (G - 1) / G x the bytes of the fullest device
 * over the link between the replicas. Latencies are left out. */
static void test_sync(void)
{
    static const struct {
        uint32_t count;
        enum groups_layout layout;
        double gbps;
    } cases[] = {{2, GROUPS_CONTIGUOUS, 40},
                 {4, GROUPS_CONTIGUOUS, 80}, /* two of four are in a host */
                 {8, GROUPS_CONTIGUOUS, 160},
                 {2, GROUPS_STRIDED, 300},
                 {4, GROUPS_STRIDED, 300}};
    const uint64_t every = 100;

    for (unsigned i = 0; i < N_PLANS; i++) {
        const size_t c = i % (sizeof cases / sizeof *cases);
        const uint32_t n = cases[c].count;
        struct problem whole, group, unsynced;
        struct plan plan, with, without;
        double bytes, want_ms, far_ms;

        draw_problem(&whole, every);
        whole.tables[0].num_embeddings = 10000000;
        group = derived(&whole, n, cases[c].layout);
        unsynced = group;
        unsynced.groups.sync_every = 0;
        plan = draw_plan(&group, i % 3 == 0);
        with = priced(&plan, &group);
        without = priced(&plan, &unsynced);
        is_near(with.total_ms, without.total_ms + with.sync.ms / (double)every,
                1e-12 * with.total_ms, "a step has its share of a sync");
        bytes = most_bytes(&plan);
        is_near(with.sync.bytes, bytes, 1, "bytes of the fullest device");
        far_ms = 2.0 * (n - 1) / n * bytes / cases[c].gbps * 1e-6;
        want_ms = fmax(far_ms, 2.0 * (n - 1) / n * bytes / 300 * 1e-6);
        ok(with.sync.ms >= want_ms && with.sync.ms <= want_ms + 0.1,
           "a sync of %u %s groups takes %.4g ms, by its bytes %.4g ms", n,
           groups_layout_names[cases[c].layout], with.sync.ms, want_ms);
    }
}

/* Replicas are reduced over all GPUs of the job, not over those of a group. */
static void test_replicas(void)
{
    for (unsigned i = 0; i < N_PLANS; i++) {
        struct problem whole, group;
        struct plan plan, of_all, of_group;
        double all_ms, group_ms;

        draw_problem(&whole, 0);
        group = derived(&whole, 2, GROUPS_CONTIGUOUS);
        plan = draw_plan(&whole, true);
        of_all = priced(&plan, &whole);
        plan = draw_plan(&group, true);
        of_group = priced(&plan, &group);
        all_ms = of_all.devices[0].parts_ms[STEP_REPLICAS];
        group_ms = of_group.devices[0].parts_ms[STEP_REPLICAS];
        is_near(group_ms, all_ms, 1e-9 * all_ms, "all-reduce and update");
    }
}

/* The terms that a search adds up give the price of the plan, with the sync as
 * the last one. */
static void test_terms(void)
{
    for (unsigned i = 0; i < N_PLANS; i++) {
        struct problem whole, group;
        struct plan plan, out;
        struct oracle *oracle;
        struct err err = {0};
        double max_ms[ORACLE_MAX_TERMS] = {0}, terms_ms[ORACLE_MAX_TERMS];
        double *sums, *vectors, compute_ms;

        draw_problem(&whole, 1 + i);
        whole.job.n_chunks = 1 + i % 2;
        group = derived(&whole, 2, i % 3 ? GROUPS_CONTIGUOUS : GROUPS_STRIDED);
        plan = draw_plan(&group, i % 2);
        out = priced(&plan, &group);
        if (oracle_open(&oracle, GPU, &group, &arena, &err))
            continue;
        vectors = ARENA_NEW(&arena, double, plan.n_shards * oracle->width);
        sums =
            ARENA_NEW(&arena, double, group.cluster.n_devices * oracle->width);
        oracle->ops->embed(oracle, plan.shards, plan.n_shards, vectors);
        oracle_add_shards(oracle, plan.shards, vectors, plan.n_shards, 1, sums);
        for (uint32_t r = 0; r < group.cluster.n_devices; r++) {
            oracle->ops->terms(oracle, sums + r * (size_t)oracle->width, 1,
                               &compute_ms, terms_ms);
            for (uint32_t k = 0; k < oracle->n_terms; k++)
                max_ms[k] = fmax(max_ms[k], terms_ms[k]);
        }
        is_near(oracle_terms_total_ms(oracle, max_ms), out.total_ms,
                1e-9 * out.total_ms, "total of the terms");
        is_near(max_ms[oracle->n_terms - 1], out.sync.ms / (1 + i),
                1e-9 * out.sync.ms, "the last term is the sync");
    }
}

int main(void)
{
    rng_init(&rng, 48, 0);
    test_like_small_jobs();
    test_sync();
    test_replicas();
    test_terms();
    arena_release(&arena);
    return tap_done();
}
