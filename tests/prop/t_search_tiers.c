/* SPDX-License-Identifier: MIT */
/* Plans with tables in host memory against all plans of tiny problems: each
 * table in each tier, whole on each GPU or in two column halves on two GPUs. No
 * plan is above those of the rules for tables in host memory. */
#include "core/cache_pools.h"
#include "core/load_factors.h"
#include "core/memory.h"
#include "costmodel/models/oracles.h"
#include "search/planners.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"

#include "base/rng.h"

#define N_PROBLEMS 30
#define N_PROBLEMS_FULL 300
#define EFFORT 20000
#define MAX_TABLES 4
#define MAX_GPUS 3
/* Largest share above the best plan, and smallest share of problems within. */
#define WITHIN 0.01
#define MOST_MISSED 60 /* one in 60 problems */

struct drawn {
    struct table tables[MAX_TABLES];
    char names[MAX_TABLES][16];
    uint64_t memory[MAX_GPUS], reserve[MAX_GPUS];
    struct problem problem;
};

static struct arena arena;

/* Draws a problem whose tables are about twice the memory of its GPUs. */
static void draw(struct drawn *drawn, struct rng *rng, bool is_small)
{
    const uint32_t n_gpus = is_small ? 2 : 2 + rng_draw(rng, 2);
    const uint32_t n = is_small || n_gpus > 2 ? 3 : 3 + rng_draw(rng, 2);
    double bytes = 0;

    memset(drawn, 0, sizeof(*drawn));
    for (uint32_t t = 0; t < n; t++) {
        struct table *table = &drawn->tables[t];

        table_init(table);
        snprintf(drawn->names[t], sizeof(drawn->names[t]), "t%u", t);
        table->name = drawn->names[t];
        table->num_embeddings = 100000u << rng_draw(rng, 6);
        table->dim = 32u << rng_draw(rng, 3);
        table->pooling_factor = 1u << rng_draw(rng, 5);
        table->skew_assumed = false;
        table->zipf_alpha = 0.7 + 0.1 * rng_draw(rng, 5);
        table->min_width = table->dim / 2;
        table->optimizer =
            rng_draw(rng, 4) ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_ADAM;
        bytes += 4.0 * table->dim * (double)table->num_embeddings;
    }
    drawn->problem = (struct problem){
        .tables = drawn->tables,
        .n_tables = n,
        .source = "drawn",
        .cluster = {.n_devices = n_gpus,
                    .devices_per_host = n_gpus,
                    .memory_bytes = drawn->memory,
                    .reserve_bytes = drawn->reserve,
                    .host_bytes = 1ull << 40},
        .kinds = SHARD_TABLE | SHARD_COLUMN,
        .batch = 8192,
        .layout = LAYOUT_FBGEMM,
        .buffers = BUFFERS_TRACED,
        .dense_optimizer = DENSE_ADAM,
        .job.pipeline = rng_draw(rng, 3) ? PIPELINE_SDD : PIPELINE_PREFETCH};
    problem_find_hot_rows(&drawn->problem, &arena);
    for (uint32_t r = 0; r < n_gpus; r++)
        drawn->memory[r] =
            sample_memory(&drawn->problem).total + (256u << 20) +
            (uint64_t)(bytes * (0.3 + 0.5 * rng_uniform(rng)) / n_gpus);
}

/* Adds the shards of a table in way `way` of its tiers and places. */
static void add_table(struct plan *plan, uint32_t t, uint32_t way)
{
    const uint32_t n_gpus = plan->problem.cluster.n_devices;
    const uint32_t place = way / N_TIERS;
    struct shard shard = shard_whole(&plan->problem, t, place);
    uint32_t pair = place - n_gpus;

    shard.tier = (enum tier)(way % N_TIERS);
    if (place < n_gpus) {
        plan->shards[plan->n_shards++] = shard;
        return;
    }
    for (uint32_t a = 0; a < n_gpus; a++)
        for (uint32_t b = a + 1; b < n_gpus; b++, pair--) {
            if (pair)
                continue;
            shard.kind = SHARD_COLUMN;
            shard.device = a;
            shard.col_end /= 2;
            plan->shards[plan->n_shards++] = shard;
            shard.device = b;
            shard.col_begin = shard.col_end;
            shard.col_end *= 2;
            plan->shards[plan->n_shards++] = shard;
            return;
        }
}

