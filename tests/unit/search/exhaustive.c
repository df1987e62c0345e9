/* SPDX-License-Identifier: MIT */
#include "tests/unit/search/exhaustive.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "core/memory.h"

#define BATCH 256 /* plans priced in one call */

/* One way to place one table. */
struct way {
    struct way *next;
    struct shard *shards; /* [n_shards] */
    uint32_t n_shards;
    /* [R][width]: its contribution to the sums of each device */
    double *vectors;
    uint64_t *bytes; /* [R] */
};

struct way_list {
    struct way *first, **last;
    uint64_t n;
};

struct exhaustive {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    const struct exhaustive_options *options;
    struct arena *arena;
    size_t vector_size; /* R * width */
    uint64_t *room_bytes;

    /* The current partial plan: sums and bytes of the devices after the first t
     * tables. */
    const struct way **ways; /* [n_tables]: the first way of each table */
    const struct way **chosen;
    double *sums;   /* [n_tables + 1][R][width] */
    uint64_t *used; /* [n_tables + 1][R] */

    /* Complete plans that wait to be priced. */
    const struct way **waiting;           /* [BATCH][n_tables] */
    double *batch_sums;                   /* [BATCH][R][width] */
    double *compute_ms, *fwd_ms, *bwd_ms; /* [BATCH][R] */
    size_t n_waiting;

    const struct way **best; /* [n_tables] */
    double best_ms;
    uint64_t n_priced;
    bool is_bad;
};

void exhaustive_options_init(struct exhaustive_options *options)
{
    *options = (struct exhaustive_options){.max_plans = 10000000};
}

static unsigned kinds_of(const struct exhaustive *all, uint32_t t)
{
    return all->problem->tables[t].kinds & all->problem->kinds &
           all->oracle->kinds;
}

static void add_way(struct exhaustive *all, struct way_list *list,
                    const struct shard *shards, uint32_t n)
{
    uint32_t n_devices = all->problem->cluster.n_devices;
    uint32_t width = all->oracle->width;
    struct way *way;
    double *vectors;
    int64_t pin = all->problem->tables[shards[0].table].device;

    for (uint32_t i = 0; pin >= 0 && i < n; i++)
        if (shards[i].device != pin)
            return;
    way = ARENA_NEW(all->arena, struct way, 1);
    way->shards = ARENA_NEW(all->arena, struct shard, n);
    memcpy(way->shards, shards, n * sizeof(*shards));
    way->n_shards = n;
    way->vectors = ARENA_NEW(all->arena, double, all->vector_size);
    way->bytes = ARENA_NEW(all->arena, uint64_t, n_devices);
    vectors = ARENA_NEW(all->arena, double, n *(size_t)width);
    all->oracle->ops->embed(all->oracle, shards, n, vectors);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = shards[i].device;
        struct memory_items items;

        items = shard_memory(all->problem, &shards[i]);
        way->bytes[r] = saturating_add(way->bytes[r], items.total);
        for (uint32_t w = 0; w < width; w++)
            way->vectors[r * (size_t)width + w] += vectors[i * width + w];
    }
    *list->last = way;
    list->last = &way->next;
    list->n++;
}

static void add_whole(struct exhaustive *all, struct way_list *list, uint32_t t)
{
    for (uint32_t r = 0; r < all->problem->cluster.n_devices; r++) {
        struct shard shard = shard_whole(all->problem, t, r);

        add_way(all, list, &shard, 1);
    }
}

static bool is_half(uint32_t width, uint32_t dim)
{
    while (dim > width && dim % 2 == 0)
        dim /= 2;
    return dim == width;
}

/* Adds each multiset of (width, device) whose widths add up to the dim, exactly
 * once. Pieces are ordered by width, widest first, then by device. */
