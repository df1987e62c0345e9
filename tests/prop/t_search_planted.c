/* SPDX-License-Identifier: MIT */
/* Problems that are known to have a plan: the plan was drawn first, and the
 * memory was set to its bytes and a little more. The full search must find a
 * plan, too. */
#include <assert.h>
#include <ctype.h>

#include "base/text.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "search/assignment.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 2
#define N_PROBLEMS_FULL 8
#define EFFORT 2000
#define MAX_DEVICES 8
#define MAX_SHARDS 128 /* limit for each table */

/* A family of problems. */
struct family {
    const char *name;
    unsigned kinds;       /* allowed kinds, from which the plan draws */
    unsigned giant_kinds; /* kinds of the first table; 0: as for the others */
    enum memory_model memory_model;
    uint64_t batch;
    /* each device has the memory that the plan uses there */
    bool is_uneven;
    bool is_tied; /* with pins and groups */
    /* dims that four does not divide, one row, one column */
    bool has_odd_dim;
    /* whole tables of similar size, three per device */
    bool is_in_three;
    /* rows only over all devices or over a host; 0: any cut */
    uint32_t devices_per_host;
};

#define COLUMNS (SHARD_TABLE | SHARD_COLUMN)
#define ROWS (SHARD_TABLE | SHARD_ROW)
#define NO_REPLICA (SHARD_TABLE | SHARD_COLUMN | SHARD_ROW | SHARD_GRID)

#define N_SLACKS 2
static const double slacks[N_SLACKS] = {1.02, 1.005};

static const struct family families[] = {
    {.name = "whole tables", .kinds = SHARD_TABLE},
    {.name = "whole, uneven devices", .kinds = SHARD_TABLE, .is_uneven = true},
    {.name = "three a device",
     .kinds = SHARD_TABLE,
     .memory_model = MEMORY_WEIGHTS,
     .is_in_three = true},
    {.name = "tables and columns", .kinds = COLUMNS, .is_uneven = true},
    {.name = "columns only", .kinds = SHARD_COLUMN, .is_uneven = true},
    {.name = "tables and rows", .kinds = ROWS, .is_uneven = true},
    {.name = "a giant in columns",
     .kinds = COLUMNS,
     .giant_kinds = SHARD_COLUMN},
    {.name = "a giant in rows", .kinds = ROWS, .giant_kinds = SHARD_ROW},
    {.name = "a giant in a grid",
     .kinds = NO_REPLICA,
     .giant_kinds = SHARD_GRID},
    {.name = "no replicas", .kinds = NO_REPLICA, .is_uneven = true},
    {.name = "replicas too", .kinds = SHARD_ALL_KINDS, .is_uneven = true},
    {.name = "weights only",
     .kinds = NO_REPLICA,
     .memory_model = MEMORY_WEIGHTS,
     .is_uneven = true},
    {.name = "a huge batch",
     .kinds = NO_REPLICA,
     .batch = 1u << 22,
     .is_uneven = true},
    {.name = "pins and groups",
     .kinds = NO_REPLICA,
     .is_uneven = true,
     .is_tied = true},
    {.name = "odd dims",
     .kinds = NO_REPLICA,
     .is_uneven = true,
     .has_odd_dim = true},
    {.name = "rows over hosts",
     .kinds = NO_REPLICA,
     .is_uneven = true,
     .devices_per_host = 4},
};

struct plant {
    const struct family *family;
    struct problem problem;
    struct plan plan; /* the plan that was drawn */
    struct rng *rng;
    struct arena *arena;
};

static uint32_t draw(struct plant *plant, uint32_t n)
{
    return (uint32_t)rng_below(plant->rng, n);
}

static void add_shard(struct plant *plant, struct shard shard)
{
    plant->plan.shards[plant->plan.n_shards++] = shard;
}

/* --- shardings of a table --- */

static void plant_columns(struct plant *plant, struct shard whole)
{
    uint32_t dim = whole.col_end, begin = 0;

    while (begin < dim) {
        uint32_t n_left = (dim - begin) / 4,
                 width = 4 * (1 + draw(plant, n_left));
        struct shard shard = whole;

        if (begin == 0 && width == dim)
            width = dim / 8 * 4;
        shard.col_begin = begin;
        shard.col_end = begin += width;
        shard.device = draw(plant, plant->problem.cluster.n_devices);
        add_shard(plant, shard);
    }
}

