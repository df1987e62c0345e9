/* SPDX-License-Identifier: MIT */
/* TorchRec can run every plan that the full search makes: its emitter refuses
 * no plan for ranks and hosts, with sequence tables and NVLink domains. The
 * published search, too, cuts sequence tables only in halves. Adjacent pieces
 * of other tables in its plans are tested elsewhere (t_search_pieces). */
#include "emit/formats.h"
#include "search/assignment.h"
#include "search/search.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define EFFORT 3000

struct tally {
    unsigned n_plans, n_refused, n_uneven;
};

/* Makes all widths multiples of 4, as FBGEMM needs. Some tables become
 * sequences of equal width. */
static void constrain(struct problem *problem, struct rng *rng)
{
    uint32_t n = problem->cluster.n_devices;
    uint32_t width = 4 + 4 * (uint32_t)rng_below(rng, 8);
    double share = rng_below(rng, 2) ? 0 : rng_uniform(rng);

    if (n % 2 == 0 && rng_below(rng, 2))
        problem->cluster.devices_per_host = n / 2;
    if (n % 4 == 0 && rng_below(rng, 2)) {
        problem->cluster.devices_per_host = n / 4;
        problem->cluster.hosts_per_domain = 2;
        problem->kinds &= ~(unsigned)SHARD_GRID; /* as `plan` does */
    }
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct table *table = &problem->tables[i];

        table->dim = (table->dim + 3) / 4 * 4;
        table->output = OUTPUT_POOLED;
        if (rng_below(rng, 2))
            table->optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
        if (rng_uniform(rng) < share) {
            table->output = OUTPUT_SEQUENCE;
            table->dim = width;
        }
    }
}

static void try_emit(struct plan *plan, uint64_t seed, struct tally *tally)
{
    static const struct emit_options names = {.module = "ebc",
                                              .sequence_module = "ec"};
    struct buf out = {0};
    struct err err = {0};

    tally->n_plans++;
    plan_sort_shards(plan);
    plan_derive_kinds(plan);
    if (emit_torchrec.emit(plan, &names, &out, &err)) {
        printf("# problem %u: %s\n", (unsigned)seed, err.msg);
        tally->n_refused++;
    }
    buf_release(&out);
}

static void check_halves(const struct plan *plan, struct tally *tally)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];
        uint32_t width = shard->col_end - shard->col_begin;

        tally->n_uneven += table->output == OUTPUT_SEQUENCE &&
                           width != table->dim && width != table->dim / 2;
    }
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct search_options options;
    struct random_oracle oracle;
    struct plan plan = {0};
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 22, seed);
    fake_random(&plan.problem, &rng, 1.05 + 2 * rng_uniform(&rng), &arena);
    constrain(&plan.problem, &rng);
    random_oracle_init(&oracle, &plan.problem, &rng);
    oracle.base.row_cut = ROW_CUT_RANKS;
    search_options_init(&options);
    options.effort = EFFORT;
    if (!search_full(&plan, &oracle.base, &options, &arena, &err))
        try_emit(&plan, seed, tally);
    if (!search_reference(&plan, &oracle.base, &options, &arena, &err))
        check_halves(&plan, tally);
    arena_release(&arena);
}

int main(void)
{
    unsigned n = (unsigned)tap_size(100, 3000);
    struct tally tally = {0};

    assignment_check_every = (uint32_t)tap_size(0, 1);
    for (unsigned seed = 0; seed < n; seed++)
        try_problem(seed, &tally);
    ok(tally.n_plans > n / 2, "%u problems: %u have a plan", n, tally.n_plans);
    is_i64(tally.n_refused, 0, "no plan is refused");
    is_i64(tally.n_uneven, 0,
           "the published search cuts sequences only in halves");
    return tap_done();
}