static void add_columns(struct exhaustive *all, struct way_list *list,
                        struct shard *pieces, uint32_t n, uint32_t t)
{
    const struct table *table = &all->problem->tables[t];
    uint32_t done = n ? pieces[n - 1].col_end : 0;
    uint32_t widest = n ? done - pieces[n - 1].col_begin : table->dim - 1;

    if (done == table->dim) {
        add_way(all, list, pieces, n);
        return;
    }
    widest -= widest % TABLE_COLUMN_STEP;
    for (uint32_t width = widest; width; width -= TABLE_COLUMN_STEP) {
        bool is_same = n && width == done - pieces[n - 1].col_begin;

        if (width > table->dim - done ||
            width < table_min_width(all->problem, table) ||
            (all->options->halves_only && !is_half(width, table->dim)))
            continue;
        for (uint32_t r = is_same ? pieces[n - 1].device : 0;
             r < all->problem->cluster.n_devices; r++) {
            pieces[n] = shard_whole(all->problem, t, r);
            pieces[n].kind = SHARD_COLUMN;
            pieces[n].col_begin = done;
            pieces[n].col_end = done + width;
            add_columns(all, list, pieces, n + 1, t);
        }
    }
}

/* Adds a row cut over the devices of the mask, in their order. Blocks without
 * rows are left out. */
static void add_rows_over(struct exhaustive *all, struct way_list *list,
                          uint32_t t, uint64_t devices, uint32_t n_devices)
{
    uint64_t rows = all->problem->tables[t].num_embeddings;
    uint64_t block = (rows - 1) / n_devices + 1;
    struct shard *pieces = ARENA_NEW(all->arena, struct shard, n_devices);
    uint32_t n = 0;

    for (uint32_t r = 0; devices >> r && n * block < rows; r++) {
        if (!(devices >> r & 1))
            continue;
        pieces[n] = shard_whole(all->problem, t, r);
        pieces[n].kind = SHARD_ROW;
        pieces[n].row_begin = n * block;
        pieces[n].row_end = (n + 1) * block < rows ? (n + 1) * block : rows;
        n++;
    }
    if (n > 1)
        add_way(all, list, pieces, n);
}

static void add_rows(struct exhaustive *all, struct way_list *list, uint32_t t)
{
    const struct cluster *cluster = &all->problem->cluster;
    uint32_t n_local = cluster_group(cluster);

    for (uint64_t devices = 1; devices < UINT64_C(1) << cluster->n_devices;
         devices++) {
        uint64_t host = (UINT64_C(1) << n_local) - 1;
        uint32_t n = 0;
        bool is_host = false;

        for (uint32_t r = 0; r < cluster->n_devices; r++)
            n += (uint32_t)(devices >> r & 1);
        for (uint32_t r = 0; r < cluster->n_devices; r += n_local)
            is_host |= devices == host << r;
        if (all->oracle->row_cut == ROW_CUT_RANKS && n != cluster->n_devices &&
            (!is_host || all->problem->tables[t].output == OUTPUT_SEQUENCE))
            continue;
        add_rows_over(all, list, t, devices, n);
    }
}

static void add_replicas(struct exhaustive *all, struct way_list *list,
                         uint32_t t)
{
    uint32_t n = all->problem->cluster.n_devices;
    struct shard *pieces = ARENA_NEW(all->arena, struct shard, n);

    for (uint32_t r = 0; r < n; r++) {
        pieces[r] = shard_whole(all->problem, t, r);
        pieces[r].kind = SHARD_REPLICATE;
    }
    if (n > 1)
        add_way(all, list, pieces, n);
}

/* Lists all ways to place a table. */
static struct way_list list_ways(struct exhaustive *all, uint32_t t)
{
    const struct table *table = &all->problem->tables[t];
    struct way_list list = {0};
    unsigned kinds = kinds_of(all, t);

