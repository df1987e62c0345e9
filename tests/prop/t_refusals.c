/* SPDX-License-Identifier: MIT */
/* The message "no plan fits" is true: if a search gives it for a tiny problem,
 * none of all possible plans fits in memory. Without a proof the message is
 * "not found". */
#include "core/memory.h"
#include "search/planners.h"
#include "tests/tap.h"
#include "tests/unit/search/exhaustive.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define EFFORT 500
#define MAX_PLANS 20000
#define MAX_TABLES 6
#define MAX_LENGTH 250 /* length of a message */

struct searcher {
    const char *name;
    unsigned n_found, n_proven, n_not_found, n_missed;
};

struct refusal {
    struct problem problem;
    struct random_oracle oracle;
    struct rng rng;
    struct arena arena;
    unsigned number;
    bool has_plan;
};

static uint32_t draw(struct refusal *refusal, uint32_t n)
{
    return (uint32_t)rng_below(&refusal->rng, n);
}

static void draw_tables(struct refusal *refusal)
{
    uint32_t n = 1 + draw(refusal, MAX_TABLES), dims[MAX_TABLES];
    struct problem *problem = &refusal->problem;
    uint64_t rows[MAX_TABLES];

    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 1 + (uint64_t)exp(rng_uniform(&refusal->rng) * log(1e4));
        dims[i] = 4u << draw(refusal, 3);
    }
    fake_problem(problem, rows, dims, n, 1 + draw(refusal, 3), 0,
                 &refusal->arena);
    problem->memory_model = draw(refusal, 2) ? MEMORY_FULL : MEMORY_WEIGHTS;
    problem->buffers = (enum buffer_rule)draw(refusal, 2);
    for (uint32_t i = 0; i < n; i++) {
        struct table *table = &problem->tables[i];

        table->pooling_factor = 20 * rng_uniform(&refusal->rng);
        table->optimizer = (enum optimizer)draw(refusal, N_OPTIMIZERS);
        if (draw(refusal, 8) == 0)
            table->device = draw(refusal, problem->cluster.n_devices);
    }
}

/* Gives the devices the memory of a random placement of whole tables, and a
 * little less or more. Every second problem also has a reserve. */
static void draw_memory(struct refusal *refusal)
{
    struct problem *problem = &refusal->problem;
    uint64_t *memory = problem->cluster.memory_bytes;
    double slack = 0.95 + 0.07 * rng_uniform(&refusal->rng);

    for (uint32_t t = 0; t < problem->n_tables; t++) {
        struct shard whole = shard_whole(problem, t, 0);
        struct memory_items items;

        items = shard_memory(problem, &whole);
        memory[draw(refusal, problem->cluster.n_devices)] += items.total;
    }
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++) {
        memory[r] = (uint64_t)ceil((double)memory[r] * slack);
        problem->cluster.reserve_bytes[r] =
            refusal->number % 2 ? memory[r] / 8 : 0;
        memory[r] +=
            problem->cluster.reserve_bytes[r] + sample_memory(problem).total;
    }
}

static bool draw_refusal(struct refusal *refusal)
{
    static const unsigned kinds[] = {SHARD_TABLE,
                                     SHARD_TABLE,
                                     SHARD_COLUMN,
                                     SHARD_TABLE | SHARD_COLUMN,
                                     SHARD_TABLE | SHARD_ROW,
                                     SHARD_ALL_KINDS & ~(unsigned)SHARD_GRID};
    struct exhaustive_options options;
    struct err err = {0};
    struct plan plan;

    draw_tables(refusal);
    draw_memory(refusal);
    refusal->problem.kinds = kinds[draw(refusal, sizeof kinds / sizeof *kinds)];
    random_oracle_init(&refusal->oracle, &refusal->problem, &refusal->rng);
    exhaustive_options_init(&options);
    if (exhaustive_count(&refusal->problem, &refusal->oracle.base, &options) >
        MAX_PLANS)
        return false;
    plan = (struct plan){.problem = refusal->problem};
    refusal->has_plan = !search_exhaustive(&plan, &refusal->oracle.base,
                                           &options, &refusal->arena, &err);
    return refusal->has_plan || err.code == ERR_NO_PLAN;
}

static void judge(struct searcher *searcher, const struct refusal *refusal,
                  int rc, const struct err *err)
{
    bool is_proven = !strncmp(err->msg, "no plan fits: ", 14);

    if (!rc) {
        searcher->n_found++;
        return;
    }
    if (err->code != ERR_NO_PLAN) { /* some table cannot be placed at all */
        if (err->code != ERR_USAGE)
            ok(0, "%s, problem %u: %s", searcher->name, refusal->number,
               err->msg);
        return;
    }
    searcher->n_proven += is_proven;
    searcher->n_not_found += !is_proven;
    searcher->n_missed += refusal->has_plan;
    if ((is_proven && refusal->has_plan) ||
        (!is_proven && strstr(err->msg, "no plan fits")) ||
        strlen(err->msg) > MAX_LENGTH)
        ok(0, "%s, problem %u, %s: %s", searcher->name, refusal->number,
           refusal->has_plan ? "which has a plan" : "without a plan", err->msg);
}

static void ask_all(struct searcher *searchers, struct refusal *refusal)
{
    const struct oracle *oracle = &refusal->oracle.base;
    const struct contender_inputs inputs = {.oracle = oracle};
    const struct contender *baseline = search_contenders;
    struct plan plan = {.problem = refusal->problem};
    struct search_options options;
    struct err err = {0};
    int rc;

    search_options_init(&options);
    options.effort = EFFORT;
    rc = search_full(&plan, oracle, &options, &refusal->arena, &err);
    judge(&searchers[0], refusal, rc, &err);
    err = (struct err){0};
    rc = search_reference(&plan, oracle, &options, &refusal->arena, &err);
    judge(&searchers[1], refusal, rc, &err);
    for (; strcmp(baseline->name, "torchrec") != 0; baseline++) {
        err = (struct err){0};
        rc = contender_place(&plan, baseline, &inputs, &refusal->arena, &err);
        judge(&searchers[2], refusal, rc, &err);
    }
}

int main(void)
{
    struct searcher searchers[] = {
        {.name = "full"}, {.name = "reference"}, {.name = "baselines"}};
    struct refusal refusal = {0};
    size_t n = tap_size(600, 10000);

    rng_init(&refusal.rng, 21, 0);
    for (refusal.number = 0; refusal.number < n; refusal.number++) {
        if (draw_refusal(&refusal))
            ask_all(searchers, &refusal);
        arena_release(&refusal.arena);
    }
    /* a few problems (TEST_SIZE=tiny) need not have both outcomes */
    for (size_t i = 0; i < sizeof searchers / sizeof *searchers; i++)
        ok(searchers[i].n_found && (searchers[i].n_not_found || n < 600),
           "%s: %u plans, %u times none fits, %u none was found, %u of all "
           "refusals where there is one",
           searchers[i].name, searchers[i].n_found, searchers[i].n_proven,
           searchers[i].n_not_found, searchers[i].n_missed);
    ok(searchers[0].n_proven > n / 10 && !searchers[0].n_missed,
       "the full search finds a plan where there is one");
    return tap_done();
}
