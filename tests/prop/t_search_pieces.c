/* SPDX-License-Identifier: MIT */
/* Pieces of one table on one device. For any problem, cost model and search, a
 * device holds one piece of a table's columns and rows, or several of equal
 * width that are not adjacent. If a table must be cut and memory leaves it only
 * one device, its pieces have equal widths. No piece is narrower than the
 * minimum width. */
#include "costmodel/models/oracles.h"
#include "io/tables_io.h"
#include "search/assignment.h"
#include "search/search.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define EFFORT 3000
/* Memory of a device that holds all tables. */
#define ROOMY (UINT64_C(80) << 30)

/* Returns true if memory or hosts may leave the pieces no other device. */
static bool is_forced(const struct plan *plan, const struct oracle *oracle,
                      const struct table *table)
{
    const struct problem *problem = &plan->problem;
    unsigned kinds = table->kinds & problem->kinds & oracle->kinds;

    if (!(kinds & SHARD_TABLE) && problem->cluster.memory_bytes[0] < ROOMY)
        return true;
    return kinds == SHARD_GRID && oracle->row_cut == ROW_CUT_RANKS &&
           problem->cluster.devices_per_host >= problem->cluster.n_devices;
}

/* Counts the pieces that are too narrow, and the pairs of pieces that may not
 * share a device. */
static unsigned count_bad(const struct plan *plan, const struct oracle *oracle)
{
    unsigned n_bad = 0;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        uint32_t width = shard->col_end - shard->col_begin;

        n_bad += width < problem_min_width(&plan->problem) &&
                 width < plan->problem.tables[shard->table].dim;
    }
    for (size_t i = 0; i < plan->n_shards; i++)
        for (size_t j = 0; j < i; j++) {
            const struct shard *a = &plan->shards[i], *b = &plan->shards[j];
            const struct table *table = &plan->problem.tables[a->table];
            bool touch =
                a->col_begin == b->col_end || b->col_begin == a->col_end;

            if (a->table != b->table || a->device != b->device ||
                a->row_begin != b->row_begin || a->row_end != b->row_end)
                continue;
            if (a->col_end - a->col_begin != b->col_end - b->col_begin ||
                (touch && !is_forced(plan, oracle, table))) {
                printf("# '%s' [%u, %u) and [%u, %u) on device %u\n",
                       table->name, a->col_begin, a->col_end, b->col_begin,
                       b->col_end, a->device);
                n_bad++;
            }
        }
    return n_bad;
}

static void constrain(struct problem *problem, struct rng *rng)
{
    static const unsigned kinds[] = {SHARD_ALL_KINDS,
                                     SHARD_TABLE | SHARD_COLUMN,
                                     SHARD_COLUMN,
                                     SHARD_COLUMN | SHARD_ROW,
                                     SHARD_COLUMN | SHARD_GRID,
                                     SHARD_TABLE | SHARD_ROW | SHARD_GRID};
    uint32_t n = problem->cluster.n_devices;

    problem->kinds = kinds[rng_below(rng, sizeof kinds / sizeof *kinds)];
    if (n % 2 == 0 && rng_below(rng, 2))
        problem->cluster.devices_per_host = n / 2;
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        if (table->dim < 8)
            table->dim = 8;
        if (rng_below(rng, 10) == 0)
            table->device = (int64_t)rng_below(rng, n);
        else if ((problem->kinds & SHARD_TABLE) && rng_below(rng, 10) == 0)
            table->group = i % 2 ? "odd" : "even";
    }
}

/* Makes a plan as other software might: with column pieces on other devices,
 * and some of them cut again. */
static void disarrange(struct plan *from, const struct plan *plan,
                       struct rng *rng, struct arena *arena)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;

    *from = *plan;
    from->shards = ARENA_NEW(arena, struct shard, 2 * plan->n_shards);
    from->shard_ms = NULL;
    from->n_shards = 0;
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct shard shard = plan->shards[i];
        uint32_t width = shard.col_end - shard.col_begin;
        bool is_free = shard.kind == SHARD_COLUMN &&
                       plan->problem.tables[shard.table].device < 0;

        if (is_free && width > 4 && rng_below(rng, 2)) {
            struct shard left = shard;

            left.col_end = shard.col_begin +
                           4 * (1 + (uint32_t)rng_below(rng, width / 4 - 1));
            shard.col_begin = left.col_end;
            left.device = (uint32_t)rng_below(rng, n_devices);
            from->shards[from->n_shards++] = left;
        }
        if (is_free && rng_below(rng, 2))
            shard.device = (uint32_t)rng_below(rng, n_devices);
        from->shards[from->n_shards++] = shard;
    }
    plan_derive_kinds(from);
}

