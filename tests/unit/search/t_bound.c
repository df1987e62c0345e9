/* SPDX-License-Identifier: MIT */
/* The lower bound must not fall if a problem is restricted: fewer ways to place
 * a table or less memory give an equal or higher bound. Random problems check
 * this. */
#include "core/memory.h"
#include "search/bound.h"

#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define MAX_TABLES 6
#define ROOMY (UINT64_C(1) << 40)

static struct proven bound_of(const struct problem *problem,
                              const struct oracle *oracle, struct arena *arena)
{
    struct proven bound = {.ms = NAN, .term = ""};
    struct search_space space;
    struct err err = {0};

    if (space_init(&space, problem, oracle, NULL, NULL, arena, &err))
        ok(0, "parts: %s", err.msg);
    else
        bound_find(&bound, &space);
    return bound;
}

struct tally {
    unsigned n, n_lower, n_mean, n_piece, n_memory, n_misnamed;
};

static void add(struct tally *tally, struct proven loose, struct proven tight)
{
    tally->n++;
    tally->n_mean += !strcmp(tight.term, "mean load");
    tally->n_piece += !strcmp(tight.term, "largest piece");
    tally->n_memory += !strcmp(tight.term, "memory");
    tally->n_misnamed +=
        (tight.table != NULL) != !strcmp(tight.term, "largest piece");
    tally->n_lower += !(tight.ms >= loose.ms * (1 - 1e-9));
}

/* Lowers the memory step by step. */
static void try_memory(struct tally *tally, const struct problem *problem,
                       const struct oracle *oracle, struct arena *arena)
{
    uint64_t *memory = problem->cluster.memory_bytes;
    uint32_t n = problem->cluster.n_devices;
    struct proven loose, tight;
    uint64_t whole[8];

    memcpy(whole, memory, n * sizeof(*memory));
    for (uint32_t r = 0; r < n; r++)
        memory[r] = ROOMY;
    loose = bound_of(problem, oracle, arena);
    for (unsigned percent = 400; percent >= 100; percent -= 50) {
        for (uint32_t r = 0; r < n; r++)
            memory[r] = whole[r] * percent / 100;
        tight = bound_of(problem, oracle, arena);
        add(tally, loose, tight);
        loose = tight;
    }
}

/* Draws few tables on few devices. The memory holds all tables once, and some
 * tables could also be replicated. */
static void draw(struct problem *problem, struct rng *rng, struct arena *arena)
{
    uint32_t n_devices = 2 + (uint32_t)rng_below(rng, 3);
    size_t n = 1 + rng_below(rng, MAX_TABLES);
    uint32_t dims[MAX_TABLES] = {0};
    uint64_t rows[MAX_TABLES] = {0}, need = 0;

    for (size_t i = 0; i < n; i++) {
        rows[i] = 1 + (uint64_t)exp(rng_uniform(rng) * log(1e4));
        dims[i] = 4u << rng_below(rng, 5);
        need += rows[i] * dims[i] * 4;
    }
    fake_problem(problem, rows, dims, n, n_devices, need / n_devices, arena);
    for (size_t i = 0; i < n; i++)
        problem->tables[i].pooling_factor = floor(rng_uniform(rng) * 50);
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct random_oracle oracle;
    struct problem problem;
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 31, seed);
    draw(&problem, &rng, &arena);
    do
        random_oracle_init(&oracle, &problem, &rng);
    while (!oracle.base.is_additive);
    try_memory(tally, &problem, &oracle.base, &arena);
    arena_release(&arena);
}

/* Costs of a whole table, of one of two row blocks, and of one column, for two
 * tables. Two row blocks are the cheapest sharding of the first table. */
static const struct {
    double whole, rows, column;
} planted[] = {{10, 1, 0.1125}, {4, 1, 0.1375}};

static void planted_embed(const struct oracle *oracle,
                          const struct shard *shards, size_t n, double *out)
{
    (void)oracle;
    memset(out, 0, n * RANDOM_WIDTH * sizeof(*out));
    for (size_t i = 0; i < n; i++, out += RANDOM_WIDTH) {
        const struct shard *shard = &shards[i];

        if (shard->kind == SHARD_TABLE)
            out[RANDOM_WORK] = planted[shard->table].whole;
        else if (shard->kind == SHARD_ROW)
            out[RANDOM_WORK] = planted[shard->table].rows;
        else
            out[RANDOM_WORK] = planted[shard->table].column *
                               (shard->col_end - shard->col_begin);
    }
}

static struct proven planted_bound(const struct problem *problem,
                                   struct arena *arena)
{
    const struct oracle_ops ops = {.embed = planted_embed,
                                   .compute = random_compute,
                                   .comm = random_comm,
                                   .terms = random_terms};
    struct random_oracle oracle;
    struct rng rng;

