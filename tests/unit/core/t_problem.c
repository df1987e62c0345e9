/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "core/problem.h"

#include "base/rng.h"
#include "core/canonical.h"
#include "core/cluster.h"
#include "core/rank_law.h"
#include "tests/tap.h"

static struct table make_table(const char *name, uint64_t rows, uint32_t dim,
                               double pooling)
{
    struct table table;

    table_init(&table);
    table.name = name;
    table.num_embeddings = rows;
    table.dim = dim;
    table.pooling_factor = pooling;
    return table;
}

static struct problem make_problem(struct table *tables, size_t n)
{
    static uint64_t memory[4] = {1, 1, 1, 1}, reserve[4];

    return (struct problem){
        .tables = tables,
        .n_tables = n,
        .cluster = {.n_devices = 4,
                    .devices_per_host = 4,
                    .memory_bytes = memory,
                    .reserve_bytes = reserve},
        .batch = 1000,
        .kinds = SHARD_ALL_KINDS,
    };
}

static void test_memory_of_kinds(void)
{
    struct table table = make_table("t", 100, 64, 2.5);
    struct problem problem = make_problem(&table, 1);
    struct shard shard = shard_whole(&problem, 0, 1);
    struct memory_items items;

    items = shard_memory(&problem, &shard);
    is_i64((int64_t)items.weights, 100 * 64 * 4, "weights of a whole table");
    is_i64((int64_t)items.optimizer, 100 * 4, "row-wise Adagrad: 4 B a row");
    is_i64((int64_t)items.input, 4 * (8 * 2500 + 4 * 1000),
           "ids and lengths, as often as SDD keeps them");
    is_i64((int64_t)items.outputs, 2 * 1000 * 64 * 4, "outputs and gradients");
    is_i64((int64_t)items.total,
           100 * 64 * 4 + 100 * 4 + 4 * 24000 + 2 * 1000 * 64 * 4, "total");

    shard.kind = SHARD_COLUMN;
    shard.col_begin = 16;
    items = shard_memory(&problem, &shard);
    is_i64((int64_t)items.input, 4 * 24000,
           "a column piece has its own copy of the ids");
    is_i64((int64_t)items.outputs, 2 * 1000 * 48 * 4, "but its columns only");

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_ROW;
    shard.row_begin = 75;
    is_near(shard_lookups(&problem, &shard), 625, 1e-9,
            "a row piece serves its share of the look-ups");
    is_near(shard_output_vectors(&problem, &shard), 1000, 0,
            "and a partial sum for every sample");
    items = shard_memory(&problem, &shard);
    is_i64((int64_t)items.input, 5 * (8 * 625 + 4 * 1000),
           "ids of rows come in buckets before they are sent");

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_REPLICATE;
    is_near(shard_lookups(&problem, &shard), 625, 1e-9,
            "a replica serves B / R samples");
    is_near(shard_output_vectors(&problem, &shard), 250, 1e-9,
            "and their outputs");
}

static void test_memory_of_formats(void)
{
    static const double optimizer_factor[N_OPTIMIZERS] = {0, 0, 1, 2,
                                                          2, 2, 1, 1};
    struct table table = make_table("t", 1000, 32, 0);
    struct problem problem = make_problem(&table, 1);
    struct memory_items items;

    table.num_outputs = 0;
    table.precision = PRECISION_FP16;
    for (int o = 0; o < N_OPTIMIZERS; o++) {
        struct shard shard = shard_whole(&problem, 0, 0);
        double want = optimizer_factor[o] * 1000 * 32 * 2;

        table.optimizer = (enum optimizer)o;
        if (o == OPTIMIZER_ROWWISE_ADAGRAD ||
            o >= OPTIMIZER_PARTIAL_ROWWISE_ADAM)
            want += 4000;
        items = shard_memory(&problem, &shard);
        is_near((double)items.optimizer, want, 0,
                optimizer_names[table.optimizer]);
    }
    problem.memory_model = MEMORY_WEIGHTS;
    struct shard shard = shard_whole(&problem, 0, 0);
    items = shard_memory(&problem, &shard);
    is_i64((int64_t)items.total, 1000 * 32 * 2, "weights only");
}