struct tally {
    unsigned n_full, n_reference, n_replan;
};

static void judge(struct plan *plan, int rc, const struct oracle *oracle,
                  uint64_t seed, const char *what, unsigned *n, struct err *err)
{
    unsigned n_bad;

    if (rc) {
        if (err->code != ERR_NO_PLAN && err->code != ERR_USAGE)
            ok(0, "problem %u, %s: %s", (unsigned)seed, what, err->msg);
        return;
    }
    ++*n;
    plan_derive_kinds(plan);
    n_bad = count_bad(plan, oracle);
    if (n_bad)
        ok(0, "problem %u, %s: %u pieces meet or are narrow", (unsigned)seed,
           what, n_bad);
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct search_options options;
    struct random_oracle oracle;
    struct plan plan, from;
    struct problem problem;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;
    int rc;

    rng_init(&rng, 21, seed);
    fake_random(&problem, &rng, 1.05 + 2 * rng_uniform(&rng), &arena);
    constrain(&problem, &rng);
    problem.min_width = 8 * (uint32_t)rng_below(&rng, 3);
    random_oracle_init(&oracle, &problem, &rng);
    oracle.base.row_cut = rng_below(&rng, 2) ? ROW_CUT_ANY : ROW_CUT_RANKS;
    search_options_init(&options);
    options.effort = EFFORT;
    plan = (struct plan){.problem = problem};
    rc = search_full(&plan, &oracle.base, &options, &arena, &err);
    judge(&plan, rc, &oracle.base, seed, "full", &tally->n_full, &err);
    if (!rc) {
        struct plan next = {.problem = problem};
        uint64_t limit_bytes =
            rng_below(&rng, 2) ? NO_MOVE_LIMIT : rng_below(&rng, 1u << 20);

        disarrange(&from, &plan, &rng, &arena);
        err = (struct err){0};
        rc = search_replan(&next, &from, limit_bytes, &oracle.base, &options,
                           NULL, &arena, &err);
        judge(&next, rc, &oracle.base, seed, "replan", &tally->n_replan, &err);
    }
    arena_release(&arena);
}

/* Plans for this list once had adjacent pieces on one device. */
static void try_kaggle(unsigned kinds, const char *label)
{
    static const struct tables_options tables_options = {0};
    struct search_options options;
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    struct table_list list;
    struct err err = {0};
    struct arena arena = {0};
    int rc;

    rc = tables_load(&list, "data/tables/criteo_kaggle_26.csv", &tables_options,
                     &arena, &err);
    ok(!rc, "%s: %s", label, err.msg);
    if (!rc) {
        plan.problem = (struct problem){.tables = list.tables,
                                        .n_tables = list.n_tables,
                                        .batch = 65536,
                                        .memory_model = MEMORY_FULL,
                                        .buffers = BUFFERS_TRACED,
                                        .kinds = kinds};
        fake_cluster(&plan.problem, 4, ROOMY, &arena);
        rc = oracle_roofline_open(&oracle, "h100", &plan.problem, &arena, &err);
        search_options_init(&options);
        options.effort = 200000;
        rc = rc || search_full(&plan, oracle, &options, &arena, &err);
        ok(!rc && count_bad(&plan, oracle) == 0, "%s: none meet: %s", label,
           err.msg);
    }
    arena_release(&arena);
}

int main(void)
{
    uint64_t n = tap_size(60, 2000);
    struct tally tally = {0};

    assignment_check_every = (uint32_t)tap_size(0, 1);
    for (uint64_t seed = 0; seed < n; seed++)
        try_problem(seed, &tally);
    ok(tally.n_full >= n / 2 && tally.n_replan >= n / 4,
       "%u problems: %u have a plan, %u a replan after it", (unsigned)n,
       tally.n_full, tally.n_replan);
    try_kaggle(SHARD_COLUMN, "--shard column");
    try_kaggle(SHARD_COLUMN | SHARD_ROW, "--shard column,row");
    return tap_done();
}
