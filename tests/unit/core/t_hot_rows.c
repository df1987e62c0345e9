/* SPDX-License-Identifier: MIT */
#include "core/hot_rows.h"

#include "base/rng.h"
#include "core/canonical.h"
#include "core/rank_law.h"
#include "tests/tap.h"

static double sum_of(const double bins[REUSE_BINS], bool is_uses)
{
    double sum = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += bins[k] * (is_uses ? reuse_bin_count(k) : 1);
    return sum;
}

/* Tests that dropping ids (de-duplication) loses no row. The remaining uses are
 * the kept share, to a factor of two, the resolution of the bins; each row
 * keeps at least one use. */
static void test_keep(void)
{
    size_t n_lost = 0, n_wrong = 0, n_less = 0;
    struct rng rng;

    rng_init(&rng, 5, 0);
    for (int round = 0; round < 300; round++) {
        const double kept = 0.02 + 0.97 * rng_uniform(&rng);
        struct table_use use = {0}, less, all;
        struct table table;
        double rows, uses, left;

        table_init(&table);
        table.num_embeddings = 100000000;
        table.has_bins = true;
        for (unsigned k = 0; k < REUSE_BINS; k++)
            use.bins[k] = rng_below(&rng, 3) ? 0 : rng_uniform(&rng);
        rows = sum_of(use.bins, false);
        uses = sum_of(use.bins, true);
        all = less = use;
        memcpy(table.bins, use.bins, sizeof(table.bins));
        table_use_keep(&less, &table, 1000 * uses, kept);
        table_use_keep(&all, &table, 1000 * uses, 1);
        left = sum_of(less.bins, true);
        n_lost += fabs(sum_of(less.bins, false) - rows) > 1e-9 * rows ||
                  memcmp(&all, &use, sizeof(use)) != 0;
        n_wrong += left < kept * uses / 2 ||
                   left > 2 * kept * uses + 2 * rows || left > uses;
        n_less += left < uses;
    }
    is_i64((int64_t)n_lost, 0, "each row is still used");
    is_i64((int64_t)n_wrong, 0, "as often as ids are kept");
    ok(n_less > 150, "%zu of 300 are used less", n_less);
}

/* Stores in uses[n] the uses of each row if each of n_hosts local batches keeps
 * an id only once; returns the sum. */
static double use_once(double *uses, uint64_t n, double alpha, double n_lookups,
                       double n_hosts)
{
    double sum = 0, all = 0;

    for (uint64_t r = 0; r < n; r++)
        sum += pow((double)r + 1, -alpha);
    for (uint64_t r = 0; r < n; r++)
        all += uses[r] =
            law_uses(n_lookups * pow((double)r + 1, -alpha) / sum, n_hosts);
    return all;
}

/* The limit and the shares of the blocks agree with a row-by-row computation,
 * also if hot rows are used more often than the last bin can express. */
static void check_shares(const struct table *table, double n_lookups,
                         double n_hosts)
{
    const uint64_t n = table->num_embeddings;
    double *uses = mem_alloc(n, sizeof(*uses)), blocks[8] = {0}, worst = 0;
    const double all = use_once(uses, n, table->zipf_alpha, n_lookups, n_hosts);
    struct arena arena = {0};
    struct hot_rows hot;
    struct rank_law law;
    struct row_map map;
    double limit;

    hot_rows_init(&hot, table, n_lookups, all / n_lookups,
                  hot_store_new(&arena), &arena);
    law_init(&law, table, n_lookups);
    row_map_init(&map, table->row_order, n, table->row_seed);
    limit = law_limit(&law, n_lookups, all / n_lookups);
    ok(fabs(limit / n_hosts - 1) < 0.01, "limit %g of %g", limit, n_hosts);
    for (uint64_t r = 0; r < n; r++)
        blocks[row_of_rank(&map, r) / (n / 8)] += uses[r] / all;
    for (uint64_t b = 0; b < 8; b++)
        worst =
            fmax(worst, fabs(blocks[b] - hot_rows_share(&hot, b * (n / 8),
                                                        (b + 1) * (n / 8))));
    ok(worst < 0.005, "zipf %g, %s: blocks to %.2g", table->zipf_alpha,
       row_order_names[table->row_order], worst);
    arena_release(&arena);
    mem_free(uses);
}

static void test_shares(void)
{
    static const double alphas[] = {0.8, 1.05, 1.2, 1.5};

    for (size_t i = 0; i < sizeof(alphas) / sizeof(alphas[0]); i++)
        for (int order = 0; order < N_ROW_ORDERS; order++)
            for (double n_hosts = 8; n_hosts <= 512; n_hosts *= 8) {
                struct table table;

                table_init(&table);
                table.name = "t";
                table.row_seed = row_seed_of_name(table.name);
                table.num_embeddings = 400000;
                table.zipf_alpha = alphas[i];
                table.row_order = (enum row_order)order;
                check_shares(&table, 50 * 2048 * n_hosts, n_hosts);
            }
}

int main(void)
{
    test_keep();
    test_shares();
    return tap_done();
}
