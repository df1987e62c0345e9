/* SPDX-License-Identifier: MIT */
#include "microbench/sampler_designed.h"

#include "base/rng.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
#define MANY_ROWS 10000000
#define SOME_ROWS 1000000

/* A designed case, in which all tables are alike. The defaults are fp32,
 * row-wise Adagrad and the list's batch. */
struct design {
    uint32_t n_tables, dim;
    uint64_t n_rows;
    double pooling, zipf_alpha;
    uint32_t halvings; /* how many times the list's batch is halved */
    bool is_half;      /* true for fp16 */
    bool is_sgd;
};

/* Iterator over all designs, group by group. It keeps the design whose number
 * is `wanted`. */
struct walk {
    uint64_t wanted, n;
    struct design found;
};

static void add(struct walk *walk, struct design design)
{
    if (walk->n++ == walk->wanted)
        walk->found = design;
}

/* Adds cases that measure the time of a step that does almost nothing, and the
 * time that each lookup adds. Pooling factor 0 means the single lookup that a
 * batch must have. */
static void add_constants(struct walk *walk)
{
    static const double poolings[] = {0, 1, 4, 20, 200};

    for (uint32_t dim = 4; dim <= 512; dim *= 2)
        for (size_t p = 0; p < N_ELEMENTS(poolings); p++)
            add(walk,
                (struct design){1, dim, SOME_ROWS, .pooling = poolings[p]});
    for (uint32_t n_tables = 8; n_tables <= 32; n_tables *= 4)
        add(walk, (struct design){n_tables, 64, SOME_ROWS, .pooling = 0});
    /* few long bags: the time that one group of threads takes for a bag */
    for (uint32_t dim = 4; dim <= 128; dim *= 32)
        add(walk, (struct design){1, dim, SOME_ROWS, 200, .halvings = 9});
}

/* Adds cases that measure tables of several sizes, from the size of a cache to
 * the size of the memory. */
static void add_footprints(struct walk *walk)
{
    static const uint64_t rows[] = {1000,    10000,    100000,   300000,
                                    3000000, 10000000, 30000000, 100000000};

    for (uint32_t dim = 16; dim <= 256; dim *= 2)
        for (size_t r = 0; r < N_ELEMENTS(rows); r++)
            add(walk, (struct design){1, dim, rows[r], .pooling = 20});
}

/* Adds cases that measure rows with many lookups: skewed lookups, and tables of
 * very few rows. */
static void add_hot_rows(struct walk *walk)
{
    static const uint32_t dims[] = {16, 64, 128, 256};
    static const double alphas[] = {0.6, 0.9, 1.05, 1.3};

    for (size_t d = 0; d < N_ELEMENTS(dims); d++) {
        for (size_t a = 0; a < 2 * N_ELEMENTS(alphas); a++)
            add(walk, (struct design){1, dims[d], MANY_ROWS, 20, alphas[a / 2],
                                      .is_sgd = a % 2});
        for (uint64_t n_rows = 1; n_rows <= 100; n_rows += n_rows < 3 ? 2 : 97)
            add(walk, (struct design){1, dims[d], n_rows, .pooling = 1});
    }
}

/* Adds cases that measure a table whose columns are cut into two, four or eight
 * pieces, and cases with an increasing number of tables. */
static void add_fusions(struct walk *walk)
{
    static const uint32_t n_tables[] = {2, 4, 8, 16, 32, 60};

    for (uint32_t n = 2; n <= 8; n *= 2) {
        add(walk, (struct design){n, 128 / n, SOME_ROWS, .pooling = 20});
        add(walk, (struct design){n, 512 / n, SOME_ROWS, .pooling = 4});
    }
    for (size_t i = 0; i < N_ELEMENTS(n_tables); i++) {
        add(walk, (struct design){n_tables[i], 64, SOME_ROWS, .pooling = 5});
        add(walk, (struct design){n_tables[i], 128, SOME_ROWS, .pooling = 1});
    }
}

static void add_settings(struct walk *walk)
{
    for (uint32_t dim = 8; dim <= 512; dim *= 2)
        for (unsigned i = 0; i < 4; i++)
            add(walk,
                (struct design){4, dim, SOME_ROWS, 10,
                                .is_half = i == 1 || i == 2, .is_sgd = i >= 2});
    for (uint32_t halvings = 1; halvings <= 6; halvings++)
        add(walk, (struct design){8, 64, SOME_ROWS, 10, .halvings = halvings});
}

/* Adds cases that repeat published measurements of FBGEMM (NVIDIA's dynamicemb
 * benchmark, at 104,857 lookups per table; pull request 2365 of TorchRec). */
static void add_published(struct walk *walk)
{
    for (unsigned i = 0; i < 2; i++)
        add(walk, (struct design){10, 128, 1 << 20, 1.6, 1.05, .is_sgd = i});
    for (uint32_t dim = 4; dim <= 512; dim *= 2)
        add(walk, (struct design){4, dim, 100000, 10, .is_sgd = true});
}

static void walk_all(struct walk *walk)
{
    add_constants(walk);
    add_hot_rows(walk);
    add_fusions(walk);
    add_published(walk);
    add_settings(walk);
    add_footprints(walk);
}

uint64_t designed_n_cases(void)
{
    struct walk walk = {.wanted = UINT64_MAX};

    walk_all(&walk);
    return walk.n;
}

/* Returns the number of rows for a design: at least one, and at most as many as
 * fit into the table's fraction of the memory. */
static uint64_t fit_rows(const struct design *design,
                         const struct bench_options *options)
{
    uint64_t row = (uint64_t)design->dim * (design->is_half ? 2 : 4);
    uint64_t weight_bytes =
        case_weight_bytes(options) / design->n_tables - TABLE_RESERVE_BYTES;
    uint64_t state_bytes =
        case_state_bytes(options) / design->n_tables - TABLE_RESERVE_BYTES;
    uint64_t n = min_u64(weight_bytes / row, state_bytes / sizeof(float));

    return max_u64(min_u64(n, design->n_rows), 1);
}

void designed_draw(struct bench_case *out, const struct bench_options *options,
                   uint64_t case_idx)
{
    struct walk walk = {.wanted = case_idx};
    const struct design *design = &walk.found;

    walk_all(&walk);
    out->batch = (uint32_t)max_u64(options->batch >> design->halvings, 1);
    out->precision = design->is_half ? PRECISION_FP16 : PRECISION_FP32;
    out->optimizer = design->is_sgd ? OPTIMIZER_SGD : OPTIMIZER_ROWWISE_ADAGRAD;
    out->n_tables = (uint32_t)min_u64(design->n_tables, options->max_tables);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        out->tables[t].dim = design->dim;
        out->tables[t].stream = (struct stream){
            .n_rows = fit_rows(design, options),
            .batch = out->batch,
            .pooling_factor =
                design->pooling > 0 ? design->pooling : 1.0 / out->batch,
            .zipf_alpha = design->zipf_alpha,
            .table_seed = mix64(case_idx * BENCH_MAX_TABLES + t)};
    }
}