    rng_init(&rng, 1, 0);
    do
        random_oracle_init(&oracle, problem, &rng);
    while (!oracle.base.is_additive);
    oracle.base.ops = &ops;
    return bound_of(problem, &oracle.base, arena);
}

static void planted_problem(struct problem *problem, size_t n,
                            struct arena *arena)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {32, 32};

    fake_problem(problem, rows, dims, n, 4, ROOMY, arena);
    problem->memory_model = MEMORY_FULL;
    problem->kinds = SHARD_TABLE | SHARD_COLUMN | SHARD_ROW;
    for (size_t t = 0; t < n; t++) {
        problem->tables[t].optimizer = OPTIMIZER_SGD;
        /* so that outputs outweigh indices */
        problem->tables[t].pooling_factor = 1;
    }
}

/* The memory is too small for the row blocks. As soon as the limit on the
 * largest piece leaves only columns, memory no longer has a price. */
static void check_free_bytes(void)
{
    struct shard blocks = {0, SHARD_ROW, 0, 500, 0, 32, 0, TIER_HBM};
    struct problem problem;
    struct arena arena = {0};
    struct proven bound;

    planted_problem(&problem, 1, &arena);
    problem.memory_model = MEMORY_BATCH;
    for (uint32_t r = 0; r < 4; r++)
        problem.cluster.memory_bytes[r] =
            shard_memory(&problem, &blocks).total / 2 - 2500;
    bound = planted_bound(&problem, &arena);
    is_near(bound.ms, 0.9, 1e-9, "columns of a quarter each");
    is_str(bound.term, "largest piece", "by the piece");
    arena_release(&arena);
}

/* The second table may not stay whole, and this sets the bound. The first table
 * could use fewer bytes, but memory is not short. */
static void check_unit(void)
{
    struct problem problem;
    struct arena arena = {0};
    struct proven bound;

    planted_problem(&problem, 2, &arena);
    problem.tables[1].kinds = SHARD_TABLE | SHARD_COLUMN;
    bound = planted_bound(&problem, &arena);
    is_near(bound.ms, (2 + 4.4) / 4, 1e-9,
            "row blocks of one table and columns of the other");
    is_str(bound.term, "largest piece", "by a piece");
    is_str(bound.table, problem.tables[1].name, "the table is named");
    arena_release(&arena);
}

/* Two row blocks are cheap but use many bytes; the whole table is expensive
 * and uses few. The memory lies half way between, so the bound counts half of
 * each. */
static void check_memory(void)
{
    struct shard whole = {0, SHARD_TABLE, 0, 1000, 0, 32, 0, TIER_HBM};
    struct shard block = {0, SHARD_ROW, 0, 500, 0, 32, 0, TIER_HBM};
    uint64_t least, most, *memory;
    struct problem problem;
    struct arena arena = {0};
    struct proven bound;

    planted_problem(&problem, 1, &arena);
    problem.kinds = SHARD_TABLE | SHARD_ROW;
    least = shard_memory(&problem, &whole).total;
    most = 2 * shard_memory(&problem, &block).total;
    memory = problem.cluster.memory_bytes;
    for (uint32_t r = 0; r < 4; r++)
        memory[r] = sample_memory(&problem).total;
    memory[0] += (least + most) / 2;
    bound = planted_bound(&problem, &arena);
    is_near(bound.ms, (2 + 10) / 2.0 / 4, 1e-6, "half of each");
    is_str(bound.term, "memory", "by memory");
    arena_release(&arena);
}

static void refused_embed(const struct oracle *oracle,
                          const struct shard *shards, size_t n, double *out)
{
    (void)shards;
    memset(out, 0, n * oracle->width * sizeof(*out));
    ok(0, "nothing is priced where nothing can be proven");
}

/* If nothing can be proven, no piece is priced. With thousands of tables that
 * would take a minute. */
static void check_unproven(void)
{
    struct problem problem;
    struct oracle_ops ops;
    struct oracle oracle;
    struct arena arena = {0};
    struct proven bound;

    planted_problem(&problem, 2, &arena);
    oracle = fake_oracle(&problem);
    ops = *oracle.ops;
    ops.embed = refused_embed;
    oracle.ops = &ops;
    search_bound(&bound, &problem, &oracle, &arena);
    ok(isnan(bound.ms) && !bound.term, "no sums, no bound");
    arena_release(&arena);
}

int main(void)
{
    uint64_t n = tap_size(300, 10000);
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < n; seed++)
        try_problem(seed, &tally);
    is_i64(tally.n_lower, 0, "less memory never lowers the bound");
    is_i64(tally.n_misnamed, 0, "only bounds from a piece name a table");
    ok(tally.n_mean && tally.n_piece && tally.n_memory,
       "%u bounds: %u from the mean, %u from a piece, %u from memory", tally.n,
       tally.n_mean, tally.n_piece, tally.n_memory);
    check_free_bytes();
    check_unit();
    check_memory();
    check_unproven();
    return tap_done();
}
