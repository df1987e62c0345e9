/* SPDX-License-Identifier: MIT */
/* More ways to rank tables by cost find better starts, and all starts fit. */
#include "search/assignment.h"

#include "search/space_init.h"
#include "search/starts.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

struct tally {
    unsigned n, n_found, n_wrong, n_alike, n_several, n_dearer, n_gain;
    unsigned n_barred;
};

/* Returns true if the assignment is valid, fits in memory, and its stored cost
 * is right. */
static bool is_right(struct snapshot *start, const struct search_space *space)
{
    const double ms = start->total_ms;
    struct assignment assignment;
    struct err err = {0};
    bool right;

    assignment_init(&assignment, space);
    snapshot_load(start, &assignment);
    snapshot_price(start, space);
    right = !assignment_check(&assignment, &err) && assignment.excess <= 0 &&
            fabs(start->excess) <= 0 && start->total_ms == ms;
    assignment_release(&assignment);
    return right;
}

/* Returns true if a start contains a kind of shard that its family excludes.
 * The second and the last of the four families have no replicas, the third and
 * the last have no row blocks. */
static bool has_barred(const struct snapshot *start, unsigned family,
                       const struct search_space *space)
{
    for (uint32_t i = 0; i < start->n; i++) {
        const struct piece_type *type = &space->types[start->pieces[i].type];

        if ((family & 1 && shard_is_replica(type->kind)) ||
            (family & 2 && shard_cuts_rows(type->kind)))
            return true;
    }
    return false;
}

/* Returns the total of the cheapest start, or INFINITY without a start. */
static double find(struct search_space *space, const struct tuning *tuning,
                   struct tally *tally)
{
    struct snapshot starts[STARTS_KEPT] = {{0}};
    double best_ms = INFINITY;

    space->tuning = tuning;
    starts_find(starts, space, NULL, INFINITY);
    for (unsigned i = 0; i < STARTS_KEPT; i++) {
        for (unsigned k = 0; k < i && starts[i].n; k++)
            tally->n_alike += starts[k].n == starts[i].n &&
                              starts[k].total_ms == starts[i].total_ms;
        if (starts[i].n) {
            tally->n_wrong += !is_right(&starts[i], space);
            tally->n_barred +=
                !space->oracle->is_additive && has_barred(&starts[i], i, space);
            best_ms = fmin(best_ms, starts[i].total_ms);
        }
        tally->n_several += i && starts[i].n;
        snapshot_release(&starts[i]);
    }
    return best_ms;
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct tuning few = tuning_default;
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;
    double all_ms, few_ms;

    few.n_prices = 1;
    rng_init(&rng, 51, seed);
    fake_random(&problem, &rng, 2, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err)) {
        ok(0, "parts: %s", err.msg);
        return;
    }
    tally->n++;
    all_ms = find(&space, &tuning_default, tally);
    few_ms = find(&space, &few, tally);
    tally->n_found += isfinite(all_ms) ? 1 : 0;
    tally->n_dearer += !(all_ms <= few_ms);
    tally->n_gain += all_ms < few_ms;
    arena_release(&arena);
}

/* --- starts by memory alone --- */

#define TIGHT_DEVICES 3

/* Makes a problem of whole tables on devices that have the memory of some
 * random placement, plus two per cent. */
static void plant(struct problem *problem, struct random_oracle *oracle,
                  uint64_t seed, struct arena *arena)
{
    uint64_t rows[16];
    uint32_t dims[16], n;
    struct rng rng;

    rng_init(&rng, 53, seed);
    n = 8 + (uint32_t)rng_below(&rng, 8);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 100 + rng_below(&rng, 1000);
        dims[i] = 16;
    }
    fake_problem(problem, rows, dims, n, TIGHT_DEVICES, 0, arena);
    problem->kinds = SHARD_TABLE;
    for (uint32_t i = 0; i < n; i++)
        problem->cluster.memory_bytes[rng_below(&rng, TIGHT_DEVICES)] +=
            rows[i] * 16 * 4;
    for (uint32_t r = 0; r < TIGHT_DEVICES; r++)
        problem->cluster.memory_bytes[r] +=
            problem->cluster.memory_bytes[r] / 50;
    random_oracle_init(oracle, problem, &rng);
}

