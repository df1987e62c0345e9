/* SPDX-License-Identifier: MIT */
#include "exec/cache_report.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/tap.h"

/* The report on caches, with and without predictions of the plan. */

static struct device_cache planned[] = {
    {"pooled/row_wise/fp32/sgd", 320, 16, 0.1, 500, 100, 0.2},
    {"sequence/table_wise/fp32/sgd", 64, 32, 0.1, NAN, NAN, NAN},
};
static struct device_cost costs[] = {{.compute_ms = 0},
                                     {.caches = planned, .n_caches = 2}};
static struct exec_rank ranks[] = {{.n_fills = 0}, {.n_fills = 9}};
static struct exec_cache caches[] = {
    {1, "pooled/row_wise/fp32/sgd", 16, 320, 64, 1, 510, 102, 0, 13056, 24},
    {1, "sequence/table_wise/fp32/sgd", 32, 64, 0, 0.5, 90, 45, 9, 11520, 24},
};

static void prints(const struct plan *plan, const struct exec_result *result,
                   const char *want, const char *what)
{
    struct arena arena = {0};
    struct buf out = {0};

    buf_add(&out, "", 0);
    cache_report_print(plan, result, &arena, &out);
    is_str(out.data, want, what);
    buf_release(&out);
    arena_release(&arena);
}

static double member(const json_t *list, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(list, i), key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void test_json(const struct plan *plan, const struct exec_result *result)
{
    json_t *list = cache_report_to_json(plan, result);

    is_near(member(list, 0, "hit_frac"), 0.8, 1e-12, "measured hit rate");
    is_near(member(list, 0, "predicted_hit_frac"), 0.8, 1e-12, "predicted");
    is_near(member(list, 0, "predicted_bytes"), 12800, 1e-9,
            "each fill is read and written back");
    is_near(member(list, 1, "conflict_frac"), 0.1, 1e-12, "conflicts");
    ok(isnan(member(list, 1, "predicted_fills")), "not predicted: null");
    json_decref(list);
}

int main(void)
{
    const struct plan plan = {.devices = costs}, no_costs = {.devices = NULL};
    const struct exec_result none = {.ranks = ranks};
    const struct exec_result result = {
        .ranks = ranks, .caches = caches, .n_caches = 2};
    json_t *list;

    prints(&plan, &none, "", "no caches");
    prints(
        &plan, &result,
        "\ncaches per batch, in 24 batches after a warm-up of 9:\n"
        " GPU cache                                           rows  hit %   "
        "fills      MB\n"
        "   1 pooled/row_wise/fp32/sgd                         510   80.0     "
        "102    0.01\n"
        "       320 slots x 16 columns, predicted              500   80.0     "
        "100    0.01\n"
        "   1 sequence/table_wise/fp32/sgd                      90   50.0      "
        "45    0.01\n"
        "       64 slots x 32 columns                            -      -      "
        " "
        "-       -\n"
        "1 of 2 caches were not full after the warm-up: full ones miss fewer "
        "rows\n"
        "1.5 % of the rows found no slot in their set, and were used in host "
        "memory\n",
        "measured and predicted");
    test_json(&plan, &result);
    list = cache_report_to_json(&no_costs, &result);
    ok(isnan(member(list, 0, "predicted_fills")), "a plan without costs");
    json_decref(list);
    ok(!cache_report_to_json(&plan, &none), "no caches, no JSON");
    return tap_done();
}
