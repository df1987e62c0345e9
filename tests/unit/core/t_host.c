/* SPDX-License-Identifier: MIT */
#include "core/host.h"

#include "tests/tap.h"
#include "tests/unit/emit/fixture.h"

/* Adds a pooled table of 16 columns and 64 rows, in pieces of this kind. */
static void add(struct plan *plan, enum shard_kind kind)
{
    fixture_table(plan, "t", 64, 16, 1);
    switch (kind) {
    case SHARD_COLUMN:
        fixture_shard(plan, 0, 64, 0, 8, 0);
        fixture_shard(plan, 0, 64, 8, 16, 1);
        break;
    case SHARD_ROW:
        for (uint32_t r = 0; r < 4; r++)
            fixture_shard(plan, 16 * r, 16 * (r + 1), 0, 16, r);
        break;
    case SHARD_GRID:
        for (uint32_t r = 0; r < 4; r++)
            fixture_shard(plan, 32 * (r % 2), 32 * (r % 2 + 1), 8 * (r / 2),
                          8 * (r / 2 + 1), r);
        break;
    case SHARD_REPLICATE:
        for (uint32_t r = 0; r < 4; r++)
            fixture_shard(plan, 0, 64, 0, 16, r);
        break;
    case SHARD_TABLE:
        fixture_shard(plan, 0, 64, 0, 16, 0);
        break;
    }
}

static void test_kinds(void)
{
    static const struct {
        const char *name;
        enum shard_kind kinds[4];
        unsigned n_kinds;
    } cases[] = {
        {"whole tables", {SHARD_TABLE, SHARD_TABLE}, 1},
        {"whole tables join columns", {SHARD_TABLE, SHARD_COLUMN}, 1},
        {"rows are another kind", {SHARD_TABLE, SHARD_ROW}, 2},
        {"so are grids", {SHARD_TABLE, SHARD_GRID, SHARD_ROW}, 3},
        {"so are replicas",
         {SHARD_COLUMN, SHARD_ROW, SHARD_REPLICATE, SHARD_TABLE},
         3},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan = fixture_plan(4, 2, 64);

        for (size_t k = 0; k < 4 && cases[i].kinds[k]; k++)
            add(&plan, cases[i].kinds[k]);
        plan_derive_kinds(&plan);
        is_i64(plan_n_kinds(&plan), cases[i].n_kinds, cases[i].name);
    }
}

/* Rows cut over one host are another type than rows cut over all ranks. A type
 * that pooled and sequence tables use counts twice. */
static void test_types(void)
{
    struct plan plan = fixture_plan(4, 2, 64);

    add(&plan, SHARD_ROW);
    fixture_table(&plan, "host", 64, 16, 1);
    fixture_shard(&plan, 0, 32, 0, 16, 2);
    fixture_shard(&plan, 32, 64, 0, 16, 3);
    plan_derive_kinds(&plan);
    is_i64(plan_n_kinds(&plan), 2, "row-wise and table-row-wise");
    plan = fixture_plan(4, 2, 64);
    add(&plan, SHARD_TABLE);
    add(&plan, SHARD_TABLE);
    plan.problem.tables[1].output = OUTPUT_SEQUENCE;
    plan_derive_kinds(&plan);
    is_i64(plan_n_kinds(&plan), 2, "pooled and sequence tables");
    plan.problem.cluster.n_other_kinds = 3;
    is_i64(plan_n_kinds(&plan), 5, "and those of tables outside the plan");
}

static void test_time(void)
{
    struct problem problem = {.n_tables = 55};
    struct time_range time = host_time(&problem, HOST_ASSUMED, 1);

    ok(time.ms == 2 && time.least_ms == 1.6 && time.most_ms == 2.4, "one kind");
    time = host_time(&problem, HOST_MEASURED, 3);
    is_near(time.ms, 3, 1e-12, "each further kind adds 0.5 ms");
    is_near(time.least_ms, 2.12, 1e-12, "at least 0.26");
    is_near(time.most_ms, 4.02, 1e-12, "at most 0.81");
    problem.n_tables = 155;
    time = host_time(&problem, HOST_ASSUMED, 1);
    ok(time.ms == 2, "more tables change the range only");
    is_near(time.most_ms, 5.5, 1e-12, "by 31 us for each above 55");
    ok(host_time(&problem, HOST_NONE, 2).most_ms == 0, "no host, no time");
    problem.job.asks_host = true;
    problem.job.host_ms = 7;
    time = host_time(&problem, HOST_ASSUMED, 4);
    ok(time.ms == 7 && time.least_ms == 7 && time.most_ms == 7,
       "a given time counts for all kinds");
    ok(host_time(&problem, HOST_NONE, 1).ms == 7, "and for other devices");
}

static void test_step(void)
{
    struct plan plan = fixture_plan(4, 2, 64);
    struct time_range step;

    add(&plan, SHARD_TABLE);
    plan_derive_kinds(&plan);
    plan.devices = ARENA_NEW(&arena, struct device_cost, 4);
    plan.total_ms = 3;
    plan.cost.host = HOST_ASSUMED;
    plan.cost.lookup_error.frac = 0.2;
    plan.exposed_ms[STEP_FORWARD] = 3;
    step = plan_step(&plan);
    is_near(step.ms, hypot(3, 2), 1e-12, "the root of the squares");
    is_near(step.least_ms, hypot(2.5, 1.6), 1e-12, "both at their least");
    is_near(step.most_ms, hypot(3.6, 2.4), 1e-12, "both at their most");
    ok(!plan_waits_for_host(&plan), "the GPUs take longer");
    plan.cost.exchange_error.frac = 0.2;
    plan.exposed_ms[STEP_FORWARD] = 1;
    plan.exposed_ms[STEP_OUTPUT] = 2;
    plan.cost.wire = (struct wire){100, 10, false, true};
    step = plan_step(&plan);
    is_near(step.most_ms, hypot(5 * (1 + plan_error_frac(&plan)), 2.4), 1e-12,
            "exchanges across hosts twice as long");
    is_near(step.least_ms, hypot(3 / (1 + plan_error_frac(&plan)), 1.6), 1e-12,
            "a shared network makes nothing shorter");
    plan.cost.wire.assumes_inter = false;
    is_near(plan_step(&plan).most_ms,
            hypot(3 * (1 + plan_error_frac(&plan)), 2.4), 1e-12,
            "a given bandwidth is believed");
    plan.cost.wire = (struct wire){100, 0, true, true};
    is_near(plan_shared_ms(&plan), 0, 0, "one host has no network");
    plan.total_ms = 1.9;
    ok(plan_waits_for_host(&plan), "the host takes longer");
    plan.cost.host = HOST_NONE;
    ok(plan_step(&plan).ms == 1.9 && !plan_waits_for_host(&plan), "no host");
    plan.cost.host = HOST_ASSUMED;
    plan.devices[0].parts_ms[0] = NAN;
    ok(plan_step(&plan).ms == 1.9, "nor for a cost model without parts");
}

int main(void)
{
    test_kinds();
    test_types();
    test_time();
    test_step();
    return tap_done();
}
