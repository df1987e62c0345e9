/* SPDX-License-Identifier: MIT */
#include "exec/placement.h"

#include "base/ranked.h"
#include "core/cache_pools.h"
#include "device/stream_math.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint32_t placement_sample(const struct placement *placement, uint32_t rank)
{
    return (uint32_t)((uint64_t)rank * placement->batch / placement->n_ranks);
}

uint32_t placement_part_sample(const struct placement *placement, uint32_t rank,
                               uint32_t part, uint32_t n_parts)
{
    uint64_t begin = placement_sample(placement, rank);
    uint64_t n = placement_sample(placement, rank + 1) - begin;

    return (uint32_t)(begin + n * part / n_parts);
}

uint32_t placement_copy_samples(const struct placement *placement)
{
    return placement->batch / placement->n_copies;
}

uint32_t placement_copy_of(const struct placement *placement, uint32_t rank)
{
    return rank / (placement->n_ranks / placement->n_copies);
}

struct rank_range placement_copy_ranks(const struct placement *placement,
                                       uint32_t copy)
{
    const uint32_t n = placement->n_ranks / placement->n_copies;

    return (struct rank_range){copy * n, (copy + 1) * n};
}

struct piece_range placement_copy_pieces(const struct placement *placement,
                                         size_t table_idx, uint32_t copy)
{
    struct piece **pieces = placement->table_pieces + table_idx;
    const size_t n = (size_t)(pieces[1] - pieces[0]) / placement->n_copies;

    return (struct piece_range){pieces[0] + copy * n,
                                pieces[0] + (copy + (size_t)1) * n};
}

/* Returns the number of outputs of the group for the samples begin .. end - 1:
 * bags, or vectors of a sequence. */
static uint64_t outputs_between(const struct group *group, uint32_t begin,
                                uint32_t end)
{
    return group->vectors ? group->vectors[end] - group->vectors[begin]
                          : (uint64_t)(end - begin) * group->n_outputs;
}

struct group placement_part(const struct placement *placement,
                            const struct group *group, uint32_t part,
                            uint32_t n_parts)
{
    struct rank_range owners = group->owners;
    struct group own = *group;
    size_t before = 0;

    own.part = part;
    own.n_parts = n_parts;
    own.n_samples = own.n_bags = 0;
    for (uint32_t r = owners.begin; r < owners.end; r++) {
        uint32_t first = placement_sample(placement, r);
        uint32_t begin = placement_part_sample(placement, r, part, n_parts);
        uint32_t end = placement_part_sample(placement, r, part + 1, n_parts);

        before += outputs_between(&own, first, begin);
        own.n_samples += end - begin;
        own.n_bags += (uint32_t)outputs_between(&own, begin, end);
    }
    if (own.d_out)
        own.d_out = (char *)own.d_out + before * group_bag_bytes(&own);
    return own;
}

uint64_t placement_outputs(const struct placement *placement,
                           const struct group *group, uint32_t rank)
{
    return outputs_between(group, placement_sample(placement, rank),
                           placement_sample(placement, rank + 1));
}

bool placement_drops_repeats(const struct placement *placement,
                             size_t table_idx)
{
    const struct problem *problem = &placement->plan->problem;

    return problem->job.dedup == DEDUP_IDS &&
           problem->tables[table_idx].output == OUTPUT_SEQUENCE;
}

uint64_t placement_scale_row(const struct table *table, uint64_t row,
                             double scale_rows)
{
    uint64_t n_rows, scaled;

    if (scale_rows >= 1)
        return row;
    n_rows = (uint64_t)floor((double)table->num_embeddings * scale_rows + 0.5);
    if (!n_rows)
        n_rows = 1;
    scaled = (uint64_t)floor((double)row * scale_rows + 0.5);
    return row == table->num_embeddings || scaled > n_rows ? n_rows : scaled;
}

double placement_lookups(const struct placement *placement,
                         const struct piece *piece)
{
    const struct hot_rows *hot = placement->plan->problem.hot;
    const uint64_t all_rows = placement->table_rows[piece->table_idx];
    const double n = piece->table->pooling_factor * piece->group->n_samples;

    if (piece->group->vectors)
        return piece->group->n_bags;
    if (hot && piece->n_rows < all_rows &&
        all_rows == piece->table->num_embeddings)
        return n * hot_rows_share(&hot[piece->table_idx], piece->row_begin,
                                  piece->row_end);
    return n * (double)piece->n_rows / (double)all_rows;
}

static int compare_pieces(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;

    return ranked_compare(
        (const uint64_t[]){a->table_idx, a->copy, a->row_begin, a->row_end,
                           a->col_begin, a->rank},
        (const uint64_t[]){b->table_idx, b->copy, b->row_begin, b->row_end,
                           b->col_begin, b->rank},
        6);
}

