/* SPDX-License-Identifier: MIT */
/* The comparison in several parts: outputs in chunks, touched rows in windows
 * and in runs that are downloaded together, and pieces of every shape. Each
 * number is compared once. The hashes cover the bytes in an order that depends
 * only on the plan. */
#include "base/hash.h"
#include "device/device_ops.h"
#include "stage.h"
#include "tests/tap.h"

/* Compares outputs or weights, which must agree. Returns the number of values
 * compared. */
static uint64_t n_compared(struct stage *stage, enum verify_what what)
{
    stage_compare(stage, what);
    is_str(stage->verify.found.failure, "", "all agree");
    return stage->verify.found.tallies[what].n;
}

/* Number of samples per chunk. 8200 columns of one output and 20 of two are
 * 32,960 bytes per sample; 16 MiB hold 509 samples, and a chunk has one
 * more. */
#define CHUNK 510

static void test_chunks(uint64_t batch)
{
    struct stage stage = {0};
    const struct placement *placement = &stage.placement;
    uint64_t hash = 0;

    fixture_init(&stage.fixture, 1, batch);
    add_table(&stage.fixture, "wide", 3, 8200, 1);
    add_whole(&stage.fixture, 0);
    add_table(&stage.fixture, "twice", 30, 20, 2)->num_outputs = 2;
    add_whole(&stage.fixture, 0);
    add_table(&stage.fixture, "unread", 30, 20, 0)->num_outputs = 0;
    add_whole(&stage.fixture, 0);
    stage_open(&stage);
    stage_forward(&stage);
    is_i64((int64_t)n_compared(&stage, VERIFY_OUTPUTS), (int64_t)(8240 * batch),
           "outputs of each sample");
    for (uint64_t first = 0; first < batch; first += CHUNK)
        for (size_t g = 0; g < placement->n_groups; g++) {
            const struct group *group = &placement->groups[g];
            const struct output_block block =
                exchange_block(&stage.set, group, 0);
            const size_t n_bytes = group->n_outputs * group_bag_bytes(group);

            hash = hash_bytes((const char *)block.d_at + first * n_bytes,
                              min_u64(CHUNK, batch - first) * n_bytes, hash);
        }
    ok(stage.ranks[0].hashes[VERIFY_OUTPUTS] == hash,
       "hashed chunk by chunk, %llu samples", (unsigned long long)batch);
    stage_gradients(&stage);
    stage_update(&stage);
    ok(n_compared(&stage, VERIFY_WEIGHTS) <= 3 * 8200 + 30 * 20,
       "unused rows are not compared");
    stage_close(&stage);
}

/* A device that counts the downloads. */
static struct device_ops counting_ops;
static const struct device_ops *real_ops;
static unsigned n_transfers;
static size_t most_bytes;

static int count_transfer(struct device *device, void *dst, const void *src,
                          size_t n_bytes, struct err *err)
{
    n_transfers++;
    most_bytes = n_bytes > most_bytes ? n_bytes : most_bytes;
    return real_ops->transfer(device, dst, src, n_bytes, err);
}

/* Stores the rows of a table that the step touches, ascending, in rows[];
 * returns their number. */
static size_t list_touched(const struct placement *placement, size_t table,
                           uint64_t *rows)
{
    const struct rank_range all = {0, placement->n_ranks};
    const uint64_t n_rows = placement->table_rows[table];
    char *is_touched = mem_alloc(n_rows, 1);
    struct bags bags;
    size_t n = 0;

    batches_draw_table(&bags, placement, table, all, STEP_BATCH, false);
    for (uint64_t i = 0; i < bags.offsets[placement->batch]; i++)
        is_touched[bags.indices[i]] = 1;
    for (uint64_t row = 0; row < n_rows; row++)
        if (is_touched[row])
            rows[n++] = row;
    bags_release(&bags);
    mem_free(is_touched);
    return n;
}

/* Returns the number of downloads. A download continues if the next row is at
 * most `gap` after the previous one and less than `span` after the first. */
static unsigned count_runs(const uint64_t *rows, size_t n, uint64_t gap,
                           uint64_t span)
{
    unsigned runs = 0;
    uint64_t first = 0;

    for (size_t i = 0; i < n; i++)
        if (!i || rows[i] - rows[i - 1] > gap || rows[i] - first >= span) {
            first = rows[i];
            runs++;
        }
    return runs;
}

/* Rows have 4096 bytes. Rows up to 17 apart are downloaded together from a GPU,
 * up to 1 apart on the host, and at most 1025 rows at a time. */
