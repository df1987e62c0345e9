/* SPDX-License-Identifier: MIT */
#include "core/tier_check.h"

#include "base/text.h"
#include "core/cache_pools.h"
#include "core/target_rules.h"

#include <inttypes.h>
#include <string.h>

int tier_check_problem(const struct problem *problem, struct err *err)
{
    if (!problem->cluster.host_bytes)
        return 0;
    if (problem->memory_model != MEMORY_FULL)
        return err_input(err,
                         "the cluster has host memory for tables, but memory "
                         "is counted by the model '%s', not 'full'",
                         memory_model_names[problem->memory_model]);
    if (problem_n_groups(problem) > 1)
        return err_input(err,
                         "the cluster has host memory for tables, but there "
                         "are %u sharding groups; groups keep all tables in "
                         "the memory of GPUs",
                         problem_n_groups(problem));
    return 0;
}

/* Returns the reason why the table may not have this tier, or NULL. */
static const char *barred(const struct judged *judged, enum tier tier)
{
    const struct problem *problem = &judged->plan->problem;
    const struct table *table = judged->table;
    const enum shard_kind kind = judged->pieces[0]->kind;

    if (!(table->tiers & 1u << tier))
        return "the table does not allow it";
    if (tier == TIER_HBM)
        return NULL;
    if (!problem->cluster.host_bytes)
        return "the cluster has no host memory for tables";
    if (!problem_target(problem)->has_tiers)
        return "the plan's target keeps all tables in the memory of GPUs";
    if (kind == SHARD_REPLICATE)
        return "a replicated table is in the memory of GPUs";
    if (tier == TIER_HOST)
        return NULL;
    if (table->precision != PRECISION_FP32 &&
        table->precision != PRECISION_FP16)
        return "caches hold fp32 and fp16";
    if ((kind == SHARD_ROW || kind == SHARD_GRID) &&
        table->row_order == ROW_ORDER_FREQUENCY)
        return "its rows are cut, but the hot rows are next to each other";
    return NULL;
}

int tier_check_pieces(const struct judged *judged, struct err *err)
{
    const struct plan *plan = judged->plan;
    const enum tier tier = judged->pieces[0]->tier;
    const size_t t = judged->pieces[0]->table;
    const double factor = plan->load_factors ? plan->load_factors[t] : 0;
    const char *why;

    for (size_t i = 1; i < judged->n; i++)
        if (judged->pieces[i]->tier != tier)
            return err_input(err,
                             "table '%.80s' has a piece in tier '%s' and one "
                             "in tier '%s', but a table has one tier",
                             judged->table->name, tier_names[tier],
                             tier_names[judged->pieces[i]->tier]);
    why = barred(judged, tier);
    if (why)
        return err_input(err, "table '%.80s' is in tier '%s', but %s",
                         judged->table->name, tier_names[tier], why);
    if (tier == TIER_CACHED ? factor >= CACHE_MIN_LOAD_FACTOR && factor <= 1
                            : factor == 0)
        return 0;
    return tier == TIER_CACHED
               ? err_input(err,
                           "table '%.80s' is cached with a load factor of %g, "
                           "not in %g to 1",
                           judged->table->name, factor, CACHE_MIN_LOAD_FACTOR)
               : err_input(err,
                           "table '%.80s' has a load factor of %g, but is not "
                           "cached",
                           judged->table->name, factor);
}

/* --- caches --- */

/* A cache that is being counted: its first piece, and sums over its pieces. */
struct counted {
    const struct shard *first;
    double factors, weights;
    uint64_t n_rows;
    uint32_t width;
};

static bool is_whole_or_columns(enum shard_kind kind)
{
    return kind == SHARD_TABLE || kind == SHARD_COLUMN;
}

static bool share_a_cache(const struct problem *problem, const struct shard *a,
                          const struct shard *b)
{
    const struct table *x = &problem->tables[a->table];
    const struct table *y = &problem->tables[b->table];
    const uint32_t n = problem->cluster.n_devices;

    if (!tables_share_module(x, y) || x->output != y->output ||
        x->precision != y->precision || x->optimizer != y->optimizer)
        return false;
    if (problem->job.pipeline == PIPELINE_PREFETCH &&
        a->col_end - a->col_begin != b->col_end - b->col_begin)
        return false;
    if (x->output == OUTPUT_POOLED && is_whole_or_columns(a->kind) &&
        is_whole_or_columns(b->kind))
        return true;
    if (a->kind != b->kind)
        return false;
    return a->kind != SHARD_ROW || (shard_row_ranks(problem, a) == n) ==
                                       (shard_row_ranks(problem, b) == n);
}

/* Adds a piece to its cache, one of the n of its device. Returns the number of
 * caches. */
