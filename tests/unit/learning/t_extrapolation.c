/* SPDX-License-Identifier: MIT */
/* Error intervals of prices from a model of few samples: the interval class of
 * the slowest device, inputs outside the measured range, and how much they
 * widen the interval. */
#include "costmodel/models/extrapolation.h"

#include "core/plan.h"
#include "costmodel/learning/train.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/models/oracle_open.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

#define N_DEVICES 4
#define MOST_TABLES 40
#define N_TASKS 100

static char model_path[] = "/tmp/t_trust_XXXXXX";

/* Tables like those of the samples. Table t is on device t % 4. Only a planted
 * table may lie outside the measured range. */
struct task {
    struct problem problem;
    struct table tables[MOST_TABLES];
    struct shard shards[MOST_TABLES];
    struct plan plan;
};

static void draw(struct task *task, size_t n_tables, uint64_t seed,
                 struct arena *arena)
{
    static uint64_t memory_bytes[N_DEVICES], reserve_bytes[N_DEVICES];
    struct rng rng;

    rng_init(&rng, seed, 'O');
    task->problem =
        (struct problem){.tables = task->tables,
                         .n_tables = n_tables,
                         .cluster = {.n_devices = N_DEVICES,
                                     .devices_per_host = N_DEVICES,
                                     .memory_bytes = memory_bytes,
                                     .reserve_bytes = reserve_bytes},
                         .batch = few_setting.batch,
                         .kinds = SHARD_TABLE};
    for (uint32_t t = 0; t < n_tables; t++) {
        few_table(&task->tables[t], &rng);
        task->tables[t].name = arena_printf(arena, "t%u", t);
    }
}

