/* SPDX-License-Identifier: MIT */
#include "core/what_if.h"

#include "base/rng.h"
#include "core/plan_check.h"
#include "tests/tap.h"

#define N_TABLES 5u
#define N_DEVICES 3u

/* Not additive, and a GPU waits for the others: width^0.8, and the widest. */
static void fake_embed(const struct oracle *oracle, const struct shard *shards,
                       size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (shards[i].col_end - shards[i].col_begin) *
                 (1 + shard_lookups(oracle->problem, &shards[i]));
}

static void fake_compute(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = pow(fabs(sums[i]), 0.8);
}

static void fake_comm(const struct oracle *oracle, size_t n, const double *sums,
                      const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++) {
        double last = 0;

        for (size_t r = 0; r < N_DEVICES; r++)
            last = fmax(last, compute_ms[i * N_DEVICES + r]);
        for (size_t r = i * N_DEVICES; r < (i + 1) * N_DEVICES; r++) {
            bwd_ms[r] = 1e-3 * sums[r];
            fwd_ms[r] = last - compute_ms[r];
        }
    }
}

static const struct oracle_ops fake_ops = {
    .embed = fake_embed, .compute = fake_compute, .comm = fake_comm};

struct fixture {
    struct plan plan;
    struct oracle oracle;
};

/* Tables whole or halved, at random, on GPUs of different memory. */
static void fixture_init(struct fixture *fixture, struct rng *rng,
                         struct arena *arena)
{
    struct plan *plan = &fixture->plan;
    struct err err = {0};

    *plan = (struct plan){
        .problem = {
            .tables = ARENA_NEW(arena, struct table, N_TABLES),
            .n_tables = N_TABLES,
            .cluster = {.n_devices = N_DEVICES,
                        .devices_per_host = N_DEVICES,
                        .memory_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES),
                        .reserve_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES)},
            .batch = 4,
            .kinds = SHARD_ALL_KINDS,
        }};
    plan->shards = ARENA_NEW(arena, struct shard, 2 * N_TABLES);
    for (uint32_t r = 0; r < N_DEVICES; r++) {
        uint64_t reserve = rng_below(rng, 30000);

        plan->problem.cluster.reserve_bytes[r] = reserve;
        plan->problem.cluster.memory_bytes[r] =
            reserve + 20000 + rng_below(rng, 60000);
    }
    for (uint32_t t = 0; t < N_TABLES; t++) {
        struct table *table = &plan->problem.tables[t];
        struct shard *shard = &plan->shards[plan->n_shards];

        table_init(table);
        table->name = arena_printf(arena, "t%u", t);
        table->num_embeddings = 1 + rng_below(rng, 500);
        table->dim = 8 * (1 + (uint32_t)rng_below(rng, 4));
        table->pooling_factor = 1 + rng_uniform(rng);
        *shard =
            shard_whole(&plan->problem, t, (uint32_t)rng_below(rng, N_DEVICES));
        plan->n_shards++;
        if (rng_below(rng, 2))
            continue;
        shard[1] = shard[0];
        shard[0].col_end = shard[1].col_begin = table->dim / 2;
        shard[1].device = (uint32_t)rng_below(rng, N_DEVICES);
        plan->n_shards++;
    }
    fixture->oracle = (struct oracle){.ops = &fake_ops,
                                      .problem = &plan->problem,
                                      .name = "fake",
                                      .hash = "00",
                                      .comm = "made up",
                                      .width = 1,
                                      .kinds = SHARD_ALL_KINDS,
                                      .floor_lane = -1};
    plan_derive_kinds(plan);
    if (plan_price(plan, &fixture->oracle, arena, &err))
        ok(0, "priced: %s", err.msg);
}

/* A table goes whole, or replicated, or in thirds of its rows. */
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

/* The whole plan fits the memory, by the judge; where the others fit. */
static bool is_legal(const struct plan *plan)
{
    struct err err = {0};

    return !plan_check(plan, &err) || err.code != ERR_NO_PLAN;
}

static void check_random(void)
{
    size_t n_far = 0, n_unfit = 0, n_fit = 0, n_wrong = 0;

    for (uint64_t seed = 0; seed < 300; seed++) {
        struct fixture fixture;
        struct what_if what_if;
        struct arena arena;
        struct plan edited;
        struct edit edit;
        struct err err = {0};
        struct rng rng;
        double step_ms, without_ms[N_TABLES];
        uint32_t table;

        arena_init(&arena);
        rng_init(&rng, seed, 3);
        fixture_init(&fixture, &rng, &arena);
        what_if_init(&what_if, &fixture.plan, &fixture.oracle);
        edit = random_edit(&fixture.plan, &rng, &arena);
        step_ms = what_if_step(&what_if, &edit);
        if (what_if_apply(&edited, &what_if, &edit, &arena, &err))
            n_wrong++;
        n_far += fabs(step_ms - edited.total_ms) > 1e-9 * step_ms;
        if (is_legal(&fixture.plan)) {
            n_wrong += what_if_fits(&what_if, &edit) != is_legal(&edited);
            n_fit += is_legal(&edited);
            n_unfit += !is_legal(&edited);
        }
        edit.n_come = 0;
        n_wrong += what_if_apply(&edited, &what_if, &edit, &arena, &err) != 0;
        what_if_without(&what_if, without_ms);
        table = fixture.plan.shards[edit.gone[0]].table;
        n_far += fabs(without_ms[table] - edited.total_ms) > 1e-9 * step_ms;
        what_if_release(&what_if);
        arena_release(&arena);
    }
    is_i64((int64_t)n_far, 0,
           "an edit costs what the edited plan costs, as "
           "a plan without a table does");
    is_i64((int64_t)n_wrong, 0, "and fits where the judge finds it so");
    ok(n_fit > 20 && n_unfit > 20, "%zu fit, %zu do not", n_fit, n_unfit);
}

/* Of GPU 1 alone, which does not wait. */
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
    struct arena arena;
    struct rng rng;

    arena_init(&arena);
    rng_init(&rng, 0, 3);
    fixture_init(&fixture, &rng, &arena);
    fixture.oracle.ops = &ops;
    what_if_init(&what_if, &fixture.plan, &fixture.oracle);
    ok(what_if_step(&what_if, &nothing) == INFINITY,
       "what has no cost is no cheap edit");
    what_if_release(&what_if);
    arena_release(&arena);
}

int main(void)
{
    check_random();
    check_no_number();
    return tap_done();
}
