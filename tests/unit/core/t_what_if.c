/* SPDX-License-Identifier: MIT */
#include "core/what_if.h"

#include "core/plan_check.h"
#include "core/plan_price.h"
#include "tests/unit/core/what_if_fixture.h"

/* Returns a random edit of a plan: a table becomes whole, replicated, or split
 * into thirds of its rows. */
static struct edit random_edit(const struct plan *plan, struct rng *rng,
                               struct arena *arena)
{
    uint32_t table = (uint32_t)rng_below(rng, N_TABLES);
    size_t *gone = ARENA_NEW(arena, size_t, plan->n_shards);
    struct shard *come = ARENA_NEW(arena, struct shard, N_DEVICES);
    struct shard whole = shard_whole(&plan->problem, table, 0);
    unsigned form = (unsigned)rng_below(rng, 3);
    struct edit edit = {.gone = gone, .come = come};

    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].table == table)
            gone[edit.n_gone++] = i;
    if (whole.row_end < N_DEVICES)
        form = 0;
    edit.n_come = form ? N_DEVICES : 1;
    for (uint32_t r = 0; r < edit.n_come; r++) {
        come[r] = whole;
        come[r].device = form ? r : (uint32_t)rng_below(rng, N_DEVICES);
        come[r].kind = form == 1   ? SHARD_REPLICATE
                       : form == 2 ? SHARD_ROW
                                   : SHARD_TABLE;
        if (form != 2)
            continue;
        come[r].row_begin = whole.row_end * r / N_DEVICES;
        come[r].row_end = whole.row_end * (r + 1) / N_DEVICES;
    }
    return edit;
}

/* Returns true if the whole plan fits the memory by plan_check. */
static bool is_legal(const struct plan *plan)
{
    struct err err = {0};

    return !plan_check(plan, &err) || err.code != ERR_NO_PLAN;
}

/* Returns true if the edit fits GPUs with exactly the memory of the edited
 * plan, and does not fit if a GPU that receives a piece has one byte less. */
static bool fits_exactly(struct fixture *fixture, const struct edit *edit,
                         const struct plan *edited)
{
    uint64_t *memory = fixture->plan.problem.cluster.memory_bytes;
    bool is_right = true;

    for (unsigned less = 0; less < 2; less++) {
        struct what_if what_if;

        for (uint32_t r = 0; r < N_DEVICES; r++)
            memory[r] = edited->devices[r].memory.total;
        memory[edit->come[0].device] -= less;
        what_if_init(&what_if, &fixture->plan, &fixture->oracle);
        is_right &= what_if_fits(&what_if, edit) == !less;
        what_if_release(&what_if);
    }
    return is_right;
}

static void check_random(void)
{
    size_t n_far = 0, n_unfit = 0, n_fit = 0, n_wrong = 0;

    for (uint64_t seed = 0; seed < 300; seed++) {
        struct fixture fixture;
        struct what_if what_if;
        struct arena arena = {0};
        struct plan edited;
        struct edit edit;
        struct err err = {0};
        struct rng rng;
        const double *without_ms;
        double step_ms;
        uint32_t table;

        rng_init(&rng, seed, 3);
        fixture_init(&fixture, &rng, &arena);
        what_if_init(&what_if, &fixture.plan, &fixture.oracle);
        edit = random_edit(&fixture.plan, &rng, &arena);
        step_ms = what_if_step(&what_if, &edit);
        if (plan_price_edit(&edited, &what_if, &edit, &arena, &err))
            n_wrong++;
        n_far += fabs(step_ms - edited.total_ms) > 1e-9 * step_ms;
        if (is_legal(&fixture.plan)) {
            n_wrong += what_if_fits(&what_if, &edit) != is_legal(&edited);
            n_fit += is_legal(&edited);
            n_unfit += !is_legal(&edited);
        }
        n_wrong += !fits_exactly(&fixture, &edit, &edited);
        edit.n_come = 0;
        n_wrong += plan_price_edit(&edited, &what_if, &edit, &arena, &err) != 0;
        without_ms = what_if_without(&fixture.plan, &fixture.oracle, &arena);
        table = fixture.plan.shards[edit.gone[0]].table;
        n_far += fabs(without_ms[table] - edited.total_ms) > 1e-9 * step_ms;
        what_if_release(&what_if);
        arena_release(&arena);
    }
    is_i64((int64_t)n_far, 0,
           "an edit has the step time of the edited plan, "
           "and so has a plan without a table");
    is_i64((int64_t)n_wrong, 0, "and fits exactly if plan_check accepts it");
    ok(n_fit > 20 && n_unfit > 20, "%zu fit, %zu do not", n_fit, n_unfit);
}

