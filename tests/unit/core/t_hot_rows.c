/* SPDX-License-Identifier: MIT */
#include "core/hot_rows.h"

#include "base/rng.h"
#include "tests/tap.h"

static double sum_of(const double bins[REUSE_BINS], bool is_uses)
{
    double sum = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += bins[k] * (is_uses ? reuse_bin_count(k) : 1);
    return sum;
}

/* Where ids are left out no row is lost, and of the uses the share is left
 * that is kept, as far as bins tell, which is to a factor of two; or one a
 * row. */
static void test_keep(void)
{
    size_t n_lost = 0, n_wrong = 0, n_less = 0;
    struct rng rng;

    rng_init(&rng, 5, 0);
    for (int round = 0; round < 300; round++) {
        const double kept = 0.02 + 0.97 * rng_uniform(&rng);
        struct table_use use = {0}, less, all;
        double rows, uses, left;

        for (unsigned k = 0; k < REUSE_BINS; k++)
            use.bins[k] = rng_below(&rng, 3) ? 0 : rng_uniform(&rng);
        rows = sum_of(use.bins, false);
        uses = sum_of(use.bins, true);
        all = less = use;
        table_use_keep(&less, kept);
        table_use_keep(&all, 1);
        left = sum_of(less.bins, true);
        n_lost += fabs(sum_of(less.bins, false) - rows) > 1e-9 * rows ||
                  memcmp(&all, &use, sizeof(use)) != 0;
        n_wrong += left < kept * uses / 2 ||
                   left > 2 * kept * uses + 2 * rows || left > uses;
        n_less += left < uses;
    }
    is_i64((int64_t)n_lost, 0, "each row is still used");
    is_i64((int64_t)n_wrong, 0, "as often as ids are kept");
    ok(n_less > 150, "%zu of 300 are used less", n_less);
}

int main(void)
{
    test_keep();
    return tap_done();
}
