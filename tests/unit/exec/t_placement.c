/* SPDX-License-Identifier: MIT */
#include "exec/placement.h"

#include "core/plan_memory.h"
#include "device/interference_probe.h"
#include "exec/batches.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec_fixture.h"
#include "tests/tap.h"

static void test_scaled_rows(void)
{
    static const double scales[] = {1, 0.999, 0.5, 0.1, 1e-3, 1e-6};
    struct table table;
    int tiles = 1, rounded = 1;

    table_init(&table);
    for (unsigned i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        for (uint64_t n_rows = 1; n_rows < 40; n_rows++) {
            uint64_t previous = 0, n;
            double want = floor((double)n_rows * scales[i] + 0.5);

            table.num_embeddings = n_rows;
            n = placement_scale_row(&table, n_rows, scales[i]);
            rounded &= (double)n == (want < 1 ? 1 : want);
            tiles &= placement_scale_row(&table, 0, scales[i]) == 0;
            for (uint64_t row = 0; row <= n_rows; row++) {
                uint64_t at = placement_scale_row(&table, row, scales[i]);

                tiles &= at >= previous && at <= n;
                previous = at;
            }
        }
    }
    ok(rounded, "scaled rows are rounded, and at least one");
    ok(tiles, "scaled row ranges tile the scaled table");
}

/* Places 2 ranks; a table of 4 Mi rows x 64 takes 1 GiB and 16 MiB of state. */
static void place_gib(struct fixture *fixture, struct placement *placement,
                      double scale_rows)
{
    struct err err;

    fixture_init(fixture, 2, 1024);
    add_table(fixture, "big", 1 << 22, 64, 4);
    add_whole(fixture, 1);
    plan_derive_kinds(&fixture->plan);
    ok(!placement_init(placement, &fixture->plan, fixture->comm, scale_rows, 1,
                       &fixture->arena, &err),
       "placed with rows x %g", scale_rows);
}

static void test_memory(void)
{
    struct fixture fixture;
    struct placement placement;
    struct placement_need need;
    struct err err = {0};
    double scale;

    place_gib(&fixture, &placement, 1);
    placement_need(&need, &placement);
    is_near(need.rows_bytes, 1.0e9 * 1.073741824 + (1 << 24), 1,
            "weights and states are counted");
    ok(need.batch_bytes > INTERFERENCE_PROBE_BYTES + 8.0 * 1024 * 64 &&
           need.batch_bytes < INTERFERENCE_PROBE_BYTES + (1 << 22),
       "so are outputs, twice, and look-ups: %.0f bytes", need.batch_bytes);
    ok(!placement_cut_turns(&placement, 2000000000, &err), "2 GB are enough");
    ok(placement_cut_turns(&placement, 512000000, &err) &&
           err.code == ERR_DEVICE,
       "512 MB are not");
    is_str(err.msg,
           "running the plan takes 1.08 GiB of memory, but only 464 MiB can be "
           "used; --scale-rows 0.387 or less fits",
           "... and the sentence says what fits");
    placement_release(&placement);
    fixture_release(&fixture);

    scale = strtod(strstr(err.msg, "--scale-rows") + 12, NULL);
    place_gib(&fixture, &placement, scale);
    ok(!placement_cut_turns(&placement, 512000000, &err), "it does fit");
    ok(placement_cut_turns(&placement, 1000000, &err) && err.code == ERR_DEVICE,
       "1 MB is too little at any scale");
    ok(strstr(err.msg, "its batch alone does not fit, so --scale-rows "
                       "cannot help") != NULL,
       "... and the sentence says so: %s", err.msg);
    placement_release(&placement);
    fixture_release(&fixture);
}

/* A replica has a dense gradient on each rank. Ranks take turns only with the
 * weights. */
static void test_dense(void)
{
    struct placement_need need[2];

    for (int copies = 0; copies < 2; copies++) {
        struct placement placement;
        struct fixture fixture;
        struct err err = {0};

        fixture_init(&fixture, 3, 1024);
        add_table(&fixture, "small", 1000, 16, 1);
        if (copies)
            add_replicas(&fixture);
        else
            add_whole(&fixture, 0);
        plan_derive_kinds(&fixture.plan);
        ok(!placement_init(&placement, &fixture.plan, fixture.comm, 1, 1,
                           &fixture.arena, &err),
           "placed %s", err.msg);
        placement_need(&need[copies], &placement);
        placement_release(&placement);
        fixture_release(&fixture);
    }
    is_near(need[0].rows_bytes, 1000 * 17 * 4, 256, "weights and states");
    is_near(need[1].rows_bytes - need[0].rows_bytes, 3 * 1000 * 16 * 4, 1,
            "and three dense gradients");
}

/* The memory that a plan counts for a rank covers an execution's ids and
 * outputs on this rank, including received outputs. */
