/* SPDX-License-Identifier: MIT */
#include "exec/cache_report.h"

#include "base/figures.h"
#include "base/text.h"

/* A cache below this share of its slots is not full. */
#define FULL_FRAC 0.99
/* Share of the rows that find no slot, above which the report says so. */
#define NOTED_CONFLICTS 0.01

/* A cache in the report. A figure is NAN if the plan does not predict it. */
struct cache_row {
    struct exec_cache cache;
    uint32_t warm_up; /* batches before the measured ones */
    double hit_frac, conflict_frac;
    double predicted_rows, predicted_misses, predicted_hit_frac;
    double predicted_bytes;
};
#define ROW(member) MEMBER_OF(struct cache_row, member)
static const struct figure cache_figures[] = {
    {"device", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.device)},
    {"pool", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.pool)},
    {"slots", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.n_slots)},
    {"slot_width", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.slot_width)},
    {"full_frac", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.full_frac)},
    {"warm_up_batches", NULL, 0, 0, FIGURE_PLAIN, ROW(warm_up)},
    {"batches", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.n_batches)},
    {"rows_per_batch", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.rows)},
    {"hit_frac", NULL, 0, 0, FIGURE_PLAIN, ROW(hit_frac)},
    {"fills", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.misses)},
    {"conflict_frac", NULL, 0, 0, FIGURE_PLAIN, ROW(conflict_frac)},
    {"bytes", NULL, 0, 0, FIGURE_PLAIN, ROW(cache.bytes)},
    {"predicted_rows_per_batch", NULL, 0, 0, FIGURE_PLAIN, ROW(predicted_rows)},
    {"predicted_hit_frac", NULL, 0, 0, FIGURE_PLAIN, ROW(predicted_hit_frac)},
    {"predicted_fills", NULL, 0, 0, FIGURE_PLAIN, ROW(predicted_misses)},
    {"predicted_bytes", NULL, 0, 0, FIGURE_PLAIN, ROW(predicted_bytes)},
    {0},
};

/* Line of the text: the measured or the predicted figures of a cache. */
struct cache_line {
    const char *gpu, *what;
    double rows, hit_frac, misses, mb;
};
#define LINE(member) MEMBER_OF(struct cache_line, member)
static const struct figure line_figures[] = {
    {NULL, "GPU", 4, 0, FIGURE_PLAIN, LINE(gpu)},
    {NULL, "cache", -42, 42, FIGURE_CUT, LINE(what)},
    {NULL, "rows", 9, 0, FIGURE_PLAIN, LINE(rows)},
    {NULL, "hit %", 6, 1, FIGURE_PERCENT, LINE(hit_frac)},
    {NULL, "fills", 7, 0, FIGURE_PLAIN, LINE(misses)},
    {NULL, "MB", 7, 2, FIGURE_PLAIN, LINE(mb)},
    {0},
};

/* Returns the plan's figures of cache `k` of the result, or NULL. Both lists
 * are sorted by device and pool. */
static const struct device_cache *
planned(const struct plan *plan, const struct exec_result *result, size_t k)
{
    const uint32_t device = result->caches[k].device;
    size_t first = k;

    while (first && result->caches[first - 1].device == device)
        first--;
    return plan->devices && k - first < plan->devices[device].n_caches
               ? &plan->devices[device].caches[k - first]
               : NULL;
}

static struct cache_row make_row(const struct plan *plan,
                                 const struct exec_result *result, size_t k)
{
    const struct exec_cache *cache = &result->caches[k];
    const struct device_cache *plans = planned(plan, result, k);
    const double fills = plans ? plans->fills : NAN;

    return (struct cache_row){
        .cache = *cache,
        .warm_up = result->ranks[cache->device].n_fills,
        .hit_frac = cache->rows > 0 ? 1 - cache->misses / cache->rows : NAN,
        .conflict_frac = cache->rows > 0 ? cache->conflicts / cache->rows : NAN,
        .predicted_rows = plans ? plans->rows_per_batch : NAN,
        .predicted_misses = fills,
        .predicted_hit_frac = plans ? 1 - plans->miss : NAN,
        .predicted_bytes =
            cache->row_bytes ? 2 * fills * (double)cache->row_bytes : NAN,
    };
}

static void print_cache(const struct cache_row *row, struct arena *arena,
                        struct buf *out)
{
    const struct exec_cache *cache = &row->cache;
    const bool is_priced = !isnan(row->predicted_misses);
    const struct cache_line measured = {text_say(arena, "%u", cache->device),
                                        cache->pool,
                                        cache->rows,
                                        row->hit_frac,
                                        cache->misses,
                                        cache->bytes / 1e6};
    const struct cache_line predicted = {
        "",
        text_say(arena, "  %s slots x %u columns%s", TEXT_COUNT(cache->n_slots),
                 cache->slot_width, is_priced ? ", predicted" : ""),
        row->predicted_rows,
        row->predicted_hit_frac,
        row->predicted_misses,
        row->predicted_bytes / 1e6};

    figures_row(line_figures, &measured, out);
    figures_row(line_figures, &predicted, out);
}

/* Prints how many caches were still filling, and how many rows find no slot. */
static void print_notes(const struct exec_result *result, struct buf *out)
{
    double conflicts = 0, rows = 0;
    size_t n = 0;

    for (size_t k = 0; k < result->n_caches; k++) {
        const struct exec_cache *cache = &result->caches[k];

        n += cache->misses > 0 && cache->full_frac < FULL_FRAC;
        conflicts += cache->conflicts;
        rows += cache->rows;
    }
    if (n)
        buf_printf(out,
                   "%zu of %zu caches were not full after the warm-up: full "
                   "ones miss fewer rows\n",
                   n, result->n_caches);
    if (conflicts > NOTED_CONFLICTS * rows)
        buf_printf(out,
                   "%.1f %% of the rows found no slot in their set, and were "
                   "used in host memory\n",
                   100 * conflicts / rows);
}

void cache_report_print(const struct plan *plan,
                        const struct exec_result *result, struct arena *arena,
                        struct buf *out)
{
    uint64_t n_warm = 0, n_batches = 0;

    if (!result->n_caches)
        return;
    for (size_t k = 0; k < result->n_caches; k++) {
        const struct exec_cache *cache = &result->caches[k];

        n_warm = max_u64(n_warm, result->ranks[cache->device].n_fills);
        n_batches = max_u64(n_batches, cache->n_batches);
    }
    buf_printf(out,
               "\ncaches per batch, in %llu batches after a warm-up of %llu:\n",
               (unsigned long long)n_batches, (unsigned long long)n_warm);
    figures_heading(line_figures, out);
    for (size_t k = 0; k < result->n_caches; k++) {
        const struct cache_row row = make_row(plan, result, k);

        print_cache(&row, arena, out);
    }
    print_notes(result, out);
}

json_t *cache_report_to_json(const struct plan *plan,
                             const struct exec_result *result)
{
    json_t *list = result->n_caches ? json_array() : NULL;

    for (size_t k = 0; k < result->n_caches; k++) {
        const struct cache_row row = make_row(plan, result, k);

        json_array_append_new(list, figures_object(cache_figures, &row));
    }
    return list;
}
