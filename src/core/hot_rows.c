/* SPDX-License-Identifier: MIT */
#include "core/hot_rows.h"

#include "base/ranked.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Ranks that stand by themselves: blocks are then right to a percent, as those
 * behind are many to a block. Of a histogram more, as all rows of a bin are as
 * hot as its first. */
#define MOST_OF_ZIPF 1024
#define MOST_OF_BINS 4096
/* A row that is used so often on average is so, give or take an eighth. */
#define CERTAIN_FROM 64.0

/* The same rows, used less; each still is. With no limit they are as they were.
 */
static void use_less(double rows[REUSE_BINS], double limit)
{
    double before[REUSE_BINS];

    memcpy(before, rows, sizeof(before));
    memset(rows, 0, sizeof(before));
    for (unsigned k = 0; k < REUSE_BINS; k++)
        rows[reuse_bin_of(fmax(law_uses(reuse_bin_count(k), limit), 1))] +=
            before[k];
}

/* Filled by the first who asks. */
struct hot_places {
    pthread_mutex_t lock;
    atomic_bool are_found;
    uint16_t *ranks; /* [n] by their rows, ascending */
    float *before;   /* [n + 1]: what those have of all look-ups */
};

void table_use_keep(struct table_use *use, const struct table *table,
                    double n_lookups, double kept)
{
    struct rank_law law;

    if (kept >= 1)
        return;
    law_init(&law, table, n_lookups);
    use_less(use->bins, law_limit(&law, n_lookups, kept));
}

void hot_rows_init(struct hot_rows *hot, const struct table *table,
                   double n_lookups, double kept, struct arena *arena)
{
    const uint64_t n_rows = table->num_embeddings;
    const uint64_t most = table->has_bins ? MOST_OF_BINS : MOST_OF_ZIPF;
    const bool is_used = n_lookups > 0;
    struct hot_places *places;
    *hot = (struct hot_rows){.n_lookups = is_used ? n_lookups : 1,
                             .kept = is_used ? kept : 1};
    law_init(&hot->law, table, n_lookups);
    row_map_init(&hot->map, table->row_order, n_rows, table->row_seed);
    /* what is left out hangs on all rows of the table */
    hot->limit = law_limit(&hot->law, n_lookups, hot->kept);
    if (table->row_order == ROW_ORDER_FREQUENCY)
        return;
    hot->n = (uint32_t)(n_rows < most ? n_rows : most);
    places = ARENA_NEW(arena, struct hot_places, 1);
    places->ranks = ARENA_NEW(arena, uint16_t, hot->n);
    places->before = ARENA_NEW(arena, float, hot->n + 1);
    pthread_mutex_init(&places->lock, NULL);
    hot->places = places;
}

static void find_places(const struct hot_rows *hot)
{
    struct hot_places *places = hot->places;
    struct ranked *placed = mem_alloc(hot->n, sizeof(*placed));
    double sum = 0;

    for (uint32_t i = 0; i < hot->n; i++)
        placed[i] = (struct ranked){(double)row_of_rank(&hot->map, i), i};
    ranked_sort(placed, hot->n);
    for (uint32_t i = 0; i < hot->n; i++) {
        places->ranks[i] = (uint16_t)placed[i].idx;
        sum +=
            law_uses(hot->n_lookups * law_of_rank(&hot->law, places->ranks[i]),
                     hot->limit);
        places->before[i + 1] = (float)(sum / (hot->n_lookups * hot->kept));
    }
    mem_free(placed);
}

/* Plans without row blocks never ask, and they are most of what short lists
 * take to plan. */
static const struct hot_places *places_of(const struct hot_rows *hot)
{
    struct hot_places *places = hot->places;

    if (atomic_load_explicit(&places->are_found, memory_order_acquire))
        return places;
    pthread_mutex_lock(&places->lock);
    if (!atomic_load_explicit(&places->are_found, memory_order_relaxed)) {
        find_places(hot);
        atomic_store_explicit(&places->are_found, true, memory_order_release);
    }
    pthread_mutex_unlock(&places->lock);
    return places;
}

/* How many of the hot rows are before this one. */
static uint32_t n_before(const struct hot_rows *hot, uint64_t row)
{
    const uint16_t *ranks = hot->n ? places_of(hot)->ranks : NULL;
    uint32_t low = 0, high = hot->n;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (row_of_rank(&hot->map, ranks[middle]) < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of a table sorted by frequency. */
static double sorted_share(const struct hot_rows *hot, double begin, double end)
{
    if (!(hot->limit > 0))
        return law_before(&hot->law, end) - law_before(&hot->law, begin);
    return law_sum_uses(&hot->law, hot->n_lookups, begin, end, hot->limit) /
           (hot->n_lookups * hot->kept);
}

double hot_rows_share(const struct hot_rows *hot, uint64_t begin, uint64_t end)
{
    const double n_others = hot->law.n_rows - hot->n;
    const float *before;
    uint32_t first, last;

    if (hot->map.order == ROW_ORDER_FREQUENCY)
        return sorted_share(hot, (double)begin, (double)end);
    before = places_of(hot)->before;
    first = n_before(hot, begin);
    last = n_before(hot, end);
    return (double)before[last] - (double)before[first] +
           (n_others > 0 ? fmax(1 - (double)before[hot->n], 0) / n_others *
                               (double)(end - begin - (last - first))
                         : 0);
}

void hot_rows_add(const struct hot_rows *hot, double n_lookups, uint64_t begin,
                  uint64_t end, double rows[REUSE_BINS])
{
    const uint32_t last = n_before(hot, end);
    const float *before;

    if (!hot->n)
        return;
    before = places_of(hot)->before;
    for (uint32_t i = n_before(hot, begin); i < last; i++) {
        const double count = n_lookups * (double)(before[i + 1] - before[i]);

        if (count >= CERTAIN_FROM)
            rows[reuse_bin_of(count)]++;
    }
}

struct table_use hot_rows_use(const struct hot_rows *hot, double n_lookups,
                              uint64_t begin, uint64_t end,
                              const struct table_use *whole)
{
    const double n_rows = (double)(end - begin);
    const double share = n_rows / hot->law.n_rows;
    double all[REUSE_BINS], rows[REUSE_BINS] = {0}, by_law[REUSE_BINS] = {0};
    struct table_use use = {0};

    for (unsigned k = 0; k < REUSE_BINS; k++)
        all[k] = whole->n_unique * whole->bins[k];
    if (hot->map.order == ROW_ORDER_FREQUENCY) {
        law_add_rows(&hot->law, n_lookups, (double)begin, (double)end, rows);
        use_less(rows, hot->limit);
        /* Of bins as much as of the whole is known: it may be of another batch
         * than the law. */
        if (hot->law.has_bins)
            law_add_rows(&hot->law, n_lookups, 0, hot->law.n_rows, by_law);
        use_less(by_law, hot->limit);
        for (unsigned k = 0; hot->law.has_bins && k < REUSE_BINS; k++)
            rows[k] = by_law[k] > 0 ? all[k] * rows[k] / by_law[k] : 0;
    } else {
        for (unsigned k = 0; k < REUSE_BINS; k++)
            rows[k] = fmax(all[k] - whole->hot[k], 0) * share;
        hot_rows_add(hot, n_lookups * hot->kept, begin, end, rows);
    }
    for (unsigned k = 0; k < REUSE_BINS; k++)
        use.n_unique += rows[k];
    for (unsigned k = 0; k < REUSE_BINS && use.n_unique > 0; k++)
        use.bins[k] = rows[k] / use.n_unique;
    use.n_unique = fmin(use.n_unique, n_rows);
    return use;
}