/* Optimizer state of replicas, as bytes of state per byte of weights. Shards
 * that are not replicas keep the table's optimizer. */
static void test_memory_of_replicas(void)
{
    static const struct {
        enum dense_optimizer optimizer;
        const char *name;
        double factor;
    } cases[] = {
        {DENSE_SGD, "sgd", 0},
        {DENSE_ADAGRAD, "adagrad", 1},
        {DENSE_ADAM, "adam", 2},
    };
    struct table table = make_table("t", 1000, 32, 0);
    struct problem problem = make_problem(&table, 1);
    struct shard whole = shard_whole(&problem, 0, 0), replica = whole;
    struct memory_items items;

    replica.kind = SHARD_REPLICATE;
    items = shard_memory(&problem, &replica);
    is_i64((int64_t)items.optimizer, 4000, "the table's optimizer by default");
    is_str(dense_optimizer_names[DENSE_AS_TABLE], "table",
           "name of the default");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        problem.dense_optimizer = cases[i].optimizer;
        is_str(dense_optimizer_names[cases[i].optimizer], cases[i].name,
               "name");
        items = shard_memory(&problem, &replica);
        is_near((double)items.optimizer, cases[i].factor * 1000 * 32 * 4, 0,
                "a state of full size");
        items = shard_memory(&problem, &whole);
        is_i64((int64_t)items.optimizer, 4000,
               "whole shards keep the table's optimizer");
    }
}

/* Bytes of FBGEMM's memory layout, taken from FBGEMM's own tensors
 * (tests/torchrec/t_memory). State elements are fp32 whatever the precision of
 * the weights. */
static void test_layout(void)
{
    static const struct {
        uint64_t elements, rows; /* state values per weight and per row */
    } states[N_OPTIMIZERS] = {{0, 0}, {0, 1}, {1, 0}, {2, 0},
                              {2, 0}, {2, 0}, {1, 1}, {1, 1}};
    static const uint64_t row_bytes[N_PRECISIONS] = {32 * 4, 32 * 2, 32 * 2,
                                                     32 + 8};
    struct table table = make_table("t", 1000, 32, 0);
    struct problem problem = make_problem(&table, 1);
    int n_wrong = 0;

    table.num_outputs = 0;
    problem.layout = LAYOUT_FBGEMM;
    for (int i = 0; i < N_OPTIMIZERS * N_PRECISIONS * N_SHARD_KINDS; i++) {
        const enum shard_kind kind = (enum shard_kind)(1u << i % N_SHARD_KINDS);
        const int o = i / N_SHARD_KINDS % N_OPTIMIZERS;
        const int p = i / N_SHARD_KINDS / N_OPTIMIZERS;
        const uint64_t plain =
            (uint64_t)32 * precision_bytes((enum precision)p);
        const bool is_replica = kind == SHARD_REPLICATE;
        struct shard shard = shard_whole(&problem, 0, 0);
        struct memory_items items;

        shard.kind = kind;
        table.optimizer = (enum optimizer)o;
        table.precision = (enum precision)p;
        table.row_overhead_bytes = 12.0 * (i % 3);
        items = shard_memory(&problem, &shard);
        n_wrong +=
            items.weights != 1000 * ((is_replica ? plain : row_bytes[p]) +
                                     (uint64_t)table.row_overhead_bytes);
        n_wrong += items.optimizer !=
                   1000 * (states[o].elements * (is_replica ? plain : 32 * 4) +
                           4 * states[o].rows);
        n_wrong += items.outputs != (is_replica ? 1000 * plain : 0);
    }
    is_i64(n_wrong, 0, "each optimizer, precision and kind of shard");
}

/* The memory of row blocks adds up to that of the whole table. Column pieces
 * take more, because each has its own copy of per-row data. */