/* Prices the task by the model at model_path. */
static const struct cost_source *price(struct task *task, struct arena *arena)
{
    const char *cost = arena_printf(arena, "model:%s", model_path);
    struct err err = {0};

    for (uint32_t t = 0; t < task->problem.n_tables; t++)
        task->shards[t] = shard_whole(&task->problem, t, t % N_DEVICES);
    task->plan = (struct plan){.problem = task->problem,
                               .shards = task->shards,
                               .n_shards = task->problem.n_tables};
    if (oracle_price_plan(&task->plan, cost, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return &task->plan.cost;
}

static double log_between(struct rng *rng, double lo, double hi)
{
    return few_log_uniform(rng, lo, hi);
}

/* Makes one property of a table at least twice the maximum of the samples, or
 * at most half of the minimum. Returns the name of the property. */
static const char *plant(struct table *table, struct rng *rng)
{
    switch (rng_below(rng, 4)) {
    case 0:
        table->num_embeddings = (uint64_t)log_between(rng, 4e7, 4e9);
        return "rows";
    case 1:
        table->num_embeddings = 1 + rng_below(rng, 4);
        return "rows";
    case 2:
        table->dim = 256u << rng_below(rng, 4);
        return "columns";
    default:
        table->pooling_factor = log_between(rng, 400, 4000);
        return "look-ups";
    }
}

static bool is_named(const struct cost_source *cost, const char *table,
                     const char *feature)
{
    for (size_t i = 0; i < cost->n_outside; i++) {
        const struct cost_outside *at = &cost->outside[i];

        if (at->table && !strcmp(at->table, table) &&
            !strcmp(at->feature, feature))
            return at->least < at->most &&
                   (at->value < at->least || at->value > at->most);
    }
    return false;
}

static void train(struct model *model, size_t n, struct arena *arena)
{
    struct train_options options;
    struct err err = {0};

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    if (!ok(!train_fit(model, few_samples('A', n, 0.03, n, arena), n, &options,
                       arena, &err) &&
                !model_save(model, model_path, &err),
            "%zu samples%s", n, err.msg))
        exit(1);
}

static void test_planted(size_t n_samples)
{
    struct arena arena = {0};
    struct model model;
    size_t n_false = 0, n_named = 0;

    train(&model, n_samples, &arena);
    for (uint64_t seed = 0; seed < N_TASKS; seed++) {
        const struct arena_mark mark = arena_mark(&arena);
        const struct cost_source *cost;
        struct task task;
        struct rng rng;
        uint32_t at;
        const char *feature;

        rng_init(&rng, seed, 'P');
        draw(&task, N_DEVICES + rng_below(&rng, MOST_TABLES - N_DEVICES), seed,
             &arena);
        cost = price(&task, &arena);
        n_false += cost->n_outside > 0;
        if (cost->n_outside)
            printf("# %s %g, of %g to %g\n", cost->outside[0].feature,
                   cost->outside[0].value, cost->outside[0].least,
                   cost->outside[0].most);
        at = (uint32_t)rng_below(&rng, task.problem.n_tables);
        feature = plant(&task.tables[at], &rng);
        n_named +=
            is_named(price(&task, &arena), task.tables[at].name, feature);
        arena_rewind(&arena, mark);
    }
    is_i64((int64_t)n_named, N_TASKS, "each planted input is named");
    ok(n_false <= 2,
       "%zu of %d tasks inside the measured range are reported as outside",
       n_false, N_TASKS);
    arena_release(&arena);
}

/* A model of 200 samples with intervals set by hand. The slowest GPU decides
 * the class, and octaves outside the range widen the interval. */
static void test_intervals(void)
{
    static struct task task;
    const struct cost_source *cost;
    struct arena arena = {0};
    struct model model;
    struct err err = {0};
    double octaves;
    size_t i = 0;

    train(&model, 200, &arena);
    model.intervals.items[0] =
        (struct interval){"all", "samples", 100, 0.1, 0.14, 0};
    model.intervals.items[1] =
        (struct interval){"few tables", "held-out samples", 30, 0.2, 0.3, 0};
    model.intervals.n = 2;
    ok(!model_save(&model, model_path, &err), "saved%s", err.msg);

    draw(&task, 8, 1, &arena);
    cost = price(&task, &arena);
    is_near(cost->lookup_error.frac, 0.2, 1e-12, "two tables a GPU are few");
    is_str(cost->lookup_error.ground, "30 held-out samples (few tables)",
           "the source is named");
    draw(&task, 40, 1, &arena);
    cost = price(&task, &arena);
    is_near(cost->lookup_error.frac, 0.1, 1e-12,
            "a class without an interval uses that of all");
    is_str(cost->lookup_error.ground, "100 samples (all)",
           "the source is named");
    is_i64((int64_t)cost->n_outside, 0, "all is inside");

    for (uint32_t t = 0; t < 40; t++)
        task.tables[t].dim = t == 7 ? 1024 : t == 4 ? 512 : task.tables[t].dim;
    cost = price(&task, &arena);
    is_i64((int64_t)cost->n_outside, 2, "two tables are outside");
    is_str(cost->outside[0].table, "t7", "the first table is named");
    is_str(cost->outside[1].table, "t4", "the farthest table comes first");
    is_str(cost->outside[0].feature, "columns", "the feature");
    is_near(cost->outside[0].value, 1024, 0, "its value");
    is_near(cost->outside[0].most, 128, 1e-9, "the largest measured value");
    task.tables[7].dim = 512;
    task.tables[4].pooling_factor = 0;
    task.tables[4].dim = 4;
    task.tables[7].pooling_factor = 200;
    cost = price(&task, &arena);
    octaves = log2((1 + 512.) / (1 + 128.));
    is_near(cost->lookup_error.frac, pow(1.1, 1 + octaves) - 1, 1e-9,
            "wider by the octaves of the slowest GPU");
    is_str(cost->lookup_error.ground, "100 samples (all), widened",
           "the text says so");
    task.problem.batch *= 2;
    cost = price(&task, &arena);
    ok(cost->lookup_error.frac == 0, "no error for another batch");
    while (i < cost->n_outside && strcmp(cost->outside[i].feature, "batch"))
        i++;
    ok(i < cost->n_outside && !cost->outside[i].table &&
           cost->outside[i].value == 131072 && cost->outside[i].most == 65536,
       "but it is named");
    arena_release(&arena);
}

int main(void)
{
    const int fd = mkstemp(model_path);
    struct err err = {0};

    if (fd < 0 || close(fd) || gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_planted(20);
    test_planted(200);
    test_intervals();
    unlink(model_path);
    return tap_done();
}
