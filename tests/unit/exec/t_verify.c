/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include "device/fp16.h"
#include "device/stream_math.h"
#include "exec/exec_result.h"
#include "exec/values.h"
#include "stage.h"
#include "tests/tap.h"

/*
 * Tests that the comparison can fail: a step runs in parts, and the test
 * changes numbers between them. Runs on a GPU too, if there is one. All rows of
 * the tables are touched.
 */

/* Makes a plan of two ranks. Rank 0 has columns 0..12 of "cut" and rows 0..8 of
 * "rows", rank 1 has the rest; "copied" is on both. */
static void place(struct stage *stage, enum device_kind kind,
                  enum precision precision)
{
    struct fixture *fixture = &stage->fixture;

    memset(stage, 0, sizeof(*stage));
    fixture_init_on(fixture, kind, 2, 128);
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
    stage_open(stage);
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

/* Adds `delta` to one number in device memory. */
static void change(struct stage *stage, float *d_number, float delta)
{
    struct device *device = stage->fixture.device;
    struct err err;
    float number;

    if (device_download(device, &number, d_number, sizeof(number), &err))
        fixture_bail(&err);
    number += delta;
    if (device_upload(device, d_number, &number, sizeof(number), &err))
        fixture_bail(&err);
}

/* Adds `delta` to one number and tests that the comparison fails and the hash
 * of its rank changes. Then restores the number. */
static void spoil(struct stage *stage, float *d_number, float delta,
                  enum verify_what what, uint32_t rank, const char *table,
                  const char *name)
{
    struct device *device = stage->fixture.device;
    const struct exec_rank *own = &stage->ranks[rank];
    uint64_t hash;
    float sound;
    struct err err;

    failed_table(stage, what);
    hash = own->hashes[what];
    if (device_download(device, &sound, d_number, sizeof(sound), &err))
        fixture_bail(&err);
    change(stage, d_number, delta);
    is_str(failed_table(stage, what), table, name);
    ok(own->hashes[what] != hash, "... the hash of rank %u too", rank);
    if (device_upload(device, d_number, &sound, sizeof(sound), &err))
        fixture_bail(&err);
    is_str(failed_table(stage, what), NULL, "... and not after repair");
    ok(own->hashes[what] == hash, "... and the hash is restored");
}

/* Returns element `column` of the piece's output in the receiver's `bag`. */
static float *output_at(struct stage *stage, const struct piece *piece,
                        uint32_t receiver, size_t bag, uint32_t column)
{
    struct output_block block =
        exchange_block(&stage->set, piece->group, receiver);

    return (float *)(void *)((char *)block.d_at +
                             bag * group_bag_bytes(piece->group)) +
           piece->out_begin + column;
}

static void test_outputs(struct stage *stage)
{
    stage_forward(stage);
    is_str(failed_table(stage, VERIFY_OUTPUTS), NULL, "outputs agree");
    spoil(stage, output_at(stage, find_piece(stage, "cut", 1), 0, 63, 3), 1e-4F,
          VERIFY_OUTPUTS, 0, "cut",
          "one wrong output of a column piece is noticed");
    is_i64((int64_t)stage->verify.found.tallies[VERIFY_OUTPUTS].n, 128 * 32,
           "every output is compared");
    spoil(stage, output_at(stage, find_piece(stage, "rows", 0), 1, 0, 0),
          -1e-4F, VERIFY_OUTPUTS, 1, "rows",
          "so is a wrong partial sum of a row piece");
    spoil(stage, output_at(stage, find_piece(stage, "copied", 1), 1, 63, 7),
          NAN, VERIFY_OUTPUTS, 1, "copied", "and a NaN of a replica");
}

static void test_weights(struct stage *stage)
{
    struct piece *piece;

    is_str(failed_table(stage, VERIFY_WEIGHTS), "cut",
           "weights before their update are noticed");
    stage_gradients(stage);
    stage_update(stage);
    is_str(failed_table(stage, VERIFY_WEIGHTS), NULL, "weights agree");
    is_i64((int64_t)stage->verify.found.tallies[VERIFY_WEIGHTS].n,
           20 * (16 + 8 + 8 + 8), "all of them, every replica's too");
    piece = find_piece(stage, "cut", 1);
    spoil(stage, (float *)piece->d_weight + 19 * 4 + 3, 1e-5F, VERIFY_WEIGHTS,
          1, "cut", "one wrong weight of a column piece is noticed");
    piece = find_piece(stage, "rows", 1);
    spoil(stage, (float *)piece->d_weight, 1e-5F, VERIFY_WEIGHTS, 1, "rows",
          "so is one of a row piece");
    piece = find_piece(stage, "copied", 1);
    spoil(stage, (float *)piece->d_weight + 5, 1e-5F, VERIFY_WEIGHTS, 1,
          "copied", "and one of a single replica");
}

static void test_state(enum device_kind kind)
{
    struct stage stage;

    place(&stage, kind, PRECISION_FP32);
    change(&stage, find_piece(&stage, "cut", 0)->d_state + 7, 1e-4F);
    stage_forward(&stage);
    stage_gradients(&stage);
    stage_update(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "cut",
           "a wrong optimizer state is noticed");
    stage_close(&stage);
}

static void test_gradients(enum device_kind kind)
{
    struct stage stage;
    struct group *group;

    place(&stage, kind, PRECISION_FP32);
    stage_forward(&stage);
    stage_gradients(&stage);
    group = find_piece(&stage, "rows", 1)->group;
    change(&stage,
           (float *)group->d_out + find_piece(&stage, "rows", 1)->out_begin,
           0.01F);
    stage_update(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "rows",
           "one wrong gradient that a holder received is noticed");
    stage_close(&stage);
}

static void test_fp16(enum device_kind kind)
{
    struct stage stage;
    struct piece *piece;
    struct err err;
    uint16_t half;

    place(&stage, kind, PRECISION_FP16);
    stage_forward(&stage);
    is_str(failed_table(&stage, VERIFY_OUTPUTS), NULL, "fp16 outputs agree");
    stage_gradients(&stage);
    stage_update(&stage);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), NULL, "fp16 weights agree");
    piece = find_piece(&stage, "cut", 0);
    if (device_download(stage.fixture.device, &half,
                        (uint16_t *)piece->d_weight + 5, sizeof(half), &err))
        fixture_bail(&err);
    half = fp16_from_float(fp16_to_float(half) + 0.002F);
    if (device_upload(stage.fixture.device, (uint16_t *)piece->d_weight + 5,
                      &half, sizeof(half), &err))
        fixture_bail(&err);
    is_str(failed_table(&stage, VERIFY_WEIGHTS), "cut",
           "a wrong fp16 weight is noticed");
    ok(strstr(stage.verify.found.failure, "more than 0.002") != NULL,
       "... by the wider limit");
    stage_close(&stage);
}

