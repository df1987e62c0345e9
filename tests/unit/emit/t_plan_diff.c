/* SPDX-License-Identifier: MIT */
#include "emit/plan_diff.h"

#include "core/plan_error.h"
#include "tests/unit/emit/fixture.h"

#include <stdlib.h>

/* A plan before or after changes: one table stays, one moves whole, one is cut,
 * one grows, one is new, and one is removed. Migrated bytes are weights only,
 * because no table's optimizer has state. */
static struct plan make_plan(bool is_after)
{
    struct plan plan = fixture_plan(is_after ? 3 : 2, is_after ? 3 : 2, 64);

    fixture_whole(&plan, "stays", 1000, 16, 1, 0);
    fixture_whole(&plan, "goes", 2000, 32, 1, is_after);
    fixture_table(&plan, "is cut", 500, 64, 1);
    fixture_shard(&plan, 0, 500, 0, is_after ? 48 : 64, 0);
    if (is_after)
        fixture_shard(&plan, 0, 500, 48, 64, 2);
    fixture_whole(&plan, "grows", is_after ? 300 : 200, 8, 1, 1);
    fixture_whole(&plan, is_after ? "is new" : "is no more", 100, 8, 1, 0);
    for (size_t t = 0; t < plan.problem.n_tables; t++)
        plan.problem.tables[t].optimizer = OPTIMIZER_SGD;
    fixture_finish(&plan);
    return plan;
}

static struct plan_diff make_diff(void)
{
    struct plan_diff diff = {.paths = {"old.json", "new.json"},
                             .plans = {make_plan(false), make_plan(true)}};

    plan_diff_find(&diff, &arena);
    return diff;
}

