/* SPDX-License-Identifier: MIT */
/* Rules for lists that do not fit the memory of the GPUs, on four tables and
 * two GPUs. The expected plans follow from the rules by hand. */
#include "core/memory.h"
#include "costmodel/models/oracles.h"
#include "search/planners.h"
#include "tests/judge.h"
#include "tests/tap.h"

#define N_TABLES 4
#define N_GPUS 2
#define MB 1000000.0

/* Bytes in GPU memory are 260 a row; a cached row takes 8, and a slot 272. */
enum { TALL, MIDDLE, SMALL, HOT };
struct fixture {
    struct table tables[N_TABLES];
    uint64_t memory[N_GPUS], reserve[N_GPUS];
    struct problem problem;
};

static struct arena arena;

static void init(struct fixture *fixture, double room_bytes)
{
    static const struct {
        const char *name;
        uint64_t n_rows;
        double pooling;
    } given[N_TABLES] = {{"tall", 4000000, 2},
                         {"middle", 2000000, 1},
                         {"small", 1000000, 4},
                         {"hot", 100000, 50}};

    memset(fixture, 0, sizeof(*fixture));
    for (unsigned t = 0; t < N_TABLES; t++) {
        struct table *table = &fixture->tables[t];

        table_init(table);
        table->name = given[t].name;
        table->num_embeddings = given[t].n_rows;
        table->dim = 64;
        table->pooling_factor = given[t].pooling;
        table->skew_assumed = false;
        table->zipf_alpha = 1.05;
        table->row_order = ROW_ORDER_HASHED;
    }
    fixture->problem =
        (struct problem){.tables = fixture->tables,
                         .n_tables = N_TABLES,
                         .source = "fixture",
                         .cluster = {.n_devices = N_GPUS,
                                     .devices_per_host = N_GPUS,
                                     .memory_bytes = fixture->memory,
                                     .reserve_bytes = fixture->reserve,
                                     .host_bytes = 1ull << 40},
                         .kinds = SHARD_TABLE | SHARD_ROW,
                         .batch = 1024,
                         .layout = LAYOUT_FBGEMM,
                         .buffers = BUFFERS_TRACED,
                         .dense_optimizer = DENSE_ADAM,
                         .job.pipeline = PIPELINE_SDD};
    problem_find_hot_rows(&fixture->problem, &arena);
    for (unsigned r = 0; r < N_GPUS; r++)
        fixture->memory[r] = sample_memory(&fixture->problem).total +
                             (uint64_t)(room_bytes + 20 * MB);
}

static const struct contender *find(const char *name)
{
    const struct contender *by = search_contenders;

    while (strcmp(by->name, name) != 0)
        by++;
    return by;
}

/* Returns the tier and the GPUs of each table, such as "host 0; cached 0 1", or
 * the reason why there is no plan. */
static const char *place(struct fixture *fixture, const char *name,
                         struct plan *plan)
{
    struct err err = {0};
    struct rival rival;
    struct oracle *oracle;
    const char *text = "";

    *plan = (struct plan){0};
    if (oracle_roofline_open(&oracle, "h100", &fixture->problem, &arena, &err))
        return arena_strdup(&arena, err.msg);
    if (rival_ask(
            &rival, find(name), &fixture->problem,
            &(struct contender_inputs){.oracle = oracle, .torchrec = oracle},
            &arena, &err))
        return arena_strdup(&arena, err.msg);
    *plan = rival.plan;
    if (rival.why_not)
        return rival.why_not;
    if (judge_plan(plan, oracle, &arena, &err))
        return arena_strdup(&arena, err.msg);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        if (!i || shard[-1].table != shard->table)
            text = arena_printf(&arena, "%s%s%s", text, i ? "; " : "",
                                tier_names[shard->tier]);
        text = arena_printf(&arena, "%s %u", text, shard->device);
    }
    return text;
}

static void check(const char *name, struct fixture *fixture,
                  const char *expected, const char *about)
{
    struct plan plan;
    const char *got = place(fixture, name, &plan);

    ok(!strcmp(got, expected), "%s, %s: %s", name, about, got);
}

