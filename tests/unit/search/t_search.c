/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "search/search.h"

#include "base/text.h"
#include "core/canonical.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define N_PROBLEMS 150

static double search(struct plan *plan, const struct problem *problem,
                     unsigned beam_width, struct pool *pool,
                     struct arena *arena)
{
    struct oracle oracle = fake_oracle(problem);
    const double begin_ms = clock_ms();
    struct search_options options;
    struct err err = {0};
    int rc;

    memset(plan, 0, sizeof(*plan));
    plan->problem = *problem;
    oracle.problem = &plan->problem;
    search_options_init(&options);
    options.beam_width = beam_width;
    options.pool = pool;
    rc = search_reference(plan, &oracle, &options, arena, &err);
    if (!rc)
        judge_time(plan, begin_ms);
    if (!rc && strcmp(plan->search, beam_width ? "reference" : "grid") != 0)
        ok(0, "the plan says '%s' found it", plan->search);
    return judged_total(plan, rc, &oracle, arena, &err);
}

/* The published greedy algorithm with one cap and without shared state: whole
 * tables in canonical order, the most expensive first, and the later one if
 * costs are equal. */
static double plain_greedy(const struct problem *problem, double cap)
{
    struct oracle oracle = fake_oracle(problem);
    uint32_t n_devices = problem->cluster.n_devices, n;
    double sums[8 * FAKE_WIDTH] = {0}, compute[8] = {0}, output[8] = {0};
    double fwd[8] = {0}, bwd[8] = {0}, total = 0, single[32];
    double vectors[32 * FAKE_WIDTH] = {0};
    uint64_t used[8] = {0}, room_bytes[8];
    bool placed[32] = {false};

    problem_room_bytes(problem, room_bytes);
    n = (uint32_t)problem->n_tables;
    for (uint32_t i = 0; i < n; i++) {
        struct shard shard = shard_whole(problem, i, 0);

        fake_embed(&oracle, &shard, 1, vectors + i * FAKE_WIDTH);
    }
    fake_compute(&oracle, vectors, n, single);
    for (uint32_t step = 0; step < n; step++) {
        uint32_t best = n, to = n_devices;
        struct memory_items items;
        struct shard shard;

        for (uint32_t i = 0; i < n; i++)
            if (!placed[i] && (best == n || single[i] >= single[best]))
                best = i;
        placed[best] = true;
        shard = shard_whole(problem, best, 0);
        items = shard_memory(problem, &shard);
        for (uint32_t r = 0; r < n_devices; r++)
            if (used[r] + items.total <= room_bytes[r] &&
                output[r] + vectors[best * FAKE_WIDTH + FAKE_OUTPUT] <= cap &&
                (to == n_devices || compute[r] < compute[to] ||
                 (compute[r] == compute[to] && used[r] < used[to])))
                to = r;
        if (to == n_devices)
            return INFINITY;
        used[to] += items.total;
        output[to] += vectors[best * FAKE_WIDTH + FAKE_OUTPUT];
        for (unsigned w = 0; w < FAKE_WIDTH; w++)
            sums[to * FAKE_WIDTH + w] += vectors[best * FAKE_WIDTH + w];
        fake_compute(&oracle, sums + to * FAKE_WIDTH, 1, &compute[to]);
    }
    fake_compute(&oracle, sums, n_devices, compute);
    fake_comm(&oracle, 1, sums, compute, fwd, bwd);
    for (uint32_t r = 0; r < n_devices; r++)
        total = fmax(total, compute[r] + bwd[r] + fwd[r]);
    return total;
}

static void sort_tables(struct problem *problem, struct arena *arena)
{
    uint32_t *order = ARENA_NEW(arena, uint32_t, problem->n_tables);
    struct table *sorted = ARENA_NEW(arena, struct table, problem->n_tables);

    tables_canonical_order(problem->tables, problem->n_tables, order);
    for (size_t i = 0; i < problem->n_tables; i++)
        sorted[i] = problem->tables[order[i]];
    problem->tables = sorted;
}

