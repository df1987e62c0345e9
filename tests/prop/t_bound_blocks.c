/* SPDX-License-Identifier: MIT */
/* Small problems whose row blocks differ in their contents: ids follow Zipf's
 * law and are hashed, spread or sorted by frequency. Memory is tight or loose,
 * GPUs are uneven or busy with tables that are not placed, some tables are
 * pinned, and every cost model is used. The
 * test prices all plans of each problem and checks that
 *
 *   - no bound is above the best plan;
 *   - a plan is found if there is one with a hundredth of every GPU's usable
 *     memory left empty;
 *   - the plan found is within half a percent of the best, 99 times of 100.
 */
#include "core/cluster.h"
#include "core/memory.h"
#include "costmodel/models/oracle_open.h"
#include "search/search.h"
#include "tests/golden.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/exhaustive.h"
#include "tests/unit/search/fake.h"

#define MAX_TABLES 4
#define MAX_PLANS 2000
#define QUICK_EFFORT 8000
#define NEAR_FRAC 0.005
/* Every fourth problem without a plan is searched. Such a search takes
 * ten times as long as others and has nothing to find. */
#define NTH_WITHOUT_PLAN 4

static const char *const costs[] = {
    "torchrec", "roofline:h100", "torchrec:outputs=legacy", "model:h100.nsm"};
#define N_COSTS (sizeof costs / sizeof *costs)

struct tally {
    unsigned n, n_found, n_none, n_near, n_bounds, n_tight, n_uneven, n_pins,
        n_busy;
    /* bounds above the best plan; plans not found */
    unsigned n_above, n_missed;
    double worst;
};

static void draw_table(struct table *table, uint32_t i, struct rng *rng)
{
    table->num_embeddings = 2 + (uint64_t)exp(rng_uniform(rng) * log(1e6));
    table->dim = 4u << rng_below(rng, 3);
    table->pooling_factor = 1 + floor(rng_uniform(rng) * 100);
    table->zipf_alpha = 0.8 + 0.5 * rng_uniform(rng);
    table->row_order = (enum row_order)rng_below(rng, N_ROW_ORDERS);
    table->row_seed = i;
}

/* Gives each GPU memory for its samples and a share of the tables' bytes. */
static void draw_memory(struct problem *problem, struct rng *rng,
                        struct tally *tally)
{
    const struct cluster *cluster = &problem->cluster;
    const bool is_tight = rng_below(rng, 2), is_uneven = rng_below(rng, 2);
    const double slack =
        is_tight ? 1 + 0.4 * rng_uniform(rng) : 2 + 4 * rng_uniform(rng);
    double need = 0;

    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const struct shard whole = shard_whole(problem, t, 0);

        need += (double)shard_memory(problem, &whole).total;
    }
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        const double type = is_uneven ? 0.5 + rng_uniform(rng) : 1;

        cluster->memory_bytes[r] =
            sample_memory(problem).total +
            (uint64_t)(need * slack * type / cluster->n_devices);
    }
    tally->n_tight += is_tight;
    tally->n_uneven += is_uneven;
}

/* Draws times up to those of a few small tables. */
static void draw_busy(struct cluster *cluster, struct rng *rng,
                      struct arena *arena)
{
    cluster->busy_ms =
        arena_alloc(arena, cluster->n_devices, sizeof(*cluster->busy_ms));
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        for (unsigned p = 0; p < N_BUSY_PHASES; p++)
            cluster->busy_ms[r][p] =
                rng_below(rng, 2) ? 0.2 * rng_uniform(rng) : 0;
}

static void draw(struct problem *problem, struct rng *rng, struct tally *tally,
                 struct arena *arena)
{
    const size_t n = 1 + rng_below(rng, MAX_TABLES);
    const uint32_t n_devices = 2 + (uint32_t)rng_below(rng, 3);
    uint64_t rows[MAX_TABLES] = {0};
    uint32_t dims[MAX_TABLES] = {0};

    for (size_t i = 0; i < n; i++) {
        rows[i] = 1;
        dims[i] = 4;
    }
    fake_problem(problem, rows, dims, n, n_devices, 0, arena);
    problem->memory_model = MEMORY_FULL;
    problem->buffers = (enum buffer_rule)rng_below(rng, 2);
    problem->batch = 4096;
    problem->kinds = rng_below(rng, 3) ? SHARD_ALL_KINDS & ~(unsigned)SHARD_GRID
                                       : SHARD_TABLE | SHARD_ROW;
    for (uint32_t i = 0; i < n; i++)
        draw_table(&problem->tables[i], i, rng);
    if (!rng_below(rng, 4)) {
        problem->tables[0].device = (int64_t)rng_below(rng, n_devices);
        tally->n_pins++;
    }
    problem_find_hot_rows(problem, arena);
    draw_memory(problem, rng, tally);
    if (!rng_below(rng, 3)) {
        draw_busy(&problem->cluster, rng, arena);
        tally->n_busy++;
    }
}

/* Returns the cost of the cheapest of all plans that leave this share of each
 * GPU's usable memory empty, or INFINITY. */
