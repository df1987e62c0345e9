/* SPDX-License-Identifier: MIT */
#include "exec/placement.h"

#include "exec/executable.h"
#include "exec/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t placement_sample(const struct placement *placement, uint32_t rank)
{
    return (uint32_t)((uint64_t)rank * placement->batch / placement->n_ranks);
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

static int compare_pieces(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;

    if (a->table_idx != b->table_idx)
        return a->table_idx < b->table_idx ? -1 : 1;
    if (a->row_begin != b->row_begin)
        return a->row_begin < b->row_begin ? -1 : 1;
    if (a->row_end != b->row_end)
        return a->row_end < b->row_end ? -1 : 1;
    if (a->col_begin != b->col_begin)
        return a->col_begin < b->col_begin ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static struct piece piece_of_shard(const struct placement *placement,
                                   const struct shard *shard)
{
    const struct table *table = &placement->plan->problem.tables[shard->table];
    double scale = placement->scale_rows;
    struct piece piece = {
        .table = table,
        .table_idx = shard->table,
        .table_seed = values_table_seed(placement->seed, shard->table),
        .replica = shard_is_replica(shard->kind),
        .rank = shard->device,
        .row_begin = placement_scale_row(table, shard->row_begin, scale),
        .row_end = placement_scale_row(table, shard->row_end, scale),
        .col_begin = shard->col_begin,
        .width = shard->col_end - shard->col_begin,
        .group = NO_GROUP,
    };

    piece.n_rows = piece.row_end - piece.row_begin;
    if (!piece.n_rows)
        piece.n_rows = 1;
    return piece;
}

static void make_pieces(struct placement *placement, struct arena *arena)
{
    const struct plan *plan = placement->plan;
    size_t n_tables = plan->problem.n_tables;

    placement->n_pieces = plan->n_shards;
    placement->pieces = ARENA_NEW(arena, struct piece, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        placement->pieces[i] = piece_of_shard(placement, shard);
        placement->optimizers[shard->device] =
            plan->problem.tables[shard->table].optimizer;
    }
    qsort(placement->pieces, placement->n_pieces, sizeof(struct piece),
          compare_pieces);
    placement->table_pieces = ARENA_NEW(arena, size_t, n_tables + 1);
    for (size_t t = 0, i = 0; t <= n_tables; t++) {
        while (i < placement->n_pieces && placement->pieces[i].table_idx < t)
            i++;
        placement->table_pieces[t] = i;
    }
}

/* What pieces of one group have in common. */
struct group_key {
    uint32_t rank, n_outputs;
    bool replica;
    enum precision precision;
    uint32_t piece;
};

static int compare_keys(const void *left, const void *right)
{
    const struct group_key *a = left, *b = right;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->replica != b->replica)
        return a->replica ? 1 : -1;
    if (a->n_outputs != b->n_outputs)
        return a->n_outputs < b->n_outputs ? -1 : 1;
    if (a->precision != b->precision)
        return a->precision < b->precision ? -1 : 1;
    return (a->piece > b->piece) - (a->piece < b->piece);
}

static bool same_group(const struct group *group, const struct group_key *key)
{
    return group->rank == key->rank && group->n_outputs == key->n_outputs &&
           group->replica == key->replica && group->precision == key->precision;
}

static void start_group(const struct placement *placement, struct group *group,
                        const struct group_key *key)
{
    *group = (struct group){
        .rank = key->rank,
        .n_outputs = key->n_outputs,
        .replica = key->replica,
        .precision = key->precision,
        .n_samples = placement->batch,
    };
    if (key->replica) {
        group->sample_begin = placement_sample(placement, key->rank);
        group->n_samples =
            placement_sample(placement, key->rank + 1) - group->sample_begin;
    }
    group->n_bags = group->n_samples * group->n_outputs;
}

/* Cuts the sorted keys into groups; the pieces of a group stay one behind the
 * other in `members`. */
static void cut_groups(struct placement *placement,
                       const struct group_key *keys, size_t n,
                       uint32_t *members)
{
    struct group *group = NULL;

    for (size_t i = 0; i < n; i++) {
        struct piece *piece = &placement->pieces[keys[i].piece];

        if (!group || !same_group(group, &keys[i])) {
            group = &placement->groups[placement->n_groups++];
            start_group(placement, group, &keys[i]);
            group->pieces = members + i;
        }
        members[i] = keys[i].piece;
        group->n_pieces++;
        piece->group = (uint32_t)(placement->n_groups - 1);
        piece->out_begin = group->out_dim;
        group->out_dim += piece->width;
    }
}

static void make_groups(struct placement *placement, struct arena *arena)
{
    size_t n = 0;
    struct group_key *keys =
        ARENA_NEW(arena, struct group_key, placement->n_pieces);

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->table->num_outputs > 0)
            keys[n++] = (struct group_key){
                .rank = piece->rank,
                .n_outputs = (uint32_t)piece->table->num_outputs,
                .replica = piece->replica,
                .precision = piece->replica ? PRECISION_FP32
                                            : piece->table->comm_precision,
                .piece = (uint32_t)i,
            };
    }
    qsort(keys, n, sizeof(*keys), compare_keys);
    placement->groups = ARENA_NEW(arena, struct group, n);
    cut_groups(placement, keys, n, ARENA_NEW(arena, uint32_t, n));
    placement->rank_groups =
        ARENA_NEW(arena, size_t, placement->n_ranks + (size_t)1);
    for (size_t r = 0, g = 0; r <= placement->n_ranks; r++) {
        while (g < placement->n_groups && placement->groups[g].rank < r)
            g++;
        placement->rank_groups[r] = g;
    }
}

/* Ranks that live in this process. */
static struct rank_range ranks_here(const struct comm *comm)
{
    uint32_t rank = world_rank(comm_world(comm));

    if (world_size(comm_world(comm)) == 1)
        return (struct rank_range){0, comm_n_ranks(comm)};
    return (struct rank_range){rank, rank + 1};
}

int placement_init(struct placement *placement, const struct plan *plan,
                   struct comm *comm, double scale_rows, uint64_t seed,
                   struct arena *arena, struct err *err)
{
    uint32_t n_ranks = plan->problem.cluster.n_devices;

    memset(placement, 0, sizeof(*placement));
    if (!(scale_rows > 0 && scale_rows <= 1))
        return err_set(err, ERR_INPUT,
                       "rows cannot be scaled by %g: it is "
                       "above 0 and at most 1",
                       scale_rows);
    if (executable_check(plan, err))
        return -1;
    *placement = (struct placement){
        .plan = plan,
        .comm = comm,
        .device = comm_device(comm),
        .pool = pool_open(device_n_threads(comm_device(comm))),
        .seed = seed,
        .scale_rows = scale_rows,
        .n_ranks = n_ranks,
        .batch = (uint32_t)plan->problem.batch,
        .here = ranks_here(comm),
        .table_rows = ARENA_NEW(arena, uint64_t, plan->problem.n_tables),
        .optimizers = ARENA_NEW(arena, enum optimizer, n_ranks),
        .turns = ARENA_NEW(arena, struct rank_range, n_ranks),
        .loaded = NO_TURN,
        .d_buffers = ARENA_NEW(arena, void *, n_ranks),
        .d_weights = ARENA_NEW(arena, void *, n_ranks),
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
