/* SPDX-License-Identifier: MIT */
/* Split of the samples into training, validation and held-out samples. */
#include "costmodel/learning/dataset.h"

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
        {SAMPLE_FUSED, 1, INFINITY, 0, false, "an infinite time"},
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

/* FBGEMM checks the bounds of ids, and a job may have switched that off.
 * Therefore the time of the checks is subtracted from the forward time and the
 * total time of FBGEMM samples, but no time falls below 0. */
static void test_checks(void)
{
    static const struct {
        const char *device;
        double ms;
        bool is_less, is_none;
    } cases[] = {{"fbgemm:NVIDIA H100", 10, true, false},
                 {"fbgemm:NVIDIA H100", 1e-4, true, true},
                 {"cuda:NVIDIA H100", 10, false, false}};
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct sample_setting setting = {
            .device = cases[i].device, .batch = 65536, .isa = "sm_90"};
        struct sample_table table = {
            .n_rows = 1000, .dim = 64, .pooling_factor = 10};
        const double ms = cases[i].ms;
        struct sample sample = {.kind = SAMPLE_FUSED,
                                .tables = &table,
                                .n_tables = 1,
                                .forward = {ms, 0.9 * ms, 1.2 * ms},
                                .backward = {ms, 0.9 * ms, 1.2 * ms},
                                .total = {2 * ms, 1.8 * ms, 2.4 * ms}};
        struct err err = {0};
        double less;

        if (!ok(!sample_leave_out_checks(&sample, &setting, &arena, &err),
                "%s%s", cases[i].device, err.msg))
            continue;
        less = ms - sample.forward.median_ms;
        ok((less > 0) == cases[i].is_less, "%g ms less", less);
        is_near(sample.backward.median_ms, ms, 0, "backward is as it was");
        if (cases[i].is_none) {
            ok(sample.forward.median_ms == 0 && sample.forward.p10_ms == 0 &&
                   sample.forward.p90_ms == 0 && sample.total.p90_ms == 0,
               "no time is below 0");
            continue;
        }
        is_near(sample.forward.p10_ms, 0.9 * ms - less, 1e-12, "the 10 %");
        is_near(sample.forward.p90_ms, 1.2 * ms - less, 1e-12, "the 90 %");
        is_near(sample.total.median_ms, 2 * ms - less, 1e-12, "the total");
        is_near(sample.total.p10_ms, 1.8 * ms - less, 1e-12, "its 10 %");
    }
    arena_release(&arena);
}

int main(void)
{
    test_splits();
    test_trains();
    test_checks();
    return tap_done();
}
