/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include "exec/exchange.h"
#include "exec/placement_load.h"
#include "exec_fixture.h"
#include "tests/tap.h"

/*
 * The ids that ranks send each other: complete, sent to every rank that looks
 * them up, and in the right order. Each check is also tested to fail. Runs on a
 * GPU too, if there is one.
 */
struct stage {
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set;
    struct input_link link;
    struct input input;
};

/* Makes tables of 4 and 3 lookups per bag, one with two outputs of 2 lookups
 * each, and replicas. The columns of "cut" are on ranks 0 and 1, the rows of
 * "rows" on 0 and 2. The ranks have 33, 34 and 34 samples. */
static void stage_open(struct stage *stage, enum device_kind kind)
{
    struct fixture *fixture = &stage->fixture;
    struct err err = {0};

    memset(stage, 0, sizeof(*stage));
    fixture_init_on(fixture, kind, 3, 101);
    add_table(fixture, "cut", 900, 16, 4);
    add_columns(fixture, 0, 0, 12);
    add_columns(fixture, 1, 12, 16);
    add_table(fixture, "rows", 1000, 8, 3);
    add_rows(fixture, 0, 0, 300);
    add_rows(fixture, 2, 300, 1000);
    add_table(fixture, "twice", 500, 8, 4)->num_outputs = 2;
    add_whole(fixture, 0);
    add_table(fixture, "copied", 20, 8, 4);
    add_replicas(fixture);
    plan_derive_kinds(&fixture->plan);
    if (placement_init(&stage->placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err) ||
        input_link_open(&stage->link, &stage->placement, fixture->world,
                        &err) ||
        input_open(&stage->input, &stage->placement, &stage->link, 5, &err))
        fixture_bail(&err);
}

static void stage_close(struct stage *stage)
{
    input_close(&stage->input);
    input_link_close(&stage->link);
    placement_release(&stage->placement);
    fixture_release(&stage->fixture);
}

static void pack(struct stage *stage)
{
    for (uint32_t r = 0; r < 3; r++)
        input_pack(&stage->input, r);
}

/* Exchanges the packed ids and returns the failure that the check finds, or
 * NULL. */
static const char *failure_of(struct stage *stage)
{
    static struct verify verify;
    struct err err;

    verify = (struct verify){0};
    if (input_exchange(&stage->input, &err))
        fixture_bail(&err);
    for (uint32_t r = 0; r < 3; r++)
        input_permute(&stage->input, r, &verify);
    return verify.found.failure[0] ? verify.found.failure : NULL;
}

static uint64_t size_of(const struct stage *stage, uint32_t from, uint32_t to)
{
    return stage->input.sizes[from * 3 + to];
}

/* 8 bytes per id and 4 per length, rounded up to a multiple of 8. */
static void test_sizes(const struct stage *stage)
{
    for (uint32_t from = 0; from < 3; from++) {
        uint64_t n = from ? 34 : 33;

        is_i64((int64_t)size_of(stage, from, 1),
               (int64_t)(8 * 4 * n + (4 * n + 7) / 8 * 8),
               "rank 1 gets a column piece's copy of the ids");
        is_i64((int64_t)(size_of(stage, from, 0) + size_of(stage, from, 2)),
               (int64_t)(8 * (4 + 3 + 4) * n + (4 * 4 * n + 7) / 8 * 8 +
                         (4 * n + 7) / 8 * 8),
               "... row pieces share them, with a length each");
        ok(size_of(stage, from, 2) > 4 * n + 8,
           "... and none of them has nothing");
    }
}

/* Adds 1 to a word of a message and subtracts `delta` from the next word. */
static void spoil(struct stage *stage, uint32_t from, uint32_t to, uint64_t at,
                  int delta, const char *want, const char *name)
{
    uint32_t *words;

    pack(stage);
    words = (void *)(stage->input.sent[from * 3 + to] + at);
    words[0] += 1;
    words[1] -= (uint32_t)delta;
    is_str(failure_of(stage), want, name);
}

