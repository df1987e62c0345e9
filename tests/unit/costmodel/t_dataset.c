/* SPDX-License-Identifier: MIT */
/* Which samples a model learns from, is validated by and is judged by. */
#include "costmodel/dataset.h"

#include "tests/tap.h"

static void test_splits(void)
{
    static const struct {
        uint64_t case_idx;
        enum split split;
    } cases[] = {{0, SPLIT_TRAIN},      {7, SPLIT_TRAIN},
                 {8, SPLIT_VALIDATION}, {9, SPLIT_HELD_OUT},
                 {10, SPLIT_TRAIN},     {18, SPLIT_VALIDATION},
                 {29, SPLIT_HELD_OUT},  {1000008, SPLIT_VALIDATION}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct sample sample = {.case_idx = cases[i].case_idx,
                                      .kind = SAMPLE_FUSED,
                                      .n_tables = 1,
                                      .total.median_ms = 1};
        const enum split split = cases[i].split;

        is_i64(sample_split(&sample), split, "by its case");
        ok(sample_is_train(&sample) == (split == SPLIT_TRAIN) &&
               sample_is_known(&sample) == (split != SPLIT_HELD_OUT),
           "known unless held out");
    }
}

static void test_trains(void)
{
    static const struct {
        enum sample_kind kind;
        uint32_t n_tables;
        double ms;
        unsigned flags;
        bool trains;
        const char *what;
    } cases[] = {
        {SAMPLE_FUSED, 1, 1, 0, true, "tables together"},
        {SAMPLE_SINGLE, 1, 1, 0, true, "a table alone"},
        {SAMPLE_EXECUTED, 1, 1, 0, true, "a GPU of a plan"},
        {SAMPLE_REPEAT, 1, 1, 0, false, "a case measured again"},
        {SAMPLE_FUSED, 0, 1, 0, false, "no table"},
        {SAMPLE_FUSED, 1, 1.01e-6, 0, true, "a nanosecond"},
        {SAMPLE_FUSED, 1, 0.99e-6, 0, false, "less than that"},
        {SAMPLE_FUSED, 1, 0, 0, false, "no time"},
        {SAMPLE_FUSED, 1, NAN, 0, false, "a time that is no number"},
        {SAMPLE_FUSED, 1, INFINITY, 0, false, "nor is that"},
        {SAMPLE_FUSED, 1, 1, SAMPLE_THROTTLED, false, "a disturbed one"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct sample sample = {.kind = cases[i].kind,
                                .n_tables = cases[i].n_tables,
                                .total.median_ms = cases[i].ms};

        sample.flags = cases[i].flags;
        ok(sample_trains(&sample) == cases[i].trains, "%s", cases[i].what);
    }
}

int main(void)
{
    test_splits();
    test_trains();
    return tap_done();
}