static void plant_rows(struct plant *plant, struct shard whole,
                       uint32_t n_ranges)
{
    const struct cluster *cluster = &plant->problem.cluster;
    uint32_t n = cluster->n_devices, host = plant->family->devices_per_host;
    uint32_t ways = host ? (draw(plant, 2) || n_ranges > 1 ? host : n)
                         : 2 + draw(plant, n - 1);
    uint32_t width = whole.col_end / n_ranges;
    uint64_t block;

    assert(ways > 0 && n > 0);
    block = (whole.row_end - 1) / ways + 1;
    for (uint32_t range = 0; range < n_ranges; range++) {
        uint32_t first = draw(plant, n);

        if (host)
            first = ways == n ? 0 : first / host * host;
        for (uint32_t b = 0; b * block < whole.row_end; b++) {
            struct shard shard = whole;

            shard.col_begin = range * width;
            shard.col_end = shard.col_begin + width;
            shard.row_begin = b * block;
            if (shard.row_end > (b + 1) * block)
                shard.row_end = (b + 1) * block;
            shard.device = (first + b) % n;
            add_shard(plant, shard);
        }
    }
}

/* Returns the kinds that the size of this table allows. */
static unsigned possible_kinds(const struct plant *plant,
                               const struct table *table)
{
    unsigned kinds = SHARD_TABLE | SHARD_REPLICATE;
    bool has_columns = table->dim % 4 == 0 && table->dim >= 8;
    bool has_rows = table->num_embeddings >= 2 * MAX_DEVICES &&
                    plant->problem.cluster.n_devices > 1;

    if (table->group)
        return SHARD_TABLE;
    if (has_columns)
        kinds |= SHARD_COLUMN;
    if (has_rows && table->device < 0)
        kinds |= SHARD_ROW;
    if (has_rows && table->device < 0 && table->dim % 8 == 0)
        kinds |= SHARD_GRID;
    return plant->problem.cluster.n_devices > 1 && table->device < 0
               ? kinds
               : kinds & ~(unsigned)SHARD_REPLICATE;
}

static enum shard_kind draw_kind(struct plant *plant, struct table *table)
{
    unsigned kinds = table->kinds & possible_kinds(plant, table);

    if (!kinds)
        table->kinds = kinds = SHARD_TABLE;
    for (;;) {
        unsigned kind = 1u << draw(plant, 5);

        if (kind & kinds)
            return (enum shard_kind)kind;
    }
}

static uint32_t group_device(const struct plant *plant, uint32_t table)
{
    const char *group = plant->problem.tables[table].group;

    for (size_t i = 0; group && i < plant->plan.n_shards; i++) {
        const struct shard *shard = &plant->plan.shards[i];

        if (plant->problem.tables[shard->table].group == group)
            return shard->device;
    }
    return UINT32_MAX;
}

static void plant_table(struct plant *plant, uint32_t t)
{
    struct table *table = &plant->problem.tables[t];
    uint32_t n_devices = plant->problem.cluster.n_devices;
    struct shard whole =
        shard_whole(&plant->problem, t, draw(plant, n_devices));
    size_t first = plant->plan.n_shards;

    if (plant->family->is_in_three)
        whole.device = t / 3;
    if (group_device(plant, t) != UINT32_MAX)
        whole.device = group_device(plant, t);
    whole.kind = draw_kind(plant, table);
    switch (whole.kind) {
    case SHARD_TABLE:
        add_shard(plant, whole);
        break;
    case SHARD_COLUMN:
        plant_columns(plant, whole);
        break;
    case SHARD_ROW:
        plant_rows(plant, whole, 1);
        break;
    case SHARD_GRID:
        plant_rows(plant, whole, 2);
        break;
    case SHARD_REPLICATE:
        for (whole.device = 0; whole.device < n_devices; whole.device++)
            add_shard(plant, whole);
        break;
    }
    for (size_t i = first; table->device >= 0 && i < plant->plan.n_shards; i++)
        plant->plan.shards[i].device = (uint32_t)table->device;
}

/* --- the problem --- */

static void draw_table(struct plant *plant, uint32_t t)
{
    static const uint32_t dims[] = {4, 8, 12, 16, 20, 32, 64, 128, 256};
    static const uint32_t odd_dims[] = {1, 4, 6, 12, 20, 30, 36, 100};
    const struct family *family = plant->family;
    struct table *table = &plant->problem.tables[t];
    double rows = exp(rng_uniform(plant->rng) * log(1e6));

    table_init(table);
    table->name = arena_printf(plant->arena, "t%u", t);
    table->kinds = family->kinds;
    table->dim = dims[draw(plant, sizeof dims / sizeof *dims)];
    if (family->has_odd_dim)
        table->dim = odd_dims[draw(plant, sizeof odd_dims / sizeof *odd_dims)];
    if (family->kinds == SHARD_COLUMN)
        table->dim *= 2;
    if (family->is_in_three) {
        table->dim = 16;
        rows = 1e5 * (1 + rng_uniform(plant->rng));
    }
    table->num_embeddings = 1 + (uint64_t)rows;
    table->pooling_factor = floor(rng_uniform(plant->rng) * 20);
    table->optimizer = (enum optimizer)draw(plant, N_OPTIMIZERS);
    if (family->is_tied && draw(plant, 4) == 0)
        table->device = draw(plant, plant->problem.cluster.n_devices);
    else if (family->is_tied && draw(plant, 3) == 0)
        table->group = draw(plant, 2) ? "a" : "b";
    if (t == 0 && family->giant_kinds) {
        table->kinds = family->giant_kinds;
        table->dim = 64;
        table->num_embeddings = 10 * 1000 * 1000;
    }
}