    list.last = &list.first;
    if (kinds & SHARD_TABLE)
        add_whole(all, &list, t);
    if (kinds & SHARD_COLUMN && table->dim % TABLE_COLUMN_STEP == 0)
        add_columns(all, &list, ARENA_NEW(all->arena, struct shard, table->dim),
                    0, t);
    if (kinds & SHARD_ROW)
        add_rows(all, &list, t);
    if (kinds & SHARD_REPLICATE)
        add_replicas(all, &list, t);
    all->ways[t] = list.first;
    return list;
}

static double total_of(const struct exhaustive *all, size_t i)
{
    size_t n_devices = all->problem->cluster.n_devices, at = i * n_devices;

    return oracle_total_ms(n_devices, all->compute_ms + at, all->bwd_ms + at,
                           all->fwd_ms + at);
}

static void price_waiting(struct exhaustive *all)
{
    const struct oracle *oracle = all->oracle;
    uint32_t n_devices = all->problem->cluster.n_devices;
    size_t n_tables = all->problem->n_tables;

    oracle->ops->compute(oracle, all->batch_sums, all->n_waiting * n_devices,
                         all->compute_ms);
    oracle->ops->comm(oracle, all->n_waiting, all->batch_sums, all->compute_ms,
                      all->fwd_ms, all->bwd_ms);
    for (size_t i = 0; i < all->n_waiting; i++) {
        double total_ms = total_of(all, i);

        all->is_bad |= !isfinite(total_ms);
        if (!(total_ms < all->best_ms))
            continue;
        all->best_ms = total_ms;
        memcpy(all->best, all->waiting + i * n_tables,
               n_tables * sizeof(*all->best));
    }
    all->n_priced += all->n_waiting;
    all->n_waiting = 0;
}

static void wait_to_be_priced(struct exhaustive *all)
{
    size_t n_tables = all->problem->n_tables;

    memcpy(all->batch_sums + all->n_waiting * all->vector_size,
           all->sums + n_tables * all->vector_size,
           all->vector_size * sizeof(double));
    memcpy(all->waiting + all->n_waiting * n_tables, all->chosen,
           n_tables * sizeof(*all->chosen));
    if (++all->n_waiting == BATCH)
        price_waiting(all);
}

/* Places table t in this way on top of the first t tables. Returns false if a
 * device has not enough memory. */
static bool put(struct exhaustive *all, uint32_t t, const struct way *way)
{
    uint32_t n_devices = all->problem->cluster.n_devices;
    const double *sums = all->sums + t * all->vector_size;
    const uint64_t *used = all->used + t * (size_t)n_devices;

    for (uint32_t r = 0; r < n_devices; r++) {
        if (way->bytes[r] > all->room_bytes[r] - used[r])
            return false;
        all->used[(t + 1) * (size_t)n_devices + r] = used[r] + way->bytes[r];
    }
    for (size_t i = 0; i < all->vector_size; i++)
        all->sums[(t + 1) * all->vector_size + i] = sums[i] + way->vectors[i];
    all->chosen[t] = way;
    return true;
}

static void place_from(struct exhaustive *all, uint32_t t)
{
    if (t == all->problem->n_tables) {
        wait_to_be_priced(all);
        return;
    }
    for (const struct way *way = all->ways[t]; way; way = way->next)
        if (put(all, t, way))
            place_from(all, t + 1);
}

static void exhaustive_init(struct exhaustive *all,
                            const struct problem *problem,
                            const struct oracle *oracle,
                            const struct exhaustive_options *options,
                            struct arena *arena)
{
    size_t n_tables = problem->n_tables, n = problem->cluster.n_devices;

