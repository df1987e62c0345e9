/* SPDX-License-Identifier: MIT */
/* Every lookup is priced exactly once for all cuts of a table: the lookups
 * priced for its pieces add up to those of the whole table. This is tested for
 * every oracle with random tables, clusters and cuts: all cuts of the full
 * search, and equal row blocks over all ranks or over a host, also of tables
 * with fewer rows. */
#include "base/rng.h"
#include "core/cluster.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "search/space_init.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define BATCH 4096 /* a batch that the shipped model was trained for */
#define MAX_RANKS 128
/* From this width on TorchRec prices row pieces as whole tables. */
#define MIN_COLUMNS 128u

/* The lane of an oracle's vectors that is proportional to the number of
 * lookups: TorchRec's compute, if there are no outputs; otherwise the lane that
 * equals the number of lookups for a whole table. */
struct meter {
    const char *cost;
    int lane;         /* -1: to be found */
    double tolerance; /* TorchRec rounds bytes of indices up */
};

struct scene {
    struct table table;
    struct problem problem;
    uint64_t memory[MAX_RANKS], reserve[MAX_RANKS];
    struct oracle *oracle;
    struct arena arena;
};

static void make_problem(struct scene *scene, uint64_t rows, uint32_t dim,
                         uint32_t n_ranks, uint32_t n_local)
{
    table_init(&scene->table);
    scene->table.name = "t";
    scene->table.num_embeddings = rows;
    scene->table.dim = dim;
    scene->table.pooling_factor = 7.3125;
    scene->table.zipf_alpha = 0; /* so that all blocks are equally hot */
    scene->table.num_outputs = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        scene->memory[r] = UINT64_C(1) << 50;
        scene->reserve[r] = 0;
    }
    scene->problem =
        (struct problem){.tables = &scene->table,
                         .n_tables = 1,
                         .batch = BATCH,
                         .kinds = SHARD_ALL_KINDS,
                         .cluster = {.n_devices = n_ranks,
                                     .devices_per_host = n_local,
                                     .memory_bytes = scene->memory,
                                     .reserve_bytes = scene->reserve}};
}

static void open_oracle(struct scene *scene, const char *cost)
{
    struct err err = {0};

    if (!oracle_open(&scene->oracle, cost, &scene->problem, &scene->arena,
                     &err))
        return;
    ok(0, "%s opens: %s", cost, err.msg);
    exit(tap_done());
}

static void close_oracle(struct scene *scene)
{
    arena_release(&scene->arena);
}

/* Returns the vector of the whole table if it had this number of columns. */
static const double *whole_vector(struct scene *scene, uint32_t columns)
{
    struct shard shard = shard_whole(&scene->problem, 0, 0);
    double *vector = ARENA_NEW(&scene->arena, double, scene->oracle->width);

    shard.col_end = columns;
    scene->oracle->ops->embed(scene->oracle, &shard, 1, vector);
    return vector;
}

static void find_lane(struct meter *meter)
{
    struct scene scene = {0};
    const double *vector;

    make_problem(&scene, 1000, 128, 1, 1);
    open_oracle(&scene, meter->cost);
    vector = whole_vector(&scene, 128);
    for (uint32_t w = 0; w < scene.oracle->width && meter->lane < 0; w++)
        if (vector[w] == BATCH * scene.table.pooling_factor)
            meter->lane = (int)w;
    ok(meter->lane >= 0, "%s: a lane counts look-ups", meter->cost);
    close_oracle(&scene);
}

/* Returns the share of the table's cells and lookups that are priced for n
 * shards of equal width and for the empty blocks after them. */
static double share_priced(struct scene *scene, const struct meter *meter,
                           const struct shard *shards, size_t n)
{
    const struct oracle *oracle = scene->oracle;
    uint32_t columns = shards[0].col_end - shards[0].col_begin;
    size_t n_ranks = scene->problem.cluster.n_devices;
    double *vectors = mem_alloc(n * oracle->width, sizeof(double));
    double *sums = mem_alloc(n_ranks * oracle->width, sizeof(double));
    double share = 0;

    oracle->ops->embed(oracle, shards, n, vectors);
    oracle_add_shards(oracle, shards, vectors, n, 1, sums);
    for (size_t r = 0; r < n_ranks; r++)
        share += sums[r * oracle->width + (size_t)meter->lane];
    share /= whole_vector(scene, columns)[meter->lane];
    mem_free(vectors);
    mem_free(sums);
    return share * columns / scene->table.dim;
}