static void draw_problem(struct plant *plant)
{
    const struct family *family = plant->family;
    struct problem *problem = &plant->problem;
    uint32_t n_devices = 2 + draw(plant, MAX_DEVICES - 1);
    size_t n = n_devices + draw(plant, 30);

    if (family->devices_per_host)
        n_devices = MAX_DEVICES;
    if (family->is_in_three)
        n = 3 * n_devices;
    *problem =
        (struct problem){.tables = ARENA_NEW(plant->arena, struct table, n),
                         .n_tables = n,
                         .batch = family->batch ? family->batch : 64,
                         .memory_model = family->memory_model,
                         .kinds = SHARD_ALL_KINDS};
    fake_cluster(problem, n_devices, 0, plant->arena);
    if (family->devices_per_host)
        problem->cluster.devices_per_host = family->devices_per_host;
    for (uint32_t t = 0; t < n; t++)
        draw_table(plant, t);
}

static void set_memory(struct plant *plant, double slack)
{
    struct cluster *cluster = &plant->problem.cluster;
    uint64_t most = 0;

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->memory_bytes[r] = sample_memory(&plant->problem).total;
    for (size_t i = 0; i < plant->plan.n_shards; i++) {
        const struct shard *shard = &plant->plan.shards[i];
        struct memory_items items;

        items = shard_memory(&plant->problem, shard);
        cluster->memory_bytes[shard->device] += items.total;
        if (cluster->memory_bytes[shard->device] > most)
            most = cluster->memory_bytes[shard->device];
    }
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        if (!plant->family->is_uneven)
            cluster->memory_bytes[r] = most;
        cluster->memory_bytes[r] =
            (uint64_t)((double)cluster->memory_bytes[r] * slack);
    }
}

/* Returns true if a plan is found; it must be valid. */
static bool is_found(const struct family *family, uint64_t seed,
                     const struct problem *problem,
                     const struct random_oracle *drawn, struct arena *arena,
                     struct err *err)
{
    struct plan found = {.problem = *problem};
    struct random_oracle oracle = *drawn;
    struct search_options options;

    oracle.base.problem = &found.problem;
    search_options_init(&options);
    options.effort = EFFORT;
    if (search_full(&found, &oracle.base, &options, arena, err)) {
        if (err->code != ERR_NO_PLAN)
            ok(0, "%s, seed %u: %s", family->name, (unsigned)seed, err->msg);
        return false;
    }
    if (judge_plan(&found, &oracle.base, arena, err))
        ok(0, "%s, seed %u: %s", family->name, (unsigned)seed, err->msg);
    return true;
}

static void draw_plant(struct plant *plant, const struct family *family,
                       struct random_oracle *oracle, struct rng *rng,
                       struct arena *arena)
{
    *plant = (struct plant){.family = family, .rng = rng, .arena = arena};
    draw_problem(plant);
    plant->plan.shards =
        ARENA_NEW(arena, struct shard, plant->problem.n_tables * MAX_SHARDS);
    for (uint32_t t = 0; t < plant->problem.n_tables; t++)
        plant_table(plant, t);
    random_oracle_init(oracle, &plant->problem, rng);
    if (family->devices_per_host)
        oracle->base.row_cut = ROW_CUT_RANKS;
}

static bool try_planted(const struct family *family, double slack,
                        uint64_t seed)
{
    struct random_oracle oracle;
    struct plant plant;
    struct arena arena = {0};
    struct err err = {0};
    struct rng rng;
    bool yes;

    rng_init(&rng, 18, seed);
    draw_plant(&plant, family, &oracle, &rng, &arena);
    set_memory(&plant, slack);
    plant.plan.problem = plant.problem;
    if (judge_plan(&plant.plan, &oracle.base, &arena, &err))
        ok(0, "%s, seed %u: the plan that was drawn: %s", family->name,
           (unsigned)seed, err.msg);
    yes = is_found(family, seed, &plant.problem, &oracle, &arena, &err);
    arena_release(&arena);
    return yes;
}

/* --- remedies that an error message names --- */

