/* SPDX-License-Identifier: MIT */
/* Problems whose memory is that of a plan that was drawn first, plus little or
 * nothing. The GPUs have uneven memory, and in half of the lists all tables
 * must stay whole. */
#include "core/cluster.h"
#include "core/memory.h"
#include "search/assignment.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define MIN_TABLES 5
#define MAX_TABLES 60
#define FEW_TABLES 16 /* limit if the memory has no slack at all */
#define MIN_DEVICES 2
#define MAX_DEVICES 16
#define WIDTH_STEP 4
/* Number of problems of a class that use the default effort, three seconds
 * each. The effort does not decide whether a plan is found. */
#define N_DEFAULT_EFFORT 60
#define QUICK_EFFORT 2000

/* A class of problems; the memory is the plan's bytes times 1 + slack. */
struct tightness {
    const char *name;
    double least_slack, most_slack;
    uint32_t max_tables;
    unsigned n_quick, n_full;
    double floor_frac; /* least share of solved problems; 0: only printed */
};

/* Least number of problems of a class; with fewer a share would mean
 * nothing. */
#define LEAST_DRAWN 20

static const struct tightness classes[] = {
    {"0.1 to 1 %", 0.001, 0.01, MAX_TABLES, 20, 1000, 0.995},
    {"0.01 %", 0.0001, 0.0001, MAX_TABLES, 20, 300, 0.95},
    {"0 %, up to 16 tables", 0, 0, FEW_TABLES, 40, 300, 0.95},
    {"0 %", 0, 0, MAX_TABLES, 0, 60, 0},
};

struct plant {
    struct problem problem;
    struct plan plan;
    uint32_t n_ways; /* larger values cut fewer tables */
    struct rng rng;
    struct arena arena;
};

static uint32_t draw(struct plant *plant, uint32_t n)
{
    return (uint32_t)rng_below(&plant->rng, n);
}

static void draw_table(struct plant *plant, uint32_t t, double least_rows)
{
    static const uint32_t dims[] = {4, 8, 12, 16, 20, 32, 64, 128, 256};
    struct table *table = &plant->problem.tables[t];

    table_init(table);
    table->name = arena_printf(&plant->arena, "t%u", t);
    table->dim = dims[draw(plant, sizeof dims / sizeof *dims)];
    table->num_embeddings =
        (uint64_t)(least_rows * exp(rng_uniform(&plant->rng) * log(1e4)));
    table->pooling_factor = floor(rng_uniform(&plant->rng) * 40);
    if (draw(plant, 2))
        table->optimizer = (enum optimizer)draw(plant, N_OPTIMIZERS);
}

static void draw_problem(struct plant *plant, uint32_t max_tables)
{
    static const uint64_t batches[] = {64, 4096, 65536};
    struct problem *problem = &plant->problem;
    uint32_t n = MIN_TABLES + draw(plant, max_tables - MIN_TABLES + 1);
    double least_rows = draw(plant, 2) ? 1000 : 10;

    problem->tables = ARENA_NEW(&plant->arena, struct table, n);
    problem->n_tables = n;
    problem->batch = batches[draw(plant, 3)];
    problem->kinds = draw(plant, 2) ? SHARD_TABLE : SHARD_ALL_KINDS;
    fake_cluster(problem,
                 MIN_DEVICES + draw(plant, MAX_DEVICES - MIN_DEVICES + 1), 0,
                 &plant->arena);
    for (uint32_t t = 0; t < n; t++)
        draw_table(plant, t, least_rows);
}

/* --- the plan --- */

static void add_shard(struct plant *plant, struct shard shard)
{
    struct memory_items items;

    items = shard_memory(&plant->problem, &shard);
    plant->problem.cluster.memory_bytes[shard.device] += items.total;
    plant->plan.shards[plant->plan.n_shards++] = shard;
}

/* Cuts columns into pieces of any widths, on consecutive devices. */
static void plant_columns(struct plant *plant, struct shard shard)
{
    uint32_t dim = shard.col_end, n_left = plant->problem.cluster.n_devices;

    shard.kind = SHARD_COLUMN;
    while (shard.col_begin < dim) {
        uint32_t n_steps = (dim - shard.col_begin) / WIDTH_STEP;
        uint32_t width = WIDTH_STEP * (1 + draw(plant, n_steps));

        if (!--n_left)
            width = dim - shard.col_begin;
        else if (width == dim)
            width = dim / 2 / WIDTH_STEP * WIDTH_STEP;
        shard.col_end = shard.col_begin + width;
        add_shard(plant, shard);
        shard.col_begin = shard.col_end;
        shard.device = (shard.device + 1) % plant->problem.cluster.n_devices;
    }
}