static void test_layout_adds_up(void)
{
    struct table table = make_table("t", 1000, 64, 0);
    struct problem problem = make_problem(&table, 1);
    int n_wrong = 0;

    problem.layout = LAYOUT_FBGEMM;
    for (int i = 0; i < 2 * N_OPTIMIZERS * N_PRECISIONS; i++) {
        struct shard whole = shard_whole(&problem, 0, 0), a = whole, b = whole;
        struct memory_items all, sum;
        uint64_t by_row;

        table.optimizer = (enum optimizer)(i / 2 % N_OPTIMIZERS);
        table.precision = (enum precision)(i / 2 / N_OPTIMIZERS);
        table.row_overhead_bytes = 20;
        by_row = table.precision == PRECISION_INT8 ? 28 : 20;
        if (table.optimizer == OPTIMIZER_ROWWISE_ADAGRAD ||
            table.optimizer >= OPTIMIZER_PARTIAL_ROWWISE_ADAM)
            by_row += 4;
        if (i % 2)
            a.row_end = b.row_begin = 300;
        else
            a.col_end = b.col_begin = 24;
        all = cells_memory(&table, table.optimizer, LAYOUT_FBGEMM, &whole);
        sum = cells_memory(&table, table.optimizer, LAYOUT_FBGEMM, &a);
        memory_add(&sum,
                   cells_memory(&table, table.optimizer, LAYOUT_FBGEMM, &b));
        n_wrong += sum.total - all.total != (i % 2 ? 0 : 1000 * by_row);
    }
    is_i64(n_wrong, 0, "pieces add up, with the rows of each column piece");
}

static void test_huge(void)
{
    struct table table = make_table("t", UINT64_MAX / 2, 1u << 30, 1e300);
    struct problem problem = make_problem(&table, 1);
    struct shard shard = shard_whole(&problem, 0, 0);
    struct memory_items items;

    items = shard_memory(&problem, &shard);
    ok(items.total == UINT64_MAX, "a size beyond 64 bits saturates");
    memory_add(&items, items);
    ok(items.total == UINT64_MAX, "also when added");
}

struct row_case {
    const char *name;
    uint32_t n_devices, devices_per_host;
    uint64_t rows, row_begin, row_end;
    uint32_t want;
    uint32_t device;
};

static const struct row_case row_cases[] = {
    {"a block over all", 4, 2, 10, 3, 6, 4, 0},
    {"the rest over all", 4, 2, 10, 9, 10, 4, 0},
    {"a block over a host", 4, 2, 10, 5, 10, 2, 0},
    {"the rest over a host", 4, 2, 11, 6, 11, 2, 0},
    {"no such block", 4, 2, 10, 0, 4, 0, 0},
    {"of both: all", 2, 2, 10, 0, 5, 2, 0},
    {"one row each, and ranks without", 8, 4, 5, 3, 4, 8, 0},
    {"a host's rest of as many rows as a block", 4, 2, 5, 3, 5, 2, 1},
    {"a block of as many rows as a host's rest", 4, 2, 5, 2, 4, 4, 1},
    {"one row each on the second host", 8, 4, 3, 1, 2, 4, 5},
    {"one row each on the first: all", 8, 4, 3, 1, 2, 8, 1},
};

static void test_row_ranks(void)
{
    for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++) {
        const struct row_case *test = &row_cases[i];
        struct table table = make_table("t", test->rows, 8, 1);
        struct problem problem = make_problem(&table, 1);
        struct shard shard = shard_whole(&problem, 0, 0);

        problem.cluster.n_devices = test->n_devices;
        problem.cluster.devices_per_host = test->devices_per_host;
        shard.kind = SHARD_ROW;
        shard.row_begin = test->row_begin;
        shard.row_end = test->row_end;
        shard.device = test->device;
        is_i64(shard_row_ranks(&problem, &shard), test->want, test->name);
    }
}

/* The host size assumed if the user gives none: the largest divisor of the
 * number of GPUs that is at most the usual host size. */