/* Returns true if the grid of caps agrees with the greedy algorithm run cap by
 * cap: it finds a plan if any cap does, and its total is the least of all
 * caps. */
static bool grid_agrees(const struct problem *problem, double grid)
{
    double best = plain_greedy(problem, INFINITY), mean = 0;

    for (size_t i = 0; i < problem->n_tables; i++)
        mean += problem->tables[i].dim * problem->tables[i].num_outputs;
    mean /= problem->cluster.n_devices;
    for (int i = 0; i < 11; i++)
        best = fmin(best, plain_greedy(problem, (1 + 0.05 * i) * mean));
    return isinf(best) || fabs(grid - best) <= 1e-12 * best;
}

static bool same_shards(const struct plan *a, const struct plan *b)
{
    return a->n_shards == b->n_shards &&
           !memcmp(a->shards, b->shards, a->n_shards * sizeof(*a->shards));
}

/* The defaults are the published values. */
static void check_defaults(void)
{
    struct search_options options;

    search_options_init(&options);
    is_i64(options.beam_width, 3, "the beam is 3 wide");
    is_i64(options.beam_depth, 10, "and 10 deep");
    ok(options.effort == SEARCH_EFFORT_AUTO, "effort is chosen");
}

static void check_random(void)
{
    unsigned n_found = 0, n_grid = 0, n_order = 0, n_beam = 0, n_permuted = 0,
             n_same = 0, n_threads = 0;
    const unsigned n = (unsigned)tap_size(N_PROBLEMS, 2 * N_PROBLEMS);
    struct pool *pool = pool_open(2);
    struct arena arena = {0};

    for (unsigned i = 0; i < n; i++) {
        struct plan plan, again, other;
        struct problem problem, mixed;
        double grid, beam;
        struct rng rng;

        rng_init(&rng, i, 7);
        fake_random(&problem, &rng, 1 + 0.1 * (i % 20), &arena);
        sort_tables(&problem, &arena);
        grid = search(&plan, &problem, 0, NULL, &arena);
        n_grid += grid_agrees(&problem, grid);
        n_order += grid <= plain_greedy(&problem, INFINITY);
        beam = search(&plan, &problem, 3, NULL, &arena);
        n_beam += beam <= grid;
        if (isfinite(beam)) {
            n_found++;
            search(&again, &problem, 3, NULL, &arena);
            n_same += same_shards(&again, &plan);
            search(&other, &problem, 3, pool, &arena);
            n_threads += same_shards(&other, &plan) &&
                         other.n_evaluations == plan.n_evaluations;
        }

        mixed = problem;
        mixed.tables = ARENA_NEW(&arena, struct table, problem.n_tables);
        for (size_t t = 0; t < problem.n_tables; t++)
            mixed.tables[t] = problem.tables[problem.n_tables - 1 - t];
        n_permuted += search(&other, &mixed, 3, NULL, &arena) == beam;
        arena_release(&arena);
    }
    ok(n_found > n / 2 && n_found < n,
       "%u of %u problems have a plan, each legal", n_found, n);
    is_i64(n_grid, n, "the grid is the best of all caps");
    is_i64(n_order, n, "grid is no worse than greedy");
    is_i64(n_beam, n, "beam is no worse than grid");
    is_i64(n_same, n_found, "a second search gives the same plan");
    is_i64(n_threads, n_found, "two threads find the plan of one");
    is_i64(n_permuted, n, "a permuted list costs the same");
    pool_close(pool);
}

/* Adds random pins, groups and allowed kinds. The judge checks that plans
 * respect them. */