static void test_runs(enum optimizer optimizer)
{
    static uint64_t rows[8000];
    struct stage stage = {0};
    struct device *device;
    unsigned far, near;
    size_t n;

    fixture_init(&stage.fixture, 1, 400);
    add_table(&stage.fixture, "sparse", 8000, 1024, 1)->optimizer = optimizer;
    stage.fixture.tables[0].zipf_alpha = 0;
    add_whole(&stage.fixture, 0);
    stage_open(&stage);
    stage_forward(&stage);
    stage_gradients(&stage);
    stage_update(&stage);
    n = list_touched(&stage.placement, 0, rows);
    device = stage.placement.device;
    real_ops = device->ops;
    counting_ops = *real_ops;
    counting_ops.transfer = count_transfer;
    device->ops = &counting_ops;
    n_transfers = 0;
    is_i64((int64_t)n_compared(&stage, VERIFY_WEIGHTS), (int64_t)(1024 * n),
           "each touched row, once");
    near = count_runs(rows, n, 1, 1025);
    if (optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        near += count_runs(rows, n, 1, (4 << 20) / 4 + 1);
    is_i64(n_transfers, near, "a download a run of rows on the host");
    n_transfers = 0;
    most_bytes = 0;
    device->kind = DEVICE_CUDA;
    (void)n_compared(&stage, VERIFY_WEIGHTS);
    device->kind = DEVICE_CPU;
    far = count_runs(rows, n, 17, 1025);
    if (optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        far += count_runs(rows, n, (64 << 10) / 4 + 1, (4 << 20) / 4 + 1);
    is_i64(n_transfers, far, "rows that lie near each other come together");
    ok(far < near && most_bytes <= 1025 * 4096, "at most 4 MiB and a row");
    device->ops = real_ops;
    stage_close(&stage);
}

/* The longest possible run: all rows are touched. */
static void test_span(void)
{
    struct stage stage = {0};
    struct device *device;

    fixture_init(&stage.fixture, 1, 800);
    add_table(&stage.fixture, "dense", 2100, 1024, 30)->optimizer =
        OPTIMIZER_SGD;
    stage.fixture.tables[0].zipf_alpha = 0;
    add_whole(&stage.fixture, 0);
    stage_open(&stage);
    stage_forward(&stage);
    device = stage.placement.device;
    real_ops = device->ops;
    counting_ops = *real_ops;
    counting_ops.transfer = count_transfer;
    device->ops = &counting_ops;
    stage_gradients(&stage);
    stage_update(&stage);
    n_transfers = 0;
    most_bytes = 0;
    is_i64((int64_t)n_compared(&stage, VERIFY_WEIGHTS), 2100 * 1024,
           "all rows are touched");
    is_i64((int64_t)most_bytes, 1025 * 4096, "4 MiB and a row at a time");
    is_i64(n_transfers, 3, "1025, 1025 and 50 rows");
    device->ops = real_ops;
    stage_close(&stage);
}

/* More touched rows than fit a window of 32 MiB. */
static void test_windows(void)
{
    static uint64_t rows[2900];
    struct stage stage = {0};
    uint64_t hash = 0, sum = 0;
    const struct piece *piece;
    size_t n;

    fixture_init(&stage.fixture, 1, 300);
    add_table(&stage.fixture, "wide", 2900, 3072, 30);
    stage.fixture.tables[0].zipf_alpha = 0;
    stage.fixture.tables[0].optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    add_whole(&stage.fixture, 0);
    stage_open(&stage);
    stage_forward(&stage);
    stage_gradients(&stage);
    stage_update(&stage);
    n = list_touched(&stage.placement, 0, rows);
    ok(n > (32 << 20) / (3072 * 4 + 1) + 1, "%zu rows are two windows", n);
    is_i64((int64_t)n_compared(&stage, VERIFY_WEIGHTS), (int64_t)(3072 * n),
           "each touched row, once");
    piece = stage.placement.pieces;
    for (size_t i = 0; i < n; i++) {
        const float *row = (const float *)piece->d_weight + rows[i] * 3072;
        const uint64_t one = hash_bytes(row, 3072 * sizeof(float), rows[i]);

        sum += hash_bytes(&piece->d_state[rows[i]], sizeof(float), one);
    }
    hash = hash_bytes(&sum, sizeof(sum), 0);
    ok(stage.ranks[0].hashes[VERIFY_WEIGHTS] == hash,
       "hashes of rows and states are added up");
    stage_close(&stage);
}

/* Tiles in which some rows are cut into other columns than others. Each piece
 * has its own state, or none, depending on the optimizer. */
static void test_wheel(enum optimizer optimizer, enum precision precision)
{
    static uint64_t rows[90];
    struct stage stage = {0};
    struct fixture *fixture = &stage.fixture;
    uint64_t n, n_compared_each = 0;

    fixture_init(fixture, 3, 400);
    add_table(fixture, "wheel", 90, 12, 7);
    fixture->tables[0].optimizer = optimizer;
    fixture->tables[0].precision = precision;
    add_piece(fixture, 0, 0, 30, 0, 8);
    add_piece(fixture, 1, 0, 60, 8, 12);
    add_piece(fixture, 2, 30, 90, 0, 4);
    add_piece(fixture, 0, 30, 60, 4, 8);
    add_piece(fixture, 1, 60, 90, 4, 12);
    stage_open(&stage);
    stage_forward(&stage);
    is_i64((int64_t)n_compared(&stage, VERIFY_OUTPUTS), 400 * 12, "outputs");
    stage_gradients(&stage);
    stage_update(&stage);
    n = list_touched(&stage.placement, 0, rows);
    is_i64((int64_t)n_compared(&stage, VERIFY_WEIGHTS), (int64_t)(12 * n),
           "every column of each touched row, once");
    /* keeps only rank 1's pieces: columns 8 to 12 above, 4 to 12 below */
    for (size_t i = 0; i < stage.placement.n_pieces; i++)
        if (stage.placement.pieces[i].rank != 1)
            stage.placement.pieces[i].d_weight = NULL;
    for (size_t i = 0; i < n; i++)
        n_compared_each += rows[i] < 60 ? 4 : 8;
    is_i64((int64_t)n_compared(&stage, VERIFY_WEIGHTS),
           (int64_t)n_compared_each, "values of local pieces, once");
    ok(!stage.ranks[0].hashes[VERIFY_WEIGHTS] &&
           stage.ranks[1].hashes[VERIFY_WEIGHTS],
       "only rank 1 has a hash");
    stage_close(&stage);
}

int main(void)
{
    test_chunks(CHUNK);
    test_chunks(CHUNK + 65);
    test_runs(OPTIMIZER_SGD);
    test_runs(OPTIMIZER_ROWWISE_ADAGRAD);
    test_span();
    test_windows();
    test_wheel(OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP32);
    test_wheel(OPTIMIZER_SGD, PRECISION_FP32);
    test_wheel(OPTIMIZER_SGD, PRECISION_FP16);
    return tap_done();
}
