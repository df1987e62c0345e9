/* SPDX-License-Identifier: MIT */
/* The case number of a rank's work depends on the work alone, not on the rest
 * of the plan. */
#include "exec/exec_samples.h"

#include "exec/exec.h"
#include "exec_fixture.h"
#include "sink.h"
#include "tests/tap.h"

#define N_RANKS 2

struct kept {
    unsigned n;
    uint64_t cases[N_RANKS], seeds[N_RANKS];
    struct sample_table tables[N_RANKS][2];
    uint32_t n_tables[N_RANKS];
};

static int keep(void *ctx, const struct sample_setting *setting,
                const struct sample *sample, struct err *err)
{
    struct kept *kept = ctx;

    (void)setting, (void)err;
    if (kept->n == N_RANKS)
        return 0;
    for (uint32_t i = 0; i < sample->n_tables && i < 2; i++)
        kept->tables[kept->n][i] = sample->tables[i];
    kept->n_tables[kept->n] = sample->n_tables;
    kept->seeds[kept->n] = sample->seed;
    kept->cases[kept->n++] = sample->case_idx;
    return 0;
}

/* Work of a rank: one table. Variants of it differ in one property, and their
 * case numbers must differ accordingly. */
struct work {
    uint64_t n_rows, batch;
    double pooling, skew;
    uint32_t dim, first_col;
    const char *name;
    enum row_order row_order;
    enum precision comm_precision;
};

/* The sample that is derived from the plan has the same case number as the
 * measured sample, and about the same figures. */
static void compare_planned(const struct kept *kept, struct fixture *fixture)
{
    for (uint32_t r = 0; r < N_RANKS; r++) {
        struct sample sample = {0};
        struct sample_setting setting = {0};
        double worst = 0;

        ok(exec_samples_planned(&sample, &setting, &fixture->plan, r,
                                &fixture->arena) &&
               sample.case_idx == kept->cases[r] &&
               sample.n_tables == kept->n_tables[r] &&
               setting.batch == fixture->plan.problem.batch,
           "rank %u as planned", r);
        for (uint32_t i = 0; i < sample.n_tables; i++) {
            const struct sample_table *a = &sample.tables[i];
            const struct sample_table *b = &kept->tables[r][i];

            if (a->n_rows != b->n_rows || a->dim != b->dim ||
                a->zipf_alpha != b->zipf_alpha)
                ok(0, "rank %u, table %u is as it was run", r, i);
            worst = tap_worst(worst,
                              fabs(a->pooling_factor / b->pooling_factor - 1));
            worst = tap_worst(worst, fabs(a->n_unique / b->n_unique - 1));
        }
        ok(worst < 0.1, "its look-ups to %.0f %%", 100 * worst);
    }
}

static struct kept run(const struct work *works)
{
    struct exec_options options;
    struct exec_result result;
    struct fixture fixture;
    struct err err = {0};
    struct kept kept = {0};
    struct sample_sink sink = {
        .ctx = &kept, .put = keep, .put_comm = keep_comm, .has = has_none};

    fixture_init(&fixture, N_RANKS, works->batch);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        const struct work *work = &works[r];
        struct table *table = add_table(&fixture, work->name, work->n_rows,
                                        work->dim, work->pooling);

        table->zipf_alpha = work->skew;
        table->row_order = work->row_order;
        table->comm_precision = work->comm_precision;
        add_columns(&fixture, r, work->first_col, work->dim);
        if (work->first_col)
            add_columns(&fixture, r, 0, work->first_col);
    }
    exec_options_init(&options);
    options.n_iterations = 1;
    options.seed = 5;
    options.wait_for_quiet = false;
    options.check = false;
    options.sink = &sink;
    plan_derive_kinds(&fixture.plan);
    plan_sort_shards(&fixture.plan);
    ok(!exec_run(&result, &fixture.plan, fixture.world, fixture.device,
                 &options, &fixture.arena, &err) &&
           kept.n == N_RANKS,
       "run: %s", err.msg);
    compare_planned(&kept, &fixture);
    ok(kept.seeds[0] == kept.seeds[1] &&
           kept.seeds[0] == 5 + kept.cases[0] + kept.cases[1],
       "the seed names the plan");
    fixture_release(&fixture);
    return kept;
}

/* An exchange's sizes, in bytes: the largest rank's pieces, and the sum of all
 * ranks. Replicas send nothing, and a single rank sends nothing. */
static void check_exchange(void)
{
    struct comm_sample sample = {0};
    struct fixture fixture;

    fixture_init(&fixture, 4, 100);
    fixture.plan.problem.cluster.devices_per_host = 2;
    add_table(&fixture, "a", 1000, 8, 3);
    add_whole(&fixture, 2);
    add_table(&fixture, "b", 1000, 16, 3);
    add_columns(&fixture, 2, 0, 12);
    add_columns(&fixture, 1, 12, 16);
    add_table(&fixture, "copies", 50, 64, 3);
    add_replicas(&fixture);
    plan_derive_kinds(&fixture.plan);
    ok(exec_samples_exchange(&sample, &fixture.plan, &fixture.arena),
       "outputs are exchanged");
    is_i64((int64_t)sample.max_bytes, 100 * 4 * (8 + 12), "most, by rank 2");
    is_i64((int64_t)sample.total_bytes, 100 * 4 * (8 + 16), "by all of them");
    is_i64(sample.n_ranks, 4, "ranks");
    is_i64(sample.n_hosts, 2, "on two hosts");
    is_i64((int64_t)sample.host_bytes, 100 * 4 * (8 + 12) / 2,
           "half of the second host's bytes go to the first");
    for (uint32_t n = 1; n <= 2; n++) {
        fixture.plan.problem.cluster.devices_per_host = 1;
        fixture.plan.problem.cluster.hosts_per_domain = 2 * n;
        ok(exec_samples_exchange(&sample, &fixture.plan, &fixture.arena) &&
               sample.n_hosts == 2 / n,
           "four hosts, %u in an NVLink domain", 2 * n);
    }
    fixture.plan.n_shards = 0;
    add_replicas(&fixture);
    plan_derive_kinds(&fixture.plan);
    ok(!exec_samples_exchange(&sample, &fixture.plan, &fixture.arena),
       "replicas alone exchange no outputs");
    fixture_release(&fixture);
}

int main(void)
{
    const struct work plain = {.n_rows = 1000,
                               .batch = 64,
                               .pooling = 3,
                               .skew = 1,
                               .dim = 16,
                               .name = "a"};
    struct work works[N_RANKS] = {plain, plain};
    struct work others[] = {plain, plain, plain, plain, plain,
                            plain, plain, plain, plain, plain};
    struct kept first;

    works[1].name = "b";
    first = run(works);
    ok(first.cases[0] != first.cases[1], "ranks have numbers of their own");
    others[0].n_rows++;
    others[1].pooling++;
    others[2].skew = 0.5;
    others[3].dim = 20;
    others[4].first_col = 4;
    others[5].name = "c";
    others[6].first_col = 8;
    others[7].row_order = ROW_ORDER_FREQUENCY;
    others[8].row_order = ROW_ORDER_UNIFORM;
    others[9].comm_precision = PRECISION_FP16;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct kept now;

        works[1] = others[i];
        if (i != 5)
            works[1].name = "b";
        now = run(works);
        ok(now.cases[0] == first.cases[0] && now.cases[1] != first.cases[1],
           "change %zu is another's work", i);
    }
    works[0].batch = works[1].batch = 65;
    ok(run(works).cases[0] != first.cases[0], "a batch is all ranks'");
    check_exchange();
    return tap_done();
}
