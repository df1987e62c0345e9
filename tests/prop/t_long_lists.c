/* SPDX-License-Identifier: MIT */
/* The work for a long list is counted, not timed: how often the reuse of a
 * table is computed, and how often a piece is embedded. Each oracle of a
 * problem uses the same reuse. After the time limit or an interrupt little work
 * follows, at any moment. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "costmodel/models/oracle_open.h"
#include "search/advice.h"
#include "search/wire_choice.h"
#include "tests/tap.h"

#define N_TABLES 400
/* The searches for slower wires may try 5,000 changes, so this list is too long
 * for them. */
#define N_TOO_MANY 5001
#define N_DISTINCT 100
#define N_DEVICES 8
#define EFFORT 5000
#define N_MOMENTS 6
/* Pieces embedded per table after the time limit: twice to list the table, and
 * once to price the plan. */
#define MOST_AFTER_LIMIT 3.01
/* Pieces embedded after an interrupt, in tenths of the number of tables: once
 * to price the plan. */
#define MOST_AFTER_INTERRUPT 12

/* An oracle and its slower wires, whose embeddings are counted. */
static struct counted {
    struct oracle *oracles[N_WIRES];
    struct oracle_ops ops[N_WIRES];
    void (*embed)(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out);
    uint64_t n_embedded[N_WIRES];
    uint64_t found_at;     /* number of embeddings when a plan was found */
    uint64_t interrupt_at; /* number of embeddings; 0: no interrupt */
} counted;

static void count(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out)
{
    uint64_t before, all = 0;
    unsigned k = 0;

    while (oracle != counted.oracles[k])
        k++;
    for (unsigned i = 0; i < N_WIRES; i++)
        all += counted.n_embedded[i];
    before = all;
    counted.n_embedded[k] += n;
    if (before < counted.interrupt_at && before + n >= counted.interrupt_at)
        (void)raise(SIGINT);
    counted.embed(oracle, shards, n, out);
}

static uint64_t n_embedded(void)
{
    uint64_t all = 0;

    for (unsigned k = 0; k < N_WIRES; k++)
        all += counted.n_embedded[k];
    return all;
}

static void note_found(void)
{
    if (!counted.found_at)
        counted.found_at = n_embedded();
}

/* Draws tables with N_DISTINCT different contents. */
static void draw(struct problem *problem, size_t n, struct arena *arena)
{
    static const uint32_t dims[] = {4, 8, 16, 64};
    struct rng rng;

    *problem = (struct problem){.n_tables = n,
                                .batch = 8192,
                                .kinds = SHARD_ALL_KINDS,
                                .layout = LAYOUT_FBGEMM};
    problem->tables = ARENA_NEW(arena, struct table, n);
    for (size_t t = 0; t < n; t++) {
        struct table *table = &problem->tables[t];

        rng_init(&rng, t % N_DISTINCT, 0);
        table_init(table);
        table->name = arena_printf(arena, "t%zu", t);
        table->num_embeddings = 1000 + 100 * (t % N_DISTINCT);
        table->dim = dims[rng_below(&rng, 4)];
        table->pooling_factor = 1 + (double)rng_below(&rng, 20);
    }
    problem->cluster = (struct cluster){
        .n_devices = N_DEVICES,
        .devices_per_host = N_DEVICES / 2,
        .memory_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES),
        .reserve_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES)};
    for (uint32_t r = 0; r < N_DEVICES; r++)
        problem->cluster.memory_bytes[r] = UINT64_C(80) << 30;
    problem_find_hot_rows(problem, arena);
}

/* Opens the cost model at all wires. */
static bool open_all(const char *cost, struct problem *problem,
                     struct arena *arena)
{
    struct err err = {0};

    counted = (struct counted){0};
    for (unsigned k = 0; k < N_WIRES; k++) {
        struct problem *own = ARENA_NEW(arena, struct problem, 1);

        *own = *problem;
        own->cluster.inter_gbps = k ? 31 * wire_shares[k] : 0;
        if (oracle_open(&counted.oracles[k], cost, own, arena, &err)) {
            ok(0, "%s: %s", cost, err.msg);
            return false;
        }
        counted.embed = counted.oracles[k]->ops->embed;
        counted.ops[k] = *counted.oracles[k]->ops;
        counted.ops[k].embed = count;
        counted.oracles[k]->ops = &counted.ops[k];
    }
    return true;
}

/* Searches as `plan` does. */
static int search(struct plan *plan, const struct problem *problem,
                  double limit_ms, struct arena *arena)
{
    struct search_options options;
    struct advice advice;
    struct err err = {0};

    search_options_init(&options);
    options.effort = EFFORT;
    options.time_limit_ms = limit_ms;
    options.simplest_frac = SIMPLEST_BY_ERROR;
    options.on_found = note_found;
    options.wire = WIRE_LIMITED;
    for (unsigned k = 1; k < N_WIRES; k++)
        options.slower[k - 1] = counted.oracles[k];
    *plan = (struct plan){.problem = *problem};
    return search_advised(plan, counted.oracles[0], &options, &advice, arena,
                          &err);
}

