/* SPDX-License-Identifier: MIT */
#include "emit/caches_table.h"

#include "base/figures.h"
#include "base/ranked.h"
#include "core/cache_pools.h"

/* Largest number of caches that are printed; JSON has all. */
#define CACHES_SHOWN 16

/* A printed line. */
struct cache_share_line {
    uint64_t gpu, n_pieces;
    double held_percent; /* slots / rows of the pieces */
    double gib;
    double rows_per_batch, fills;
    double hit_percent;
    const char *pool;
};

#define CACHE(member) MEMBER_OF(struct cache_share_line, member)
static const struct figure cache_figures[] = {
    {"gpu", "GPU", 4, 0, FIGURE_PLAIN, CACHE(gpu)},
    {"pieces", "pieces", 7, 0, FIGURE_PLAIN, CACHE(n_pieces)},
    {"held_percent", "held %", 7, 1, FIGURE_PLAIN, CACHE(held_percent)},
    {"gib", "GiB", 8, 3, FIGURE_PLAIN, CACHE(gib)},
    {"rows_per_batch", "batch rows", 11, 0, FIGURE_PLAIN,
     CACHE(rows_per_batch)},
    {"fills", "fetched", 10, 0, FIGURE_PLAIN, CACHE(fills)},
    {"hit_percent", "hit %", 6, 1, FIGURE_PLAIN, CACHE(hit_percent)},
    {"pool", NULL, 0, 0, FIGURE_PLAIN, CACHE(pool)},
    {0},
};

/* Returns the rows of all caches in a new array, sorted, and their number. The
 * caller frees the array. */
static struct cache_share_line *find_rows(const struct plan *plan, size_t *n)
{
    struct cache_pools pools;
    struct cache_share_line *rows, *sorted;
    struct ranked *order;
    const struct device_cache *cache;
    size_t i = 0;

    cache_pools_init(&pools, plan);
    *n = pools.n;
    rows = mem_alloc(pools.n, sizeof(*rows));
    sorted = mem_alloc(pools.n, sizeof(*sorted));
    order = mem_alloc(pools.n, sizeof(*order));
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        for (size_t k = 0; k < plan->devices[r].n_caches; k++, i++) {
            const struct cache_pool *pool = &pools.pools[i];
            struct memory_items items = {0};

            cache = &plan->devices[r].caches[k];
            pool_add_memory(&plan->problem, pool, &items);
            rows[i] = (struct cache_share_line){
                .gpu = r,
                .n_pieces = pool->n_pieces,
                .held_percent =
                    100 * (double)cache->n_slots / (double)pool->n_rows,
                .gib = (double)items.total / 0x1p30,
                .rows_per_batch = cache->rows_per_batch,
                .fills = cache->fills,
                .hit_percent = 100 * (1 - cache->miss),
                .pool = cache->pool};
            order[i] = (struct ranked){-cache->fills, (uint32_t)i};
        }
    ranked_sort(order, *n);
    for (i = 0; i < *n; i++)
        sorted[i] = rows[order[i].idx];
    mem_free(order);
    mem_free(rows);
    cache_pools_release(&pools);
    return sorted;
}

void caches_print(const struct plan *plan, struct buf *out)
{
    size_t n;
    struct cache_share_line *rows;

    if (!plan_has_caches(plan) || !plan->devices)
        return;
    rows = find_rows(plan, &n);
    buf_printf(out, "\ncaches of rows, held: share of the rows of their "
                    "pieces; rows are per batch\n");
    FIGURES_TABLE(cache_figures, rows, min_u64(n, CACHES_SHOWN), out);
    if (n > CACHES_SHOWN)
        buf_printf(out, "and %zu caches that fetch fewer rows\n",
                   n - CACHES_SHOWN);
    mem_free(rows);
}

json_t *caches_to_json(const struct plan *plan)
{
    json_t *list;
    struct cache_share_line *rows;
    size_t n;

    if (!plan_has_caches(plan) || !plan->devices)
        return json_array();
    rows = find_rows(plan, &n);
    list = FIGURES_LIST(cache_figures, rows, n);
    mem_free(rows);
    return list;
}

void caches_print_binding(const struct plan *plan, uint32_t gpu,
                          struct buf *out)
{
    size_t n, i = 0;
    struct cache_share_line *rows;

    if (!plan_has_caches(plan) || !plan->devices)
        return;
    rows = find_rows(plan, &n);
    while (i < n && rows[i].gpu != gpu)
        i++;
    if (i < n && rows[i].fills > 0)
        buf_printf(
            out,
            "        the cache of GPU %u holds %.3g %% of its rows; %.3g "
            "%% of the rows of a\n"
            "        batch are fetched from the host\n",
            gpu, rows[i].held_percent, 100 - rows[i].hit_percent);
    mem_free(rows);
}