static struct piece piece_of_shard(const struct placement *placement,
                                   const struct shard *shard, uint32_t copy)
{
    const struct table *table = &placement->plan->problem.tables[shard->table];
    double scale = placement->scale_rows;
    struct piece piece = {
        .table = table,
        .table_idx = shard->table,
        .table_seed =
            stream_random(stream_mix64(placement->seed), shard->table),
        .replica = shard_is_replica(shard->kind),
        .rank = placement_copy_ranks(placement, copy).begin + shard->device,
        .copy = copy,
        .row_begin = placement_scale_row(table, shard->row_begin, scale),
        .row_end = placement_scale_row(table, shard->row_end, scale),
        .col_begin = shard->col_begin,
        .width = shard->col_end - shard->col_begin,
        .tier = shard->tier,
    };

    piece.n_rows = piece.row_end - piece.row_begin;
    if (!piece.n_rows)
        piece.n_rows = 1;
    return piece;
}

/* Makes the caches of the plan's pools, and sets those of the pieces, which are
 * in the order of plan->shards. */
static void make_caches(struct placement *placement, struct arena *arena)
{
    const struct plan *plan = placement->plan;
    struct cache_pools pools;

    cache_pools_init(&pools, plan);
    placement->n_caches = pools.n;
    placement->caches = ARENA_NEW(arena, struct pool_cache, pools.n);
    for (size_t k = 0; k < pools.n; k++) {
        const struct cache_pool *pool = &pools.pools[k];
        struct buf name = {0};

        pool_print(&pool->key, &name);
        placement->caches[k] = (struct pool_cache){
            .rank = pool->device,
            .name = arena_strdup(arena, name.data),
            .load_factor = pool->load_factor,
            .slot_width = pool->slot_width,
            .slot_bytes = (size_t)pool_row_bytes(&pool->key, pool->slot_width),
            .pieces = ARENA_NEW(arena, struct piece *, pool->n_pieces)};
        buf_release(&name);
    }
    for (size_t i = 0; i < plan->n_shards; i++)
        if (pools.of_shard[i] != SIZE_MAX)
            placement->pieces[i].cache = &placement->caches[pools.of_shard[i]];
    cache_pools_release(&pools);
}

/* Lists the pieces of each cache, in their final order, and computes the number
 * of slots from the scaled rows. */
static void fill_caches(struct placement *placement)
{
    for (size_t i = 0; i < placement->n_pieces; i++) {
        struct piece *piece = &placement->pieces[i];
        struct pool_cache *cache = piece->cache;

        if (!cache)
            continue;
        piece->cache_row = cache->n_rows;
        cache->pieces[cache->n_pieces++] = piece;
        cache->n_rows += piece->n_rows;
    }
    for (size_t k = 0; k < placement->n_caches; k++)
        placement->caches[k].n_slots = pool_slots(
            placement->caches[k].n_rows, placement->caches[k].load_factor);
}

static void make_pieces(struct placement *placement, struct arena *arena)
{
    const struct plan *plan = placement->plan;
    size_t n_tables = plan->problem.n_tables;

    placement->n_pieces = plan->n_shards * placement->n_copies;
    placement->pieces = ARENA_NEW(arena, struct piece, placement->n_pieces);
    for (uint32_t copy = 0; copy < placement->n_copies; copy++)
        for (size_t i = 0; i < plan->n_shards; i++)
            placement->pieces[copy * plan->n_shards + i] =
                piece_of_shard(placement, &plan->shards[i], copy);
    make_caches(placement, arena);
    qsort(placement->pieces, placement->n_pieces, sizeof(struct piece),
          compare_pieces);
    placement->table_pieces = ARENA_NEW(arena, struct piece *, n_tables + 1);
    fill_caches(placement);
    for (size_t t = 0, i = 0; t <= n_tables; t++) {
        while (i < placement->n_pieces && placement->pieces[i].table_idx < t)
            i++;
        placement->table_pieces[t] = &placement->pieces[i];
    }
}

/* Returns the precision in which the exchange carries the outputs of a
 * piece. */
static enum precision output_precision(const struct piece *piece)
{
    return piece->replica ? PRECISION_FP32 : piece->table->comm_precision;
}

/* Returns a number that orders the pieces of sequences like the array of
 * pieces, and is 0 for pooled pieces. */
static uint64_t order_of_sequence(const struct piece *piece)
{
    return piece->table->output == OUTPUT_SEQUENCE ? (uintptr_t)piece : 0;
}

