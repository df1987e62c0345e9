/* SPDX-License-Identifier: MIT */
#include "search/planners.h"

#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

static const struct contender *find(const char *name)
{
    for (const struct contender *b = search_contenders; b->name; b++)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

static int place(struct plan *plan, const char *name, uint64_t seed,
                 const struct problem *problem, struct arena *arena,
                 struct err *err)
{
    struct oracle oracle = fake_oracle(problem);

    memset(plan, 0, sizeof(*plan));
    plan->problem = *problem;
    return contender_place(
        plan, find(name),
        &(struct contender_inputs){.oracle = &oracle, .seed = seed}, arena,
        err);
}

/* Returns the device of each table as text, such as "0 1 1 0". */
static const char *placement(const char *name, const struct problem *problem,
                             struct arena *arena)
{
    struct err err = {0};
    struct plan plan;
    const char *text = "";

    if (place(&plan, name, 1, problem, arena, &err))
        return arena_strdup(arena, err.msg);
    for (size_t i = 0; i < plan.n_shards; i++)
        text = arena_printf(arena, "%s%s%u", text, i ? " " : "",
                            plan.shards[i].device);
    return text;
}

static void check_figures(void)
{
    const uint64_t rows[] = {1000, 10, 100, 5000};
    const uint32_t dims[] = {8, 64, 32, 16};
    const double pooling[] = {40, 1, 8, 2};
    struct problem problem;
    struct arena arena = {0};

    fake_problem(&problem, rows, dims, 4, 2, 1 << 20, &arena);
    for (int i = 0; i < 4; i++)
        problem.tables[i].pooling_factor = pooling[i];
    /* 64 | 32 16 8 */
    is_str(placement("dim", &problem, &arena), "1 0 1 1", "by dim");
    /* 320 | 256 64 32: the tie of 320 = 320 goes to the device with less memory
     * in use */
    is_str(placement("lookup", &problem, &arena), "0 1 1 1", "by lookup");
    /* 80000 | 8000 3200 640 rows x dim */
    is_str(placement("size", &problem, &arena), "1 1 1 0", "by size");
    /* 320 x 3 | 256 x 2, 32 x 3.7, 64 */
    is_str(placement("size-lookup", &problem, &arena), "0 1 1 1",
           "by size and lookup");
    problem.tables[1].device = 1;
    problem.tables[2].group = problem.tables[3].group = "g";
    /* 64 pinned to device 1; 48 is the group of two */
    is_str(placement("dim", &problem, &arena), "0 1 0 0",
           "pins and groups are kept");
    problem.cluster.memory_bytes[0] = 100;
    is_str(placement("dim", &problem, &arena), "1 1 1 1",
           "memory is respected");
    arena_release(&arena);
}

/* If tables are equal, the later one is placed first. On equal GPUs the last
 * table therefore goes to the first GPU, and the others follow in turn. */
static void check_ties(void)
{
    const char *const names[] = {"lookup", "size", "size-lookup", "dim"};
    struct problem problem;
    struct arena arena = {0};

    fake_equal_problem(&problem, 9, 3, &arena);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_str(placement(names[i], &problem, &arena), "2 1 0 2 1 0 2 1 0",
               names[i]);
    arena_release(&arena);
}

static void check_random(void)
{
    unsigned n_legal = 0, n_short = 0, n_same = 0, n_different = 0, n = 0;
    struct arena arena = {0};

    for (unsigned i = 0; i < 200; i++)
        for (const struct contender *b = search_contenders;
             strcmp(b->name, "torchrec") != 0; b++) {
            struct plan plan, again, other;
            struct oracle oracle;
            struct problem problem;
            struct err err = {0};
            struct rng rng;

            rng_init(&rng, i, 9);
            fake_random(&problem, &rng, 1 + 0.2 * (i % 10), &arena);
            n++;
            if (place(&plan, b->name, 5, &problem, &arena, &err)) {
                n_short += err.code == ERR_NO_PLAN;
                continue;
            }
            oracle = fake_oracle(&plan.problem);
            n_legal += !judge_plan(&plan, &oracle, &arena, &err);
            n_same += !place(&again, b->name, 5, &problem, &arena, &err) &&
                      !memcmp(again.shards, plan.shards,
                              plan.n_shards * sizeof(*plan.shards));
            if (strcmp(b->name, "random"))
                continue;
            if (!place(&other, b->name, 6, &problem, &arena, &err))
                n_different +=
                    memcmp(other.shards, plan.shards,
                           plan.n_shards * sizeof(*plan.shards)) != 0;
        }
    is_i64(n_legal + n_short, n, "every plan is legal, or does not fit");
    is_i64(n_same, n_legal, "the same seed gives the same plan");
    ok(n_legal > n / 2, "%u of %u fit", n_legal, n);
    ok(n_different > 20, "another seed gives another random plan");
    arena_release(&arena);
}

static void check_errors(void)
{
    const uint64_t rows[] = {1 << 20, 1 << 20};
    const uint32_t dims[] = {16, 32};
    struct problem problem;
    struct err err = {0};
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 2, 1, 150 << 20, &arena);
    ok(place(&plan, "size", 1, &problem, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "does not fit");
    is_str(err.msg,
           "no plan was found: table 't0' needs 64.0 MiB, but no GPU that it "
           "may be on has that left (the emptiest has 22.0 MiB)",
           "the message says which table");
    problem.tables[0].kinds = SHARD_COLUMN;
    ok(place(&plan, "size", 1, &problem, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "baselines cut nothing");
    is_str(err.msg,
           "table 't0' may not be placed whole, but the baseline planners do "
           "not cut tables",
           "and say so");
    arena_release(&arena);
}

int main(void)
{
    check_figures();
    check_ties();
    check_random();
    check_errors();
    return tap_done();
}