    *all = (struct exhaustive){.problem = problem,
                               .oracle = oracle,
                               .options = options,
                               .arena = arena,
                               .vector_size = n * oracle->width,
                               .best_ms = INFINITY};
    all->room_bytes = ARENA_NEW(arena, uint64_t, n);
    problem_room_bytes(problem, all->room_bytes);
    all->ways = ARENA_NEW(arena, const struct way *, n_tables);
    all->chosen = ARENA_NEW(arena, const struct way *, n_tables);
    all->best = ARENA_NEW(arena, const struct way *, n_tables);
    all->sums = ARENA_NEW(arena, double, (n_tables + 1) * all->vector_size);
    all->used = ARENA_NEW(arena, uint64_t, (n_tables + 1) * n);
    all->waiting = ARENA_NEW(arena, const struct way *, BATCH *n_tables);
    all->batch_sums = ARENA_NEW(arena, double, BATCH * all->vector_size);
    all->compute_ms = ARENA_NEW(arena, double, BATCH *n);
    all->fwd_ms = ARENA_NEW(arena, double, BATCH *n);
    all->bwd_ms = ARENA_NEW(arena, double, BATCH *n);
}

/* Lists the ways of all tables; returns the product of their numbers. */
static uint64_t list_all(struct exhaustive *all)
{
    uint64_t product = 1;

    for (uint32_t t = 0; t < all->problem->n_tables; t++) {
        uint64_t n = list_ways(all, t).n;

        product = n && product > UINT64_MAX / n ? UINT64_MAX : product * n;
    }
    return product;
}

uint64_t exhaustive_count(const struct problem *problem,
                          const struct oracle *oracle,
                          const struct exhaustive_options *options)
{
    struct exhaustive all;
    struct arena scratch = {0};
    uint64_t n;

    exhaustive_init(&all, problem, oracle, options, &scratch);
    n = list_all(&all);
    arena_release(&scratch);
    return n;
}

static void fill_plan(struct plan *plan, const struct exhaustive *all,
                      struct arena *arena)
{
    size_t n_tables = all->problem->n_tables;

    plan->n_shards = 0;
    for (size_t t = 0; t < n_tables; t++)
        plan->n_shards += all->best[t]->n_shards;
    plan->shards = ARENA_NEW(arena, struct shard, plan->n_shards);
    for (size_t t = 0, i = 0; t < n_tables; i += all->best[t++]->n_shards)
        memcpy(&plan->shards[i], all->best[t]->shards,
               all->best[t]->n_shards * sizeof(*plan->shards));
    plan->shard_ms = NULL; /* belongs to other shards */
    plan_sort_shards(plan);
    plan->search = "exhaustive";
    plan->stopped = "done";
    plan->seed = 0;
    plan->n_evaluations = all->n_priced;
}

static int check_size(struct exhaustive *all, struct err *err)
{
    uint64_t n_plans;

    for (size_t t = 0; t < all->problem->n_tables; t++)
        if (all->problem->tables[t].group)
            return err_set(err, ERR_USAGE,
                           "table '%s' is in a group, which the exhaustive "
                           "search does not know",
                           all->problem->tables[t].name);
    n_plans = list_all(all);
    if (n_plans > all->options->max_plans)
        return err_set(err, ERR_USAGE,
                       "there are %" PRIu64 " plans, more than the %" PRIu64
                       " that may be tried",
                       n_plans, all->options->max_plans);
    return 0;
}

int search_exhaustive(struct plan *plan, const struct oracle *oracle,
                      const struct exhaustive_options *options,
                      struct arena *arena, struct err *err)
{
    double start_ms = clock_ms();
    struct exhaustive all;
    struct arena scratch = {0};
    int rc = -1;

    exhaustive_init(&all, &plan->problem, oracle, options, &scratch);
    if (check_size(&all, err))
        goto out;
    place_from(&all, 0);
    price_waiting(&all);
    if (all.is_bad) {
        err_set(err, ERR_INPUT,
                "cost model '%s' gives no finite cost for some GPUs",
                oracle->cost.name);
        goto out;
    }
    if (isinf(all.best_ms)) {
        err_set(err, ERR_NO_PLAN, "no plan fits: none of all there are does");
        goto out;
    }
    fill_plan(plan, &all, arena);
    plan->search_ms = clock_ms() - start_ms;
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}
