/* SPDX-License-Identifier: MIT */
/*
 * The times of one job change its next plan. Random jobs are planned by a model
 * that knows neither of a slow machine nor of a slow wire; their times are
 * planted by one that does. Slowdowns and the time of the exchanges are found
 * again, and the next plan gives the slow machine less work.
 */
#include "costmodel/learning/table_factors.h"
#include "costmodel/learning/wire_fit.h"
#include "costmodel/models/oracle_open.h"
#include "exec/job.h"
#include "search/search.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define GPU "roofline:h100"
#define N_TABLES 24u
#define N_STEPS 3u
#define MAX_RANKS 8u
#define EFFORT 4000
/* A rank counts as slow from about this factor on. */
#define LEAST_SLOW 1.2

static struct arena arena;
static struct rng rng;

static double between(double least, double most)
{
    return least + (most - least) * rng_uniform(&rng);
}

/* Draws tables of one class, and hosts of 4 GPUs. */
static void draw_problem(struct problem *problem)
{
    const uint32_t n_ranks = rng_below(&rng, 2) ? MAX_RANKS : 4;
    uint64_t rows[N_TABLES];
    uint32_t dims[N_TABLES];

    for (size_t t = 0; t < N_TABLES; t++) {
        rows[t] = 1000 + rng_below(&rng, 1000000);
        dims[t] = 64;
    }
    fake_problem(problem, rows, dims, N_TABLES, n_ranks, UINT64_C(1) << 36,
                 &arena);
    problem->cluster.devices_per_host = 4;
    problem->batch = 16384;
    problem->kinds = SHARD_TABLE;
    for (size_t t = 0; t < N_TABLES; t++)
        problem->tables[t].pooling_factor = between(10, 60);
}

static void price(struct plan *plan)
{
    struct err err = {0};

    if (oracle_price_plan(plan, GPU, &arena, &err))
        ok(0, "priced: %s", err.msg);
}

/* Returns the plan of a search for this problem. */
static struct plan search(const struct problem *problem)
{
    struct search_options options;
    struct plan plan = {.problem = *problem};
    struct oracle *oracle;
    struct err err = {0};

    search_options_init(&options);
    options.effort = EFFORT;
    if (oracle_open(&oracle, GPU, problem, &arena, &err) ||
        search_full(&plan, oracle, &options, &arena, &err))
        ok(0, "planned: %s", err.msg);
    price(&plan);
    return plan;
}

/* Times of some equal steps that take what the plan predicts. */
static void plant(struct job_times *job, const struct plan *truth,
                  const struct plan *plan)
{
    const uint32_t n = plan->problem.cluster.n_devices;
    struct part_time *times =
        ARENA_NEW(&arena, struct part_time, N_STEPS * n * N_STEP_PARTS);
    struct err err = {0};
    size_t n_times = 0;

    for (unsigned s = 0; s < N_STEPS; s++)
        for (uint32_t r = 0; r < n; r++)
            for (unsigned p = 0; p < N_STEP_PARTS; p++)
                if (truth->devices[r].parts_ms[p] > 0)
                    times[n_times++] =
                        (struct part_time){.step = s,
                                           .rank = r,
                                           .part = (enum step_part)p,
                                           .ms = truth->devices[r].parts_ms[p]};
    if (job_times_init(job, plan, times, n_times, 0, &arena, &err))
        ok(0, "times: %s", err.msg);
}

static void exchanges_of(double *ms, const struct plan *plan)
{
    memcpy(ms, plan->devices[0].parts_ms, N_STEP_PARTS * sizeof(*ms));
}

/* Returns the predicted lookups of a rank on a machine that is not slow. */
static double work_ms(const struct plan *plan, uint32_t rank)
{
    const double *ms = plan->devices[rank].parts_ms;

    return (ms[STEP_FORWARD] + ms[STEP_BACKWARD]) /
           cluster_slowdown(&plan->problem.cluster, rank);
}

static double mean_work_ms(const struct plan *plan)
{
    const uint32_t n = plan->problem.cluster.n_devices;
    double sum = 0;

    for (uint32_t r = 0; r < n; r++)
        sum += work_ms(plan, r) / n;
    return sum;
}