/* Returns the least total of all plans, or INFINITY if none fits. */
static double least_total(const struct drawn *drawn,
                          const struct oracle *oracle)
{
    const struct problem *problem = &drawn->problem;
    const uint32_t n_gpus = problem->cluster.n_devices;
    const uint32_t n_ways = N_TIERS * (n_gpus + n_gpus * (n_gpus - 1) / 2);
    struct shard shards[2 * MAX_TABLES];
    uint32_t ways[MAX_TABLES] = {0};
    double least = INFINITY;

    for (;;) {
        struct plan plan = {.problem = *problem,
                            .shards = shards,
                            .total_ms = NAN,
                            .bound_ms = NAN};
        struct arena scratch = {0};
        struct err err = {0};
        uint32_t t = 0;

        for (uint32_t i = 0; i < problem->n_tables; i++)
            add_table(&plan, i, ways[i]);
        plan_choose_factors(&plan, oracle->curves, &scratch);
        if (!plan_price(&plan, oracle, &scratch, &err) &&
            plan.total_ms < least && !plan_check(&plan, &err))
            least = plan.total_ms;
        arena_release(&scratch);
        while (t < problem->n_tables && ++ways[t] == n_ways)
            ways[t++] = 0;
        if (t == problem->n_tables)
            return least;
    }
}

/* Adds the cached tables of a plan whose cache holds all rows. Returns whether
 * any load factor is 1, which TorchRec's planner refuses. */
static bool count_whole(const struct plan *plan, int *n_whole)
{
    bool is_one = false;

    for (uint32_t t = 0; plan->load_factors && t < plan->problem.n_tables;
         t++) {
        *n_whole += plan->load_factors[t] >= CACHE_MAX_LOAD_FACTOR;
        is_one |= plan->load_factors[t] >= 1;
    }
    return is_one;
}

/* Returns the least total of the rules for tables in host memory. */
static double least_of_rules(const struct rivals *rivals)
{
    double least = INFINITY;

    for (size_t r = 0; r < N_RIVALS; r++)
        if (rivals->list[r].by && rivals->list[r].by->needs_tiers)
            least = fmin(least, rivals->list[r].plan.total_ms);
    return least;
}

int main(void)
{
    const int n = (int)tap_size(N_PROBLEMS, N_PROBLEMS_FULL);
    int n_missed = 0, n_tiered = 0, n_fit = 0, n_above = 0, n_ruled = 0;
    int n_whole = 0, n_ones = 0;
    double worst = 0;
    struct rng rng;

    rng_init(&rng, 49, 0);
    for (int i = 0; i < n; i++) {
        struct rivals rivals = {.arena = &arena};
        struct search_options options;
        struct oracle *oracle;
        struct drawn drawn;
        struct plan plan;
        struct err err = {0};
        double least, got;

        draw(&drawn, &rng, n <= N_PROBLEMS);
        if (oracle_roofline_open(&oracle, "h100", &drawn.problem, &arena,
                                 &err)) {
            ok(0, "opened: %s", err.msg);
            break;
        }
        least = least_total(&drawn, oracle);
        plan = (struct plan){.problem = drawn.problem};
        search_options_init(&options);
        options.effort = EFFORT;
        options.simplest_frac = 0;
        options.rivals = &rivals;
        got = judged_total(&plan,
                           search_full(&plan, oracle, &options, &arena, &err),
                           oracle, &arena, &err);
        n_fit += isfinite(least);
        n_ones += count_whole(&plan, &n_whole);
        for (size_t r = 0; r < N_RIVALS; r++)
            n_ones += count_whole(&rivals.list[r].plan, &n_whole);
        n_ruled += isfinite(least_of_rules(&rivals));
        n_above += got > least_of_rules(&rivals);
        for (size_t s = 0; isfinite(got) && s < plan.n_shards; s++)
            if (plan.shards[s].tier != TIER_HBM) {
                n_tiered++;
                break;
            }
        if (isinf(least) && isinf(got))
            continue;
        worst = tap_worst(worst, got / least - 1);
        if (!(got <= least * (1 + WITHIN))) {
            n_missed++;
            printf("# problem %d: %g ms, best %g ms\n", i, got, least);
        }
        arena_release(&arena);
    }
    ok(n_missed * MOST_MISSED <= n,
       "%d of %d plans are more than 1 %% above the best (worst %.2g)",
       n_missed, n, worst);
    ok(2 * n_ruled >= n && !n_above,
       "rules have plans for %d problems; %d plans are above a rule's", n_ruled,
       n_above);
    ok(n_whole && !n_ones, "%d caches hold a whole table; no load factor is 1",
       n_whole);
    ok(n_fit == n && 3 * n_tiered >= n,
       "%d problems fit, %d with tables in host memory", n_fit, n_tiered);
    return tap_done();
}