static void test_reuse(const char *cost)
{
    struct arena arena = {0};
    struct problem problem;

    draw(&problem, N_TABLES, &arena);
    if (open_all(cost, &problem, &arena))
        is_i64((int64_t)hot_store_n_computed(problem.hot->store), N_DISTINCT,
               cost);
    arena_release(&arena);
}

/* After the time limit the plan of the first start is returned. */
static void test_limit(const char *cost)
{
    struct arena arena = {0};
    struct problem problem;
    struct plan plan;

    draw(&problem, N_TABLES, &arena);
    if (open_all(cost, &problem, &arena)) {
        ok(!search(&plan, &problem, 1e-6, &arena), "%s: a plan", cost);
        is_str(plan.stopped, "time", "cut short by the time limit");
        ok((double)n_embedded() <= MOST_AFTER_LIMIT * N_TABLES,
           "%.2f pieces embedded per table", (double)n_embedded() / N_TABLES);
        is_i64((int64_t)(counted.n_embedded[1] + counted.n_embedded[2]), 0,
               "none at slower wires");
    }
    arena_release(&arena);
}

/* Returns whether plans at slower wires are priced, after a search that tried
 * n_evaluations changes. No time is left for searches. */
static bool looks_at_wires(struct plan plan, const struct problem *problem,
                           uint64_t n_evaluations, struct arena *arena)
{
    const struct search_options options = {
        .effort = EFFORT,
        .simplest_frac = SIMPLEST_BY_ERROR,
        .wire = WIRE_LIMITED,
        .slower = {counted.oracles[1], counted.oracles[2]}};
    double best_ms = plan.total_ms;
    struct err err = {0};

    counted.n_embedded[1] = counted.n_embedded[2] = 0;
    plan.n_evaluations = n_evaluations;
    return !wire_choose(&plan, problem, counted.oracles[0], &options, &best_ms,
                        clock_ms() + 1000, arena, &err) &&
           counted.n_embedded[1] && counted.n_embedded[2];
}

/* Plans for slower wires are searched if each search may try as many changes as
 * there are tables. */
static void test_wires(const char *cost)
{
    struct arena arena = {0};
    struct problem problem;
    struct plan plan;

    draw(&problem, N_TOO_MANY, &arena);
    if (open_all(cost, &problem, &arena) &&
        !search(&plan, &problem, 1e-6, &arena)) {
        ok(!looks_at_wires(plan, &problem, 1, &arena),
           "too long a list for other wires");
        ok(looks_at_wires(plan, &problem,
                          (uint64_t)(N_TOO_MANY / WIRE_EFFORT_FRAC) + 1,
                          &arena),
           "not too long with more effort");
    }
    arena_release(&arena);
}

/* Searches with an interrupt at an embedding. Returns the number of embeddings
 * that follow it, in tenths of the number of tables, or 255 if no interrupt
 * came. */
static int interrupted(const char *cost, uint64_t at)
{
    struct arena arena = {0};
    struct problem problem;
    struct plan plan;

    interrupt_install();
    draw(&problem, N_TABLES, &arena);
    if (!open_all(cost, &problem, &arena))
        return 255;
    counted.interrupt_at = at;
    (void)search(&plan, &problem, 0, &arena);
    if (!interrupt_requested())
        return 255;
    return (int)min_u64((n_embedded() - at) * 10 / N_TABLES, 254);
}

/* Until a plan is found, an interrupt ends the program. So the moments are
 * later. */
static void test_interrupts(const char *cost)
{
    struct arena arena = {0};
    struct problem problem;
    unsigned n_wrong = 0;
    struct plan plan;
    uint64_t all, found_at;

    draw(&problem, N_TABLES, &arena);
    if (!open_all(cost, &problem, &arena) ||
        search(&plan, &problem, 0, &arena)) {
        ok(0, "%s: a plan", cost);
        return;
    }
    all = n_embedded();
    found_at = counted.found_at;
    arena_release(&arena);
    for (uint64_t i = 0; i < N_MOMENTS; i++) {
        const uint64_t at =
            found_at + 1 + (all - found_at) * (2 * i + 1) / (2 * N_MOMENTS);
        const pid_t pid = fork();
        int status;

        if (!pid)
            _exit(interrupted(cost, at));
        if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
            WEXITSTATUS(status) > MOST_AFTER_INTERRUPT) {
            printf("# interrupt after %llu of %llu embeddings: %d\n",
                   (unsigned long long)at, (unsigned long long)all,
                   WEXITSTATUS(status));
            n_wrong++;
        }
    }
    is_i64(n_wrong, 0, "little work follows an interrupt");
}

int main(void)
{
    static const char *const costs[] = {"roofline:h100", "model:h100.nsm"};

    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        test_reuse(costs[i]);
        test_limit(costs[i]);
    }
    test_interrupts(costs[0]);
    test_wires(costs[0]);
    return tap_done();
}
