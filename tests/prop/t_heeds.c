/* SPDX-License-Identifier: MIT */
/* Options that a cost model uses: compares the mask of each line of ORACLES()
 * with the change of prices when an option gets another value. */
#include "core/host.h"
#include "costmodel/models/oracles.h"

#include "base/file.h"
#include "costmodel/models/oracle_open.h"
#include "tests/golden.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define N_GPUS 4u /* number of GPUs of the published nets */
#define N_TABLES 4u

/* Rounds of each check. A pipeline matters on a CPU only for some lengths of
 * the dense part, since overlap costs there as much as it hides. */
#define N_ROUNDS 4

static const struct dense *dense_of(const char *text,
                                    const struct problem *problem)
{
    static struct dense dense;
    struct err err = {0};

    if (dense_parse(&dense, text, strlen(text), &err) ||
        dense_fit(&dense, problem->tables, problem->n_tables, &err))
        ok(0, "%s", err.msg);
    return &dense;
}

/* Sets an option to the first or the second of two values. */
static void set(struct problem *problem, unsigned option, bool second,
                unsigned round)
{
    struct cluster *cluster = &problem->cluster;
    struct job *job = &problem->job;

    switch (1u << option) {
    case HEED_INTRA:
        cluster->intra_gbps = second ? 2 : 1;
        break;
    case HEED_INTER:
        cluster->inter_gbps = second ? 0.2 : 0.1;
        break;
    case HEED_HOST:
        cluster->devices_per_host = second ? N_GPUS : 2;
        break;
    case HEED_DOMAIN:
        cluster->devices_per_host = 1;
        cluster->hosts_per_domain = second ? 2 : 1;
        break;
    case HEED_PIPELINE:
        job->pipeline = second ? PIPELINE_NONE : PIPELINE_SEMISYNC;
        job->dense_ms[0] = job->dense_ms[1] = 0.2 * pow(10, round);
        break;
    case HEED_CHUNKS:
        job->n_chunks = second ? 8 : 2;
        break;
    case HEED_DEDUP:
        job->dedup = second ? DEDUP_SESSIONS : DEDUP_IDS;
        break;
    case HEED_DENSE:
        job->dense_ms[0] = second ? 3 : 1;
        break;
    case HEED_LAYERS:
        for (size_t t = 0; t < problem->n_tables; t++)
            problem->tables[t].output = OUTPUT_POOLED;
        job->dense = dense_of(second ? "interaction:cat;top:4096-1"
                                     : "interaction:cat;top:64-1",
                              problem);
        break;
    case HEED_HOST_MS:
        job->asks_host = true;
        job->host_ms = second ? 90000 : 80000;
        break;
    default:
        ok(false, "option %u has no values here", option);
    }
}

/* Places whole tables. If rows may be cut, one table is in row blocks over all
 * GPUs. Another is in row blocks over the first two GPUs, unless hosts may be
 * larger. */
static void place(struct plan *plan, bool cuts_rows, bool cuts_pairs,
                  struct arena *arena)
{
    const struct problem *problem = &plan->problem;

    plan->shards = ARENA_NEW(arena, struct shard, N_TABLES * N_GPUS);
    plan->n_shards = 0;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        const uint32_t n = cuts_rows && t == 3                 ? N_GPUS
                           : cuts_rows && cuts_pairs && t == 2 ? 2
                                                               : 1;
        const uint64_t rows = problem->tables[t].num_embeddings / n;

        for (uint32_t i = 0; i < n; i++) {
            struct shard *shard = &plan->shards[plan->n_shards++];

            *shard = shard_whole(problem, t, n == 1 ? t : i);
            if (n == 1)
                continue;
            shard->kind = SHARD_ROW;
            shard->row_begin = i * rows;
            shard->row_end = (i + 1) * rows;
        }
    }
}