static void constrain(struct problem *problem, struct rng *rng)
{
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        switch (rng_below(rng, 8)) {
        case 0:
            table->device = (int64_t)rng_below(rng, problem->cluster.n_devices);
            break;
        case 1:
            table->group = rng_below(rng, 2) ? "left" : "right";
            break;
        case 2:
            table->kinds = SHARD_TABLE;
            break;
        case 3:
            if (table->dim % 8 == 0)
                table->kinds = SHARD_COLUMN | SHARD_ROW;
            break;
        default:
            break;
        }
    }
}

static void check_constrained(void)
{
    const unsigned n = (unsigned)tap_size(N_PROBLEMS, 2 * N_PROBLEMS);
    unsigned n_found = 0, n_beam = 0, n_permuted = 0;
    struct arena arena = {0};

    for (unsigned i = 0; i < n; i++) {
        struct problem problem, mixed;
        struct plan plan;
        double grid, beam;
        struct rng rng;
        bool is_packed;

        rng_init(&rng, i, 8);
        fake_random(&problem, &rng, 1 + 0.2 * (i % 20), &arena);
        constrain(&problem, &rng);
        grid = search(&plan, &problem, 0, NULL, &arena);
        /* packed by memory */
        is_packed = isfinite(grid) && !plan.n_evaluations;
        beam = search(&plan, &problem, 3, NULL, &arena);
        n_found += beam < INFINITY;
        n_beam += is_packed || beam <= grid;
        mixed = problem;
        mixed.tables = ARENA_NEW(&arena, struct table, problem.n_tables);
        for (size_t t = 0; t < problem.n_tables; t++)
            mixed.tables[t] = problem.tables[problem.n_tables - 1 - t];
        n_permuted += search(&plan, &mixed, 3, NULL, &arena) == beam;
        arena_release(&arena);
    }
    ok(n_found > n / 2 && n_found < n,
       "constrained: %u of %u problems have a plan, each legal", n_found, n);
    is_i64(n_beam, n, "constrained: beam is no worse than grid");
    is_i64(n_permuted, n, "constrained: a permuted list costs the same");
}

static void check_constraints(void)
{
    const uint64_t rows[] = {1000, 1000, 1000, 1000, 1000, 1000};
    const uint32_t dims[] = {64, 64, 64, 64, 64, 64};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;
    unsigned n_cut[6] = {0};

    fake_problem(&problem, rows, dims, 6, 3, 1 << 20, &arena);
    problem.tables[0].device = 2;
    problem.tables[1].group = problem.tables[2].group = "g";
    problem.tables[3].kinds = SHARD_COLUMN;
    problem.tables[4].kinds = SHARD_TABLE;
    problem.tables[5].pooling_factor = 1000;
    ok(isfinite(search(&plan, &problem, 3, NULL, &arena)), "constraints met");
    for (size_t i = 0; i < plan.n_shards; i++)
        n_cut[plan.shards[i].table]++;
    is_i64(plan.shards[0].device, 2, "a pin is kept");
    ok(n_cut[0] == 1 && n_cut[1] == 1 && n_cut[2] == 1,
       "pinned and grouped tables stay whole");
    is_i64(plan.shards[1].device, plan.shards[2].device,
           "a group stays together");
    ok(n_cut[3] >= 2, "a column-only table is cut");
    is_i64(n_cut[4], 1, "a table-only table is not cut");
    ok(n_cut[5] >= 2, "the expensive table is cut");
    arena_release(&arena);
}

/* The greedy algorithm takes 4, 5, 5, 6 in the wrong order. Packing by size
 * fits. */
static void check_fall_back(void)
{
    const uint64_t rows[] = {5, 5, 4, 6};
    const uint32_t dims[] = {4, 4, 4, 4};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 4, 2, 160, &arena);
    problem.tables[3].pooling_factor = 9;
    ok(isinf(plain_greedy(&problem, INFINITY)), "the greedy is stuck");
    ok(isfinite(search(&plan, &problem, 3, NULL, &arena)),
       "packing by memory finds a plan");
    arena_release(&arena);
}