/* Compares two pieces by the properties that all pieces of a group share. */
static int compare_groups(const struct piece *a, const struct piece *b)
{
    return ranked_compare(
        (const uint64_t[]){a->rank, a->replica, order_of_sequence(a),
                           (uint64_t)a->table->num_outputs,
                           output_precision(a)},
        (const uint64_t[]){b->rank, b->replica, order_of_sequence(b),
                           (uint64_t)b->table->num_outputs,
                           output_precision(b)},
        5);
}

/* Order of pieces in which the pieces of a group are next to each other; within
 * a group they keep the order of the pieces array. */
static int compare_members(const void *left, const void *right)
{
    const struct piece *a = *(struct piece *const *)left;
    const struct piece *b = *(struct piece *const *)right;
    int order = compare_groups(a, b);

    return order ? order : (a > b) - (a < b);
}

static struct group group_of(const struct placement *placement,
                             const struct piece *piece)
{
    struct group group = {
        .rank = piece->rank,
        .n_outputs = (uint32_t)piece->table->num_outputs,
        .replica = piece->replica,
        .precision = output_precision(piece),
        .owners = placement_copy_ranks(placement, piece->copy),
    };

    if (piece->replica)
        group.owners = (struct rank_range){piece->rank, piece->rank + 1};
    return placement_part(placement, &group, 0, 1);
}

/* Sorts the pieces that have outputs, and divides them into groups. */
static void make_groups(struct placement *placement, struct arena *arena)
{
    struct piece **members =
        ARENA_NEW(arena, struct piece *, placement->n_pieces);
    struct group *group = NULL;
    size_t n = 0, r = 0;

    for (size_t i = 0; i < placement->n_pieces; i++)
        if (placement->pieces[i].table->num_outputs > 0)
            members[n++] = &placement->pieces[i];
    qsort(members, n, sizeof(*members), compare_members);
    placement->groups = ARENA_NEW(arena, struct group, n);
    for (size_t i = 0; i < n; i++) {
        if (!group || compare_groups(group->pieces[0], members[i])) {
            group = &placement->groups[placement->n_groups++];
            *group = group_of(placement, members[i]);
            group->pieces = members + i;
        }
        group->n_pieces++;
        members[i]->group = group;
        members[i]->out_begin = group->out_dim;
        group->out_dim += members[i]->width;
    }
    placement->rank_groups =
        ARENA_NEW(arena, struct group *, placement->n_ranks + (size_t)1);
    for (group = placement->groups; r <= placement->n_ranks; r++) {
        while (group < placement->groups + placement->n_groups &&
               group->rank < r)
            group++;
        placement->rank_groups[r] = group;
    }
}

/* Returns the first property of the table that the executor does not support
 * yet, or NULL. */
static const char *unknown_of_table(const struct table *table, uint64_t batch,
                                    struct arena *arena)
{
    double n = table->num_outputs, pooling = table->pooling_factor;

    if (n != floor(n))
        return arena_printf(arena, "num_outputs %g, not a whole number,", n);
    if (!(n > 0) && pooling > 0)
        return arena_printf(arena, "num_outputs 0 with pooling_factor %g",
                            pooling);
    if (n * (double)batch > UINT32_MAX)
        return arena_printf(arena,
                            "num_outputs %g at batch %" PRIu64 " is more than "
                            "2^32 - 1 outputs a step, which",
                            n, batch);
    if (pooling * (double)batch > UINT32_MAX)
        return arena_printf(arena,
                            "pooling_factor %g at batch %" PRIu64
                            " is more than 2^32 - 1 lookups a step, which",
                            pooling, batch);
    if (table->precision != PRECISION_FP32 &&
        table->precision != PRECISION_FP16)
        return arena_printf(arena, "precision %s",
                            precision_names[table->precision]);
    if (table->comm_precision != PRECISION_FP32 &&
        table->comm_precision != PRECISION_FP16)
        return arena_printf(arena, "comm_precision %s",
                            precision_names[table->comm_precision]);
    if (table->optimizer != OPTIMIZER_SGD &&
        table->optimizer != OPTIMIZER_ROWWISE_ADAGRAD)
        return arena_printf(arena, "optimizer %s",
                            optimizer_names[table->optimizer]);
    return NULL;
}

static int check_tables(const struct plan *plan, struct arena *arena,
                        struct err *err)
{
    const struct table *tables = plan->problem.tables, *table = tables;
    const char *unknown = NULL;

    for (size_t t = 0; !unknown && t < plan->problem.n_tables; t++) {
        table = &tables[t];
        unknown =
            unknown_of_table(table, problem_all_samples(&plan->problem), arena);
    }
    for (size_t i = 0; !unknown && i < plan->n_shards; i++) {
        uint32_t width = plan->shards[i].col_end - plan->shards[i].col_begin;

        table = &tables[plan->shards[i].table];
        if (width % 4)
            unknown = arena_printf(
                arena, "a piece of %" PRIu32 " columns, not a multiple of 4,",
                width);
    }
    return unknown ? err_input(err, "table '%s': %s is not supported yet",
                               table->name, unknown)
                   : 0;
}