/* Tables that do not fit are placed first in the next try. So most problems are
 * packed, which longest-first alone does not achieve. If memory is too small
 * for all tables, everything is still placed, once. */
static void check_by_memory(void)
{
    const unsigned n = (unsigned)tap_size(100, 1000);
    unsigned n_packed = 0, n_wrong = 0, n_lost = 0;

    for (uint64_t seed = 0; seed < n; seed++) {
        struct snapshot packed = {0}, all = {0};
        struct random_oracle oracle;
        struct problem problem;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};

        plant(&problem, &oracle, seed, &arena);
        if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena,
                       &err))
            ok(0, "parts: %s", err.msg);
        if (starts_by_memory(&packed, &space, UINT64_MAX, false)) {
            snapshot_price(&packed, &space);
            n_packed++;
            n_wrong += !is_right(&packed, &space);
        }
        n_lost += !starts_by_memory(&all, &space, UINT64_MAX, true) ||
                  all.n != problem.n_tables;
        snapshot_release(&packed);
        snapshot_release(&all);
        arena_release(&arena);
    }
    is_i64(n_wrong, 0, "packed assignments fit in memory");
    is_i64(n_lost, 0, "each table is placed once");
    ok(n_packed > n * 3 / 4, "%u of %u are packed", n_packed, n);
}

/* --- longest first --- */

/* Draws the lookups of whole tables that three devices can share evenly, in
 * increasing order. Returns the load of each device under an even share. */
static double plant_load(struct problem *problem, struct rng *rng,
                         struct arena *arena)
{
    const double share = 100;
    uint64_t rows[15];
    uint32_t dims[15], n = 0;
    double pooling[15];

    for (uint32_t r = 0; r < TIGHT_DEVICES; r++) {
        double rest = share;

        for (uint32_t i = 0; i < 4; i++) {
            double type = 1 + (double)rng_below(rng, (uint64_t)rest / 2);

            pooling[n++] = type;
            rest -= type;
        }
        pooling[n++] = rest;
    }
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 1000;
        dims[i] = 16;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && pooling[k] < pooling[k - 1]; k--) {
            double later = pooling[k];

            pooling[k] = pooling[k - 1];
            pooling[k - 1] = later;
        }
    fake_problem(problem, rows, dims, n, TIGHT_DEVICES, UINT64_C(1) << 30,
                 arena);
    problem->kinds = SHARD_TABLE;
    for (uint32_t i = 0; i < n; i++)
        problem->tables[i].pooling_factor = pooling[i];
    return share * (double)problem->batch;
}

/* The total is at most 4/3 - 1/3R of the best (Graham 1969). */
static void check_longest_first(void)
{
    const double most = 4.0 / 3 - 1.0 / (3 * TIGHT_DEVICES);
    unsigned n_dearer = 0;
    double worst = 0;

    for (uint64_t seed = 0; seed < tap_size(50, 1000); seed++) {
        struct snapshot starts[STARTS_KEPT] = {{0}};
        struct random_oracle oracle;
        struct problem problem;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};
        struct rng rng;
        double least_ms;

        rng_init(&rng, 55, seed);
        least_ms = plant_load(&problem, &rng, &arena) * 16 * 1e-6;
        do
            random_oracle_init(&oracle, &problem, &rng);
        while (!oracle.base.is_additive);
        oracle.lookup_ms = 1e-6;
        oracle.vector_ms = oracle.piece_ms = oracle.output_ms = 0;
        oracle.narrow = 0;
        if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena,
                       &err))
            ok(0, "parts: %s", err.msg);
        (void)starts_find(starts, &space, NULL, INFINITY);
        for (unsigned i = 0; i < STARTS_KEPT; i++) {
            double ratio = starts[i].n ? starts[i].total_ms / least_ms : 1;

            n_dearer += !(ratio >= 1 - 1e-9 && ratio <= most);
            worst = tap_worst(worst, ratio);
            snapshot_release(&starts[i]);
        }
        arena_release(&arena);
    }
    ok(!n_dearer, "%.3f times the best at most; longest first is to take %.3f",
       worst, most);
}