static const char *text_of(struct plan_diff *diff)
{
    struct buf out = {0};
    const char *text;

    plan_diff_find(diff, &arena);
    plan_diff_print(diff, &out);
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* Gives both plans a total time, and the cost model of this name and hash. */
static void price(struct plan_diff *diff, const char *name, const char *hash)
{
    for (int i = 0; i < 2; i++) {
        struct plan *plan = &diff->plans[i];

        plan->devices = ARENA_NEW(&arena, struct device_cost,
                                  plan->problem.cluster.n_devices);
        plan->total_ms = i ? 3 : 4;
        plan->cost.name = i ? name : "plain";
        plan->cost.hash = i ? hash : "00";
    }
}

static const char whole_text[] =
    "before  old.json: 5 tables in 5 shards on 2 GPUs, not priced\n"
    "after   new.json: 5 tables in 6 shards on 3 GPUs, not priced\n"
    "work    not compared: no cost model has priced both plans; use --cost\n"
    "moves   281 KiB in 2 pieces; 162 KiB stay, 6.25 KiB are new, 3.12 KiB go\n"
    "tables  1 kept, 2 moved, 1 changed, 1 added, 1 removed\n\n"
    "GPU   received KiB   sent KiB\n"
    "0            0.000    281.250\n"
    "1          250.000      0.000\n"
    "2           31.250      0.000\n\n"
    "table                         fate     pieces: before after  moved KiB  "
    "new KiB\n"
    "goes                          moved                 1     1    250.000    "
    "0.000\n"
    "is cut                        moved                 1     2     31.250    "
    "0.000\n"
    "grows                         changed               1     1      0.000    "
    "3.125\n"
    "is new                        added                 0     1      0.000    "
    "3.125\n"
    "is no more                    removed               1     0      0.000    "
    "0.000\n\n"
    "piece that moves              from   to        KiB  columns      rows\n"
    "goes                             0    1    250.000  0-32         0-2000\n"
    "is cut                           0    2     31.250  48-64        0-500\n";

static const char whole_json[] =
    "{\"before\":{\"plan\":\"old.json\",\"gpus\":2,\"total_ms\":4.0,"
    "\"step_ms\":4.0,\"host_ms\":0.0,\"cost_model\":\"plain\"},"
    "\"after\":{\"plan\":\"new.json\",\"gpus\":3,\"total_ms\":3.0,"
    "\"step_ms\":3.0,\"host_ms\":0.0,\"cost_model\":\"plain\"},"
    "\"priced_alike\":true,\"gain_error_frac\":null,"
    "\"step_ratio\":1.33333,\"step_error_frac\":null,"
    "\"work_ratio\":1.33333,\"work_error_frac\":null,"
    "\"pays\":true,\"training_changes\":[],"
    "\"verdict\":\"the new plan pays: its steps are 33.3 % faster (error "
    "unknown), it moves 281 KiB, and training does not change\","
    "\"bytes\":{\"moved\":288000,"
    "\"kept\":166400,\"added\":6400,\"removed\":3200},"
    "\"gpus\":[{\"received\":0,\"sent\":288000},{\"received\":256000,"
    "\"sent\":0},{\"received\":32000,\"sent\":0}],"
    "\"tables\":[{\"name\":\"goes\",\"fate\":\"moved\","
    "\"pieces_before\":1,\"pieces_after\":1,"
    "\"bytes\":{\"moved\":256000,\"kept\":0,\"added\":0,"
    "\"removed\":0}},{\"name\":\"is cut\",\"fate\":\"moved\","
    "\"pieces_before\":1,\"pieces_after\":2,"
    "\"bytes\":{\"moved\":32000,\"kept\":96000,\"added\":0,"
    "\"removed\":0}},{\"name\":\"grows\",\"fate\":\"changed\","
    "\"pieces_before\":1,\"pieces_after\":1,\"bytes\":{\"moved\":0,"
    "\"kept\":6400,\"added\":3200,\"removed\":0}},{\"name\":\"is "
    "new\",\"fate\":\"added\",\"pieces_before\":0,\"pieces_after\":1,"
    "\"bytes\":{\"moved\":0,\"kept\":0,\"added\":3200,"
    "\"removed\":0}},{\"name\":\"is no more\",\"fate\":\"removed\","
    "\"pieces_before\":1,\"pieces_after\":0,\"bytes\":{\"moved\":0,"
    "\"kept\":0,\"added\":0,\"removed\":3200}}],"
    "\"moves\":[{\"table\":\"goes\",\"row_begin\":0,\"row_end\":2000,"
    "\"col_begin\":0,\"col_end\":32,\"from\":0,\"to\":1,"
    "\"bytes\":256000},{\"table\":\"is cut\",\"row_begin\":0,"
    "\"row_end\":500,\"col_begin\":48,\"col_end\":64,\"from\":0,"
    "\"to\":2,\"bytes\":32000}],\"tiers\":[]}";

static void test_whole(void)
{
    struct plan_diff diff = make_diff();
    json_t *root;
    char *dumped;

    is_str(text_of(&diff), whole_text, "all there is to say");
    price(&diff, "plain", "00");
    plan_diff_find(&diff, &arena);
    root = plan_diff_to_json(&diff);
    dumped = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
    is_str(dumped, whole_json, "as JSON");
    free(dumped);
    json_decref(root);
}

/* Sums saturate and never become negative. */
static void test_large(void)
{
    struct plan_diff diff = {.paths = {"old.json", "new.json"}};
    json_t *root;
    char *dumped;

    for (uint32_t i = 0; i < 2; i++) {
        diff.plans[i] = fixture_plan(2, 2, 64);
        fixture_whole(&diff.plans[i], "t", (uint64_t)1 << 62, 4, 1, i);
        diff.plans[i].problem.memory_model = MEMORY_WEIGHTS;
        for (int r = 0; r < 2; r++)
            diff.plans[i].problem.cluster.memory_bytes[r] = UINT64_MAX;
        fixture_finish(&diff.plans[i]);
    }
    plan_diff_find(&diff, &arena);
    root = plan_diff_to_json(&diff);
    dumped = json_dumps(root, JSON_COMPACT);
    ok(!strstr(dumped, ":-"), "none is negative");
    is_in(dumped, "\"bytes\":{\"moved\":9223372036854775807,\"kept\":0");
    is_in(dumped, "[{\"received\":0,\"sent\":9223372036854775807},"
                  "{\"received\":9223372036854775807,\"sent\":0}]");
    is_in(dumped, "\"to\":1,\"bytes\":9223372036854775807}");
    free(dumped);
    json_decref(root);
}

static void test_prices(void)
{
    struct plan_diff diff = make_diff();

    price(&diff, "plain", "00");
    is_in(text_of(&diff), "on 2 GPUs, 4.0000 ms by plain\n");
    is_in(text_of(&diff), "work    -1.0000 ms of GPU work, -25.00 %\n");
    for (int i = 0; i < 2; i++) {
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            diff.plans[i].exposed_ms[p] = p == STEP_FORWARD;
        diff.plans[i].cost.lookup_error.frac = 0.1 / RATIO_ERROR_SHARE;
    }
    /* errors are 10 % of 4 ms and 3 ms; the gain is a fraction of the old
     * total */
    is_in(text_of(&diff),
          "work    -1.0000 ms of GPU work, -25.00 % +-7.50 %\n");
    ok(diff_is_priced(diff.plans), "one model");
    price(&diff, "other", "00");
    ok(!diff_is_priced(diff.plans), "two models");
    is_in(text_of(&diff), "work    not compared: ");
    price(&diff, "plain", "01");
    ok(!diff_is_priced(diff.plans), "two of one name");
    price(&diff, "plain", "00");
    diff.plans[1].total_ms = NAN;
    ok(!diff_is_priced(diff.plans), "one without a price");
    is_in(text_of(&diff), "on 3 GPUs, not priced\n");
    price(&diff, "plain", "00");
    diff.plans[0].total_ms = 0;
    is_in(text_of(&diff), "work    +3.0000 ms of GPU work\n");
}

/* More GPUs, tables and pieces than are shown, and large numbers. */
static void test_many(void)
{
    struct plan_diff diff = {.paths = {"old.json", "new.json"}};
    const char *text;

    for (uint32_t i = 0; i < 2; i++) {
        diff.plans[i] = fixture_plan(40, 40, 64);
        for (uint32_t t = 0; t < 40; t++)
            fixture_whole(&diff.plans[i], arena_printf(&arena, "t%u", t),
                          1000 + 1000 * t, 64, 1, (t + i) % 40);
        fixture_finish(&diff.plans[i]);
    }
    plan_diff_find(&diff, &arena);
    text = text_of(&diff);
    is_in(text, "\nGPU   received MiB   sent MiB\n");
    is_in(text, "\n... and 8 more\n\ntable ");
    is_in(text, "\n... and 24 more\n\npiece ");
    ok(!strcmp(text + strlen(text) - strlen("... and 24 more\n"),
               "... and 24 more\n"),
       "and so ends");
}

/* Fates that no table has are not listed. */
static void test_same(void)
{
    struct plan_diff diff = {.paths = {"old.json", "new.json"},
                             .plans = {make_plan(false), make_plan(false)}};

    plan_diff_find(&diff, &arena);
    is_in(text_of(&diff),
          "\nmoves   0 B in 0 pieces; 447 KiB stay\ntables  5 kept\n");
}

int main(void)
{
    test_same();
    test_whole();
    test_large();
    test_prices();
    test_many();
    arena_release(&arena);
    return tap_done();
}