static void test_assumed_hosts(void)
{
    static const uint32_t cases[][2] = {
        {1, 1},  {7, 7},  {8, 8},   {9, 3},   {10, 5},   {11, 1},    {12, 6},
        {14, 7}, {15, 5}, {16, 8},  {22, 2},  {25, 5},   {35, 7},    {49, 7},
        {64, 8}, {97, 1}, {100, 5}, {121, 1}, {1024, 8}, {65536, 8},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(cluster_assumed_host(cases[i][0], 8) == cases[i][1],
           "%u devices are in hosts of %u", cases[i][0], cases[i][1]);
}

static void test_raise_memory(void)
{
    uint64_t memory[] = {1000, 3000}, reserve[] = {150 + 7, 450};
    struct cluster cluster = {.n_devices = 2,
                              .memory_bytes = memory,
                              .reserve_bytes = reserve,
                              .reserve = "15%"};

    for (uint32_t r = 0; r < 2; r++)
        cluster_raise_memory(&cluster, r, 2000);
    is_i64((int64_t)memory[0], 2000, "as much as asked for");
    is_i64((int64_t)reserve[0], 300 + 7, "15% of it stays free, beside 7");
    is_i64((int64_t)memory[1], 3000, "nothing is taken away");
    is_i64((int64_t)reserve[1], 450, "nor is it of what stays free");
    cluster.reserve = "100";
    cluster_raise_memory(&cluster, 0, 4000);
    is_i64((int64_t)reserve[0], 307, "a size stays as it is");
}

/* New GPUs are copies of an existing one. GPUs that remain keep their own
 * values. */
static void test_grow(void)
{
    uint64_t memory[] = {1000, 3000}, reserve[] = {100, 200};
    struct cluster cluster = {.n_devices = 2,
                              .devices_per_host = 2,
                              .memory_bytes = memory,
                              .reserve_bytes = reserve};
    struct arena arena = {0};

    cluster_grow(&cluster, 3, 1, &arena);
    is_i64(cluster.devices_per_host, 3, "one host stays one");
    for (uint32_t r = 0; r < 3; r++) {
        const uint32_t of = r < 2 ? r : 1;

        ok(cluster.memory_bytes[r] == memory[of] &&
               cluster.reserve_bytes[r] == reserve[of],
           "memory and what stays free of GPU %u", r);
    }
    arena_release(&arena);
}

static void test_whole_hosts(void)
{
    struct cluster one = {.n_devices = 4, .devices_per_host = 4};
    struct cluster given = {.n_devices = 8, .devices_per_host = 4};
    struct cluster domains = {
        .n_devices = 16, .devices_per_host = 4, .hosts_per_domain = 4};
    struct cluster assumed = {
        .n_devices = 8, .devices_per_host = 8, .host_size = 8};
    struct cluster part = {
        .n_devices = 4, .devices_per_host = 4, .asked_host = 8};

    is_i64(cluster_group(&given), 4, "a group is a host");
    is_i64(cluster_group(&domains), 16, "or a domain of hosts");
    is_i64(cluster_whole_hosts(&one, 13), 13, "one host holds any number");
    is_i64(cluster_whole_hosts(&given, 13), 16, "hosts of 4, up to whole ones");
    is_i64(cluster_whole_hosts(&given, 16), 16, "which these are");
    is_i64(cluster_whole_hosts(&domains, 9), 12, "whole hosts in a domain");
    is_i64(cluster_whole_hosts(&domains, 17), 32, "above it whole domains");
    is_i64(cluster_whole_hosts(&assumed, 7), 7, "a part of one host");
    is_i64(cluster_whole_hosts(&assumed, 13), 14, "2 x 7 for a prime number");
    is_i64(cluster_whole_hosts(&assumed, 15), 15, "3 x 5 as it is");
    is_i64(cluster_whole_hosts(&part, 7), 7, "less than the host asked for");
    is_i64(cluster_whole_hosts(&part, 11), 16, "more: whole ones of those");
    part.asked_domain = 3;
    is_i64(cluster_whole_hosts(&part, 17), 24, "to a domain of three of them");
    is_i64(cluster_whole_hosts(&part, 25), 48, "and above it whole domains");
}

static void test_min_width(void)
{
    static const struct {
        uint32_t dim, min_width, of_table;
        enum table_output output;
        uint32_t want;
    } cases[] = {
        {32, 0, 0, OUTPUT_POOLED, 4},
        {32, 8, 0, OUTPUT_POOLED, 8},
        {32, 8, 4, OUTPUT_POOLED, 8},
        {32, 8, 13, OUTPUT_POOLED, 16},
        {32, 0, 1, OUTPUT_POOLED, 4},
        {32, 0, 17, OUTPUT_SEQUENCE, 32},
        {32, 0, 0, OUTPUT_SEQUENCE, 16},
        {32, 16, 0, OUTPUT_SEQUENCE, 16},
        /* half the columns would be below min_width */
        {32, 20, 0, OUTPUT_SEQUENCE, 32},
        /* half the columns are not vectors of four */
        {12, 0, 0, OUTPUT_SEQUENCE, 12},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct table table = make_table("t", 10, cases[i].dim, 1);
        struct problem problem = make_problem(&table, 1);

        table.output = cases[i].output;
        table.min_width = cases[i].of_table;
        problem.min_width = cases[i].min_width;
        is_i64(table_min_width(&problem, &table), cases[i].want,
               "columns of the narrowest piece");
    }
}

/* Stores each row block's share of the lookups in share[k]; returns the
 * largest. */
static double cut_into(double *share, struct problem *problem, uint64_t k)
{
    const uint64_t rows = problem->tables[0].num_embeddings;
    const uint64_t block_rows = (rows - 1) / k + 1;
    double all, most = 0;

    for (uint64_t b = 0; b < k; b++) {
        struct shard block = shard_whole(problem, 0, 0);

        all = shard_lookups(problem, &block);
        block.kind = SHARD_ROW;
        block.row_begin = b * block_rows;
        if (b + 1 < k)
            block.row_end = block.row_begin + block_rows;
        share[b] = shard_lookups(problem, &block) / all;
        most = share[b] > most ? share[b] : most;
    }
    return most;
}

static double sum_of(const double *x, uint64_t n)
{
    double sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* Row blocks of a table of 40 million rows, Zipf 1.05. With hashed ids, the
 * block of the hottest row has at least 1.57 times the mean of 8 blocks (here
 * it also has the third hottest row), and 8.8 times the mean of 96 blocks. In
 * the order of frequency, the first of 8 blocks has 0.925 of all lookups. */
static void test_blocks(void)
{
    struct table table;
    struct problem problem = {.tables = &table, .n_tables = 1, .batch = 65536};
    struct arena arena = {0};
    double share[96];

    table_init(&table);
    table.name = "cat_20";
    table.row_seed = row_seed_of_name(table.name);
    table.num_embeddings = 40000000;
    table.zipf_alpha = 1.05;
    table.pooling_factor = 10;
    is_near(cut_into(share, &problem, 8), 0.125, 0,
            "equal shares while hot rows are unknown");
    problem_find_hot_rows(&problem, &arena);
    is_near(cut_into(share, &problem, 8) * 8, 1.8, 0.03,
            "hashed: largest of 8 blocks");
    ok(share[8296814 / 5000000] * 8 > 1.5, "the one that has the hottest row");
    is_near(sum_of(share, 8), 1, 1e-12, "8 blocks add up");
    is_near(cut_into(share, &problem, 96) * 96, 8.8, 0.3,
            "hashed: largest of 96 blocks");
    is_near(sum_of(share, 96), 1, 1e-12, "96 blocks add up");
    table.row_order = ROW_ORDER_UNIFORM;
    problem_find_hot_rows(&problem, &arena);
    is_near(cut_into(share, &problem, 8), 0.125 + 0.82 * 0.08, 0.01,
            "uniform order, except for single rows");
    is_near(sum_of(share, 8), 1, 1e-12, "which add up");
    table.row_order = ROW_ORDER_FREQUENCY;
    problem_find_hot_rows(&problem, &arena);
    is_near(cut_into(share, &problem, 8), 0.925, 0.001,
            "frequency order: the largest share");
    is_near(share[0], 0.925, 0.001, "is that of the first block");
    is_near(sum_of(share, 8), 1, 1e-12, "and all add up");
    table.row_order = ROW_ORDER_HASHED;
    table.zipf_alpha = 0;
    problem_find_hot_rows(&problem, &arena);
    is_near(cut_into(share, &problem, 96), 1 / 96.0, 1e-6,
            "alike without skew");
    table.has_bins = true;
    table.bins[0] = 1 - 1e-4;
    table.bins[12] = 1e-4; /* 3,072 lookups of each row */
    table.row_order = ROW_ORDER_FREQUENCY;
    problem_find_hot_rows(&problem, &arena);
    is_near(cut_into(share, &problem, 8) - share[7], 0.307 / 1.307, 0.01,
            "hot rows of a histogram, and the cold ones of all blocks");
    arena_release(&arena);
}

/* The uses of rows in the blocks add up to those of the table. */
static void test_use(enum row_order order, bool has_bins, enum dedup dedup)
{
    struct table table;
    struct problem problem = {.tables = &table, .n_tables = 1, .batch = 65536};
    struct arena arena = {0};
    struct table_use whole;
    double rows[REUSE_BINS] = {0}, n_unique = 0, most = 0;

    table_init(&table);
    table.name = "t";
    table.num_embeddings = 10000000;
    table.pooling_factor = 10;
    table.row_order = order;
    table.has_bins = has_bins;
    table.output = OUTPUT_SEQUENCE;
    table.dedup = 0.5;
    problem.job.dedup = dedup;
    for (int k = 0; k < 8; k++)
        table.bins[k] = 0.125;
    problem_find_hot_rows(&problem, &arena);
    whole = problem_use(&problem, 0, 65536);
    for (uint64_t b = 0; b < 5; b++) {
        struct shard block = shard_whole(&problem, 0, 0);
        struct table_use use;

        block.kind = SHARD_ROW;
        block.row_begin = b * 2000000;
        block.row_end = block.row_begin + 2000000;
        use = shard_use(&problem, &block, 65536, &whole);
        n_unique += use.n_unique;
        for (int k = 0; k < REUSE_BINS; k++)
            rows[k] += use.n_unique * use.bins[k];
    }
    is_near(n_unique / whole.n_unique, 1, 1e-3, row_order_names[order]);
    for (int k = 0; k < REUSE_BINS; k++)
        most = fmax(most, fabs(rows[k] - whole.n_unique * whole.bins[k]));
    ok(most < 1 + 1e-3 * whole.n_unique, "unique rows by bin, to %g", most);
    arena_release(&arena);
}

/* Draws the table's properties from a few values, so that many tables are used
 * alike. */
static void draw_use(struct table *table, struct rng *rng)
{
    table_init(table);
    table->name = "t";
    table->num_embeddings = 1000 + rng_below(rng, 2);
    table->dim = 4u << rng_below(rng, 3);
    table->pooling_factor = 1 + (double)rng_below(rng, 2);
    table->zipf_alpha = 1 + 0.1 * (double)rng_below(rng, 2);
    table->has_bins = rng_below(rng, 2);
    table->bins[rng_below(rng, 2)] = 0.75;
    table->bins[2 + rng_below(rng, 2)] = 0.25;
    table->dedup = 0.25 + 0.5 * (double)rng_below(rng, 2);
    if (rng_below(rng, 2))
        table->output = OUTPUT_SEQUENCE;
}

/* Computing the use of all tables together gives the same as one by one. Copies
 * of a problem share the result, which is computed once for equal tables. */
static void test_use_all(void)
{
    enum { N = 500 };
    struct table tables[N];
    struct problem problem = {.tables = tables, .n_tables = N, .batch = 65536};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 43, 0);
    for (int t = 0; t < N; t++)
        draw_use(&tables[t], &rng);
    for (int dedup = 0; dedup <= DEDUP_SESSIONS; dedup++) {
        const struct table_use *use, *again;
        struct problem other;
        unsigned n_other = 0;
        size_t n_computed;

        problem.job.dedup = (enum dedup)dedup;
        problem_find_hot_rows(&problem, &arena);
        other = problem;
        other.cluster.inter_gbps = 1;
        use = problem_use_all(&problem, 4096, &arena);
        for (size_t t = 0; t < N; t++) {
            const struct table_use alone = problem_use(&problem, t, 4096);

            n_other += memcmp(&use[t], &alone, sizeof(alone)) != 0;
        }
        is_i64(n_other, 0, dedup_names[dedup]);
        n_computed = hot_store_n_computed(problem.hot->store);
        ok(n_computed > 8 && n_computed <= 96, "equal tables computed once");
        ok(problem_use_all(&other, 4096, &arena) == use,
           "copies share the result");
        is_i64((int64_t)hot_store_n_computed(problem.hot->store),
               (int64_t)n_computed, "which is not computed again");
        again = problem_use_all(&other, 8192, &arena);
        ok(again != use && memcmp(again, use, N * sizeof(*use)) != 0,
           "another batch has another");
        tables[3].pooling_factor++;
        again = problem_use_all(&other, 4096, &arena);
        ok(again != use && !memcmp(&again[2], &use[2], sizeof(*use)) &&
               memcmp(&again[3], &use[3], sizeof(*use)) != 0,
           "and so have other tables");
        tables[3].pooling_factor--;
    }
    arena_release(&arena);
}

/* Checks the lookups, bags and output vectors of a table, as fractions of those
 * without de-duplication. */
static void check_kept(const struct problem *problem, uint32_t t,
                       double lookups, double bags, double outputs)
{
    const struct shard whole = shard_whole(problem, t, 0);
    const char *what = dedup_names[problem->job.dedup];

    is_near(shard_lookups(problem, &whole), 20 * 65536 * lookups, 1e-6, what);
    is_near(shard_bags(problem, &whole), 65536 * bags, 1e-6, what);
    is_near(shard_output_vectors(problem, &whole), 65536 * outputs, 1e-6, what);
}

static double uses_of(const struct table_use *use)
{
    double uses = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        uses += use->n_unique * use->bins[k] * reuse_bin_count(k);
    return uses;
}

/* A sequence table and a pooled table, each with one fifth of unique ids. */
static void test_dedup(void)
{
    struct table tables[2];
    struct problem problem = {.tables = tables, .n_tables = 2, .batch = 65536};
    struct arena arena = {0};
    struct table_use all, left;
    double share[8], least, most, bins[REUSE_BINS];

    for (int t = 0; t < 2; t++) {
        table_init(&tables[t]);
        tables[t].name = "t";
        tables[t].num_embeddings = 1000000;
        tables[t].pooling_factor = 20;
        tables[t].dedup = 0.2;
    }
    tables[0].output = OUTPUT_SEQUENCE;
    for (int order = 0; order < N_ROW_ORDERS; order++) {
        tables[0].row_order = (enum row_order)order;
        problem.job.dedup = DEDUP_NONE;
        problem_find_hot_rows(&problem, &arena);
        check_kept(&problem, 0, 1, 1, 20);
        check_kept(&problem, 1, 1, 1, 1);
        all = problem_use(&problem, 0, 65536);
        most = cut_into(share, &problem, 8);

        problem.job.dedup = DEDUP_SESSIONS;
        problem_find_hot_rows(&problem, &arena);
        check_kept(&problem, 0, 0.2, 0.2, 4);
        check_kept(&problem, 1, 0.2, 0.2, 0.2);
        is_near(cut_into(share, &problem, 8), most, 1e-6, "blocks share alike");
        left = problem_use(&problem, 0, 65536);
        is_near(left.n_unique, table_reuse(tables, 20 * 13107.2, bins), 1e-6,
                "as a smaller batch");

        problem.job.dedup = DEDUP_IDS;
        problem_find_hot_rows(&problem, &arena);
        check_kept(&problem, 0, 0.2, 1, 4);
        check_kept(&problem, 1, 1, 1, 1);
        least = cut_into(share, &problem, 8);
        ok(least < most && least >= 0.125, "blocks are more even: %g, %g",
           least, most);
        is_near(sum_of(share, 8), 1, 1e-3, "and add up");
        left = problem_use(&problem, 0, 65536);
        is_near(left.n_unique, all.n_unique, 0, "the same rows");
        ok(uses_of(&left) > 0.15 * uses_of(&all) &&
               uses_of(&left) < 0.25 * uses_of(&all),
           "used less: %g of %g", uses_of(&left), uses_of(&all));
    }
    arena_release(&arena);
}

int main(void)
{
    test_blocks();
    test_dedup();
    test_use_all();
    for (int order = 0; order < N_ROW_ORDERS; order++) {
        test_use((enum row_order)order, false, DEDUP_NONE);
        test_use((enum row_order)order, true, DEDUP_NONE);
        test_use((enum row_order)order, false, DEDUP_IDS);
        test_use((enum row_order)order, true, DEDUP_IDS);
    }
    test_min_width();
    test_assumed_hosts();
    test_grow();
    test_whole_hosts();
    test_raise_memory();
    test_memory_of_kinds();
    test_memory_of_formats();
    test_memory_of_replicas();
    test_layout();
    test_layout_adds_up();
    test_huge();
    test_row_ranks();
    return tap_done();
}
