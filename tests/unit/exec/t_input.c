/* SPDX-License-Identifier: MIT */
#include "exec/input.h"

#include "exec_fixture.h"
#include "tests/tap.h"

/*
 * The ids that ranks send each other: as many as there are, to everyone who
 * looks them up, and in the right order; and a check that can fail. On a GPU
 * too, if there is one.
 */
struct stage {
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set;
    struct input input;
};

/* Tables of 4 and 3 look-ups a bag, of two outputs with 2 each, and copies.
 * The columns of "cut" are on ranks 0 and 1, of "rows" on 0 and 2; ranks have
 * 33, 34 and 34 samples. */
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
        input_open(&stage->input, &stage->placement, 5, &err))
        fixture_bail(&err);
}

static void stage_close(struct stage *stage)
{
    input_close(&stage->input);
    placement_release(&stage->placement);
    fixture_release(&stage->fixture);
}

static void pack(struct stage *stage)
{
    for (uint32_t r = 0; r < 3; r++)
        input_pack(&stage->input, r);
}

/* What the check says of what was packed. */
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

/* 8 bytes an id, 4 a length, up to the next multiple of 8. */
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

/* One more in a word of a rank's messages, and `delta` less in the next. */
static void spoil(struct stage *stage, uint32_t from, uint64_t at, int delta,
                  const char *want, const char *name)
{
    uint32_t *words;

    pack(stage);
    words = (void *)(stage->input.ranks[from].sent + at);
    words[0] += 1;
    words[1] -= (uint32_t)delta;
    is_str(failure_of(stage), want, name);
}

static void test_device(enum device_kind kind)
{
    struct stage stage;
    uint64_t second;

    stage_open(&stage, kind);
    test_sizes(&stage);
    pack(&stage);
    is_str(failure_of(&stage), NULL, "what came is what is looked up");
    second = size_of(&stage, 2, 0);
    spoil(&stage, 2, second, 1,
          "table 'cut': the ids that came to GPU 1 are not those that it looks "
          "up",
          "two bags that share their ids otherwise are noticed");
    spoil(&stage, 2, second + 34 * 4 + 8, 0,
          "table 'cut': the ids that came to GPU 1 are not those that it looks "
          "up",
          "so is one wrong id");
    spoil(&stage, 1, size_of(&stage, 1, 0) + size_of(&stage, 1, 1) + 34 * 4, 0,
          "table 'rows': the ids that came to GPU 2 are not those that it "
          "looks up",
          "of a row piece too");
    pack(&stage);
    is_str(failure_of(&stage), NULL, "and nothing is once it is mended");
    stage_close(&stage);
}

int main(void)
{
    test_device(DEVICE_CPU);
    if (device_count(DEVICE_CUDA))
        test_device(DEVICE_CUDA);
    return tap_done();
}
