/* SPDX-License-Identifier: MIT */
/*
 * A memo returns the same prices as its oracle: for lanes that it has seen or
 * not, and whichever lanes collide in a memo entry. It does not ask the oracle
 * again for the latest lanes.
 */
#include "core/bwd_memo.h"

#include "base/rng.h"
#include "tests/tap.h"

#define MAX_DEVICES 9
#define BATCH 4

struct counting {
    struct oracle base;
    size_t *n_asked;
};

/* A price function that changes if lanes change their order or sign. */
static void count_bwd(const struct oracle *oracle, size_t n,
                      const double *lanes, double *bwd_ms)
{
    const struct counting *counting =
        (const struct counting *)(const void *)oracle;
    const size_t n_devices = oracle->problem->cluster.n_devices;

    *counting->n_asked += n;
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < n_devices; r++)
            bwd_ms[i * n_devices + r] =
                lanes[i * n_devices + r] * 3 +
                lanes[i * n_devices + (r + 1) % n_devices];
}

/* Prices batches of lanes that have n_values different values each. Returns the
 * number of batches with a wrong answer. */
static size_t ask(struct bwd_memo *memo, struct counting *counting,
                  uint32_t n_values, size_t n_batches, struct rng *rng)
{
    const size_t n_devices = memo->n_devices;
    double lanes[BATCH * MAX_DEVICES] = {0}, want[BATCH * MAX_DEVICES];
    double got[BATCH * MAX_DEVICES];
    size_t n_wrong = 0, n_asked;

    for (size_t k = 0; k < n_batches; k++) {
        const size_t n = 1 + rng_draw(rng, BATCH);

        for (size_t i = 0; i < n * n_devices; i++)
            lanes[i] = rng_draw(rng, n_values) * 4.0;
        bwd_memo_price(memo, n, lanes, got);
        n_asked = *counting->n_asked;
        count_bwd(&counting->base, n, lanes, want);
        n_wrong += memcmp(got, want, n * n_devices * sizeof(*got)) != 0;
        *counting->n_asked = n_asked;
    }
    return n_wrong;
}

static void test_devices(uint32_t n_devices)
{
    static const struct oracle_ops ops = {.bwd = count_bwd};
    const struct problem problem = {.cluster = {.n_devices = n_devices}};
    size_t n_asked = 0, n_batches = tap_many(20000);
    struct counting counting = {{.ops = &ops, .problem = &problem}, &n_asked};
    double lanes[MAX_DEVICES] = {0}, got[MAX_DEVICES];
    struct bwd_memo memo;
    struct rng rng;

    rng_init(&rng, 17, n_devices);
    bwd_memo_init(&memo, &counting.base, BATCH);
    bwd_memo_price(&memo, 1, lanes, got);
    ok(n_asked == 1 && got[0] == 0, "%u: nothing is asked for too", n_devices);
    is_i64((int64_t)ask(&memo, &counting, 2, n_batches, &rng), 0,
           "few lanes: all answers are right");
    ok(n_asked <= (size_t)2 * BATCH << n_devices,
       "%u: few lanes are asked for once, %zu times in all", n_devices,
       n_asked);
    is_i64((int64_t)ask(&memo, &counting, 1000, n_batches, &rng), 0,
           "many lanes: all answers are right");
    lanes[0] = NAN;
    bwd_memo_price(&memo, 1, lanes, got);
    ok(isnan(got[0]), "%u: no number gives none", n_devices);
    bwd_memo_release(&memo);
}

int main(void)
{
    for (uint32_t n = 1; n <= MAX_DEVICES; n += 2)
        test_devices(n);
    return tap_done();
}