static int price(struct plan *plan, const char *cost, unsigned option,
                 bool second, unsigned round, struct arena *arena,
                 struct err *err)
{
    const uint64_t rows[N_TABLES] = {40000, 30000, 20000, 10000};
    const uint32_t dims[N_TABLES] = {64, 32, 128, 16};
    struct problem *problem = &plan->problem;

    *plan = (struct plan){0};
    fake_problem(problem, rows, dims, N_TABLES, N_GPUS, UINT64_C(1) << 40,
                 arena);
    problem->batch = 65536;
    problem->cluster.devices_per_host = 2;
    problem->cluster.hosts_per_domain = 1;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        problem->tables[t].dedup = 0.25;
        problem->tables[t].output = t % 2 ? OUTPUT_SEQUENCE : OUTPUT_POOLED;
    }
    set(problem, option, second, round);
    problem_find_hot_rows(problem, arena);
    place(plan, strncmp(cost, "reference", 9) != 0, 1u << option != HEED_HOST,
          arena);
    plan_derive_kinds(plan);
    return oracle_price_plan(plan, cost, arena, err);
}

/* Returns true if any price of the plans differs: the total, the step, or a
 * part of a GPU. */
static bool differ(const struct plan *a, const struct plan *b)
{
    bool any = a->total_ms != b->total_ms || plan_step(a).ms != plan_step(b).ms;

    for (uint32_t r = 0; r < N_GPUS; r++)
        any |= a->devices[r].compute_ms != b->devices[r].compute_ms ||
               a->devices[r].fwd_comm_ms != b->devices[r].fwd_comm_ms ||
               a->devices[r].bwd_comm_ms != b->devices[r].bwd_comm_ms;
    return any;
}

#define HEED_NAME(name, option) option,
static const char *const options[] = {HEEDS(HEED_NAME)};

static void check(const char *cost)
{
    const unsigned heeds = oracle_heeds(cost);

    for (unsigned o = 0; o < N_HEEDS; o++) {
        struct arena arena = {0};
        struct err err = {0};
        bool any = false, has_price = true;

        for (unsigned round = 0; round < N_ROUNDS; round++) {
            struct plan a, b;
            const int no_a = price(&a, cost, o, false, round, &arena, &err);
            const int no_b = price(&b, cost, o, true, round, &arena, &err);

            /* A plan with cuts that exist under only one value counts as
             * different, too. */
            any |= no_a != no_b || differ(&a, &b);
            has_price &= !no_a || !no_b;
        }
        is_i64(any, (heeds >> o) & 1, options[o]);
        ok(has_price, "one has a price: %s", err.msg);
        arena_release(&arena);
    }
    printf("# %s\n", cost);
}

#define ORACLE_ID(id, name, argument, heeds) ORACLE_##id,
enum { ORACLES(ORACLE_ID) N_ORACLES };

/* Texts of each cost model of ORACLES(). A cost model without a text fails the
 * test. */
static const char *const costs[N_ORACLES][6] = {
    [ORACLE_learned] = {"model:h100.nsm", "model:cpu-amd-epyc-2t.nsm"},
    [ORACLE_roofline] = {"roofline:h100", "roofline:cpu"},
    [ORACLE_reference] = {"reference:"}, /* the golden folder */
    [ORACLE_torchrec] = {"torchrec", "torchrec:outputs=legacy",
                         "torchrec:intra=3", "torchrec:hbm=900,inter=3",
                         "torchrec:inter=3,intra=4"},
};

int main(void)
{
    struct arena arena = {0};

    for (size_t o = 0; o < N_ORACLES; o++) {
        ok(costs[o][0] != NULL, "cost model %zu has a text here", o);
        for (size_t i = 0; costs[o][i]; i++)
            if (o != ORACLE_reference)
                check(costs[o][i]);
            else if (file_exists(golden_path("golden", &arena)))
                check(arena_printf(&arena, "%s%s", costs[o][i],
                                   golden_path("golden", &arena)));
    }
    is_i64(oracle_heeds("model:some"), HEED_ALL,
           "a model that is not opened yet");
    arena_release(&arena);
    return tap_done();
}