static double best_of_all(const struct problem *problem, double empty_frac,
                          const struct oracle *oracle, struct arena *arena)
{
    struct plan best = {.problem = *problem, .bound_ms = NAN};
    struct exhaustive_options options;
    struct err err = {0};
    uint64_t *reserve = ARENA_NEW(arena, uint64_t, problem->cluster.n_devices);
    uint64_t *room = ARENA_NEW(arena, uint64_t, problem->cluster.n_devices);

    problem_room_bytes(problem, room);
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        reserve[r] = problem->cluster.reserve_bytes[r] +
                     (uint64_t)(empty_frac * (double)room[r]);
    best.problem.cluster.reserve_bytes = reserve;
    exhaustive_options_init(&options);
    if (search_exhaustive(&best, oracle, &options, arena, &err)) {
        if (err.code != ERR_NO_PLAN)
            ok(0, "all plans: %s", err.msg);
        return INFINITY;
    }
    if (judge_plan(&best, oracle, arena, &err))
        ok(0, "the best of all plans is legal: %s", err.msg);
    return best.total_ms;
}

static void compare(struct tally *tally, const struct problem *problem,
                    const struct oracle *oracle, uint64_t seed,
                    struct arena *arena)
{
    struct plan found = {.problem = *problem, .bound_ms = NAN};
    const double best_ms = best_of_all(problem, 0, oracle, arena);
    struct search_options options;
    struct err err = {0};
    double found_ms = INFINITY, bound_ms = NAN;

    if (isinf(best_ms) && seed % NTH_WITHOUT_PLAN) {
        tally->n++;
        tally->n_near++;
        return;
    }
    search_options_init(&options);
    options.effort = tap_size(0, 1) ? SEARCH_EFFORT_AUTO : QUICK_EFFORT;
    if (!search_full(&found, oracle, &options, arena, &err)) {
        bound_ms = found.bound_ms;
        if (judge_plan(&found, oracle, arena, &err))
            ok(0, "problem %" PRIu64 ": a legal plan: %s", seed, err.msg);
        found_ms = found.total_ms;
    } else if (err.code != ERR_NO_PLAN) {
        ok(0, "problem %" PRIu64 ": %s", seed, err.msg);
    }
    tally->n++;
    tally->n_bounds += bound_ms > 0;
    tally->n_found += isfinite(found_ms) ? 1U : 0U;
    if (bound_ms > best_ms * (1 + 1e-9)) {
        printf("# problem %" PRIu64 ", %s: bound %.9g, best %.9g\n", seed,
               oracle->cost.name, bound_ms, best_ms);
        tally->n_above++;
    }
    if (isinf(found_ms) &&
        isfinite(best_of_all(problem, 0.01, oracle, arena))) {
        printf("# problem %" PRIu64 ", %s: none found\n", seed,
               oracle->cost.name);
        tally->n_missed++;
    }
    tally->n_near += isinf(best_ms) || found_ms <= best_ms * (1 + NEAR_FRAC);
    if (isfinite(best_ms) && isfinite(found_ms))
        tally->worst = tap_worst(tally->worst, found_ms / best_ms);
}

/* Returns false if the cost model cannot be opened, so that no problem can. */
static bool try_problem(struct tally *tally, const char *cost, uint64_t seed)
{
    struct exhaustive_options exhaustive;
    struct oracle *oracle = NULL;
    struct problem problem;
    struct arena arena = {0};
    struct err err = {0};
    struct rng rng;
    bool is_open;

    rng_init(&rng, 43, seed);
    draw(&problem, &rng, tally, &arena);
    exhaustive_options_init(&exhaustive);
    is_open = !oracle_open(&oracle, cost, &problem, &arena, &err);
    if (!is_open)
        ok(0, "%s opens: %s", cost, err.msg);
    else if (exhaustive_count(&problem, oracle, &exhaustive) <= MAX_PLANS)
        compare(tally, &problem, oracle, seed, &arena);
    arena_release(&arena);
    return is_open;
}

int main(void)
{
    const unsigned n = (unsigned)tap_size(300, 5000);
    struct tally tally = {.worst = 1};

    for (size_t c = 0; c < N_COSTS; c++)
        for (uint64_t seed = c << 32; tally.n < n * (c + 1) / N_COSTS; seed++)
            if (!try_problem(&tally, costs[c], seed))
                break;
    printf("# %u of %u have a plan, %u a bound; worst %.4f times the best\n",
           tally.n_found, tally.n, tally.n_bounds, tally.worst);
    is_i64(tally.n_above, 0, "no bound is above the best of all plans");
    is_i64(tally.n_missed, 0, "a plan is found if one has room to spare");
    ok(tally.n_near * 100 >= tally.n * 99, "%u of %u are near the best",
       tally.n_near, tally.n);
    ok(tally.n_found > n / 2 && tally.n_bounds > n / 4 && tally.n_tight &&
           tally.n_uneven && tally.n_pins && tally.n_busy,
       "memory is tight %u times, uneven %u, tables are pinned %u times, GPUs "
       "are busy %u times",
       tally.n_tight, tally.n_uneven, tally.n_pins, tally.n_busy);
    return tap_done();
}