static void check_edges(void)
{
    const uint64_t rows[] = {10, 20};
    const uint32_t dims[] = {12, 16};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 2, 1, 1 << 20, &arena);
    ok(isfinite(search(&plan, &problem, 3, NULL, &arena)), "one device");
    fake_problem(&problem, rows, dims, 2, 8, 1 << 20, &arena);
    ok(isfinite(search(&plan, &problem, 3, NULL, &arena)),
       "more devices than tables");
    for (size_t i = 0; i < plan.n_shards; i++)
        if (plan.shards[i].table == 0)
            is_i64(plan.shards[i].col_end, 12, "12 columns are not halved");
    arena_release(&arena);
}

static const char *message(const struct problem *problem,
                           struct oracle (*make)(const struct problem *),
                           enum err_code code, struct arena *arena)
{
    struct plan plan = {.problem = *problem};
    struct oracle oracle = make(problem);
    struct search_options options;
    struct err err = {0};

    search_options_init(&options);
    if (!search_reference(&plan, &oracle, &options, arena, &err))
        return "a plan";
    return err.code == code ? arena_strdup(arena, err.msg) : "another code";
}

static void check_errors(void)
{
    const uint64_t rows[] = {1 << 20, 1 << 20, 1 << 20};
    const uint32_t dims[] = {4, 64, 16};
    struct problem problem;
    struct arena arena = {0};

    fake_problem(&problem, rows, dims, 3, 2, 8 << 20, &arena);
    is_str(
        message(&problem, fake_oracle, ERR_NO_PLAN, &arena),
        "no plan fits: table 't1' needs 256 MiB (256 MiB weights), at least "
        "16.0 MiB a piece, but the largest GPU has 8.00 MiB; it would fit with "
        "176 MiB per GPU",
        "a piece that is too large for any device");
    fake_problem(&problem, rows, dims, 3, 2, 100 << 20, &arena);
    is_str(message(&problem, fake_oracle, ERR_NO_PLAN, &arena),
           "no plan fits: the tables need at least 336 MiB (336 MiB weights), "
           "but 2 GPUs have 200 MiB; it would fit with 176 MiB per GPU, or 4 "
           "such GPUs",
           "too much in all");
    fake_problem(&problem, rows, dims, 3, 2, 260 << 20, &arena);
    problem.tables[0].device = 0;
    problem.tables[1].device = 0;
    is_str(message(&problem, fake_oracle, ERR_NO_PLAN, &arena),
           "no plan fits: the tables pinned to GPU 0 need 272 MiB (272 MiB "
           "weights), but it has 260 MiB; it would fit with 272 MiB per GPU",
           "too much pinned to one device");
    problem.tables[1].device = 2;
    is_str(message(&problem, fake_oracle, ERR_INPUT, &arena),
           "table 't1' is pinned to GPU 2, but there are 2 GPUs",
           "a pin to no device");
    problem.tables[1].device = 1;
    problem.tables[0].group = problem.tables[1].group = "g";
    is_str(message(&problem, fake_oracle, ERR_INPUT, &arena),
           "group 'g' is pinned to two GPUs, by tables 't1' and 't0'",
           "a group with two pins");
    fake_problem(&problem, rows, dims, 3, 2, 1 << 30, &arena);
    problem.tables[2].kinds = SHARD_ROW;
    is_str(message(&problem, fake_oracle, ERR_USAGE, &arena),
           "table 't2' can be neither placed whole nor cut by columns, and "
           "this search makes table and column shards only",
           "a table that may only be cut by rows");
    fake_problem(&problem, rows, dims, 3, 1, 1 << 30, &arena);
    is_str(message(&problem, fake_nan_oracle, ERR_INPUT, &arena),
           "cost model 'fake' gives no finite cost for some GPUs",
           "a cost that is NaN");
    arena_release(&arena);
}

int main(void)
{
    check_defaults();
    check_random();
    check_constrained();
    check_constraints();
    check_fall_back();
    check_edges();
    check_errors();
    return tap_done();
}
