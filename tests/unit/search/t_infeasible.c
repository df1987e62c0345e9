/* SPDX-License-Identifier: MIT */
#include "search/fit.h"

#include "search/search.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define MIB (UINT64_C(1) << 20)

/* Two tables of 244.1 MiB that must stay whole, on devices that differ. What
 * a sentence says would do, does. */
struct uneven {
    const char *name;
    uint64_t memory_mib[2], reserve_mib[2];
    const char *full, *reference; /* ends of the sentences; NULL: any */
};

static const struct uneven cases[] = {
    {"a small device",
     {300, 100},
     {0, 0},
     "; it would fit with at least 245 MiB a device, or 3 devices, new "
     "like the roomiest",
     "; it would fit with at least 245 MiB a device, or 3 devices, new "
     "like the roomiest"},
    {"one that is used already",
     {300, 300},
     {0, 200},
     "; it would fit with at least 445 MiB a device, or 3 devices, new "
     "like the roomiest",
     "; it would fit with at least 445 MiB a device, or 3 devices, new "
     "like the roomiest"},
    {"the larger one is the fuller",
     {250, 600},
     {0, 400},
     "; it would fit with at least 489 MiB a device, or 3 devices, new "
     "like the roomiest",
     NULL},
};

static void set_memory(struct problem *problem, const struct uneven *test)
{
    for (uint32_t r = 0; r < 2; r++) {
        problem->cluster.memory_bytes[r] = test->memory_mib[r] * MIB;
        problem->cluster.reserve_bytes[r] = test->reserve_mib[r] * MIB;
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len >= n && !strcmp(text + len - n, end);
}

static void check_case(const struct uneven *test)
{
    const uint64_t rows[] = {1000000, 1000000};
    const uint32_t dims[] = {64, 64};
    struct search_options options;
    struct problem problem;
    struct oracle oracle;
    struct err err = {0};
    struct arena arena;
    struct plan plan;

    arena_init(&arena);
    fake_problem(&problem, rows, dims, 2, 2, 0, &arena);
    problem.kinds = SHARD_TABLE;
    set_memory(&problem, test);
    plan = (struct plan){.problem = problem};
    oracle = fake_oracle(&plan.problem);
    search_options_init(&options);
    options.effort = 100;
    ok(search_full(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN && ends_with(err.msg, test->full),
       "%s: %s", test->name, err.msg);
    ok(search_reference(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN &&
           (!test->reference || ends_with(err.msg, test->reference)),
       "%s: %s", test->name, err.msg);
    arena_release(&arena);
}

/* All of a group go to one device, which needs the room of all: a MiB more or
 * less decides. */
static void check_group(void)
{
    const uint64_t rows[] = {1000000, 1000000, 1000};
    const uint32_t dims[] = {64, 64, 64};
    struct search_options options;
    struct problem problem;
    struct oracle oracle;
    struct arena arena;

    search_options_init(&options);
    options.effort = 100;
    arena_init(&arena);
    for (uint64_t mib = 487; mib < 491; mib++) {
        struct plan plan;
        struct err err = {0};
        bool is_found;

        fake_problem(&problem, rows, dims, 3, 3, mib * MIB, &arena);
        problem.kinds = SHARD_TABLE;
        problem.tables[0].group = problem.tables[1].group = "pair";
        plan = (struct plan){.problem = problem};
        oracle = fake_oracle(&plan.problem);
        is_found = !search_full(&plan, &oracle, &options, &arena, &err);
        ok(is_found == (mib >= 489), "a group of 488.3 MiB, on %u MiB",
           (unsigned)mib);
        ok(is_found ||
               (strstr(err.msg, "group 'pair'") && strstr(err.msg, "488 MiB")),
           "%s", err.msg);
    }
    arena_release(&arena);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    check_group();
    return tap_done();
}
