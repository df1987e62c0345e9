/* SPDX-License-Identifier: MIT */
/* Factors of tables, found again from the times of a plan that has them. */
#include "costmodel/learning/table_factors.h"
#include "costmodel/models/oracle_open.h"

#include "tests/tap.h"

#define N_TABLES 12u
#define N_RANKS 4u

static struct arena arena;
static struct table tables[N_TABLES];
static struct shard shards[N_TABLES];
static uint64_t memory[N_RANKS], reserve[N_RANKS];

/* Number of ranks that hold the tables in half precision. */
static uint32_t spread = 2;

/* Returns a priced plan of tables in two precisions, of which the ranks hold
 * different shares. */
static struct plan priced(const char *cost, double forward, double backward)
{
    struct plan plan = {.problem = {.tables = tables,
                                    .n_tables = N_TABLES,
                                    .batch = 8192,
                                    .kinds = SHARD_TABLE,
                                    .cluster = {.n_devices = N_RANKS,
                                                .devices_per_host = N_RANKS,
                                                .gpu = "h100",
                                                .memory_bytes = memory,
                                                .reserve_bytes = reserve}},
                        .shards = shards,
                        .n_shards = N_TABLES};
    struct err err = {0};

    for (uint32_t t = 0; t < N_TABLES; t++) {
        const bool is_half = t % 3 == 0;

        table_init(&tables[t]);
        tables[t].name = arena_printf(&arena, "t%u", t);
        tables[t].num_embeddings = 1000000;
        tables[t].dim = 64;
        tables[t].pooling_factor = 20;
        tables[t].precision = is_half ? PRECISION_FP16 : PRECISION_FP32;
        if (is_half) {
            tables[t].forward_factor = forward;
            tables[t].backward_factor = backward;
        }
        shards[t] =
            shard_whole(&plan.problem, t, is_half ? t % spread : t % N_RANKS);
    }
    plan_derive_kinds(&plan);
    ok(!oracle_price_plan(&plan, cost, &arena, &err), "priced: %s", err.msg);
    return plan;
}

static void times_of(struct rank_lookups *times, const struct plan *plan)
{
    for (uint32_t r = 0; r < N_RANKS; r++)
        times[r] =
            (struct rank_lookups){plan->devices[r].parts_ms[STEP_FORWARD],
                                  plan->devices[r].parts_ms[STEP_BACKWARD]};
}

/* The time of a rank is linear in a factor, above the base of an operation. */
static void check_prices(const char *cost)
{
    const struct plan one = priced(cost, 1, 1), two = priced(cost, 2, 1);
    const struct plan six = priced(cost, 6, 3);
    bool is_linear = true, leaves_backward = true, waits = true;

    for (uint32_t r = 0; r < N_RANKS; r++) {
        const double *a = one.devices[r].parts_ms, *b = two.devices[r].parts_ms;
        const double *c = six.devices[r].parts_ms;

        is_linear &= fabs(c[STEP_FORWARD] - a[STEP_FORWARD] -
                          5 * (b[STEP_FORWARD] - a[STEP_FORWARD])) <
                     1e-9 * (1 + c[STEP_FORWARD]);
        leaves_backward &= fabs(b[STEP_BACKWARD] - a[STEP_BACKWARD]) < 1e-9;
        waits &= c[STEP_OUTPUT] == a[STEP_OUTPUT];
    }
    ok(is_linear, "%s: forward is linear in its factor", cost);
    ok(leaves_backward, "%s: the factor of forward leaves backward", cost);
    ok(waits, "%s: exchanges do not change", cost);
    ok(six.total_ms > one.total_ms, "%s: the step is longer", cost);
}

/* Factors are found from the times of a plan that has them. */
static void check_found(const char *cost, double forward, double backward)
{
    struct plan plan = priced(cost, forward, backward);
    struct rank_lookups times[N_RANKS];
    struct table_factors found;
    struct err err = {0};

    times_of(times, &plan);
    plan = priced(cost, 1, 1);
    /* Twice, because the ridge leaves a part to the second time. */
    for (int i = 0; i < 2; i++)
        ok(!table_factors_find(&found, &plan, times, &arena, &err), "found: %s",
           err.msg);
    is_i64((int64_t)found.n, 2, "two classes");
    is_str(found.classes[0].name,
           "pooled fp16 rowwise_adagrad, 33 to 64 columns", "their name");
    is_i64(found.classes[0].n_tables, 4, "their tables");
    is_near(found.classes[0].forward_factor, forward, 0.05,
            "forward of the class");
    is_near(found.classes[0].backward_factor, backward, 0.05,
            "backward of the class");
    is_near(found.classes[1].forward_factor, 1, 0.03, "forward of others");
    is_near(found.classes[1].backward_factor, 1, 0.03, "backward of others");
}

/* Unknown times change nothing, and classes in the same shares on all ranks get
 * the same factor. */
static void check_unknown(void)
{
    struct plan plan = priced("roofline:h100", 1, 1);
    struct rank_lookups times[N_RANKS];
    struct table_factors found;
    struct err err = {0};

    times_of(times, &plan);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        times[r].forward_ms = NAN;
        times[r].backward_ms = r == 2 ? 0 : NAN;
    }
    ok(!table_factors_find(&found, &plan, times, &arena, &err), "found: %s",
       err.msg);
    ok(tables[0].forward_factor == 1 && tables[1].forward_factor == 1,
       "a phase without times keeps its factors");
    ok(tables[0].backward_factor >= 0.1 && tables[1].backward_factor >= 0.1,
       "no factor falls to less than a tenth: %g, %g",
       tables[0].backward_factor, tables[1].backward_factor);
    spread = N_RANKS; /* one on each rank, and two others */
    plan = priced("roofline:h100", 5, 1);
    times_of(times, &plan);
    plan = priced("roofline:h100", 1, 1);
    ok(!table_factors_find(&found, &plan, times, &arena, &err), "found: %s",
       err.msg);
    is_near(tables[0].forward_factor, tables[1].forward_factor, 1e-9,
            "classes in the same shares have the same factor");
    ok(tables[0].forward_factor > 1.5 && tables[0].forward_factor < 4,
       "it is between theirs: %g", tables[0].forward_factor);
    plan.total_ms = NAN;
    ok(table_factors_find(&found, &plan, times, &arena, &err),
       "a plan without prices is refused");
    is_str(err.msg, "the plan is not priced; 'neuroshard cost -o' prices it",
           "by a sentence");
}

int main(void)
{
    for (uint32_t r = 0; r < N_RANKS; r++)
        memory[r] = UINT64_C(80) << 30;
    check_prices("roofline:h100");
    check_prices("model:h100");
    check_found("roofline:h100", 5, 3);
    check_found("roofline:h100", 0.5, 0.7);
    check_found("model:h100", 4, 2);
    check_unknown();
    arena_release(&arena);
    return tap_done();
}
