/* SPDX-License-Identifier: MIT */
#include "base/ranked.h"

#include "base/rng.h"
#include "tests/tap.h"

#include <math.h>

enum { N_MOST = 60 };

static void test_order(void)
{
    struct ranked order[] = {{2, 0}, {-1, 1}, {2, 2}, {-1, 3}};
    const uint64_t a[] = {1, 2, 3}, b[] = {1, 3, 0};

    ranked_sort(order, 4);
    ok(order[0].idx == 1 && order[1].idx == 3 && order[2].idx == 0 &&
           order[3].idx == 2,
       "the least key first, and the lower index");
    is_i64(ranked_compare(a, b, 3), -1, "the first that differs decides");
    is_i64(ranked_compare(a, b, 1), 0, "of equal ones none");
    is_i64(ranked_compare(b, a, 3), 1, "either way");
}

/* Runs cover the order, are at most as many as requested, and each stays within
 * the given share. A limit of half the share would need too many runs. */
static void test_runs(void)
{
    struct ranked order[N_MOST];
    int n_wide = 0, n_many = 0, n_idle = 0;
    struct rng rng;

    rng_init(&rng, 5, 0);
    for (int i = 0; i < 2000; i++) {
        const size_t n = 1 + rng_draw(&rng, N_MOST);
        const size_t most = 1 + rng_draw(&rng, 8);
        size_t n_runs = 0, n_halves = 0;
        double share;

        for (size_t k = 0; k < n; k++)
            order[k] =
                (struct ranked){-(double)rng_draw(&rng, 1000), (uint32_t)k};
        ranked_sort(order, n);
        share = ranked_share(order, n, most);
        for (size_t at = 0, end; at < n; at = end, n_runs++) {
            end = ranked_run_end(order, n, at, share);
            n_wide += order[end - 1].key > order[at].key * (1 - share);
            n_wide += end < n && order[end].key <= order[at].key * (1 - share);
        }
        for (size_t at = 0; at < n; n_halves++)
            at = ranked_run_end(order, n, at, share / 2);
        n_many += n_runs > most;
        n_idle += share > 1e-3 && n_halves <= most;
    }
    is_i64(n_wide, 0, "runs end where keys have lost the share");
    is_i64(n_many, 0, "no more runs than asked for");
    is_i64(n_idle, 0, "by no more of a share than that takes");
}

/* Long orders use another sort algorithm. Keys have any sign and size, and many
 * are equal; indices ascend or are in no order. */
static void test_long(void)
{
    enum { N = 3000 };
    static struct ranked order[N];
    int n_wrong = 0, n_strange = 0;
    struct rng rng;

    rng_init(&rng, 7, 0);
    for (int i = 0; i < 200; i++) {
        const size_t n = 200 + rng_draw(&rng, N - 200);
        const double scale = pow(10, (double)rng_draw(&rng, 30) - 15);
        const uint32_t n_keys = 1 + rng_draw(&rng, 2 * N);
        const uint32_t step = i % 4 ? 1 : 7;
        double sum = 0, sum_then = 0;

        for (size_t k = 0; k < n; k++) {
            double key = rng_draw(&rng, n_keys);

            if (i % 3)
                key = (key - floor(n_keys / 2.0)) * scale;
            order[k] = (struct ranked){key, (uint32_t)(k * step % n)};
            sum += fabs(key) / scale * (double)(1 + order[k].idx);
        }
        ranked_sort(order, n);
        for (size_t k = 0; k < n; k++)
            sum_then += fabs(order[k].key) / scale * (double)(1 + order[k].idx);
        for (size_t k = 1; k < n; k++)
            n_wrong += order[k].key < order[k - 1].key ||
                       (order[k].key <= order[k - 1].key &&
                        order[k].idx < order[k - 1].idx);
        n_strange += fabs(sum_then - sum) > 1e-9 * sum;
    }
    is_i64(n_wrong, 0, "long orders are sorted by key, then by index");
    is_i64(n_strange, 0, "each key keeps its index");
}

int main(void)
{
    test_long();
    test_order();
    test_runs();
    return tap_done();
}