/* Returns the share of row blocks. One of n_ranges column ranges represents all
 * of them. */
static double share_of_blocks(struct scene *scene, const struct meter *meter,
                              uint32_t first, uint64_t n_rows,
                              uint32_t n_ranges)
{
    struct shard shards[MAX_RANKS] = {{0}};
    uint64_t rows = scene->table.num_embeddings;
    uint32_t n = 0;

    for (uint64_t begin = 0; begin < rows; begin += n_rows, n++) {
        shards[n] = shard_whole(&scene->problem, 0, first + n);
        shards[n].kind = n_ranges > 1 ? SHARD_GRID : SHARD_ROW;
        shards[n].col_end /= n_ranges;
        shards[n].row_begin = begin;
        shards[n].row_end = begin + n_rows < rows ? begin + n_rows : rows;
    }
    return n_ranges * share_priced(scene, meter, shards, n);
}

/* Returns the share of replicas under TorchRec's oracle. The others price
 * replicas in a separate lane. */
static double share_of_replicas(struct scene *scene, const struct meter *meter)
{
    struct shard shards[MAX_RANKS] = {{0}};
    uint32_t n = scene->problem.cluster.n_devices;
    /* relative bandwidth of dense kernels */
    const double dense_bandwidth = 0.5;

    for (uint32_t r = 0; r < n; r++) {
        shards[r] = shard_whole(&scene->problem, 0, r);
        shards[r].kind = SHARD_REPLICATE;
    }
    return dense_bandwidth * share_priced(scene, meter, shards, n);
}

static double share_of_columns(struct scene *scene, const struct meter *meter,
                               uint32_t first)
{
    struct shard a = shard_whole(&scene->problem, 0, 0), b = a;

    a.kind = b.kind = SHARD_COLUMN;
    a.col_end = b.col_begin = first;
    return share_priced(scene, meter, &a, 1) +
           share_priced(scene, meter, &b, 1);
}

struct tally {
    double worst;
    size_t n_cuts, n_short; /* cuts with fewer blocks than ranks */
};

static void add_share(struct tally *tally, double share)
{
    tally->worst = tap_worst(tally->worst, fabs(share - 1));
    tally->n_cuts++;
}

/* Tries every sharding of the table that the full search knows. */
static void try_parts(struct tally *tally, struct scene *scene,
                      const struct meter *meter, struct rng *rng)
{
    struct search_space space;
    struct err err;
    const struct unit *unit;

    if (space_init(&space, &scene->problem, scene->oracle, NULL, NULL,
                   &scene->arena, &err)) {
        ok(0, "parts: %s", err.msg);
        return;
    }
    unit = &space.units[0];
    for (uint32_t i = 0; i < unit->n_shardings; i++) {
        const struct sharding *cut = &unit->shardings[i];
        const struct cluster *cluster = &scene->problem.cluster;
        uint32_t host = (uint32_t)rng_below(rng, cluster->n_devices /
                                                     cluster->devices_per_host);

        if (cut->kind == SHARDING_ROWS &&
            scene->table.dim / cut->n_ranges >= MIN_COLUMNS)
            add_share(
                tally,
                share_of_blocks(
                    scene, meter,
                    cut->fills_host ? host * cluster->devices_per_host : 0,
                    space.types[cut->type].n_rows, cut->n_ranges));
    }
    if (unit->columns[TIER_HBM] != NO_TYPE)
        add_share(
            tally,
            share_of_columns(
                scene, meter,
                unit->width_step *
                    (1 + (uint32_t)rng_below(rng, unit->n_width_steps - 1))));
    if (unit->replica != NO_TYPE && scene->oracle->prices_empty_blocks)
        add_share(tally, share_of_replicas(scene, meter));
}

