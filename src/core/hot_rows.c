/* SPDX-License-Identifier: MIT */
#include "core/hot_rows.h"

#include "base/ranked.h"
#include "core/rank_law.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Number of hottest ranks whose rows are known one by one, for a table with a
 * Zipf law: 1024. The shares of row blocks are then exact to a percent, because
 * a row block has many of the other rows. A table with a reuse histogram needs
 * more ranks, 4096, because all rows of a bin are as hot as the first row of
 * the bin. */
#define MOST_OF_ZIPF 1024
#define MOST_OF_BINS 4096
/* Least mean number of uses for which the count of a row in a batch is taken as
 * certain. At this mean, the count varies only by about an eighth. */
#define CERTAIN_FROM 64.0

/* Moves rows to the bins of their uses after de-duplication (law_uses). Each
 * row keeps at least one use. If the limit is 0, changes nothing. */
static void use_less(double rows[REUSE_BINS], double limit)
{
    double before[REUSE_BINS];

    memcpy(before, rows, sizeof(before));
    memset(rows, 0, sizeof(before));
    for (unsigned k = 0; k < REUSE_BINS; k++)
        rows[reuse_bin_of(fmax(law_uses(reuse_bin_count(k), limit), 1))] +=
            before[k];
}

/* Distribution of a table's lookups over its rows, computed by the first
 * query. */
struct hot_found {
    struct rank_law law;
    struct row_map map;
    /* `limit`: argument of law_uses if ids are de-duplicated */
    double n_lookups, kept, limit;
    /* number of hottest ranks that are stored. 0 if the table is sorted by
     * frequency, because the rank of a row is then its index. */
    uint32_t n;
    /* [n]: the hottest ranks, sorted by the index of their rows */
    uint16_t *ranks;
    /* [n + 1]: before[i] is the share of all lookups that the rows of ranks[0]
     * to ranks[i - 1] get together */
    float *before;
    /* number of rows in each bin that add_certain counts in the whole table */
    double certain[REUSE_BINS];
};

/* `found` is NULL until the first query of the table. */
struct hot_slot {
    _Atomic(struct hot_found *) found;
};

/* Reuse of whole tables under a key. */
struct kept_uses {
    uint64_t key;
    struct table_use *use;
    struct kept_uses *next;
};

struct hot_store {
    /* lock that protects the arena, the lists and all slots of the store */
    pthread_mutex_t lock;
    struct arena *arena;
    struct kept_uses *kept; /* the newest first */
    size_t n_computed;
};

struct hot_store *hot_store_new(struct arena *arena)
{
    struct hot_store *store = ARENA_NEW(arena, struct hot_store, 1);

    pthread_mutex_init(&store->lock, NULL);
    store->arena = arena_child(arena);
    return store;
}

const struct table_use *hot_store_uses(struct hot_store *store, uint64_t key)
{
    const struct kept_uses *kept;

    pthread_mutex_lock(&store->lock);
    for (kept = store->kept; kept && kept->key != key;)
        kept = kept->next;
    pthread_mutex_unlock(&store->lock);
    return kept ? kept->use : NULL;
}

const struct table_use *hot_store_keep(struct hot_store *store, uint64_t key,
                                       const struct table_use *use, size_t n,
                                       size_t n_computed)
{
    struct kept_uses *kept;

    pthread_mutex_lock(&store->lock);
    kept = ARENA_NEW(store->arena, struct kept_uses, 1);
    *kept = (struct kept_uses){
        key, ARENA_NEW(store->arena, struct table_use, n), store->kept};
    memcpy(kept->use, use, n * sizeof(*use));
    store->kept = kept;
    store->n_computed += n_computed;
    pthread_mutex_unlock(&store->lock);
    return kept->use;
}

size_t hot_store_n_computed(struct hot_store *store)
{
    size_t n;

    pthread_mutex_lock(&store->lock);
    n = store->n_computed;
    pthread_mutex_unlock(&store->lock);
    return n;
}

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
                   double n_lookups, double kept, struct hot_store *store,
                   struct arena *arena)
{
    const bool is_used = n_lookups > 0;

    *hot = (struct hot_rows){.table = table,
                             .n_lookups = is_used ? n_lookups : 1,
                             .kept = is_used ? kept : 1,
                             .slot = ARENA_NEW(arena, struct hot_slot, 1),
                             .store = store};
}

/* Finds the rows of the n hottest ranks and their shares of the lookups. */
static void find_places(struct hot_found *found)
{
    struct ranked *placed = mem_alloc(found->n, sizeof(*placed));
    double sum = 0;

    for (uint32_t i = 0; i < found->n; i++)
        placed[i] = (struct ranked){(double)row_of_rank(&found->map, i), i};
    ranked_sort(placed, found->n);
    for (uint32_t i = 0; i < found->n; i++) {
        found->ranks[i] = (uint16_t)placed[i].idx;
        sum += law_uses(found->n_lookups *
                            law_of_rank(&found->law, found->ranks[i]),
                        found->limit);
        found->before[i + 1] = (float)(sum / (found->n_lookups * found->kept));
    }
    mem_free(placed);
}