static size_t count_piece(const struct plan *plan, struct counted *caches,
                          size_t n, const struct shard *piece)
{
    const double rows =
        (double)plan->problem.tables[piece->table].num_embeddings;
    const uint32_t width = piece->col_end - piece->col_begin;
    size_t i = 0;

    while (i < n && !share_a_cache(&plan->problem, caches[i].first, piece))
        i++;
    if (i == n)
        caches[n++] = (struct counted){.first = piece};
    caches[i].factors += plan->load_factors[piece->table] * rows;
    caches[i].weights += rows;
    caches[i].n_rows += piece->row_end - piece->row_begin;
    caches[i].width = width > caches[i].width ? width : caches[i].width;
    return n;
}

/* Finds the stored cache of a device that a counted cache must be. */
static const struct device_cache *stored_cache(const struct plan *plan,
                                               const struct shard *first)
{
    const struct device_cost *device = &plan->devices[first->device];
    const struct pool_key key = shard_pool(&plan->problem, first);
    const struct device_cache *found = NULL;
    struct buf name = {0};

    pool_print(&key, &name);
    for (size_t i = 0; i < device->n_caches; i++)
        if (!strcmp(device->caches[i].pool, name.data))
            found = &device->caches[i];
    buf_release(&name);
    return found;
}

/* Largest relative difference of two load factors that count as equal. It
 * covers the rounding of numbers in files. */
#define FACTOR_TOLERANCE 1e-12

static int check_cache(const struct plan *plan, const struct counted *cache,
                       struct memory_items *items, struct err *err)
{
    const uint32_t r = cache->first->device;
    const double factor = cache->factors / cache->weights;
    const uint64_t wanted = (uint64_t)((double)cache->n_rows * factor);
    const uint64_t slots = wanted ? 32 * ((wanted - 1) / 32 + 1) : 32;
    const uint64_t bytes =
        plan->problem.tables[cache->first->table].precision == PRECISION_FP16
            ? 2
            : 4;
    const struct device_cache *stored;
    struct memory_items more = {.cache = slots * cache->width * bytes,
                                .cache_state = 16 * slots};

    if (plan->problem.job.pipeline == PIPELINE_PREFETCH)
        more.cache_state = 20 * slots;
    more.total = more.cache + more.cache_state;
    memory_add(&items[r], more);
    if (!plan->devices)
        return 0;
    stored = stored_cache(plan, cache->first);
    if (stored && stored->n_slots == slots &&
        stored->slot_width == cache->width &&
        fabs(stored->load_factor - factor) <= FACTOR_TOLERANCE * factor)
        return 0;
    return err_input(err,
                     "devices[%u].caches does not agree with its shards: the "
                     "cache of table '%.80s' has %" PRIu64
                     " slots of %u columns, load factor %.17g",
                     r, plan->problem.tables[cache->first->table].name, slots,
                     cache->width, factor);
}

/* Counts the caches of device r. caches[n_shards] is working memory. */
static int check_device(const struct plan *plan,
                        const struct shard *const *pieces, uint32_t r,
                        struct counted *caches, struct memory_items *items,
                        struct err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        if (pieces[i]->device == r && pieces[i]->tier == TIER_CACHED)
            n = count_piece(plan, caches, n, pieces[i]);
    for (size_t i = 0; i < n; i++)
        if (check_cache(plan, &caches[i], items, err))
            return -1;
    if (!plan->devices || plan->devices[r].n_caches == n)
        return 0;
    return err_input(err,
                     "devices[%u].caches has %zu caches, but its shards have "
                     "%zu",
                     r, plan->devices[r].n_caches, n);
}

int tier_check_caches(const struct plan *plan,
                      const struct shard *const *pieces,
                      struct memory_items *items, struct err *err)
{
    struct counted *caches = mem_alloc(plan->n_shards, sizeof(*caches));
    const bool has_caches = plan_has_caches(plan);
    int rc = 0;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices && !rc; r++)
        if (has_caches || (plan->devices && plan->devices[r].n_caches))
            rc = check_device(plan, pieces, r, caches, items, err);
    mem_free(caches);
    return rc;
}

int tier_check_hosts(const struct plan *plan, const struct memory_items *items,
                     struct err *err)
{
    const struct cluster *cluster = &plan->problem.cluster;

    for (uint32_t begin = 0; begin < cluster->n_devices;
         begin += cluster->devices_per_host) {
        uint64_t bytes = 0;

        for (uint32_t r = begin;
             r < begin + cluster->devices_per_host && r < cluster->n_devices;
             r++)
            bytes = saturating_add(bytes, items[r].host);
        if (bytes <= cluster->host_bytes)
            continue;
        err_set(err, ERR_NO_PLAN,
                "host %u needs %s of its memory for tables, but it has %s",
                begin / cluster->devices_per_host, TEXT_BYTES(bytes),
                TEXT_BYTES(cluster->host_bytes));
        err->shortage = (struct shortage){.subject = "host",
                                          .need_bytes = bytes,
                                          .have_bytes = cluster->host_bytes};
        return -1;
    }
    return 0;
}
