/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include "device/fp16.h"
#include "exec/step.h"
#include "exec/values.h"
#include "exec_fixture.h"
#include "tests/tap.h"

/*
 * The check must be able to fail: a step is run in its parts and something is
 * spoiled between them. All rows of the tables are touched.
 */
struct stage {
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set;
    struct pool *pool;
    struct verify verify;
};

#define RATE 0.01F

static void bail(const struct err *err)
{
    printf("Bail out! %s\n", err->msg);
    exit(1);
}

/* Rank 0: columns 0..12 of "cut", rows 0..8 of "rows"; rank 1: the rest;
 * "copied" on both. */
static void stage_open(struct stage *stage, enum precision precision)
{
    struct err err = {0};
    struct fixture *fixture = &stage->fixture;

    memset(stage, 0, sizeof(*stage));
    fixture_init(fixture, 2, 128);
    add_table(fixture, "cut", 20, 16, 4);
    add_columns(fixture, 0, 0, 12);
    add_columns(fixture, 1, 12, 16);
    add_table(fixture, "rows", 20, 8, 4);
    add_rows(fixture, 0, 0, 8);
    add_rows(fixture, 1, 8, 20);
    add_table(fixture, "copied", 20, 8, 4);
    add_replicas(fixture);
    for (unsigned t = 0; t < 3; t++) {
        fixture->tables[t].precision = precision;
        fixture->tables[t].zipf_alpha = 0;
    }
    plan_derive_kinds(&fixture->plan);
    stage->pool = pool_open(2);
    if (placement_init(&stage->placement, &fixture->plan, 1, 3, &fixture->arena,
                       &err) ||
        placement_load(&stage->placement, fixture->device, stage->pool, &err) ||
        exchange_open(&stage->set, &stage->placement, &fixture->arena, &err))
        bail(&err);
}

static void stage_close(struct stage *stage)
{
    exchange_close(&stage->set);
    placement_release(&stage->placement);
    pool_close(stage->pool);
    fixture_release(&stage->fixture);
}

static void forward(struct stage *stage)
{
    struct err err;

    if (step_forward(&stage->set, &err))
        bail(&err);
}

static void backward(struct stage *stage)
{
    struct err err;

    if (step_gradients(&stage->set, &err) ||
        step_update(&stage->set, RATE, &err))
        bail(&err);
}

/* A fresh comparison of the outputs, or of the weights. */
static const char *failed_table(struct stage *stage, enum verify_what what)
{
    stage->verify = (struct verify){0};
    if (what == VERIFY_OUTPUTS)
        verify_outputs(&stage->verify, &stage->set);
    else
        verify_weights(&stage->verify, &stage->placement, RATE);
    return stage->verify.failed ? stage->verify.failed->name : NULL;
}

static struct piece *find_piece(struct stage *stage, const char *table,
                                uint32_t rank)
{
    for (size_t i = 0; i < stage->placement.n_pieces; i++)
        if (!strcmp(stage->placement.pieces[i].table->name, table) &&
            stage->placement.pieces[i].rank == rank)
            return &stage->placement.pieces[i];
    return NULL;
}

/* Adds `delta` to one number, checks that it is noticed, takes it back. */
static void spoil(struct stage *stage, float *number, float delta,
                  enum verify_what what, const char *table, const char *name)
{
    float sound = *number;

    *number += delta;
    is_str(failed_table(stage, what), table, name);
    *number = sound;
    is_str(failed_table(stage, what), NULL, "... and not once it is mended");
}

static void test_outputs(struct stage *stage)
{
    struct output_view view;

    forward(stage);
    is_str(failed_table(stage, VERIFY_OUTPUTS), NULL, "outputs agree");
    view = exchange_view(&stage->set, find_piece(stage, "cut", 1), 0);
    spoil(stage, view.d_at + 63 * view.stride + 3, 1e-4F, VERIFY_OUTPUTS, "cut",
          "one wrong output of a column piece is noticed");
    is_i64((int64_t)stage->verify.n_outputs, 128 * 32,
           "every output is compared");
    view = exchange_view(&stage->set, find_piece(stage, "rows", 0), 1);
    spoil(stage, view.d_at, -1e-4F, VERIFY_OUTPUTS, "rows",
          "so is a wrong partial sum of a row piece");
    view = exchange_view(&stage->set, find_piece(stage, "copied", 1), 1);
    spoil(stage, view.d_at + 63 * view.stride + 7, NAN, VERIFY_OUTPUTS,
          "copied", "and a NaN of a replica");
}

