/* SPDX-License-Identifier: MIT */
/* The memory that an execution needs, item by item, and its consequences: the
 * number of ranks that share a turn, and the --scale-rows that would fit. */
#include "exec/placement.h"

#include "device/interference_probe.h"
#include "exec/exchange.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec/rank_work.h"
#include "exec_fixture.h"
#include "tests/tap.h"

#define BATCH 9 /* rank 0 has 4 samples, rank 1 has 5 */

/* Size of table "rows". With few lookups a rank's work needs most memory; with
 * many lookups the input does. */
struct size {
    uint64_t n_rows;
    double pooling;
};
static const struct size few = {4000, 10}, many = {400000, 10000};

struct stage {
    struct fixture fixture;
    struct placement placement;
};

/* Makes a plan with every kind of piece on two ranks. */
static void stage_open(struct stage *stage, struct size size)
{
    struct fixture *fixture = &stage->fixture;
    struct err err = {0};

    fixture_init(fixture, 2, BATCH);
    add_table(fixture, "whole", 1000, 64, 20);
    add_whole(fixture, 0);
    add_table(fixture, "cut", 500, 48, 4);
    add_columns(fixture, 1, 0, 32);
    add_columns(fixture, 0, 32, 48);
    add_table(fixture, "rows", size.n_rows, 128, size.pooling);
    add_rows(fixture, 0, 0, size.n_rows / 4);
    add_rows(fixture, 1, size.n_rows / 4, size.n_rows);
    add_table(fixture, "twice", 100, 16, 6)->num_outputs = 2;
    add_whole(fixture, 1);
    add_table(fixture, "copied", 50, 8, 3);
    add_replicas(fixture);
    plan_derive_kinds(&fixture->plan);
    if (placement_init(&stage->placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err))
        fixture_bail(&err);
}

static void stage_close(struct stage *stage)
{
    placement_release(&stage->placement);
    fixture_release(&stage->fixture);
}

/* Lookups of a batch that each piece serves, in plan order. */
static void test_lookups(struct stage *stage, struct size size)
{
    const double want[] = {20 * BATCH,
                           4 * BATCH,
                           4 * BATCH,
                           size.pooling / 4 * BATCH,
                           size.pooling * 3 / 4 * BATCH,
                           6 * BATCH,
                           3 * 4,
                           3 * 5};
    const struct placement *placement = &stage->placement;

    is_i64((int64_t)placement->n_pieces, 8, "pieces");
    for (size_t i = 0; i < placement->n_pieces; i++)
        is_near(placement_lookups(placement, &placement->pieces[i]), want[i],
                1e-9, "look-ups of a piece");
}

/* One group's share of the work: batches of bags and lookups, and scratch
 * memory to sort them. */
struct work {
    double n_bags, n_lookups;
    uint32_t max_dim;
};

static double work_bytes(const struct work *works, size_t n, unsigned n_sets)
{
    double bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += n_sets * (8 * works[i].n_bags + 4 * works[i].n_lookups) +
                 works[i].n_lookups *
                     (16 + works[i].max_dim * 4.0 / LOOKUP_RUN_PART);
    return bytes;
}

/* Returns the larger one of the two ranks' work, in bytes. Replicas hold the
 * lookups of three batches: their own, and both ranks'. */
static double largest_work(const struct placement *placement, struct size size)
{
    const double quarter = size.pooling / 4 * BATCH;
    const struct work first[] = {{3 * BATCH, 24 * BATCH + quarter, 128},
                                 {4, 3 * 12, 8}},
                      second[] = {{2 * BATCH, 4 * BATCH + 3 * quarter, 128},
                                  {2 * BATCH, 6 * BATCH, 16},
                                  {5, 3 * 15, 8}};

    return fmax(work_bytes(first, 2, rank_work_n_cold_sets(placement, 0)),
                work_bytes(second, 3, rank_work_n_cold_sets(placement, 1)));
}