/* If tables are equal, the first is placed first; if devices are equal, the
 * first device is used. */
static void check_ties(void)
{
    struct snapshot starts[STARTS_KEPT + 1] = {{0}};
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 56, 0);
    fake_equal_problem(&problem, 12, TIGHT_DEVICES, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    ok(!space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err) &&
           starts_find(starts, &space, NULL, INFINITY) &&
           starts_by_memory(&starts[STARTS_KEPT], &space, UINT64_MAX, true),
       "equal tables: %s", err.msg);
    for (unsigned i = 0; i <= STARTS_KEPT; i++) {
        unsigned n_astray = 0;

        for (uint32_t k = 0; k < starts[i].n; k++)
            n_astray += space.types[starts[i].pieces[k].type].unit != k ||
                        starts[i].pieces[k].device != k % TIGHT_DEVICES;
        is_i64(n_astray, 0, "among equal tables and devices the first is used");
        snapshot_release(&starts[i]);
    }
    arena_release(&arena);
}

/* --- questions to the oracle --- */

/* Number of priced sums with a lane that no piece has, and number of priced
 * assignments. */
static unsigned n_unclean, n_assignments;

static void clean_compute(const struct oracle *oracle, const double *sums,
                          size_t n, double *compute_ms)
{
    for (size_t i = 0; i < n; i++)
        n_unclean += sums[i * RANDOM_WIDTH + RANDOM_GRAD] != 0;
    random_compute(oracle, sums, n, compute_ms);
}

static void count_comm(const struct oracle *oracle, size_t n,
                       const double *sums, const double *compute_ms,
                       double *fwd_ms, double *bwd_ms)
{
    n_assignments += (unsigned)n;
    random_comm(oracle, n, sums, compute_ms, fwd_ms, bwd_ms);
}

/* Devices start empty, so a lane that no piece uses stays exactly 0. If memory
 * is tight, starts that do not fit are not priced. */
static void check_clean(void)
{
    uint64_t n_priced = 0;
    unsigned n_found = 0;

    for (uint64_t seed = 0; seed < 10; seed++) {
        struct snapshot starts[STARTS_KEPT] = {{0}};
        struct random_oracle oracle;
        struct oracle_ops ops;
        struct problem problem;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};
        struct rng rng;

        rng_init(&rng, 54, seed);
        fake_random(&problem, &rng, seed ? 1.1 : 2, &arena);
        problem.kinds = SHARD_TABLE | SHARD_COLUMN;
        do
            random_oracle_init(&oracle, &problem, &rng);
        while (!oracle.base.ops->terms);
        ops = *oracle.base.ops;
        ops.compute = clean_compute;
        ops.comm = count_comm;
        oracle.base.ops = &ops;
        if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena,
                       &err))
            ok(0, "parts: %s", err.msg);
        n_priced += starts_find(starts, &space, NULL, INFINITY);
        n_found += starts[0].n > 0;
        for (unsigned i = 0; i < STARTS_KEPT; i++)
            snapshot_release(&starts[i]);
        arena_release(&arena);
    }
    is_i64((int64_t)n_priced, n_assignments,
           "the reported number of assignments was priced");
    ok(n_found > 2 && !n_unclean,
       "%u starts found; %u priced sums have a lane that no piece has", n_found,
       n_unclean);
}

int main(void)
{
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < tap_size(30, 2000); seed++)
        try_problem(seed, &tally);
    ok(tally.n_found > tally.n / 2, "%u problems: %u have starts", tally.n,
       tally.n_found);
    is_i64(tally.n_wrong, 0, "starts fit, and their stored cost is right");
    is_i64(tally.n_alike, 0, "no two are alike");
    is_i64(tally.n_barred, 0, "no start has a kind that its family excludes");
    ok(tally.n_several > tally.n / 4, "%u have more than one start",
       tally.n_several);
    is_i64(tally.n_dearer, 0, "more rankings never give a worse best start");
    ok(tally.n_gain > 0 || tally.n < 30, "and gains %u times", tally.n_gain);
    check_by_memory();
    check_longest_first();
    check_ties();
    check_clean();
    return tap_done();
}
