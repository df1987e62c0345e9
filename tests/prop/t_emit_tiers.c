/* SPDX-License-Identifier: MIT */
/* TorchRec can run every plan that the search makes with tables in host memory:
 * its emitter refuses none. The tables are short, so that a cut of their rows
 * may leave GPUs without rows, and they are in up to three modules. */
#include "core/target_tiers.h"
#include "costmodel/models/oracles.h"
#include "emit/formats.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"

#include "base/rng.h"

#define N_PROBLEMS 40
#define N_PROBLEMS_FULL 1000
#define EFFORT 1000
#define MAX_TABLES 6
#define MAX_GPUS 8

struct drawn {
    struct table tables[MAX_TABLES];
    char names[MAX_TABLES][16];
    uint64_t memory[MAX_GPUS], reserve[MAX_GPUS];
    struct problem problem;
};

struct tally {
    unsigned n_plans, n_refused, n_cut; /* n_cut: cached tables cut by rows */
    unsigned n_short; /* tables that a cut leaves on too few GPUs */
};

static struct arena arena;

/* Draws a problem with tables of 2 to 60 rows, most of them cached. */
static void draw(struct drawn *drawn, struct rng *rng)
{
    static const char *const modules[] = {"", "deep.ebc.", "wide."};
    const uint32_t n_gpus = 2 + rng_draw(rng, MAX_GPUS - 1);
    const uint32_t n = 1 + rng_draw(rng, MAX_TABLES);

    memset(drawn, 0, sizeof(*drawn));
    for (uint32_t t = 0; t < n; t++) {
        struct table *table = &drawn->tables[t];

        table_init(table);
        snprintf(drawn->names[t], sizeof(drawn->names[t]), "%st%u",
                 modules[rng_draw(rng, 3)], t);
        table->name = drawn->names[t];
        table->num_embeddings = 2 + rng_draw(rng, 59);
        table->dim = 32u << rng_draw(rng, 3);
        table->pooling_factor = 1u << rng_draw(rng, 8);
        table->row_order = ROW_ORDER_UNIFORM;
        table->optimizer = OPTIMIZER_ADAM;
        if (rng_draw(rng, 4))
            table->tiers = 1u << TIER_CACHED;
        table->kinds = rng_draw(rng, 2) ? SHARD_ROW : SHARD_ROW | SHARD_GRID;
        if (rng_draw(rng, 2) ||
            !target_caches_blocks(TARGET_TORCHREC, table, n_gpus))
            table->kinds |= SHARD_TABLE;
    }
    drawn->problem = (struct problem){
        .tables = drawn->tables,
        .n_tables = n,
        .source = "drawn",
        .cluster = {.n_devices = n_gpus,
                    .devices_per_host =
                        n_gpus % 2 || rng_draw(rng, 2) ? n_gpus : n_gpus / 2,
                    .memory_bytes = drawn->memory,
                    .reserve_bytes = drawn->reserve,
                    .host_bytes = 1ull << 40},
        .kinds = SHARD_ALL_KINDS,
        .target = TARGET_TORCHREC,
        .batch = 8192,
        .layout = LAYOUT_FBGEMM,
        .buffers = BUFFERS_TRACED,
        .dense_optimizer = DENSE_ADAM,
        .job.pipeline = rng_draw(rng, 3) ? PIPELINE_SDD : PIPELINE_PREFETCH};
    for (uint32_t r = 0; r < n_gpus; r++)
        drawn->memory[r] = 1ull << 36;
    problem_find_hot_rows(&drawn->problem, &arena);
}

/* Counts the cached tables of a plan that are cut by rows. */
static void count_cuts(const struct plan *plan, struct tally *tally)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        tally->n_cut += shard->tier == TIER_CACHED &&
                        shard_cuts_rows(shard->kind) && !shard->row_begin;
    }
    for (size_t t = 0; t < plan->problem.n_tables; t++)
        tally->n_short +=
            !target_caches_blocks(TARGET_TORCHREC, &plan->problem.tables[t],
                                  plan->problem.cluster.n_devices);
}

static void try_problem(struct rng *rng, struct tally *tally)
{
    static const struct emit_options names = {.module = "ebc"};
    struct search_options options;
    struct oracle *oracle;
    struct drawn drawn;
    struct plan plan;
    struct err err = {0};
    struct buf out = {0};

    draw(&drawn, rng);
    plan = (struct plan){.problem = drawn.problem};
    search_options_init(&options);
    options.effort = EFFORT;
    if (oracle_roofline_open(&oracle, "h100", &drawn.problem, &arena, &err)) {
        ok(0, "opened: %s", err.msg);
        return;
    }
    oracle->row_cut = ROW_CUT_RANKS;
    if (isfinite(judged_total(
            &plan, search_full(&plan, oracle, &options, &arena, &err), oracle,
            &arena, &err))) {
        tally->n_plans++;
        plan_sort_shards(&plan);
        count_cuts(&plan, tally);
        if (emit_torchrec.emit(&plan, &names, &out, &err)) {
            printf("# %s\n", err.msg);
            tally->n_refused++;
        }
    }
    buf_release(&out);
    arena_release(&arena);
}

int main(void)
{
    const unsigned n = (unsigned)tap_size(N_PROBLEMS, N_PROBLEMS_FULL);
    struct tally tally = {0};
    struct rng rng;

    rng_init(&rng, 49, 1);
    for (unsigned i = 0; i < n; i++)
        try_problem(&rng, &tally);
    ok(tally.n_plans > n / 2, "%u problems: %u have a plan", n, tally.n_plans);
    ok(tally.n_cut > n / 2 && tally.n_short > n / 4,
       "%u cached tables are cut by rows, %u tables are too short for it",
       tally.n_cut, tally.n_short);
    is_i64(tally.n_refused, 0, "no plan is refused");
    return tap_done();
}