/* Fails if a table is not in the memory of its devices, and the device is not a
 * CPU. */
static int check_tiers(const struct plan *plan, const struct device *device,
                       struct err *err)
{
    for (size_t i = 0; !device_is_host(device) && i < plan->n_shards; i++)
        if (plan->shards[i].tier != TIER_HBM)
            return err_input(err,
                             "table '%s' is in tier '%s', which runs on CPUs "
                             "only; give --device cpu",
                             plan->problem.tables[plan->shards[i].table].name,
                             tier_names[plan->shards[i].tier]);
    return 0;
}

static int check_optimizers(const struct plan *plan, struct arena *arena,
                            struct err *err)
{
    const struct table **last =
        ARENA_NEW(arena, const struct table *, plan->problem.cluster.n_devices);

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];
        /* last table seen on the device; NULL before the device's first
         * shard */
        const struct table **own = &last[shard->device];

        if (*own && table->optimizer != (*own)->optimizer)
            return err_input(
                err,
                "GPU %" PRIu32 " holds '%s' with %s and '%s' with %s: two "
                "optimizers on one GPU are not supported yet",
                shard->device, (*own)->name, optimizer_names[(*own)->optimizer],
                table->name, optimizer_names[table->optimizer]);
        *own = table;
    }
    return 0;
}

/* Stores the number of samples that are looked up in a step. If the job
 * de-duplicates sessions, this is the number of unique sessions. In this case
 * all tables with lookups must have the same fraction of unique sessions
 * (table->dedup). */
static int count_samples(uint64_t *n_samples, const struct plan *plan,
                         struct err *err)
{
    const struct problem *problem = &plan->problem;
    const double share = problem->n_tables ? problem->tables[0].dedup : 1;

    *n_samples = problem_all_samples(problem);
    if (problem->job.dedup != DEDUP_SESSIONS)
        return 0;
    for (size_t t = 1; t < problem->n_tables; t++)
        if (problem->tables[t].dedup < share ||
            problem->tables[t].dedup > share)
            return err_input(err,
                             "table '%s': dedup %g, while another table has "
                             "%g, is not supported yet",
                             problem->tables[t].name, problem->tables[t].dedup,
                             share);
    *n_samples = (uint64_t)ceil(share * (double)problem->batch) *
                 problem_n_groups(problem);
    return 0;
}

int placement_init(struct placement *placement, const struct plan *plan,
                   struct comm *comm, double scale_rows, uint64_t seed,
                   struct arena *arena, struct err *err)
{
    uint32_t n_ranks = problem_all_devices(&plan->problem);
    uint32_t rank = comm->world->rank; /* 0 if there is only one process */
    uint64_t batch = problem_all_samples(&plan->problem), n_samples;

    memset(placement, 0, sizeof(*placement));
    assert(scale_rows > 0 && scale_rows <= 1);
    if (!batch || batch > UINT32_MAX)
        return err_input(err,
                         "batch %" PRIu64
                         " is not supported yet, only 1 to 2^32 - 1 samples",
                         batch);
    if (check_tables(plan, arena, err) || check_optimizers(plan, arena, err) ||
        check_tiers(plan, comm->device, err) ||
        count_samples(&n_samples, plan, err))
        return -1;
    *placement = (struct placement){
        .plan = plan,
        .comm = comm,
        .device = comm->device,
        .pool = pool_open(comm->device->facts.n_threads),
        .seed = seed,
        .scale_rows = scale_rows,
        .n_ranks = n_ranks,
        .n_copies = problem_n_groups(&plan->problem),
        .batch = (uint32_t)n_samples,
        .n_chunks = 1,
        .here = {rank, comm->world->size == 1 ? comm->n_ranks : rank + 1},
        .table_rows = ARENA_NEW(arena, uint64_t, plan->problem.n_tables),
        .turns = ARENA_NEW(arena, struct rank_range, n_ranks),
        .loaded = NO_TURN,
        .d_buffers = ARENA_NEW(arena, void *, n_ranks),
        .d_weights = ARENA_NEW(arena, void *, n_ranks),
        .d_dense = ARENA_NEW(arena, float *, n_ranks),
    };
    for (size_t t = 0; t < plan->problem.n_tables; t++) {
        const struct table *table = &plan->problem.tables[t];

        placement->table_rows[t] =
            placement_scale_row(table, table->num_embeddings, scale_rows);
    }
    make_pieces(placement, arena);
    make_groups(placement, arena);
    return 0;
}
