/* SPDX-License-Identifier: MIT */
/*
 * RATIO_ERROR_SHARE covers nine of ten ratios of two measured plans of one
 * list, of all pairs whose list the roofline never saw, and is not larger than
 * that needs. `bench_ranks` prints the shares, also those of nets, which take
 * minutes.
 */

#include "core/plan_error.h"
#include "tests/left_out.h"
#include "tests/tap.h"

/* Number of measured pairs; a change of the data asks for a new share. */
#define N_PAIRS 109
/* A share smaller by this must not cover nine of ten ratios. */
#define STEP 0.02

int main(void)
{
    struct ratio_error errors[MAX_PLANS * (MAX_PLANS - 1) / 2];
    struct train_options options;
    struct measured measured;
    struct arena arena = {0};
    struct err err = {0};
    const char *list = NULL;
    size_t n = 0, n_within = 0, n_smaller = 0;

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    ok(!measured_read(&measured, &arena, &err), "measured plans%s", err.msg);
    while (!err.code && (list = measured_next(&measured, list))) {
        struct left_out left_out;

        if (!leave_out(&left_out, &measured, list, &options, &arena, &err))
            n += ratio_errors(errors + n, &left_out);
    }
    is_str(err.msg, "", "rooflines");
    for (size_t i = 0; i < n; i++) {
        n_within += errors[i].share <= RATIO_ERROR_SHARE;
        n_smaller += errors[i].share <= RATIO_ERROR_SHARE - STEP;
    }
    is_i64((int64_t)n, N_PAIRS, "pairs of plans of one list");
    ok(10 * n_within >= 9 * n, "%zu are inside the error of a ratio", n_within);
    ok(10 * n_smaller < 9 * n, "a smaller error holds %zu", n_smaller);
    arena_release(&arena);
    return tap_done();
}