/* Only GPU 1, which does not wait, has a cost that is not a number. */
static void nan_comm(const struct oracle *oracle, size_t n, const double *sums,
                     const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    fake_comm(oracle, n, sums, compute_ms, fwd_ms, bwd_ms);
    fwd_ms[1] = NAN;
}

static void check_no_number(void)
{
    static const struct oracle_ops ops = {
        .embed = fake_embed, .compute = fake_compute, .comm = nan_comm};
    const struct edit nothing = {0};
    struct fixture fixture;
    struct what_if what_if;
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 0, 3);
    fixture_init(&fixture, &rng, &arena);
    fixture.oracle.ops = &ops;
    what_if_init(&what_if, &fixture.plan, &fixture.oracle);
    ok(what_if_step(&what_if, &nothing) == INFINITY,
       "an edit without a cost is not a cheap edit");
    what_if_release(&what_if);
    arena_release(&arena);
}

static size_t n_embedded;

static void counting_embed(const struct oracle *oracle,
                           const struct shard *shards, size_t n, double *out)
{
    n_embedded += n;
    fake_embed(oracle, shards, n, out);
}

/* Consecutive shards that differ at most in their GPU are embedded once. All
 * tables get new shards: one table is replicated, one is in row blocks, one in
 * column pieces, and two are whole. */
static void check_runs(void)
{
    static const struct oracle_ops ops = {
        .embed = counting_embed, .compute = fake_compute, .comm = fake_comm};
    struct shard shards[] = {
        {0, SHARD_REPLICATE, 0, 10, 0, 8, 0, TIER_HBM},
        {0, SHARD_REPLICATE, 0, 10, 0, 8, 1, TIER_HBM},
        {0, SHARD_REPLICATE, 0, 10, 0, 8, 2, TIER_HBM},
        {1, SHARD_ROW, 0, 5, 0, 8, 0, TIER_HBM},
        {1, SHARD_ROW, 5, 9, 0, 8, 1, TIER_HBM},
        {1, SHARD_ROW, 9, 10, 0, 8, 2, TIER_HBM},
        {2, SHARD_TABLE, 0, 10, 0, 8, 1, TIER_HBM},
        {3, SHARD_COLUMN, 0, 10, 0, 4, 0, TIER_HBM},
        {3, SHARD_COLUMN, 0, 10, 4, 8, 0, TIER_HBM},
        {4, SHARD_TABLE, 0, 10, 0, 8, 2, TIER_HBM},
    };
    const size_t n = sizeof shards / sizeof *shards;
    struct fixture fixture;
    struct what_if what_if;
    struct arena arena = {0};
    unsigned n_other = 0;
    struct rng rng;

    rng_init(&rng, 0, 3);
    fixture_init(&fixture, &rng, &arena);
    for (uint32_t t = 0; t < N_TABLES; t++) {
        fixture.plan.problem.tables[t].num_embeddings = 10;
        fixture.plan.problem.tables[t].dim = 8;
        fixture.plan.problem.tables[t].pooling_factor = 1 + t;
    }
    fixture.plan.shards = shards;
    fixture.plan.n_shards = n;
    fixture.oracle.ops = &ops;
    what_if_init(&what_if, &fixture.plan, &fixture.oracle);
    is_i64((int64_t)n_embedded, (int64_t)n - 2, "a run of replicas once");
    for (size_t i = 0; i < n; i++) {
        double alone;

        fake_embed(&fixture.oracle, &shards[i], 1, &alone);
        n_other += memcmp(&alone, what_if.vectors + i, sizeof(alone)) != 0;
    }
    is_i64(n_other, 0, "each shard has its own vector");
    what_if_release(&what_if);
    arena_release(&arena);
}

int main(void)
{
    check_runs();
    check_random();
    check_no_number();
    return tap_done();
}
