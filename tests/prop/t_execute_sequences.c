/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "core/sharding_groups.h"
#include "device/world_fork.h"
#include "tests/tap.h"

/* Random plans of tables with sequence output, mixed with pooled tables, run on
 * 2 to 4 ranks against the unsharded reference. Tables are whole, cut by rows,
 * cut into column halves, cut both ways, or replicated. Half of the jobs
 * de-duplicate ids, and a quarter of the tables send vectors in fp16. Half of
 * the plans run in two sharding groups, which sync after the step. With one
 * process for each rank, in chunks, and on a GPU, if there is one, the results
 * have the same bits. */

#define MAX_TABLES 6
#define MAX_PIECES 128

struct random_plan {
    struct plan plan;
    struct table tables[MAX_TABLES];
    char names[MAX_TABLES][16];
    struct shard shards[MAX_PIECES];
    struct rng rng;
};

static uint64_t below(struct random_plan *random, uint64_t n)
{
    return rng_below(&random->rng, n);
}

static struct shard *add_piece(struct random_plan *random, uint32_t table)
{
    const struct problem *problem = &random->plan.problem;
    struct shard *shard = &random->shards[random->plan.n_shards++];

    *shard = shard_whole(problem, table,
                         (uint32_t)below(random, problem->cluster.n_devices));
    return shard;
}

/* Adds the columns [begin, end) of a table: whole, or cut at random rows. Some
 * blocks have one row, which may never be looked up. */
static void add_columns(struct random_plan *random, uint32_t table,
                        uint32_t begin, uint32_t end, bool cuts_rows)
{
    uint64_t n_rows = random->tables[table].num_embeddings, row = 0;
    unsigned n_blocks = 0;

    while (row < n_rows) {
        struct shard *shard = add_piece(random, table);

        shard->col_begin = begin;
        shard->col_end = end;
        shard->row_begin = row;
        if (cuts_rows && ++n_blocks < 6)
            shard->row_end = row + 1 + below(random, n_rows - row);
        row = shard->row_end;
    }
}

static void place(struct random_plan *random, uint32_t table)
{
    const uint32_t dim = random->tables[table].dim;
    const uint64_t way = below(random, 6);
    const bool cuts_rows = way == 1 || way == 3;

    if (way == 4) {
        for (uint32_t r = 0; r < random->plan.problem.cluster.n_devices; r++)
            add_piece(random, table)->device = r;
    } else if (way == 2 || way == 3) {
        add_columns(random, table, 0, dim / 2, cuts_rows);
        add_columns(random, table, dim / 2, dim, cuts_rows);
    } else {
        add_columns(random, table, 0, dim, cuts_rows);
    }
}

/* The first table is a sequence, the last one is pooled, and the others are
 * either. */
static void draw_table(struct random_plan *random, uint32_t t, bool is_last,
                       enum optimizer optimizer)
{
    struct table *table = &random->tables[t];

    snprintf(random->names[t], sizeof(random->names[t]), "table %u", t);
    table_init(table);
    table->name = random->names[t];
    table->num_embeddings = 1 + below(random, 400);
    table->dim = 8 * (1 + (uint32_t)below(random, 5));
    table->num_outputs = 1 + (double)below(random, 3);
    table->pooling_factor =
        floor(80 * rng_uniform(&random->rng) * rng_uniform(&random->rng)) / 10;
    table->zipf_alpha = 1.5 * rng_uniform(&random->rng);
    table->optimizer = optimizer;
    if (!is_last && (t == 0 || below(random, 3)))
        table->output = OUTPUT_SEQUENCE;
    if (below(random, 4) == 0)
        table->comm_precision = PRECISION_FP16;
    if (below(random, 8) == 0)
        table->precision = PRECISION_FP16;
}

static void draw_plan(struct random_plan *random, uint64_t seed)
{
    struct problem *problem = &random->plan.problem;
    enum optimizer optimizer;

    memset(random, 0, sizeof(*random));
    rng_init(&random->rng, seed, 0);
    optimizer = below(random, 2) ? OPTIMIZER_SGD : OPTIMIZER_ROWWISE_ADAGRAD;
    problem->tables = random->tables;
    problem->n_tables = 2 + below(random, MAX_TABLES - 1);
    problem->cluster.n_devices = 2 + (uint32_t)(seed % 3);
    problem->batch = 1 + below(random, 150);
    problem->groups.count = seed % 2 ? 2 : 0;
    problem->job.dedup = below(random, 2) ? DEDUP_IDS : DEDUP_NONE;
    random->plan.shards = random->shards;
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        draw_table(random, t, t + 1 == problem->n_tables, optimizer);
        place(random, t);
    }
    plan_derive_kinds(&random->plan);
}

/* Hashes of a run; 0 if it failed. */
struct hashes {
    uint64_t outputs, weights;
};