/* Tries row blocks over all ranks, and over those of a host. */
static void try_blocks(struct tally *tally, struct scene *scene,
                       const struct meter *meter, struct rng *rng)
{
    const struct cluster *cluster = &scene->problem.cluster;
    uint32_t n_local = cluster->devices_per_host;
    uint32_t host = (uint32_t)rng_below(rng, cluster->n_devices / n_local);
    uint64_t rows = scene->table.num_embeddings;

    if (rows < 2)
        return;
    tally->n_short += rows < cluster->n_devices;
    add_share(tally, share_of_blocks(scene, meter, 0,
                                     (rows - 1) / cluster->n_devices + 1, 1));
    if ((rows - 1) / n_local + 1 < rows)
        add_share(tally, share_of_blocks(scene, meter, host * n_local,
                                         (rows - 1) / n_local + 1, 1));
}

static double log_uniform(struct rng *rng, double max)
{
    return exp(rng_uniform(rng) * log(max));
}

static void check_oracle(struct meter meter, size_t n_tables)
{
    struct tally tally = {0};

    find_lane(&meter);
    for (size_t i = 0; i < n_tables && meter.lane >= 0; i++) {
        struct scene scene = {0};
        struct rng rng;
        uint32_t n_local, n_hosts, most_hosts;

        rng_init(&rng, i, 12);
        n_local = (uint32_t)log_uniform(&rng, MAX_RANKS + 0.99);
        most_hosts = MAX_RANKS / n_local;
        n_hosts = (uint32_t)log_uniform(&rng, most_hosts + 0.99);
        if (n_local * n_hosts < 2) {
            n_local = 2;
            n_hosts = 1;
        }
        make_problem(&scene, (uint64_t)log_uniform(&rng, 10000.99),
                     MIN_COLUMNS << rng_below(&rng, 3), n_local * n_hosts,
                     n_local);
        scene.table.pooling_factor = 1 + floor(800 * rng_uniform(&rng)) / 16;
        open_oracle(&scene, meter.cost);
        try_parts(&tally, &scene, &meter, &rng);
        try_blocks(&tally, &scene, &meter, &rng);
        close_oracle(&scene);
    }
    ok(tally.worst <= meter.tolerance,
       "%s: look-ups add up within %.2g, in %zu cuts of %zu tables", meter.cost,
       tally.worst, tally.n_cuts, n_tables);
    ok(tally.n_short > n_tables / 5, "%zu of fewer rows than ranks",
       tally.n_short);
}

/* The published nets price only columns and have no lane that counts lookups.
 * They treat a piece as a whole table of its width, with all its lookups. */
static void check_columns(size_t n_tables)
{
    const char *cost;
    size_t n_same = 0;
    struct arena arena = {0};

    cost = arena_printf(&arena, "reference:%s", golden_path("golden", &arena));
    for (size_t i = 0; i < n_tables; i++) {
        struct scene scene = {0};
        struct shard piece;
        struct rng rng;
        double *vector;

        rng_init(&rng, i, 13);
        make_problem(&scene, (uint64_t)log_uniform(&rng, 10000.99), 128, 4, 4);
        scene.table.pooling_factor = 50 * rng_uniform(&rng);
        open_oracle(&scene, cost);
        vector = ARENA_NEW(&scene.arena, double, scene.oracle->width);
        piece = shard_whole(&scene.problem, 0, 0);
        piece.kind = SHARD_COLUMN;
        piece.col_begin = 4 * (uint32_t)rng_below(&rng, 31);
        scene.oracle->ops->embed(scene.oracle, &piece, 1, vector);
        n_same += !memcmp(vector,
                          whole_vector(&scene, piece.col_end - piece.col_begin),
                          scene.oracle->width * sizeof(*vector));
        close_oracle(&scene);
    }
    is_i64((int64_t)n_same, (int64_t)n_tables,
           "reference: a column piece does the look-ups of the table");
    arena_release(&arena);
}

int main(void)
{
    static const struct meter meters[] = {
        {"torchrec", 0, 1e-3},
        {"roofline:h100", -1, 1e-9},
        {"model:cpu-amd-epyc-2t.nsm", -1, 1e-9},
    };
    struct arena arena = {0};

    for (size_t i = 0; i < sizeof meters / sizeof *meters; i++)
        check_oracle(meters[i], tap_size(200, 10000));
    if (file_exists(golden_path("golden", &arena)))
        check_columns(tap_size(50, 1000));
    arena_release(&arena);
    return tap_done();
}
