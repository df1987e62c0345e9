/* SPDX-License-Identifier: MIT */
/* Compares the predicted share of ids in each row block with index streams that
 * are drawn and counted. */
#include "base/mem.h"
#include "core/hot_rows.h"
#include "core/row_order.h"
#include "device/stream.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

#define BATCH 4096u
#define N_ROWS 10000000u
/* Blocks of the finest grid; all cuts consist of such blocks. */
#define N_CELLS 240u

static const struct skew {
    const char *name;
    double alpha, bins[REUSE_BINS];
} skews[] = {
    {"Zipf 0.6", 0.6, {0}},
    {"Zipf 1.05", 1.05, {0}},
    {"Zipf 1.5", 1.5, {0}},
    {"bins",
     0,
     {.3391, .1604, .1799, .1446, .0938, .0452, .0195, .0087, .0042, .0021,
      .0012, .00065, .00036, .00018, .00008, .00003, .00001}},
};

static struct table table_of(const struct skew *skew, enum row_order order,
                             const char *name, double pooling)
{
    struct table table;

    table_init(&table);
    table.name = name;
    table.num_embeddings = N_ROWS;
    table.pooling_factor = pooling;
    table.row_order = order;
    table.zipf_alpha = skew->alpha;
    table.has_bins = skew->bins[0] > 0;
    memcpy(table.bins, skew->bins, sizeof(table.bins));
    return table;
}

static void count_ids(uint64_t counts[N_CELLS], const struct table *table)
{
    struct stream stream = {.n_rows = table->num_embeddings,
                            .batch = BATCH,
                            .pooling_factor = table->pooling_factor,
                            .use_bins = table->has_bins,
                            .zipf_alpha = table->zipf_alpha,
                            .row_order = table->row_order,
                            .table_seed = table->row_seed};
    const uint64_t n = stream_n_lookups(&stream);
    uint64_t *offsets = mem_alloc(BATCH + 1, sizeof(*offsets));
    uint32_t *ids = mem_alloc(n, sizeof(*ids));

    memcpy(stream.bins, table->bins, sizeof(stream.bins));
    stream_fill(&stream, 1, 0, offsets, ids);
    memset(counts, 0, N_CELLS * sizeof(*counts));
    for (uint64_t i = 0; i < n; i++)
        counts[(uint64_t)ids[i] * N_CELLS / N_ROWS]++;
    mem_free(offsets);
    mem_free(ids);
}

/* Returns the first row of a cell. */
static uint64_t row_of(uint32_t cell)
{
    return ((uint64_t)cell * N_ROWS + N_CELLS - 1) / N_CELLS;
}

static void check_cut(const struct table *table, const struct hot_rows *hot,
                      const uint64_t *counts, uint32_t n_ranks,
                      const char *skew)
{
    const double n = table->pooling_factor * BATCH;
    double worst = 0, most = 0, most_predicted = 0;

    for (uint32_t b = 0; b < n_ranks; b++) {
        const uint32_t first = b * N_CELLS / n_ranks;
        const uint32_t end = (b + 1) * N_CELLS / n_ranks;
        const double share = hot_rows_share(hot, row_of(first), row_of(end));
        double count = 0;

        for (uint32_t cell = first; cell < end; cell++)
            count += (double)counts[cell];
        worst =
            fmax(worst, fabs(count - n * share) /
                            (4 * sqrt(n * share * (1 - share)) + 0.002 * n));
        if (count <= most)
            continue;
        most = count;
        most_predicted = n * share;
    }
    ok(worst <= 1 && fabs(most / most_predicted - 1) <= 0.01,
       "%s, %s, %u ranks, '%s': hottest block %+.2f %%, others at %.2f of the "
       "tolerance",
       skew, row_order_names[table->row_order], n_ranks, table->name,
       100 * (most / most_predicted - 1), worst);
}

int main(void)
{
    static const uint32_t ranks[] = {2, 3, 4, 5, 8, 10, 12, 16};
    static const char *const names[] = {"cat_20", "user", "item", "t",
                                        "a",      "b",    "c",    "d"};
    const uint64_t n_names = tap_size(1, 8);
    /* the promised accuracy, 1 % of the hottest block, needs a million ids or
     * more */
    const double pooling = fmax(1000, (double)tap_size(1000, 4000));
    uint64_t counts[N_CELLS];
    struct arena arena = {0};

    for (uint64_t i = 0; i < n_names * N_ROW_ORDERS * 4; i++) {
        const struct skew *skew = &skews[i % 4];
        struct table table =
            table_of(skew, (enum row_order)(i / 4 % N_ROW_ORDERS),
                     names[i / 4 / N_ROW_ORDERS], pooling);
        struct hot_rows hot;

        hot_rows_init(&hot, &table, pooling * BATCH, 1, hot_store_new(&arena),
                      &arena);
        count_ids(counts, &table);
        for (size_t r = 0; r < sizeof(ranks) / sizeof(*ranks); r++)
            check_cut(&table, &hot, counts, ranks[r], skew->name);
        arena_release(&arena);
    }
    return tap_done();
}