/* TALL and MIDDLE take 1040 and 520 MB, more than a GPU has. */
static void test_largest(void)
{
    struct fixture fixture;

    init(&fixture, 450 * MB);
    check("host-large", &fixture, "host 0; host 1; hbm 1; hbm 1",
          "as few tables as fit");
    check("cache-large", &fixture, "cached 0; cached 1; hbm 1; hbm 1",
          "as few tables as fit");
    fixture.tables[SMALL].tiers = 1u << TIER_HBM;
    fixture.tables[MIDDLE].tiers = 1u << TIER_HBM | 1u << TIER_HOST;
    check("cache-large", &fixture,
          "no plan was found: the rule 'cache-large' has none that fits the "
          "GPUs and their hosts",
          "a table that may not be cached and does not fit");
    init(&fixture, 600 * MB);
    check("host-large", &fixture, "host 0; hbm 0; hbm 1; hbm 1",
          "one table is enough");
    /* at 0.2, TALL takes 250 MB and nothing else fits beside it but HOT */
    init(&fixture, 200 * MB);
    check("cache-large", &fixture, "cached 1; cached 1; cached 0; hbm 0",
          "a smaller load factor");
}

static void test_all(void)
{
    struct fixture fixture;
    struct plan plan;

    init(&fixture, 450 * MB);
    check("cache-all", &fixture, "cached 1; cached 1; cached 1; cached 0",
          "the longest times first");
    check("cache-rows", &fixture,
          "cached 0 1; cached 0 1; cached 0 1; cached 0 1", "all tables");
    fixture.tables[SMALL].row_order = ROW_ORDER_FREQUENCY;
    check("cache-rows", &fixture,
          "cached 0 1; cached 0 1; cached 0; cached 0 1",
          "a table whose hot rows are in one block stays whole");
    fixture.tables[HOT].num_embeddings = 1;
    check("cache-rows", &fixture, "cached 0 1; cached 0 1; cached 1; cached 0",
          "a table with fewer rows than GPUs stays whole");
    fixture.problem.kinds = SHARD_TABLE;
    check("cache-rows", &fixture,
          "no plan was found: no cached table may be cut by rows",
          "no row cuts");
    init(&fixture, 450 * MB);
    (void)place(&fixture, "cache-all", &plan);
    ok(plan.load_factors && plan.load_factors[TALL] > 0.21,
       "cache-all: load factors grow to the memory that is left (%.2f)",
       plan.load_factors ? plan.load_factors[TALL] : 0);
}

/* The slots of HOT and SMALL take 27 and 272 MB. In proportion to their
 * different rows of a batch, both get more than that. The rest is too little
 * for the others. */
static void test_scale_up(void)
{
    struct fixture fixture;

    init(&fixture, 450 * MB);
    check("scale-up", &fixture, "cached 0; cached 1; hbm 1; hbm 1",
          "tables whose cache would hold all rows are in GPU memory");
    init(&fixture, 60 * MB);
    check("scale-up", &fixture, "cached 0; cached 1; cached 1; hbm 0",
          "less memory");
}

static void test_limits(void)
{
    struct fixture fixture;
    const char *const names[] = {"host-large", "cache-large", "cache-all",
                                 "cache-rows", "scale-up"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct plan plan;

        init(&fixture, 450 * MB);
        fixture.problem.cluster.host_bytes = 1000;
        ok(!!strstr(place(&fixture, names[i], &plan), "none that fits"),
           "%s: too little host memory", names[i]);
        init(&fixture, 450 * MB);
        fixture.tables[HOT].device = 1;
        ok(!!strstr(place(&fixture, names[i], &plan), "is pinned to a GPU"),
           "%s: pins are refused", names[i]);
        fixture.problem.cluster.host_bytes = 0;
        ok(!contender_is_for(find(names[i]), &fixture.problem),
           "%s: only with host memory for tables", names[i]);
    }
    ok(contender_is_for(find("torchrec"), &fixture.problem),
       "other planners need no host memory");
}

int main(void)
{
    test_largest();
    test_all();
    test_scale_up();
    test_limits();
    arena_release(&arena);
    return tap_done();
}