static void test_counted(void)
{
    static const uint64_t memory[4] = {1 << 30, 1 << 30, 1 << 30, 1 << 30};
    static const uint64_t reserve[4];
    double least = INFINITY, most = 0;
    struct device_cost counted[4] = {0};
    struct placement placement;
    struct fixture fixture;
    struct err err = {0};

    fixture_init(&fixture, 4, 4096);
    fixture.plan.problem.cluster.devices_per_host = 4;
    fixture.plan.problem.cluster.memory_bytes = (uint64_t *)(uintptr_t)memory;
    fixture.plan.problem.cluster.reserve_bytes = (uint64_t *)(uintptr_t)reserve;
    fixture.plan.problem.job.pipeline = PIPELINE_NONE;
    add_table(&fixture, "whole", 1000, 64, 20);
    add_whole(&fixture, 0);
    add_table(&fixture, "cut", 1000, 64, 4);
    add_columns(&fixture, 1, 0, 32);
    add_columns(&fixture, 2, 32, 64);
    add_table(&fixture, "rows", 4000, 32, 10);
    for (uint32_t r = 0; r < 4; r++)
        add_rows(&fixture, r, 1000 * r, 1000 * r + 1000);
    add_table(&fixture, "other", 1000, 128, 1);
    add_whole(&fixture, 3);
    plan_derive_kinds(&fixture.plan);
    problem_find_hot_rows(&fixture.plan.problem, &fixture.arena);
    fixture.plan.devices = counted;
    plan_count_memory(&fixture.plan);
    ok(!placement_init(&placement, &fixture.plan, fixture.comm, 1, 1,
                       &fixture.arena, &err),
       "placed %s", err.msg);
    for (uint32_t r = 0; r < 4; r++) {
        double used = 0;

        for (size_t g = 0; g < placement.n_groups; g++) {
            const struct group *group = &placement.groups[g];
            double bag_bytes = 4.0 * group->out_dim;
            struct index_batch batch;

            used += bag_bytes * group->n_bags / 4; /* received outputs */
            if (group->rank != r)
                continue;
            used += bag_bytes * group->n_bags;
            if (index_batch_init(&batch, &placement, group, 0, &err))
                fixture_bail(&err);
            used += 4.0 * (double)batch.lookups.n_lookups +
                    8.0 * (group->n_pieces * (double)group->n_bags + 1);
            index_batch_release(&batch);
        }
        used = (double)(counted[r].memory.input + counted[r].memory.outputs) /
               used;
        least = fmin(least, used);
        most = fmax(most, used);
    }
    ok(least >= 1 && most <= 2,
       "counted: %.2f to %.2f times an execution's bytes", least, most);
    placement_release(&placement);
    fixture_release(&fixture);
}

/* The order of the tables, and which rank has which table, do not change the
 * total memory. */
static void test_order(void)
{
    struct placement_need need[4];

    for (uint32_t i = 0; i < 4; i++) {
        uint32_t order = i / 2, rank = i % 2;
        struct placement placement;
        struct fixture fixture;
        struct err err = {0};

        fixture_init(&fixture, 2, 1024);
        for (uint32_t t = 0; t < 2; t++) {
            if (t == order)
                add_table(&fixture, "large", 1000, 64, 20);
            else
                add_table(&fixture, "small", 100, 16, 1);
            add_whole(&fixture, t == order ? rank : 1 - rank);
        }
        plan_derive_kinds(&fixture.plan);
        ok(!placement_init(&placement, &fixture.plan, fixture.comm, 1, 1,
                           &fixture.arena, &err),
           "placed %s", err.msg);
        placement_need(&need[i], &placement);
        placement_release(&placement);
        fixture_release(&fixture);
        ok(need[i].rows_bytes == need[0].rows_bytes &&
               need[i].batch_bytes == need[0].batch_bytes &&
               need[i].weight_bytes == need[0].weight_bytes,
           "%s first, the large one on rank %u: %.0f + %.0f bytes",
           order ? "small" : "large", rank, need[i].rows_bytes,
           need[i].batch_bytes);
    }
}

static void test_many_rows(void)
{
    struct fixture fixture;
    struct placement placement;
    struct err err = {0};

    fixture_init(&fixture, 1, 16);
    add_table(&fixture, "endless", 5000000000, 4, 1);
    add_whole(&fixture, 0);
    plan_derive_kinds(&fixture.plan);
    ok(!placement_init(&placement, &fixture.plan, fixture.comm, 1, 1,
                       &fixture.arena, &err),
       "five billion rows are placed");
    ok(placement_cut_turns(&placement, UINT64_MAX, &err) &&
           err.code == ERR_DEVICE,
       "but not executed, whatever the memory");
    is_str(err.msg,
           "table 'endless': 5000000000 rows are more than the 2^32 - 2 that "
           "can be run; --scale-rows 0.858 or less fits",
           "the sentence names the table and what fits");
    placement_release(&placement);
    fixture_release(&fixture);
}

static void test_groups(void)
{
    struct fixture fixture;
    struct placement placement;
    struct err err;
    const struct group *groups;

    fixture_init(&fixture, 2, 101);
    add_table(&fixture, "copied", 10, 8, 1);
    add_replicas(&fixture);
    add_table(&fixture, "two", 10, 16, 2)->num_outputs = 2;
    add_columns(&fixture, 1, 0, 12);
    add_columns(&fixture, 1, 12, 16);
    add_table(&fixture, "one", 10, 4, 1);
    add_whole(&fixture, 1);
    plan_derive_kinds(&fixture.plan);
    if (!ok(!placement_init(&placement, &fixture.plan, fixture.comm, 1, 1,
                            &fixture.arena, &err),
            "placed"))
        exit(1);
    groups = placement.groups;
    is_i64((int64_t)placement.n_groups, 4, "a fused call for each batch");
    ok(placement.rank_groups[1] == groups + 1, "rank 0 has its replica");
    is_i64(groups[0].n_samples, 50, "... of the smaller half of the samples");
    is_i64(groups[1].n_bags, 101, "rank 1: tables of one output,");
    is_i64(groups[2].n_bags, 202, "... of two,");
    is_i64(groups[2].out_dim, 16, "... both pieces side by side,");
    is_i64(groups[3].n_bags, 51, "... and its replica");
    placement_release(&placement);
    fixture_release(&fixture);
}

int main(void)
{
    test_scaled_rows();
    test_memory();
    test_dense();
    test_counted();
    test_order();
    test_many_rows();
    test_groups();
    return tap_done();
}