static void plant_rows(struct plant *plant, struct shard shard, uint32_t ways)
{
    uint64_t rows = shard.row_end, block = (rows - 1) / ways + 1;

    shard.kind = SHARD_ROW;
    while (shard.row_begin < rows) {
        shard.row_end = shard.row_begin + block;
        if (shard.row_end > rows)
            shard.row_end = rows;
        add_shard(plant, shard);
        shard.row_begin = shard.row_end;
        shard.device = (shard.device + 1) % plant->problem.cluster.n_devices;
    }
}

static void plant_replicas(struct plant *plant, struct shard shard)
{
    shard.kind = SHARD_REPLICATE;
    for (shard.device = 0; shard.device < plant->problem.cluster.n_devices;
         shard.device++)
        add_shard(plant, shard);
}

static void plant_table(struct plant *plant, uint32_t t)
{
    uint32_t n_devices = plant->problem.cluster.n_devices;
    struct shard whole =
        shard_whole(&plant->problem, t, draw(plant, n_devices));
    uint32_t way = draw(plant, plant->n_ways),
             max_ways = n_devices < 8 ? n_devices : 8;

    if (plant->problem.kinds == SHARD_TABLE)
        way = 5;
    if (way < 3 && whole.col_end >= 2 * WIDTH_STEP)
        plant_columns(plant, whole);
    else if (way == 3)
        plant_rows(plant, whole, 2 + draw(plant, max_ways - 1));
    else if (way == 4 && whole.row_end < 1000)
        plant_replicas(plant, whole);
    else
        add_shard(plant, whole);
}

static void draw_plan(struct plant *plant, double slack)
{
    struct cluster *cluster = &plant->problem.cluster;

    plant->plan.shards = ARENA_NEW(&plant->arena, struct shard,
                                   plant->problem.n_tables * (MAX_DEVICES + 1));
    plant->n_ways = 8u << draw(plant, 4);
    for (uint32_t t = 0; t < plant->problem.n_tables; t++)
        plant_table(plant, t);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->memory_bytes[r] +=
            (uint64_t)((double)cluster->memory_bytes[r] * slack) +
            sample_memory(&plant->problem).total;
    plant->plan.problem = plant->problem;
}

/* --- the search --- */

static bool is_solved(const struct tightness *class, uint64_t seed,
                      bool *is_whole)
{
    struct plant plant = {0};
    struct random_oracle oracle;
    struct search_options options;
    struct plan found;
    struct err err = {0};
    bool yes;
    double slack;

    rng_init(&plant.rng, 20, (uint64_t)(class - classes) << 32 | seed);
    slack = class->least_slack +
            (class->most_slack - class->least_slack) * rng_uniform(&plant.rng);
    draw_problem(&plant, class->max_tables);
    draw_plan(&plant, slack);
    random_oracle_init(&oracle, &plant.problem, &plant.rng);
    if (judge_plan(&plant.plan, &oracle.base, &plant.arena, &err))
        ok(0, "%s, seed %u: the plan that was drawn: %s", class->name,
           (unsigned)seed, err.msg);
    found = (struct plan){.problem = plant.problem};
    search_options_init(&options);
    if (seed >= tap_size(0, N_DEFAULT_EFFORT))
        options.effort = QUICK_EFFORT;
    yes = !search_full(&found, &oracle.base, &options, &plant.arena, &err);
    if (yes ? judge_plan(&found, &oracle.base, &plant.arena, &err)
            : err.code != ERR_NO_PLAN)
        ok(0, "%s, seed %u: %s", class->name, (unsigned)seed, err.msg);
    if (!yes && !strncmp(err.msg, "no plan fits", 12))
        ok(0, "%s, seed %u: there is a plan, but: %s", class->name,
           (unsigned)seed, err.msg);
    *is_whole = plant.problem.kinds == SHARD_TABLE;
    arena_release(&plant.arena);
    return yes;
}

static void try_class(const struct tightness *class)
{
    uint64_t n = tap_size(class->n_quick, class->n_full);
    unsigned n_of[2] = {0}, n_solved[2] = {0};
    double solved;

    if (n && n < LEAST_DRAWN)
        n = LEAST_DRAWN;
    for (uint64_t seed = 0; seed < n; seed++) {
        bool is_whole, yes = is_solved(class, seed, &is_whole);

        n_of[is_whole]++;
        n_solved[is_whole] += yes;
    }
    solved = n_solved[0] + n_solved[1];
    if (n)
        ok(solved >= class->floor_frac * (double)n,
           "slack %s: %u of %u whole, %u of %u in pieces", class->name,
           n_solved[1], n_of[1], n_solved[0], n_of[0]);
}

int main(void)
{
    assignment_check_every = (uint32_t)tap_size(0, 1);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        try_class(&classes[i]);
    return tap_done();
}