struct tally {
    double slow, class, exchange; /* largest relative errors */
    unsigned n_false;             /* ranks that are not slow, but found to be */
    unsigned n_more;   /* next plans that give the slow rank no less work */
    unsigned n_wires;  /* jobs whose wire was found to have another bandwidth */
    unsigned n_slower; /* next plans that are slower on that machine */
};

static void try_job(struct tally *tally)
{
    struct problem problem, real;
    double slowdown[MAX_RANKS], measured_ms[N_STEP_PARTS], found_ms, truth_ms;
    struct rank_lookups lookups[MAX_RANKS];
    struct plan plan, truth, next, really;
    struct table_factors tables;
    struct job_times job;
    struct wire_fit wire;
    struct err err = {0};
    const double factor = between(0.7, 2);
    uint32_t slow;

    draw_problem(&problem);
    plan = search(&problem);
    slow = (uint32_t)rng_below(&rng, problem.cluster.n_devices);
    for (uint32_t r = 0; r < MAX_RANKS; r++)
        slowdown[r] = r == slow ? between(LEAST_SLOW, 3) : 1;
    truth = plan;
    real = problem;
    real.cluster.slowdown = slowdown;
    real.cluster.intra_gbps = plan.cost.wire.intra_gbps * between(0.2, 1.2);
    real.cluster.inter_gbps = plan.cost.wire.inter_gbps * between(0.2, 1.2);
    real.tables = ARENA_NEW(&arena, struct table, N_TABLES);
    memcpy(real.tables, problem.tables, N_TABLES * sizeof(*real.tables));
    for (size_t t = 0; t < N_TABLES; t++)
        real.tables[t].forward_factor = real.tables[t].backward_factor = factor;
    truth.problem = real;
    price(&truth);
    plant(&job, &truth, &plan);
    job_slowdown(&job, &plan.problem.cluster, &arena);
    exchanges_of(measured_ms, &truth);
    for (uint32_t r = 0; r < problem.cluster.n_devices; r++) {
        const double ratio =
            cluster_slowdown(&plan.problem.cluster, r) / slowdown[r];

        lookups[r] =
            (struct rank_lookups){truth.devices[r].parts_ms[STEP_FORWARD],
                                  truth.devices[r].parts_ms[STEP_BACKWARD]};
        tally->n_false += r != slow && ratio > 1;
        if (r == slow)
            tally->slow = tap_worst(tally->slow, fabs(ratio - 1));
    }
    if (wire_fit(&wire, &plan, measured_ms, &arena, &err) ||
        table_factors_find(&tables, &plan, lookups, &arena, &err)) {
        ok(0, "found: %s", err.msg);
        return;
    }
    for (size_t c = 0; c < tables.n; c++)
        tally->class = tap_worst(
            tally->class, fabs(tables.classes[c].forward_factor / factor - 1));
    found_ms = plan.devices[0].parts_ms[STEP_OUTPUT];
    truth_ms = measured_ms[STEP_OUTPUT];
    tally->exchange = tap_worst(tally->exchange, fabs(found_ms / truth_ms - 1));
    tally->n_wires += wire.gbps > 0;
    next = search(&plan.problem);
    tally->n_more += work_ms(&next, slow) >= 0.9 * mean_work_ms(&next);
    really = next;
    really.problem = real;
    price(&really);
    tally->n_slower += really.total_ms > truth.total_ms;
}

int main(void)
{
    const size_t n = tap_size(20, 200);
    struct tally tally = {0};

    for (size_t i = 0; i < n; i++) {
        rng_init(&rng, 61, i);
        try_job(&tally);
        arena_release(&arena);
    }
    ok(tally.slow < 0.03, "%zu jobs: slow ranks are found to %.2f %%", n,
       100 * tally.slow);
    is_i64(tally.n_false, 0, "no other rank is slow");
    ok(tally.class < 0.03, "factors of tables are found to %.2f %%",
       100 * tally.class);
    ok(tally.exchange < 0.03, "exchanges are found to %.2f %%",
       100 * tally.exchange);
    ok(10 * tally.n_wires > 9 * n, "%u wires have another bandwidth",
       tally.n_wires);
    is_i64(
        tally.n_more, 0,
        "each next plan gives the slow rank at least 10 % less work than the "
        "mean");
    is_i64(tally.n_slower, 0, "no next plan is slower on that machine");
    return tap_done();
}