/* Bytes of the dense gradients of "copied" on each rank. */
#define DENSE_BYTES (50 * 8 * 4.0)
/* Bytes of outputs that are computed and received. Groups of one output have
 * 208 columns on rank 0 and 128 on rank 1, that of two outputs 16. The 8 copied
 * columns are not sent. */
#define OUTPUT_BYTES (4.0 * BATCH * (2 * (208 + 160 + 2 * 16) + 8))

static void test_need(struct size size, bool is_input)
{
    struct stage stage;
    struct placement *placement = &stage.placement;
    struct placement_need need;
    double fixed, work, input, weights[2];

    stage_open(&stage, size);
    test_lookups(&stage, size);
    for (uint32_t r = 0; r < 2; r++)
        weights[r] = (double)placement_weight_bytes(placement, r);
    work = largest_work(placement, size);
    input = 8 * (34 + size.pooling) * BATCH + 8 * 7 * BATCH;
    ok((4 * input > work) == is_input, "the larger one");
    fixed = OUTPUT_BYTES + 2 * DENSE_BYTES + (double)INTERFERENCE_PROBE_BYTES +
            BATCH * (28 * fmax(20, size.pooling) + 8);
    placement_need(&need, placement);
    is_near(need.weight_bytes, fmax(weights[0], weights[1]), 0,
            "the larger rank's weights");
    is_near(need.rows_bytes, need.weight_bytes + 2 * DENSE_BYTES, 0,
            "with all dense gradients");
    is_near(need.batch_bytes, fixed + fmax(work, 4 * input), 1e-3,
            "input or work, outputs, sums, the canary, the reference");

    /* Several processes also compare the whole batch with chunks. */
    placement->n_chunks = 2;
    placement_need(&need, placement);
    is_near(need.batch_bytes, fixed + fmax(work, 4 * input), 1e-3,
            "one process does not compare chunks");
    placement->comm->world->size = 2;
    placement_need(&need, placement);
    is_near(need.batch_bytes, fixed + fmax(2 * work, 4 * input), 1e-3,
            "several do: twice the work");
    placement->n_chunks = 1;
    placement_need(&need, placement);
    if (!is_input)
        is_near(need.batch_bytes, fixed + work, 1e-3,
                "with one chunk there is nothing to compare");
    placement->comm->world->size = 1;
    stage_close(&stage);
}

/* A GPU needs more scratch memory to sort, holds four batches, and shares no
 * memory with the reference. */
static void test_gpu(void)
{
    struct stage stage;
    struct placement_need need;
    double work;

    stage_open(&stage, few);
    stage.placement.device->kind = DEVICE_CUDA;
    placement_need(&need, &stage.placement);
    stage.placement.device->kind = DEVICE_CPU;
    work = 4 * (8 * (3 * BATCH + 4) +
                4 * ((24 + 0.25 * few.pooling) * BATCH + 3 * 12)) +
           (24 + 0.25 * few.pooling) * BATCH *
               (24 + 128 * 4.0 / LOOKUP_RUN_PIECE) +
           3 * 12 * (24 + 8 * 4.0 / LOOKUP_RUN_PIECE);
    is_near(need.batch_bytes - OUTPUT_BYTES - 2 * DENSE_BYTES -
                (double)INTERFERENCE_PROBE_BYTES,
            fmax(work, 32 * (34 + few.pooling) * BATCH + 32 * 7 * BATCH), 1e-3,
            "no reference on a GPU");
    stage_close(&stage);
}

/* A rank of another process has no weights and outputs here. Half of the
 * samples are drawn here, and the rank that is here receives the ids of all
 * samples. */
