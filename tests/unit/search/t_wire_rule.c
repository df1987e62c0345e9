/* SPDX-License-Identifier: MIT */
/* Each rule of the choice for a wire of unknown bandwidth: a candidate that
 * keeps all of them is taken, and one that breaks a single rule is not. */
#include "search/wire_rule.h"

#include "tests/tap.h"

#define ERROR_FRAC 0.1 /* of the lookups */

/* The recommended plan of all cases costs 100, 200 and 400 ms at the three
 * wires, has 2 kinds of sharding, 3 tables whose training changes, and 50
 * shards. Another plan is known that costs 300 ms at the slowest wire, and
 * breaks several rules. So the worst regret is 1/3 at that wire. */
static const struct wire_candidate recommended = {
    .prices = {{.total_ms = 100}, {.total_ms = 200}, {.total_ms = 400}},
    .n_kinds = 2,
    .n_changed = 3,
    .n_shards = 50};
static const struct wire_candidate fast = {
    .prices = {{.total_ms = 150}, {.total_ms = 220}, {.total_ms = 300}},
    .n_kinds = 3,
    .n_changed = 9,
    .n_shards = 900};

struct pick_case {
    const char *name;
    double total_ms[N_WIRES];
    unsigned n_kinds;
    size_t n_changed, n_shards;
    unsigned limited, robust; /* 0: recommended, 1: fast, 2: this candidate */
};

static const struct pick_case cases[] = {
    {"a plan that keeps all rules", {100.9, 200, 380}, 2, 3, 50, 2, 2},
    {"1 % dearer at most", {101.1, 200, 380}, 2, 3, 50, 0, 2},
    {"no more kinds", {100.9, 200, 380}, 3, 3, 50, 0, 2},
    {"training of no more tables", {100.9, 200, 380}, 2, 4, 50, 0, 2},
    {"pieces for a gain beyond the error", {100.9, 200, 360}, 2, 3, 51, 2, 2},
    {"no more pieces for less", {100.9, 200, 380}, 2, 3, 51, 0, 2},
    {"no change for less than 0.1 %", {100, 200, 399.8}, 2, 3, 50, 0, 2},
    {"the worst of all wires counts", {100, 299, 300}, 2, 3, 50, 0, 0},
    {"no better plan", {100, 200, 400}, 2, 3, 50, 0, 0},
};

/* Returns the candidates: 90 % of each total are lookups. */
static struct wire_candidates make(const struct wire_candidate *list,
                                   unsigned n, double error_frac)
{
    struct wire_candidates all = {.best_ms = {INFINITY, INFINITY, INFINITY}};

    for (unsigned i = 0; i < n; i++) {
        struct wire_candidate one = list[i];

        for (unsigned k = 0; k < N_WIRES; k++) {
            one.prices[k].lookup_ms = 0.9 * one.prices[k].total_ms;
            one.prices[k].lookup_error.frac = error_frac;
        }
        wire_add(&all, &one);
    }
    return all;
}

static void test_picks(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct pick_case *one = &cases[i];
        struct wire_candidate list[] = {recommended,
                                        fast,
                                        {.n_kinds = one->n_kinds,
                                         .n_changed = one->n_changed,
                                         .n_shards = one->n_shards}};
        struct wire_candidates all;

        for (unsigned k = 0; k < N_WIRES; k++)
            list[2].prices[k].total_ms = one->total_ms[k];
        all = make(list, 3, ERROR_FRAC);
        is_i64(wire_pick(&all, WIRE_LIMITED), one->limited, one->name);
        is_i64(wire_pick(&all, WIRE_ROBUST), one->robust, "and robust");
        is_i64(wire_pick(&all, WIRE_NOMINAL), 0, "and nominal");
    }
}

/* The limit is the error of the ratio if that is less than 1 %. */
static void test_limit(void)
{
    struct wire_candidates all = make(&recommended, 1, ERROR_FRAC);

    is_near(wire_limit_ms(&all), 101, 1e-9, "1 %");
    all = make(&recommended, 1, 0);
    is_near(wire_limit_ms(&all), 101, 1e-9, "1 % if the error is unknown");
    all = make(&recommended, 1, 0.005);
    is_near(wire_limit_ms(&all), 100 + 0.9 * 0.5 * RATIO_ERROR_SHARE, 0.01,
            "the error of the ratio if it is less");
}

static void test_regrets(void)
{
    const struct wire_candidate list[] = {recommended, fast};
    struct wire_candidates all = make(list, 2, ERROR_FRAC);

    is_near(wire_shares[0], 1, 0, "the assumed bandwidth");
    is_near(wire_shares[1], 0.5, 0, "a half of it");
    is_near(wire_shares[2], 0.25, 0, "a quarter of it");
    is_near(wire_regret_at(&all, 0, 0), 0, 1e-12, "the best at the first wire");
    is_near(wire_regret_at(&all, 1, 0), 0.5, 1e-12, "the other one there");
    is_near(wire_regret_at(&all, 0, 2), 1.0 / 3, 1e-12, "at the last wire");
    all.best_ms[0] = 80;
    is_near(wire_regret_at(&all, 0, 0), 0.25, 1e-12,
            "relative to a plan that is no candidate");
}

/* Bandwidths below which another plan is recommended. Without an error the
 * other plan needs to be cheaper only. */
static void test_break_even(void)
{
    struct wire_candidate list[] = {recommended, fast};
    struct wire_candidates all;
    struct wire_break_even even;

    list[1].n_kinds = 2;
    list[1].n_changed = 3;
    list[1].prices[1].total_ms = 250;
    all = make(list, 2, 0);
    even = wire_break_even(&all, 0);
    /* gains -1/5 and 1/3 at 2 and 4 times the time a byte: 0 at 2.75 */
    is_near(even.share, 1 / 2.75, 1e-9, "between a half and a quarter");
    is_near(even.gain_frac, 1.0 / 3, 1e-9, "the gain at a quarter");
    all = make(list, 2, 0.5);
    is_near(wire_break_even(&all, 0).share, 0, 0, "none within the error");
    list[1].prices[0].total_ms = 90;
    list[1].prices[1].total_ms = 190;
    all = make(list, 2, 0);
    is_near(wire_break_even(&all, 0).share, 1, 0,
            "the assumed one if the other is always cheaper");
    list[1].n_changed = 4;
    list[0].host_ms = list[1].host_ms = 500;
    all = make(list, 2, 0);
    is_near(wire_break_even(&all, 0).share, 0, 0,
            "none if training changes and the host hides the gain");
    all = make(list, 1, 0);
    is_near(wire_break_even(&all, 0).share, 0, 0, "none without another plan");
}

int main(void)
{
    test_picks();
    test_limit();
    test_regrets();
    test_break_even();
    return tap_done();
}