/* Messages are written again at the same addresses, because GPUs know them. */
static void test_places(struct stage *stage)
{
    char *before[9];
    int n_moved = 0;

    memcpy(before, stage->input.sent, sizeof(before));
    pack(stage);
    for (int i = 0; i < 9; i++)
        n_moved += before[i] != stage->input.sent[i] || !before[i];
    is_i64(n_moved, 0, "no message moves");
}

static void test_device(enum device_kind kind)
{
    struct stage stage;

    stage_open(&stage, kind);
    test_sizes(&stage);
    test_places(&stage);
    pack(&stage);
    is_str(failure_of(&stage), NULL, "received ids are those looked up");
    spoil(&stage, 2, 1, 0, 1,
          "table 'cut': the ids that GPU 1 received are not the ids that it "
          "looks up",
          "wrong lengths of two bags are noticed");
    spoil(&stage, 2, 1, 34 * 4 + 8, 0,
          "table 'cut': the ids that GPU 1 received are not the ids that it "
          "looks up",
          "so is one wrong id");
    spoil(&stage, 1, 2, 34 * 4, 0,
          "table 'rows': the ids that GPU 2 received are not the ids that it "
          "looks up",
          "of a row piece too");
    pack(&stage);
    is_str(failure_of(&stage), NULL, "no failure after repair");
    stage_close(&stage);
}

/* All tilings of a table work: blocks of all sizes, some without a row after
 * scaling, a grid, a tiling that is not a grid by rows, and several pieces on
 * one rank. */
static void test_tilings(double scale_rows)
{
    static const uint64_t ends[] = {1, 2, 700, 701, 702, 990, 991, 1000};
    struct stage stage;
    struct fixture *fixture = &stage.fixture;
    uint64_t begin = 0;
    struct err err = {0};

    memset(&stage, 0, sizeof(stage));
    fixture_init(fixture, 3, 101);
    add_table(fixture, "blocks", 1000, 8, 6)->row_order = ROW_ORDER_FREQUENCY;
    for (uint32_t i = 0; i < 8; begin = ends[i++])
        add_rows(fixture, i % 3, begin, ends[i]);
    add_table(fixture, "halves", 100, 8, 2);
    add_rows(fixture, 0, 0, 60);
    add_rows(fixture, 1, 60, 100);
    add_table(fixture, "grid", 600, 16, 5);
    for (uint32_t i = 0; i < 6; i++)
        add_piece(fixture, i % 2, i / 2 * 200, i / 2 * 200 + 200, i % 2 * 8,
                  i % 2 * 8 + 8);
    add_table(fixture, "wheel", 900, 12, 7);
    add_piece(fixture, 0, 0, 300, 0, 8);
    add_piece(fixture, 1, 0, 600, 8, 12);
    add_piece(fixture, 2, 300, 900, 0, 4);
    add_piece(fixture, 0, 300, 600, 4, 8);
    add_piece(fixture, 1, 600, 900, 4, 12);
    plan_derive_kinds(&fixture->plan);
    if (placement_init(&stage.placement, &fixture->plan, fixture->comm,
                       scale_rows, 3, &fixture->arena, &err) ||
        input_link_open(&stage.link, &stage.placement, fixture->world, &err) ||
        input_open(&stage.input, &stage.placement, &stage.link, 5, &err))
        fixture_bail(&err);
    pack(&stage);
    is_str(failure_of(&stage), NULL,
           scale_rows < 1 ? "where fewer rows are left too"
                          : "all pieces of any tiling get theirs");
    stage_close(&stage);
}

int main(void)
{
    test_device(DEVICE_CPU);
    test_tilings(1);
    test_tilings(0.01);
    if (device_count(DEVICE_CUDA))
        test_device(DEVICE_CUDA);
    return tap_done();
}