/* Returns the number of stored hot rows whose index is less than `row`. */
static uint32_t n_before(const struct hot_found *found, uint64_t row)
{
    uint32_t low = 0, high = found->n;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (row_of_rank(&found->map, found->ranks[middle]) < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds to rows[k] the number of stored hot rows in bin k, for each bin k.
 * Counts the rows from begin to end that a batch uses CERTAIN_FROM times or
 * more. n_lookups are the lookups of the batch after de-duplication of ids. */
static void add_certain(const struct hot_found *found, double n_lookups,
                        uint64_t begin, uint64_t end, double rows[REUSE_BINS])
{
    const uint32_t last = n_before(found, end);
    const float *before = found->before;

    for (uint32_t i = n_before(found, begin); i < last; i++) {
        const double count = n_lookups * (double)(before[i + 1] - before[i]);

        if (count >= CERTAIN_FROM)
            rows[reuse_bin_of(count)]++;
    }
}

/* Returns the distribution of a table's lookups. It is computed by the first
 * query of the table and not before, because it takes about 8 KiB per table,
 * and plans without row blocks never query most tables. The lock is held only
 * while memory is allocated. If two threads query the table at once, both
 * compute the distribution, and one of the two results is discarded. */
static const struct hot_found *find(const struct hot_rows *hot)
{
    const struct table *table = hot->table;
    const uint64_t n_rows = table->num_embeddings;
    const uint64_t most = table->row_order == ROW_ORDER_FREQUENCY ? 0
                          : table->has_bins                       ? MOST_OF_BINS
                                            : MOST_OF_ZIPF;
    struct hot_found *found =
        atomic_load_explicit(&hot->slot->found, memory_order_acquire);

    if (found)
        return found;
    pthread_mutex_lock(&hot->store->lock);
    found = ARENA_NEW(hot->store->arena, struct hot_found, 1);
    found->n = (uint32_t)(n_rows < most ? n_rows : most);
    found->ranks = ARENA_NEW(hot->store->arena, uint16_t, found->n);
    found->before = ARENA_NEW(hot->store->arena, float, found->n + 1);
    pthread_mutex_unlock(&hot->store->lock);
    found->n_lookups = hot->n_lookups;
    found->kept = hot->kept;
    law_init(&found->law, table, hot->n_lookups);
    row_map_init(&found->map, table->row_order, n_rows, table->row_seed);
    /* the limit for law_uses depends on all rows of the table */
    found->limit = law_limit(&found->law, hot->n_lookups, hot->kept);
    find_places(found);
    add_certain(found, hot->n_lookups * hot->kept, 0, n_rows, found->certain);
    atomic_store_explicit(&hot->slot->found, found, memory_order_release);
    return found;
}

/* Returns the share of the lookups that rows begin to end get, in a table that
 * is sorted by frequency. */
static double sorted_share(const struct hot_found *found, double begin,
                           double end)
{
    if (!(found->limit > 0))
        return law_before(&found->law, end) - law_before(&found->law, begin);
    return law_sum_uses(&found->law, found->n_lookups, begin, end,
                        found->limit) /
           (found->n_lookups * found->kept);
}

double hot_rows_share(const struct hot_rows *hot, uint64_t begin, uint64_t end)
{
    const struct hot_found *found = find(hot);
    const double n_others = found->law.n_rows - found->n;
    const float *before = found->before;
    uint32_t first, last;

    if (found->map.order == ROW_ORDER_FREQUENCY)
        return sorted_share(found, (double)begin, (double)end);
    first = n_before(found, begin);
    last = n_before(found, end);
    return (double)before[last] - (double)before[first] +
           (n_others > 0 ? fmax(1 - (double)before[found->n], 0) / n_others *
                               (double)(end - begin - (last - first))
                         : 0);
}

struct table_use hot_rows_use(const struct hot_rows *hot, double n_lookups,
                              uint64_t begin, uint64_t end,
                              const struct table_use *whole)
{
    const struct hot_found *found = find(hot);
    const double n_rows = (double)(end - begin);
    const double share = n_rows / found->law.n_rows;
    double all[REUSE_BINS], rows[REUSE_BINS] = {0}, by_law[REUSE_BINS] = {0};
    double certain[REUSE_BINS] = {0};
    struct table_use use = {0};

    for (unsigned k = 0; k < REUSE_BINS; k++)
        all[k] = whole->n_unique * whole->bins[k];
    if (found->map.order == ROW_ORDER_FREQUENCY) {
        law_add_rows(&found->law, n_lookups, (double)begin, (double)end, rows);
        use_less(rows, found->limit);
        /* If the table has a histogram, the law may be for another batch than
         * *whole. So the rows of the law are scaled to the histogram *whole. */
        if (found->law.has_bins)
            law_add_rows(&found->law, n_lookups, 0, found->law.n_rows, by_law);
        use_less(by_law, found->limit);
        for (unsigned k = 0; found->law.has_bins && k < REUSE_BINS; k++)
            rows[k] = by_law[k] > 0 ? all[k] * rows[k] / by_law[k] : 0;
    } else {
        if (n_lookups == found->n_lookups)
            memcpy(certain, found->certain, sizeof(certain));
        else
            add_certain(found, n_lookups * found->kept, 0,
                        hot->table->num_embeddings, certain);
        for (unsigned k = 0; k < REUSE_BINS; k++)
            rows[k] = fmax(all[k] - certain[k], 0) * share;
        add_certain(found, n_lookups * found->kept, begin, end, rows);
    }
    for (unsigned k = 0; k < REUSE_BINS; k++)
        use.n_unique += rows[k];
    for (unsigned k = 0; k < REUSE_BINS && use.n_unique > 0; k++)
        use.bins[k] = rows[k] / use.n_unique;
    use.n_unique = fmin(use.n_unique, n_rows);
    return use;
}