static void test_here(void)
{
    const double lookups = 10000 * BATCH;
    struct stage stage = {0};
    struct fixture *fixture = &stage.fixture;
    struct placement_need need;
    struct err err = {0};

    fixture_init(fixture, 2, BATCH);
    add_table(fixture, "large", 400000, 128, 10000);
    add_whole(fixture, 0);
    add_table(fixture, "small", 10, 8, 1);
    add_whole(fixture, 1);
    plan_derive_kinds(&fixture->plan);
    if (placement_init(&stage.placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err))
        fixture_bail(&err);
    stage.placement.here = (struct rank_range){1, 2};
    placement_need(&need, &stage.placement);
    is_near(need.rows_bytes,
            (double)placement_weight_bytes(&stage.placement, 1), 0,
            "the weights of the rank that is here");
    is_near(need.batch_bytes - (double)INTERFERENCE_PROBE_BYTES -
                BATCH * (28 * 10000.0 + 8),
            3 * (8 * (lookups + BATCH) + 8 * 2 * BATCH) +
                4.0 * (8 * BATCH + (128 + 8) * 5),
            1e-3, "its outputs, and all ids that come and go");
    stage_close(&stage);
}

/* With rows in the order of frequency, a block has its share of the lookups. If
 * rows are scaled, they are assumed to be used evenly. */
static void test_hot(void)
{
    for (unsigned scaled = 0; scaled < 2; scaled++) {
        struct stage stage = {0};
        struct fixture *fixture = &stage.fixture;
        struct problem *problem = &fixture->plan.problem;
        struct placement *placement = &stage.placement;
        struct err err = {0};
        double share[3], sum = 0;
        struct table *table;

        fixture_init(fixture, 2, BATCH);
        table = add_table(fixture, "hot", 1000, 8, 10);
        table->row_order = ROW_ORDER_FREQUENCY;
        table->zipf_alpha = 1.2;
        add_rows(fixture, 0, 0, 100);
        add_rows(fixture, 1, 100, 1000);
        add_table(fixture, "whole", 1000, 8, 7)->zipf_alpha = 1.2;
        add_whole(fixture, 0);
        plan_derive_kinds(&fixture->plan);
        problem_find_hot_rows(problem, &fixture->arena);
        if (placement_init(placement, &fixture->plan, fixture->comm,
                           scaled ? 0.5 : 1, 3, &fixture->arena, &err))
            fixture_bail(&err);
        for (unsigned i = 0; i < 3; i++)
            share[i] =
                placement_lookups(placement, &placement->pieces[i]) / BATCH;
        sum = share[0] + share[1];
        is_near(sum, 10, 1e-9, "blocks share the look-ups");
        is_near(share[2], 7, 1e-12, "a whole table has its own");
        is_near(share[0],
                scaled ? 1 : 10 * hot_rows_share(&problem->hot[0], 0, 100),
                1e-9, "the first block's share");
        ok(scaled || share[0] > 5, "which is hot: %g of 10", share[0]);
        stage_close(&stage);
    }
}

/* The reference is sized for the table whose lookups and bags need most
 * memory. */
static void test_reference(void)
{
    static const struct {
        double pooling[2];
        uint32_t n_outputs[2];
        double bytes; /* bytes per sample */
    } CASES[] = {
        {{2, 1}, {1, 1}, 2 * 28 + 8},
        {{1, 2}, {1, 1}, 2 * 28 + 8},
        {{2, 2}, {1, 2}, 2 * 28 + 16},
        {{2, 3}, {2, 1}, 3 * 28 + 8},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct placement_need need;
        struct stage stage = {0};
        struct fixture *fixture = &stage.fixture;
        double lookups = 0, bags = 0, columns = 0, rest;
        struct err err = {0};

        fixture_init(fixture, 1, 8);
        for (unsigned t = 0; t < 2; t++) {
            add_table(fixture, t ? "b" : "a", 100, 4, CASES[i].pooling[t])
                ->num_outputs = CASES[i].n_outputs[t];
            add_whole(fixture, 0);
            lookups += 8 * CASES[i].pooling[t];
            bags += 8 * CASES[i].n_outputs[t];
            columns += 8 * 4 * CASES[i].n_outputs[t];
        }
        plan_derive_kinds(&fixture->plan);
        if (placement_init(&stage.placement, &fixture->plan, fixture->comm, 1,
                           3, &fixture->arena, &err))
            fixture_bail(&err);
        placement_need(&need, &stage.placement);
        rest = (double)INTERFERENCE_PROBE_BYTES + 2 * 4 * columns +
               16 * (8 * bags + 4 * lookups) +
               lookups * (16 + 16.0 / LOOKUP_RUN_PART);
        is_near(need.batch_bytes - rest, 8 * CASES[i].bytes, 1e-3,
                "the reference of the larger table");
        stage_close(&stage);
    }
}