static void test_weights(struct stage *stage)
{
    struct piece *piece;

    is_str(failed_table(stage, VERIFY_WEIGHTS), "cut",
           "weights before their update are noticed");
    backward(stage);
    is_str(failed_table(stage, VERIFY_WEIGHTS), NULL, "weights agree");
    is_i64((int64_t)stage->verify.n_weights, 20 * (16 + 8 + 8 + 8),
           "all of them, every replica's too");
    piece = find_piece(stage, "cut", 1);
    spoil(stage, (float *)piece->d_weight + 19 * 4 + 3, 1e-5F, VERIFY_WEIGHTS,
          "cut", "one wrong weight of a column piece is noticed");
    piece = find_piece(stage, "rows", 1);
    spoil(stage, (float *)piece->d_weight, 1e-5F, VERIFY_WEIGHTS, "rows",
          "so is one of a row piece");
    piece = find_piece(stage, "copied", 1);
    spoil(stage, (float *)piece->d_weight + 5, 1e-5F, VERIFY_WEIGHTS, "copied",
          "and one of a single replica");
}

static void test_state(void)
{
    struct stage stage;

    stage_open(&stage, PRECISION_FP32);
    find_piece(&stage, "cut", 0)->d_state[7] = 0;
    forward(&stage);
    backward(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "cut",
           "an optimizer state that was lost is noticed");
    stage_close(&stage);
}

static void test_gradients(void)
{
    struct stage stage;
    struct group *group;
    struct err err;

    stage_open(&stage, PRECISION_FP32);
    forward(&stage);
    if (step_gradients(&stage.set, &err))
        bail(&err);
    group = &stage.placement.groups[find_piece(&stage, "rows", 1)->group];
    group->d_out[find_piece(&stage, "rows", 1)->out_begin] += 0.01F;
    if (step_update(&stage.set, RATE, &err))
        bail(&err);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "rows",
           "one wrong gradient that a holder received is noticed");
    stage_close(&stage);
}

static void test_fp16(void)
{
    struct stage stage;
    struct piece *piece;
    uint16_t *half;

    stage_open(&stage, PRECISION_FP16);
    forward(&stage);
    is_str(failed_table(&stage, VERIFY_OUTPUTS), NULL, "fp16 outputs agree");
    backward(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), NULL, "fp16 weights agree");
    piece = find_piece(&stage, "cut", 0);
    half = (uint16_t *)piece->d_weight + 5;
    *half = fp16_from_float(fp16_to_float(*half) + 0.002F);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "cut",
           "a wrong fp16 weight is noticed");
    is_near(stage.verify.failed_limit, VERIFY_FP16_LIMIT, 0,
            "... by the wider limit");
    stage_close(&stage);
}

/* Pieces and the unsharded table have the same numbers. */
static void test_values(void)
{
    float whole[64], part[16], copy[16];
    uint16_t halves[16];

    values_weights(whole, 9, 1000, 64, PRECISION_FP32);
    values_weights(part, 9, 1037, 16, PRECISION_FP32);
    ok(!memcmp(whole + 37, part, sizeof(part)),
       "weights depend on where they stand only");
    ok(whole[0] == device_fill_value(9, 1000), "... as device_fill's do");
    values_store_weights(halves, 0, 9, 1037, 16, PRECISION_FP16);
    values_load_weights(copy, halves, 0, 16, PRECISION_FP16);
    values_weights(part, 9, 1037, 16, PRECISION_FP16);
    ok(!memcmp(part, copy, sizeof(part)),
       "fp16 weights are what is stored of them");
    values_gradient(whole, 9, 5, 0, 64);
    values_gradient(part, 9, 5, 40, 16);
    ok(!memcmp(whole + 40, part, sizeof(part)), "so are gradients");
}

static void test_tally(void)
{
    static const double want[] = {2, -4, 0}, zero[3] = {0};
    const float got[] = {2, -4, 1}, right[3] = {0};
    struct tally tally = {0};

    tally_row(&tally, want, got, 3, tally_scale(want, 3));
    is_near(tally.error, 0.25, 1e-12, "an error is relative to the row");
    tally = (struct tally){0};
    tally_row(&tally, zero, right, 3, 0);
    ok(tally.error == 0 && tally.n == 3, "nothing is right where it belongs");
    tally_row(&tally, zero, got, 3, 0);
    ok(isinf(tally.error), "something is infinitely wrong there");
}

int main(void)
{
    struct stage stage;

    test_values();
    test_tally();
    stage_open(&stage, PRECISION_FP32);
    test_outputs(&stage);
    test_weights(&stage);
    stage_close(&stage);
    test_state();
    test_gradients();
    test_fp16();
    return tap_done();
}