/* Pieces and the unsharded table get the same initial values. */
static void test_values(void)
{
    float whole[64], part[16], copy[16];
    uint16_t halves[16];

    values_weights(whole, 9, 1000, 64, PRECISION_FP32);
    values_weights(part, 9, 1037, 16, PRECISION_FP32);
    ok(!memcmp(whole + 37, part, sizeof(part)),
       "weights depend on where they stand only");
    ok(whole[0] == stream_fill_value(9, 1000), "... as device_fill's do");
    values_store(halves, part, 16, PRECISION_FP16);
    values_load(copy, halves, 16, PRECISION_FP16);
    values_weights(part, 9, 1037, 16, PRECISION_FP16);
    ok(!memcmp(part, copy, sizeof(part)),
       "fp16 weights have the stored, rounded values");
    values_gradient(whole, 9, 5, 0, 64, PRECISION_FP32);
    values_gradient(part, 9, 5, 40, 16, PRECISION_FP32);
    ok(!memcmp(whole + 40, part, sizeof(part)), "so are gradients");
    ok(whole[0] == 0.00300078141F && whole[1] == -0.00612928206F &&
           whole[63] == -0.00737980474F,
       "which are these for ever");
}

/* Initial states are as large as a squared gradient, within a half. */
static void test_state_values(void)
{
    double square = 0, least = INFINITY, most = 0;
    float gradient[64];

    for (uint64_t bag = 0; bag < 100; bag++) {
        values_gradient(gradient, 9, bag, 0, 64, PRECISION_FP32);
        for (int i = 0; i < 64; i++)
            square += (double)gradient[i] * gradient[i] / 6400;
    }
    for (uint64_t row = 0; row < 1000; row++) {
        const double state = values_state(9, row, 8);

        least = fmin(least, state / square);
        most = fmax(most, state / square);
    }
    ok(least > 0.45 && least < 0.55 && most > 1.4 && most < 1.6,
       "states are %.2f to %.2f of a gradient's square", least, most);
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

static void test_device(enum device_kind kind)
{
    struct stage stage;

    place(&stage, kind, PRECISION_FP32);
    test_outputs(&stage);
    test_weights(&stage);
    stage_close(&stage);
    test_state(kind);
    test_gradients(kind);
    test_fp16(kind);
}

int main(void)
{
    test_values();
    test_state_values();
    test_tally();
    test_device(DEVICE_CPU);
    if (device_count(DEVICE_CUDA))
        test_device(DEVICE_CUDA);
    return tap_done();
}