/* Ranks share a turn as long as their weights fit into the memory that the
 * other items leave. */
static void test_turns(void)
{
    /* each rank's weights, and the memory left for them, in thousands of
     * rows */
    static const struct {
        unsigned rows[4], room;
        unsigned n_turns, ends[4];
    } CASES[] = {
        {{3, 1, 1, 2}, 3, 3, {1, 3, 4}},    {{3, 1, 1, 2}, 4, 2, {2, 4}},
        {{1, 1, 1, 1}, 1, 4, {1, 2, 3, 4}}, {{1, 1, 1, 1}, 3, 2, {3, 4}},
        {{1, 2, 3, 1}, 7, 1, {4}},          {{1, 2, 3, 1}, 6, 2, {3, 4}},
        {{1, 3, 1, 1}, 3, 3, {1, 2, 4}},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct stage stage = {0};
        struct fixture *fixture = &stage.fixture;
        struct placement *placement = &stage.placement;
        struct placement_need need;
        struct err err = {0};
        bool is_right;
        double usable;

        fixture_init(fixture, 4, 8);
        for (unsigned r = 0; r < 4; r++) {
            add_table(fixture, &"abcd"[r], 64000ull * CASES[i].rows[r], 4, 1);
            add_whole(fixture, r);
        }
        plan_derive_kinds(&fixture->plan);
        if (placement_init(placement, &fixture->plan, fixture->comm, 1, 3,
                           &fixture->arena, &err))
            fixture_bail(&err);
        placement_need(&need, placement);
        usable = need.rows_bytes - need.weight_bytes + need.batch_bytes +
                 64000 * 5 * 4.0 * CASES[i].room + 4096;
        is_right =
            !placement_cut_turns(placement, (uint64_t)(usable / 0.95), &err) &&
            placement->n_turns == CASES[i].n_turns;
        for (unsigned t = 0; is_right && t < CASES[i].n_turns; t++)
            is_right =
                placement->turns[t].end == CASES[i].ends[t] &&
                placement->turns[t].begin == (t ? CASES[i].ends[t - 1] : 0);
        ok(is_right, "case %zu: %u turns %s", i, placement->n_turns, err.msg);
        stage_close(&stage);
    }
}

/* 95 % of the free memory can be used, to the byte. If more is needed, the
 * message gives the scale that fits, rounded down to three digits. */
static void test_limit(void)
{
    struct placement_need need;
    struct stage stage;
    struct err err = {0};
    double all, scale;
    char want[64];

    stage_open(&stage, many);
    placement_need(&need, &stage.placement);
    all = need.rows_bytes + need.batch_bytes;
    ok(!placement_cut_turns(&stage.placement, (uint64_t)(all / 0.95) + 1, &err),
       "all of it fits");
    ok(placement_cut_turns(&stage.placement, (uint64_t)(all / 0.95) - 1,
                           &err) == -1,
       "a little less does not");
    scale = 1 - (all - ((double)(uint64_t)(all / 0.95) - 1) * 0.95) /
                    need.rows_bytes;
    scale = floor(scale * 1000) / 1000;
    snprintf(want, sizeof(want), "--scale-rows %g or less fits", scale);
    ok(strstr(err.msg, want) != NULL, "%s: %s", want, err.msg);
    ok(placement_cut_turns(&stage.placement,
                           (uint64_t)(need.batch_bytes / 0.95) - 1,
                           &err) == -1 &&
           strstr(err.msg, "its batch alone does not fit") != NULL,
       "%s", err.msg);
    stage_close(&stage);
}

int main(void)
{
    test_need(few, false);
    test_need(many, true);
    test_gpu();
    test_here();
    test_hot();
    test_reference();
    test_turns();
    test_limit();
    return tap_done();
}
