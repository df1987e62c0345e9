/* SPDX-License-Identifier: MIT */
#include "emit/torchrec_tiers.h"

#include <math.h>

const char *torchrec_kernel(const struct shard *shard)
{
    static const char *const kernels[N_TIERS] = {
        [TIER_HBM] = "fused",
        [TIER_CACHED] = "fused_uvm_caching",
        [TIER_HOST] = "fused_uvm",
    };

    return shard_is_replica(shard->kind) ? "dense" : kernels[shard->tier];
}

json_t *torchrec_cache_params(const struct plan *plan,
                              const struct shard *shard)
{
    const bool is_ahead = plan->problem.job.pipeline == PIPELINE_PREFETCH;

    if (shard->tier != TIER_CACHED)
        return NULL;
    return json_pack("{s:f, s:o*}", "load_factor",
                     plan->load_factors[shard->table], "prefetch_pipeline",
                     is_ahead ? json_true() : NULL);
}

/* --- statistics of a table --- */

/* Bins of the histogram from which TorchRec reads the misses of a cache. */
#define N_BINS 128

/* Returns the misses of a batch if the cache holds the `size` rows that were
 * used last: linear between the measured windows, all rows of the batch if
 * there is no cache, and none if the cache holds the table. */
static double misses_at(const struct table *table, double size)
{
    double x = 0, y = table->reach[0];

    if (size >= (double)table->num_embeddings)
        return 0;
    for (unsigned k = 0; k < table->n_reach; k++) {
        const double next_x = table->reach[k], next_y = table->misses[k];

        if (size < next_x)
            return y + (next_y - y) * (size - x) / (next_x - x);
        x = next_x;
        y = next_y;
    }
    return y;
}

json_t *torchrec_cache_stats(const struct table *table)
{
    const double n_rows = (double)table->num_embeddings;
    double before, area = 0;
    json_t *hits;

    if (!table->n_reach || table->reach[0] <= 0)
        return NULL;
    hits = json_array();
    before = misses_at(table, 0);
    for (unsigned i = 1; i <= N_BINS; i++) {
        const double now = misses_at(table, n_rows * i / N_BINS);

        json_array_append_new(hits, json_real(fmax(before - now, 0)));
        area += (before + now) / 2 / N_BINS;
        before = now;
    }
    return json_pack("{s:f, s:I, s:o, s:I}", "cacheability",
                     area / table->reach[0], "expected_lookups",
                     (json_int_t)llround(table->reach[0]), "mrc_hist_counts",
                     hits, "height", (json_int_t)table->num_embeddings);
}
