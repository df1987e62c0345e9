/* SPDX-License-Identifier: MIT */
#include "io/plan_tiers_json.h"

#include "core/plan_memory.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "tests/tap.h"
#include "tests/tiered_plan.h"

static struct tiered_plan tiered;
static struct device_cost devices[TIERED_DEVICES];
static struct arena arena;

/* Fills the fixture's plan with memory, caches and predicted misses. */
static void make_plan(void)
{
    static const double reach[] = {400, 700, 1100}, misses[] = {300, 200, 150};

    tiered_plan_init(&tiered);
    memset(devices, 0, sizeof(devices));
    tiered.plan.devices = devices;
    problem_find_hot_rows(&tiered.plan.problem, &arena);
    plan_count_memory(&tiered.plan);
    plan_fill_caches(&tiered.plan, &arena);
    for (unsigned r = 0; r < TIERED_DEVICES; r++) {
        devices[r].compute_ms = devices[r].bwd_comm_ms = NAN;
        devices[r].fwd_comm_ms = devices[r].total_ms = NAN;
        devices[r].parts_ms[0] = NAN;
    }
    devices[0].caches[0].rows_per_batch = 800;
    devices[0].caches[0].fills = 200;
    devices[0].caches[0].miss = 0.25;
    tiered.tables[WIDE].tiers = 1u << TIER_CACHED | 1u << TIER_HOST;
    tiered.tables[WIDE].n_reach = 3;
    memcpy(tiered.tables[WIDE].reach, reach, sizeof(reach));
    memcpy(tiered.tables[WIDE].misses, misses, sizeof(misses));
    tiered.plan.version = "0";
}

static void round_trip(void)
{
    const char *text, *again;
    struct err err = {0};
    struct plan plan;

    make_plan();
    text = plan_to_json(&tiered.plan, &arena);
    if (!ok(!plan_from_json(&plan, text, strlen(text), "plan.json", &arena,
                            &err),
            "read: %s", err.msg))
        return;
    is_i64((int64_t)plan.problem.cluster.host_bytes, 16 << 20, "host_bytes");
    is_i64(plan.shards[AT_TALL].tier, TIER_CACHED, "tier");
    is_i64(plan.shards[AT_COLD].tier, TIER_HOST, "another tier");
    is_near(plan.load_factors[TALL], 0.25, 0, "load factor");
    is_near(plan.load_factors[COLD], 0, 0, "no load factor");
    is_i64(plan.problem.tables[WIDE].tiers, 6, "allowed tiers");
    is_i64(plan.problem.tables[WIDE].n_reach, 3, "windows");
    is_near(plan.problem.tables[WIDE].misses[2], 150, 0, "misses");
    is_i64((int64_t)plan.devices[0].n_caches, 2, "caches");
    is_i64((int64_t)plan.devices[0].memory.host, 4 * 104000, "host memory");
    is_near(plan.devices[0].caches[0].fills, 200, 0, "fills");
    ok(isnan(plan.devices[1].caches[0].fills), "fills that are not predicted");
    plan.version = "0";
    plan.problem.source = tiered.plan.problem.source;
    again = plan_to_json(&plan, &arena);
    is_str(again, text, "written as it was read");
}

/* A plan in HBM has none of the members, whatever its tables allow. */
static void without_tiers(void)
{
    static const char *const members[] = {
        "\"tier", "host_bytes", "\"host\"",   "cache\"",
        "reach",  "misses",     "load_factor"};
    const char *text;

    make_plan();
    for (size_t i = 0; i < TIERED_SHARDS; i++)
        tiered.shards[i].tier = TIER_HBM;
    tiered.plan.load_factors = NULL;
    tiered.plan.problem.cluster.host_bytes = 0;
    plan_count_memory(&tiered.plan);
    plan_fill_caches(&tiered.plan, &arena);
    text = plan_to_json(&tiered.plan, &arena);
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        ok(!strstr(text, members[i]), "no '%s'", members[i]);
}

/* Replaces the first `from` of the text by `to`. */
static const char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    if (!at)
        return "";
    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
}

static void contradictions(void)
{
    static const struct {
        const char *from, *to, *want;
    } cases[] = {
        {"\"tier\": \"cached\"", "\"tier\": \"disk\"",
         "plan.json: shards[5].tier must be one of hbm, cached, host"},
        {"\"tier\": \"cached\"", "\"tier\": 1",
         "plan.json: shards[5].tier must be one of hbm, cached, host"},
        {"\"load_factor\": 0.10000000000000001", "\"load_factor\": 0.2",
         "plan.json: shards[6].load_factor is 0.10000000000000001, but another "
         "shard of table 'wide' has 0.20000000000000001"},
        {", \"load_factor\": 0.10000000000000001", "",
         "plan.json: shards[5].load_factor is missing, but the tier is cached"},
        {"\"slots\": 480", "\"slots\": 448",
         "plan.json: devices[0].caches does not agree with its shards: the "
         "cache of table 'wide' has 480 slots of 32 columns, load factor "
         "0.17999999999999999"},
        {"\"host\": 416000", "\"host\": 516000",
         "plan.json: devices[0].memory_bytes does not agree with its shards: "},
        {"\"tiers\": [\"cached\", \"host\"]", "\"tiers\": [\"hbm\"]",
         "plan.json: table 'wide' is in tier 'cached', but the table does not "
         "allow it"},
        {"\"tiers\": [\"cached\"", "\"tiers\": [\"ssd\"",
         "plan.json: tables[2].tiers[0] must be one of hbm, cached, host"},
        {"\"misses\": [300.0", "\"misses\": [500.0",
         "plan.json: tables[2].reach[0] 400 and misses[0] 500 are impossible"},
        {"\"misses\": [300.0, ", "\"misses\": [",
         "plan.json: tables[2].misses has 2 entries, but reach has 3"},
        {"\"host_bytes\": 16777216", "\"host_bytes\": 1000",
         "plan.json: host 0 needs 1.13 MiB of its memory for tables, but it "
         "has 1000 B"},
        {", \"host_bytes\": 16777216", "",
         "plan.json: table 'wide' is in tier 'cached', but the cluster has no "
         "host memory for tables"},
    };
    const char *text;

    make_plan();
    text = plan_to_json(&tiered.plan, &arena);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *bad = replaced(text, cases[i].from, cases[i].to);
        struct err err = {0};
        struct plan plan;

        if (!plan_from_json(&plan, bad, strlen(bad), "plan.json", &arena, &err))
            snprintf(err.msg, sizeof(err.msg), "accepted");
        if (strlen(cases[i].want) < strlen(err.msg) &&
            cases[i].want[strlen(cases[i].want) - 1] == ' ')
            err.msg[strlen(cases[i].want)] = '\0';
        is_str(err.msg, cases[i].want, cases[i].want);
    }
}

int main(void)
{
    json_init();
    round_trip();
    without_tiers();
    contradictions();
    arena_release(&arena);
    return tap_done();
}
