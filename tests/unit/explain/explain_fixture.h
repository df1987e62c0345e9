/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_EXPLAIN_EXPLAIN_FIXTURE_H
#define NEUROSHARD_TESTS_UNIT_EXPLAIN_EXPLAIN_FIXTURE_H

/* A cost model that is easily checked by hand, plans priced with it, and their
 * explanations. Include in one file only. */

#include "core/plan_price.h"
#include "explain/explain.h"
#include "tests/unit/emit/fixture.h"

/* Computing takes 1 ms per column and lookup of a sample; sending takes 0.1 ms
 * per column. If GPUs wait, each exchange takes as long as on the GPU that
 * sends most. */
enum { WORK, OUTPUT, WIDTH };

static void plain_embed(const struct oracle *oracle, const struct shard *shards,
                        size_t n, double *out)
{
    for (size_t i = 0; i < n; i++, out += WIDTH) {
        const struct table *table = &oracle->problem->tables[shards[i].table];
        double width = shards[i].col_end - shards[i].col_begin;

        out[WORK] = width * table->pooling_factor;
        out[OUTPUT] = shards[i].kind == SHARD_REPLICATE ? 0 : 0.1 * width;
    }
}

static void plain_compute(const struct oracle *oracle, const double *sums,
                          size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = sums[i * WIDTH + WORK];
}

static void waiting_comm(const struct oracle *oracle, size_t n,
                         const double *sums, const double *compute_ms,
                         double *fwd_ms, double *bwd_ms)
{
    uint32_t n_devices = oracle->problem->cluster.n_devices;
    double most = 0, last = 0;

    (void)n; /* n is always 1 */
    for (uint32_t r = 0; r < n_devices; r++) {
        most = fmax(most, sums[r * WIDTH + OUTPUT]);
        last = fmax(last, compute_ms[r]);
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        bwd_ms[r] = most;
        fwd_ms[r] = last - compute_ms[r] + 2 * most;
    }
}

static void own_comm(const struct oracle *oracle, size_t n, const double *sums,
                     const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    (void)compute_ms;
    for (size_t r = 0; r < n * oracle->problem->cluster.n_devices; r++) {
        bwd_ms[r] = sums[r * WIDTH + OUTPUT];
        fwd_ms[r] = 2 * bwd_ms[r];
    }
}

static void own_terms(const struct oracle *oracle, const double *sums, size_t n,
                      double *compute_ms, double *terms_ms)
{
    plain_compute(oracle, sums, n, compute_ms);
    for (size_t r = 0; r < n; r++)
        terms_ms[r] = compute_ms[r] + 3 * sums[r * WIDTH + OUTPUT];
}

static struct oracle make_oracle(const struct problem *problem, bool waits)
{
    static const struct oracle_ops waiting = {.embed = plain_embed,
                                              .compute = plain_compute,
                                              .comm = waiting_comm},
                                   own = {.embed = plain_embed,
                                          .compute = plain_compute,
                                          .comm = own_comm,
                                          .terms = own_terms};

    return (struct oracle){.ops = waits ? &waiting : &own,
                           .problem = problem,
                           .cost.name = "plain",
                           .cost.hash = "00",
                           .cost.comm = "made up",
                           .width = WIDTH,
                           .n_terms = 1,
                           .is_additive = !waits,
                           .kinds =
                               SHARD_TABLE | SHARD_COLUMN | SHARD_REPLICATE,
                           .floor_lane = -1};
}

/* GPU 1 is ready last. GPU 2 has little memory and sends most. */
__attribute__((unused)) static struct plan make_plan(void)
{
    struct plan plan = fixture_plan(3, 3, 64);
    uint64_t *memory = plan.problem.cluster.memory_bytes;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_whole(&plan, "small", 1000, 8, 1, 0);
    fixture_whole(&plan, "hot", 2000, 16, 3, 1);
    fixture_table(&plan, "wide", 500, 48, 0.25);
    fixture_shard(&plan, 0, 500, 0, 16, 1);
    fixture_shard(&plan, 0, 500, 16, 48, 2);
    memory[0] = 300000; /* 32000 bytes are used */
    memory[1] = 400000; /* 160000 bytes are used */
    memory[2] = 100000; /* 64000 bytes are used */
    fixture_finish(&plan);
    return plan;
}

static void open_explained(struct explained *explained, struct plan *plan,
                           const struct oracle *oracle)
{
    struct err err = {0};

    if (plan_price(plan, oracle, &arena, &err))
        ok(0, "priced: %s", err.msg);
    *explained = (struct explained){.gpu = ANY_GPU, .arena = &arena};
    what_if_init(&explained->what_if, plan, oracle);
}

__attribute__((unused)) static char *plan_text(struct explained *explained)
{
    struct buf out = {0};
    char *text;

    json_decref(explain_plan(explained, &out));
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

__attribute__((unused)) static char *table_text(struct explained *explained,
                                                uint32_t table)
{
    struct buf out = {0};
    char *text;

    json_decref(explain_table(explained, table, &out));
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

#endif
