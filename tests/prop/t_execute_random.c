/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"
#include "io/tables_io.h"

#include "base/rng.h"
#include "tests/tap.h"

/* Random plans of real table lists, with scaled-down rows, run against the
 * unsharded reference. For all cuts, the ranks together compute the same as one
 * device. With little memory, when weights are loaded in turns, and on a GPU,
 * if there is one, the results have the same bits. */

#define N_GPU_PLANS 4
#define MAX_PIECES 2048
/* limited, because a replica holds a dense gradient */
#define MAX_COPIED_ROWS 20000

struct random_plan {
    struct plan plan;
    struct shard shards[MAX_PIECES];
    struct rng rng;
    /* allowed for some tables, in addition to table and column */
    unsigned kinds;
};

static struct shard *add_piece(struct random_plan *random, uint32_t table)
{
    const struct problem *problem = &random->plan.problem;
    struct shard *shard = &random->shards[random->plan.n_shards++];

    *shard = shard_whole(
        problem, table,
        (uint32_t)rng_below(&random->rng, problem->cluster.n_devices));
    return shard;
}

/* Cuts at random multiples of 4; two pieces may share a device. */
static void cut_columns(struct random_plan *random, uint32_t table)
{
    uint32_t dim = random->plan.problem.tables[table].dim, begin = 0;

    while (begin < dim) {
        uint32_t left = (dim - begin) / 4;
        uint32_t end =
            begin + 4 * (1 + (uint32_t)rng_below(&random->rng, left));
        struct shard *shard = add_piece(random, table);

        shard->col_begin = begin;
        shard->col_end = begin = end;
    }
}

static void cut_rows(struct random_plan *random, uint32_t table)
{
    uint64_t n_rows = random->plan.problem.tables[table].num_embeddings;
    uint64_t begin = 0;

    while (begin < n_rows) {
        uint64_t end = begin + 1 + rng_below(&random->rng, n_rows - begin);
        struct shard *shard = add_piece(random, table);

        shard->row_begin = begin;
        shard->row_end = begin = end;
    }
}

static void place(struct random_plan *random, uint32_t table, double scale_rows)
{
    const struct problem *problem = &random->plan.problem;
    double rows = (double)problem->tables[table].num_embeddings * scale_rows;
    uint64_t draw = rng_below(&random->rng, 8);

    if (draw == 0 && (random->kinds & SHARD_ROW))
        cut_rows(random, table);
    else if (draw == 1 && (random->kinds & SHARD_REPLICATE) &&
             rows < MAX_COPIED_ROWS)
        for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
            add_piece(random, table)->device = r;
    else if (draw < 5)
        cut_columns(random, table);
    else
        add_piece(random, table);
}

static void draw_plan(struct random_plan *random, struct table_list *list,
                      uint64_t seed, double *scale_rows)
{
    enum optimizer optimizer;

    memset(random, 0, sizeof(*random));
    rng_init(&random->rng, seed, 0);
    optimizer =
        rng_below(&random->rng, 2) ? OPTIMIZER_SGD : OPTIMIZER_ROWWISE_ADAGRAD;
    for (size_t t = 0; t < list->n_tables; t++)
        list->tables[t].optimizer = optimizer;
    random->plan.problem.tables = list->tables;
    random->plan.problem.n_tables = list->n_tables;
    random->plan.problem.cluster.n_devices = seed % 4 < 2 ? 4 : 8;
    random->plan.problem.batch = 100 + rng_below(&random->rng, 400);
    random->plan.shards = random->shards;
    random->kinds = seed % 5 ? 0 : SHARD_ROW | SHARD_REPLICATE;
    *scale_rows = 1e-5 * pow(100, rng_uniform(&random->rng));
    for (uint32_t t = 0; t < list->n_tables; t++)
        place(random, t, *scale_rows);
    plan_derive_kinds(&random->plan);
}

static int run_plan(struct exec_result *result, struct random_plan *random,
                    struct world *world, struct device *device,
                    const struct exec_options *options, struct arena *arena)
{
    struct err err = {0};
    int rc =
        exec_run(result, &random->plan, world, device, options, arena, &err);

    ok(!rc && !result->failure && result->outputs.error <= 1e-5 &&
           result->weights.error <= 1e-5 && result->outputs.n &&
           result->weights.n,
       "seed %" PRIu64 ": %zu pieces of %zu tables on %u ranks, errors %.1g "
       "and %.1g %s%s",
       options->seed, random->plan.n_shards, random->plan.problem.n_tables,
       random->plan.problem.cluster.n_devices, result->outputs.error,
       result->weights.error, rc ? err.msg : "",
       result->failure ? result->failure : "");
    return rc;
}

static void same_bits(const struct exec_result *a, const struct exec_result *b,
                      const char *where)
{
    ok(a->output_hash == b->output_hash && a->weight_hash == b->weight_hash,
       "... %s (%u turns) with the same bits", where, b->n_turns);
}

/* Runs the plan again with the least memory, of some sizes, that is enough, and
 * compares the bits. */
static void run_in_little(const struct exec_result *first,
                          struct random_plan *random, struct world *world,
                          struct device *device, struct exec_options options,
                          struct arena *arena)
{
    struct exec_result result = {0};
    struct err err;

    for (uint64_t bytes = 1 << 26; bytes >> 32 == 0; bytes += bytes / 1024) {
        options.memory_bytes = bytes;
        if (!exec_run(&result, &random->plan, world, device, &options, arena,
                      &err)) {
            same_bits(first, &result, "in little memory");
            return;
        }
    }
    ok(0, "%s", err.msg);
}

static void run_everywhere(struct random_plan *random, struct world *world,
                           struct device *cpu, struct device *gpu,
                           uint64_t seed, double scale_rows)
{
    struct exec_options options;
    struct exec_result first = {0}, again = {0};
    struct arena arena = {0};

    exec_options_init(&options);
    options.n_iterations = 1;
    options.seed = seed;
    options.wait_for_quiet = false;
    options.scale_rows = scale_rows;
    if (!run_plan(&first, random, world, cpu, &options, &arena)) {
        if (seed % 5 == 0)
            run_in_little(&first, random, world, cpu, options, &arena);
        if (gpu && !run_plan(&again, random, world, gpu, &options, &arena))
            same_bits(&first, &again, "on a GPU");
    }
    arena_release(&arena);
}

int main(void)
{
    static const char *const paths[] = {
        "data/tables/criteo_kaggle_26.csv",
        "data/tables/nvidia_synthetic_tiny_v3.csv"};
    static struct random_plan random;
    struct device *cpu = NULL, *gpu = NULL;
    struct world *world = NULL;
    uint64_t n_plans = tap_size(20, 500);
    struct arena arena = {0};
    struct err err;

    if (world_open(&world, &err) || device_open(&cpu, DEVICE_CPU, 0, 2, &err) ||
        (device_count(DEVICE_CUDA) &&
         device_open(&gpu, DEVICE_CUDA, 0, 2, &err))) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    for (uint64_t seed = 0; seed < n_plans; seed++) {
        struct tables_options tables_options = {0};
        struct table_list list;
        double scale_rows;

        if (tables_load(&list, paths[seed % 2], &tables_options, &arena,
                        &err)) {
            ok(0, "%s", err.msg);
            continue;
        }
        draw_plan(&random, &list, seed, &scale_rows);
        run_everywhere(&random, world, cpu, seed < N_GPU_PLANS ? gpu : NULL,
                       seed, scale_rows);
    }
    arena_release(&arena);
    device_close(gpu);
    device_close(cpu);
    world_close(world);
    return tap_done();
}
