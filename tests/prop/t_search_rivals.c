/* SPDX-License-Identifier: MIT */
/* For any list, cost model, shard kinds and hosts, the full search's plan costs
 * no more than that of any other planner, even with little effort. No plan is
 * below the bound. */
#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "search/planners.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"

static const char *const costs[] = {"torchrec", "roofline:h100",
                                    "model:h100.nsm", "roofline:a100"};
#define N_COSTS (sizeof costs / sizeof *costs)

struct tally {
    unsigned n_plans, n_rivals, n_start, n_dearer, n_bound;
    double worst;
};

static void draw(struct problem *problem, struct rng *rng, struct arena *arena)
{
    static const uint32_t n_devices[] = {2, 3, 4, 6, 8, 12, 16};
    const uint32_t n_gpus = n_devices[rng_below(rng, 7)];

    fake_random(problem, rng, 8, arena);
    problem->n_tables = 1 + rng_below(rng, problem->n_tables) % 10;
    problem->batch = UINT64_C(1024) << rng_below(rng, 7);
    problem->kinds = 1 + (unsigned)rng_below(rng, SHARD_ALL_KINDS);
    if (rng_below(rng, 2))
        problem->kinds |= SHARD_TABLE;
    problem->row_cut = rng_below(rng, 2) ? ROW_CUT_RANKS : ROW_CUT_ANY;
    problem->job.pipeline = (enum pipeline)rng_below(rng, N_PIPELINES);
    problem->job.asks_host = rng_below(rng, 2);
    fake_cluster(problem, n_gpus, UINT64_C(1) << 36, arena);
    if (n_gpus % 2 == 0 && rng_below(rng, 2))
        problem->cluster.devices_per_host = n_gpus / 2;
    for (size_t t = 0; t < problem->n_tables; t++) {
        struct table *table = &problem->tables[t];

        table->dim = 4 + 4 * (uint32_t)rng_below(rng, 64);
        table->num_embeddings = 1 + (uint64_t)exp(rng_uniform(rng) * 17);
        table->output = rng_below(rng, 4) ? OUTPUT_POOLED : OUTPUT_SEQUENCE;
        if (problem->kinds & SHARD_TABLE && !rng_below(rng, 9))
            table->device = (int64_t)rng_below(rng, n_gpus);
    }
    problem_find_hot_rows(problem, arena);
}

/* Returns whether a device has several pieces of a table. The search makes no
 * such plans, and they may be cheaper. */
static bool has_pieces_apart(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        for (size_t k = 0; k < i; k++)
            if (plan->shards[i].table == plan->shards[k].table &&
                plan->shards[i].device == plan->shards[k].device)
                return true;
    return false;
}

static void judge(struct tally *tally, uint64_t seed, const struct plan *plan,
                  const struct contender_inputs *inputs, struct arena *arena)
{
    for (const struct contender *by = search_contenders; by->name; by++) {
        struct plan other = {.problem = plan->problem, .bound_ms = NAN};
        struct err err = {0};

        if (by->search == search_full ||
            contender_place(&other, by, inputs, arena, &err) ||
            (by->search && plan_join_columns(&other, false, arena) &&
             plan_price(&other, inputs->oracle, arena, &err)) ||
            has_pieces_apart(&other))
            /* no plan to compare; plans of published searches are first joined:
             * pieces that share a device become one */
            continue;
        tally->n_rivals++;
        tally->worst = tap_worst(tally->worst, plan->total_ms / other.total_ms);
        if (plan->total_ms > other.total_ms * (1 + 1e-9)) {
            printf("# problem %u by %s: %.9g ms, and %s has %.9g\n",
                   (unsigned)seed, inputs->oracle->cost.name, plan->total_ms,
                   by->name, other.total_ms);
            tally->n_dearer++;
        }
        tally->n_bound += plan->bound_ms > other.total_ms * (1 + 1e-9);
    }
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    static const uint64_t efforts[] = {0, 1, 300, 3000};
    struct oracle *oracle = NULL, *torchrec = NULL;
    struct problem problem = {0};
    struct search_options options;
    struct contender_inputs inputs;
    struct arena arena = {0};
    struct plan plan;
    struct err err = {0};
    struct rng rng;

    rng_init(&rng, 51, seed);
    draw(&problem, &rng, &arena);
    search_options_init(&options);
    options.effort = efforts[rng_below(&rng, 4)];
    options.seed = seed % 3;
    plan = (struct plan){.problem = problem, .bound_ms = NAN};
    if (oracle_open(&oracle, costs[seed % N_COSTS], &problem, &arena, &err) ||
        oracle_open(&torchrec, "torchrec", &problem, &arena, &err)) {
        ok(0, "cost models open: %s", err.msg);
    } else {
        options.torchrec = torchrec;
        inputs = (struct contender_inputs){.oracle = oracle,
                                           .torchrec = torchrec,
                                           .search = &options,
                                           .seed = options.seed};
        if (!search_full(&plan, oracle, &options, &arena, &err) &&
            !judge_plan(&plan, oracle, &arena, &err)) {
            tally->n_plans++;
            judge(tally, seed, &plan, &inputs, &arena);
        } else if (err.code != ERR_USAGE && err.code != ERR_NO_PLAN) {
            ok(0, "problem %u: %s", (unsigned)seed, err.msg);
        }
    }
    arena_release(&arena);
}

int main(void)
{
    const uint64_t n = tap_size(200, 4000);
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < n; seed++)
        try_problem(seed, &tally);
    is_i64(tally.n_dearer, 0, "no plan costs more than another planner's");
    is_i64(tally.n_bound, 0, "no other plan is below the bound");
    ok(tally.n_plans > n / 2 && tally.n_rivals > n,
       "%u plans, compared with %u of others; worst %.6f", tally.n_plans,
       tally.n_rivals, tally.worst);
    return tap_done();
}