static struct problem with_devices(const struct problem *problem, uint32_t n,
                                   struct arena *arena)
{
    const struct cluster *given = &problem->cluster;
    struct problem other = *problem;
    uint32_t roomiest = 0;

    for (uint32_t r = 0; r < given->n_devices; r++)
        if (given->memory_bytes[r] > given->memory_bytes[roomiest])
            roomiest = r;
    fake_cluster(&other, n, given->memory_bytes[roomiest], arena);
    for (uint32_t r = 0; r < given->n_devices; r++)
        other.cluster.memory_bytes[r] = given->memory_bytes[r];
    if (given->devices_per_host < given->n_devices)
        other.cluster.devices_per_host = given->devices_per_host;
    return other;
}

static struct problem with_memory(const struct problem *problem, uint64_t bytes,
                                  struct arena *arena)
{
    struct problem other =
        with_devices(problem, problem->cluster.n_devices, arena);

    for (uint32_t r = 0; r < other.cluster.n_devices; r++)
        if (other.cluster.memory_bytes[r] < bytes)
            other.cluster.memory_bytes[r] = bytes;
    return other;
}

static struct problem with_kind(const struct problem *problem, unsigned kind,
                                struct arena *arena)
{
    struct problem other = *problem;

    other.kinds |= kind;
    other.tables = ARENA_NEW(arena, struct table, other.n_tables);
    for (size_t i = 0; i < other.n_tables; i++) {
        other.tables[i] = problem->tables[i];
        other.tables[i].kinds |= kind;
    }
    return other;
}

static struct problem helped(const struct problem *problem, const char *remedy,
                             struct arena *arena)
{
    char size[32] = "", unit[8] = "", bytes[40], kind[16] = "";
    uint64_t n = 0;

    if (sscanf(remedy, "%15[a-z] cuts allowed", kind) == 1 &&
        shard_kinds_from_list(kind, '\0'))
        return with_kind(problem, shard_kinds_from_list(kind, '\0'), arena);
    if (!strncmp(remedy, "at least ", 9))
        remedy += 9;
    if (sscanf(remedy, "%15s %7s", size, unit) == 2 && isupper(*unit) &&
        strncmp(unit, "GPU", 3)) {
        snprintf(bytes, sizeof bytes, "%s%s", size, unit);
        if (!text_to_bytes(bytes, &n))
            ok(0, "a size: '%s'", bytes);
        return with_memory(problem, n, arena);
    }
    if (!text_to_u64(size, &n))
        ok(0, "a remedy: '%s'", remedy);
    return with_devices(problem, (uint32_t)n, arena);
}

static void try_remedies(const struct family *family, uint64_t seed,
                         unsigned *n_remedies)
{
    static const char before[] = "it would fit with ", between[] = ", or ";
    struct random_oracle oracle;
    struct plant plant;
    struct arena arena = {0};
    struct err err = {0}, still = {0};
    struct rng rng;
    const char *remedy;

    rng_init(&rng, 19, seed);
    draw_plant(&plant, family, &oracle, &rng, &arena);
    set_memory(&plant, 0.4 + 0.5 * rng_uniform(&rng));
    if (is_found(family, seed, &plant.problem, &oracle, &arena, &err))
        goto out;
    remedy = strstr(err.msg, before);
    for (size_t skip = strlen(before); remedy;
         remedy = strstr(remedy + 1, between), skip = strlen(between)) {
        struct problem other = helped(&plant.problem, remedy + skip, &arena);

        ++*n_remedies;
        if (!is_found(family, seed, &other, &oracle, &arena, &still))
            ok(0, "%s, seed %u: '%s', but then: '%s'", family->name,
               (unsigned)seed, err.msg, still.msg);
    }
out:
    arena_release(&arena);
}

int main(void)
{
    const size_t n_families = sizeof families / sizeof *families;
    const uint64_t n = tap_size(N_PROBLEMS, N_PROBLEMS_FULL);
    unsigned n_remedies = 0;

    assignment_check_every = (uint32_t)tap_size(0, 1);
    for (size_t f = 0; f < n_families; f++) {
        unsigned n_found[N_SLACKS] = {0};

        for (size_t s = 0; s < N_SLACKS; s++)
            for (uint64_t seed = 0; seed < n; seed++)
                n_found[s] += try_planted(&families[f], slacks[s], seed);
        for (uint64_t seed = 0; seed < n; seed++)
            try_remedies(&families[f], seed, &n_remedies);
        for (size_t s = 0; s < N_SLACKS; s++)
            ok(n_found[s] == n,
               "%s: %u of %u found with %.1f %% more memory than one takes",
               families[f].name, n_found[s], (unsigned)n,
               100 * (slacks[s] - 1));
    }
    ok(n_remedies >= n * n_families, "%u remedies tried", n_remedies);
    return tap_done();
}