/* Returns the number of elements of the outputs of all tables in a step. */
static uint64_t count_outputs(const struct problem *problem)
{
    uint64_t n = 0;

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];
        uint64_t n_bags =
            problem_all_samples(problem) * (uint64_t)table->num_outputs;
        double per_bag = table->pooling_factor / table->num_outputs;

        n += table->dim * (table->output == OUTPUT_SEQUENCE
                               ? (uint64_t)(per_bag * (double)n_bags + 0.5)
                               : n_bags);
    }
    return n;
}

/* Returns whether the sharding groups, if there are several, averaged all their
 * weights and states: by the bytes that were sent, and by the comparison with
 * the reference. */
static bool is_synced(const struct plan *plan, const struct exec_result *result)
{
    const double bytes = plan_sync_bytes(plan);

    if (problem_n_groups(&plan->problem) == 1)
        return !result->averages.n && !(result->sync.sent_bytes > 0);
    /* each of two groups sends half of the bytes twice */
    return (result->averages.n > 0) == (bytes > 0) &&
           fabs(result->sync.sent_bytes - bytes) < 0.5;
}

static void run_plan(struct hashes *hashes, struct random_plan *random,
                     struct world *world, struct device *device, uint64_t seed,
                     uint32_t n_chunks)
{
    struct exec_options options;
    struct exec_result result = {0};
    struct arena arena = {0};
    struct err err = {0};
    int rc;

    exec_options_init(&options);
    options.n_iterations = 1;
    options.seed = seed;
    options.wait_for_quiet = false;
    options.step.n_chunks = n_chunks;
    rc =
        exec_run(&result, &random->plan, world, device, &options, &arena, &err);
    if (rc || result.failure)
        printf("# seed %" PRIu64 ": %s\n", seed, rc ? err.msg : result.failure);
    else if (result.outputs.n == count_outputs(&random->plan.problem) &&
             is_synced(&random->plan, &result))
        *hashes = (struct hashes){result.output_hash, result.weight_hash};
    arena_release(&arena);
}

static void same_bits(const struct hashes *a, const struct hashes *b,
                      const char *where)
{
    ok(a->outputs == b->outputs && a->weights == b->weights,
       "... %s with the same bits", where);
}

/* Runs a plan with one process for each rank. */
static void run_in_processes(struct hashes *hashes, struct random_plan *random,
                             uint64_t seed)
{
    struct device *device = NULL;
    struct world *world = NULL;
    struct err err = {0};

    fflush(stdout);
    if (world_fork(&world, problem_all_devices(&random->plan.problem), &err))
        printf("# %s\n", err.msg);
    if (!world)
        return;
    if (device_open(&device, DEVICE_CPU, 0, 1, &err))
        exit(1);
    run_plan(world->rank ? &(struct hashes){0, 0} : hashes, random, world,
             device, seed, 1);
    device_close(device);
    world_close(world);
    exit(0);
}

static void run_everywhere(struct random_plan *random, struct world *world,
                           struct device *cpu, struct device *gpu,
                           uint64_t seed, const struct hashes *apart)
{
    struct hashes whole = {0}, chunks = {0}, on_gpu = {0};

    run_plan(&whole, random, world, cpu, seed, 1);
    ok(whole.outputs && whole.weights,
       "seed %" PRIu64 ": %zu pieces of %zu tables on %u ranks of %u groups",
       seed, random->plan.n_shards, random->plan.problem.n_tables,
       problem_all_devices(&random->plan.problem),
       problem_n_groups(&random->plan.problem));
    same_bits(&whole, apart, "in processes");
    run_plan(&chunks, random, world, cpu, seed, 2 + (uint32_t)(seed % 5));
    same_bits(&whole, &chunks, "in chunks");
    if (gpu) {
        run_plan(&on_gpu, random, world, gpu, seed, 1);
        same_bits(&whole, &on_gpu, "on a GPU");
    }
}

int main(void)
{
    static struct random_plan random;
    struct device *cpu = NULL, *gpu = NULL;
    struct world *world = NULL;
    uint64_t n_plans = tap_size(8, 200);
    struct hashes *apart =
        mmap(NULL, n_plans * sizeof(*apart), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct err err;

    /* runs first, because this process has no threads yet */
    for (uint64_t seed = 0; seed < n_plans; seed++) {
        draw_plan(&random, seed);
        run_in_processes(&apart[seed], &random, seed);
    }
    if (world_open(&world, &err) || device_open(&cpu, DEVICE_CPU, 0, 2, &err) ||
        (device_count(DEVICE_CUDA) &&
         device_open(&gpu, DEVICE_CUDA, 0, 2, &err))) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    for (uint64_t seed = 0; seed < n_plans; seed++) {
        draw_plan(&random, seed);
        run_everywhere(&random, world, cpu, gpu, seed, &apart[seed]);
    }
    device_close(gpu);
    device_close(cpu);
    world_close(world);
    return tap_done();
}
