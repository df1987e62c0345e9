/* SPDX-License-Identifier: MIT */
#include "exec/rank_work.h"

#include "base/interrupt.h"
#include "exec/placement_load.h"
#include "exec/rank_caches.h"
#include "exec/sequence_gradients.h"
#include "exec/values.h"

/* Learning rate of a scatter, which writes the dense gradient of a replica. It
 * is a plain SGD update of a zeroed table with this learning rate. */
#define SCATTER_RATE (-1.0F)
/* Share of the slots that hold rows in a full cache. A few sets may get hardly
 * any rows. */
#define FULL_FRAC 0.99

unsigned rank_work_n_cold_sets(const struct placement *placement, uint32_t rank)
{
    uint64_t touched_bytes = 0;

    for (const struct group *group = placement->rank_groups[rank];
         group < placement->rank_groups[rank + 1]; group++)
        for (uint32_t i = 0; i < group->n_pieces; i++) {
            const struct piece *piece = group->pieces[i];
            double n_lookups = placement_lookups(placement, piece);

            touched_bytes +=
                lookup_touched_bytes((uint64_t)(n_lookups + 0.5), piece->n_rows,
                                     piece->width, piece->table->precision);
        }
    return lookup_n_cold_sets(placement->device, touched_bytes);
}

/* Returns the number of batches that have gone through the caches of a rank, or
 * 0 if it has none. */
static unsigned n_filled(const struct placement *placement, uint32_t rank)
{
    unsigned n = 0;

    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == rank)
            n = (unsigned)max_u64(n, placement->caches[k].lru.batch);
    return n;
}

static bool has_caches(const struct placement *placement, uint32_t rank)
{
    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == rank)
            return true;
    return false;
}

struct rank_work rank_work_timed(const struct placement *placement,
                                 uint32_t rank, uint32_t chunk,
                                 uint32_t n_chunks)
{
    struct rank_work work = {.placement = placement,
                             .rank = rank,
                             .first_number =
                                 STEP_BATCH + 1 + n_filled(placement, rank),
                             .n_sets = rank_work_n_cold_sets(placement, rank),
                             .chunk = chunk,
                             .n_chunks = n_chunks};

    if (has_caches(placement, rank))
        work.next_number = work.first_number + work.n_sets;
    return work;
}

static struct lookup_table table_of(const struct piece *piece)
{
    return (struct lookup_table){
        .d_weight = piece->d_weight,
        .d_state = piece->d_state,
        .d_places = piece->d_places,
        .n_rows = piece->n_rows,
        .dim = piece->width,
        .out_begin = piece->out_begin,
        .precision = piece->table->precision,
    };
}

/* Opens a lookup of the pieces of a group. If is_scatter is set, opens a
 * scatter into the dense gradients of the pieces instead. */
static int open_lookup(struct lookup **lookup, bool is_scatter,
                       const struct placement *placement,
                       const struct group *group, uint64_t max_lookups,
                       struct err *err)
{
    struct lookup_table *tables = mem_alloc(group->n_pieces, sizeof(*tables));
    struct lookup_spec spec = {
        .tables = tables,
        .n_tables = group->n_pieces,
        .batch = group->n_bags,
        .max_lookups = max_lookups,
        .optimizer =
            is_scatter ? OPTIMIZER_SGD : group->pieces[0]->table->optimizer,
        .output = group->precision,
    };
    int rc;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        tables[i] = table_of(group->pieces[i]);
        if (is_scatter) {
            tables[i].d_weight = group->pieces[i]->d_dense;
            tables[i].d_state = NULL;
            tables[i].d_places = NULL;
            tables[i].precision = PRECISION_FP32;
        }
    }
    rc = lookup_open(lookup, placement->device, &spec, err);
    mem_free(tables);
    return rc;
}

/* Opens those lookups of a group that the kind of work needs. */
static int open_lookups(struct group_work *own, const struct rank_work *work,
                        enum work_part part, uint64_t max_lookups,
                        struct err *err)
{
    const struct placement *placement = work->placement;
    const struct group *group = &own->group;

    own->max_lookups = max_lookups;
    if (part < WORK_SCATTER &&
        open_lookup(&own->lookup, false, placement, group, max_lookups, err))
        return -1;
    return group->replica ? open_lookup(&own->scatter, true, placement, group,
                                        max_lookups, err)
                          : 0;
}

static int open_group(struct group_work *own, const struct rank_work *work,
                      enum work_part part, struct err *err)
{
    const struct placement *placement = work->placement;
    const struct group *group = &own->group;
    uint64_t max_lookups = 0;

    if (!group->n_bags)
        return 0;
    for (unsigned k = 0; k < work->n_sets; k++) {
        if (index_batch_init(&own->sets[k], placement, group,
                             work->first_number + k, err))
            return -1;
        max_lookups = max_u64(max_lookups, own->sets[k].lookups.n_lookups);
    }
    return open_lookups(own, work, part, max_lookups, err);
}

/* Returns a copy of the group in which the samples of all ranks form one
 * bag. */
static struct group whole_of(const struct placement *placement,
                             const struct group *group)
{
    struct group whole = *group;

    whole.owners = (struct rank_range){0, placement->n_ranks};
    whole.n_samples = placement->batch;
    whole.n_bags = 1;
    whole.vectors = NULL;
    return whole;
}

static int open_empty(struct group_work *own, const struct rank_work *work,
                      uint64_t max_lookups, struct err *err)
{
    if (!own->group.n_bags)
        return 0;
    for (unsigned k = 0; k < work->n_sets; k++)
        if (index_batch_open(&own->sets[k], work->placement->device,
                             &own->group, max_lookups, err))
            return -1;
    return open_lookups(own, work, WORK_ALL, max_lookups, err);
}

/* Opens the groups that the kind of work needs. Draws their batches, or leaves
 * room for max_lookups[g] lookups unless that is NULL. */
static int open_groups(struct rank_work *work, enum work_part part,
                       const uint64_t *max_lookups, struct err *err)
{
    const struct placement *placement = work->placement;
    const struct group *group = placement->rank_groups[work->rank];
    const struct group *end = placement->rank_groups[work->rank + 1];

    work->groups = mem_alloc((size_t)(end - group), sizeof(*work->groups));
    for (; group < end; group++) {
        struct group_work *own = &work->groups[work->n_groups];

        if (group->replica ? part == WORK_SHARDS : part >= WORK_SCATTER)
            continue;
        work->n_groups++;
        own->group =
            part == WORK_OTHERS
                ? whole_of(placement, group)
                : placement_part(placement, group, work->chunk, work->n_chunks);
        if (max_lookups ? open_empty(own, work, *max_lookups++, err)
                        : open_group(own, work, part, err)) {
            rank_work_close(work);
            return -1;
        }
    }
    return 0;
}

int rank_work_open(struct rank_work *work, enum work_part part, struct err *err)
{
    return open_groups(work, part, NULL, err);
}

int rank_work_open_empty(struct rank_work *work, const uint64_t *max_lookups,
                         struct err *err)
{
    return open_groups(work, WORK_ALL, max_lookups, err);
}

void rank_work_close(struct rank_work *work)
{
    for (size_t g = 0; g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];

        lookup_close(own->lookup);
        lookup_close(own->scatter);
        for (unsigned k = 0; k < work->n_sets; k++)
            index_batch_release(&own->sets[k]);
    }
    mem_free(work->groups);
    *work = (struct rank_work){0};
}

int rank_work_renew(struct rank_work *work, unsigned set, struct err *err)
{
    for (size_t g = 0; work->next_number && g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];
        struct index_batch *batch = &own->sets[set];

        if (!own->group.n_bags)
            continue;
        index_batch_release(batch);
        if (index_batch_init(batch, work->placement, &own->group,
                             work->next_number, err))
            return -1;
        if (batch->lookups.n_lookups <= own->max_lookups)
            continue;
        lookup_close(own->lookup);
        lookup_close(own->scatter);
        own->lookup = own->scatter = NULL;
        if (open_lookups(own, work, WORK_ALL, batch->lookups.n_lookups, err))
            return -1;
    }
    work->next_number += work->next_number > 0;
    return 0;
}

/* Adds the rows of the cached pieces of a group to the batch of their
 * caches. */
static void add_rows(const struct group_work *own, unsigned set)
{
    const struct lookup_batch *lookups = &own->sets[set].lookups;
    const uint32_t *ids = lookups->d_indices;

    for (uint32_t i = 0; own->group.n_bags && i < own->group.n_pieces; i++) {
        const uint64_t *offsets =
            lookups->d_offsets + (size_t)i * own->group.n_bags;

        if (own->group.pieces[i]->cache)
            pool_cache_add(own->group.pieces[i], ids + offsets[0],
                           (size_t)(offsets[own->group.n_bags] - offsets[0]));
    }
}

void rank_work_fill(struct rank_work *work, unsigned set)
{
    const struct placement *placement = work->placement;

    if (!has_caches(placement, work->rank))
        return;
    for (size_t g = 0; g < work->n_groups; g++)
        add_rows(&work->groups[g], set);
    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == work->rank)
            pool_cache_fill(&placement->caches[k]);
}

/* Returns whether all caches of a rank are steady. */
static bool is_steady(const struct placement *placement, uint32_t rank)
{
    for (size_t k = 0; k < placement->n_caches; k++) {
        const struct pool_cache *cache = &placement->caches[k];

        if (cache->rank == rank && cache->counts.n_misses &&
            (double)cache->lru.n_used < FULL_FRAC * (double)cache->n_slots)
            return false;
    }
    return true;
}

static void forget_counts(const struct placement *placement, uint32_t rank)
{
    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == rank)
            placement->caches[k].counts = (struct cache_counts){0};
}

/* Returns the number of lookups of batch `set`. */
static uint64_t n_lookups(const struct rank_work *work, unsigned set)
{
    uint64_t n = 0;

    for (size_t g = 0; g < work->n_groups; g++)
        n += work->groups[g].sets[set].lookups.n_lookups;
    return n;
}

int rank_work_warm(struct rank_work *work, unsigned *n_batches, struct err *err)
{
    const struct placement *placement = work->placement;
    uint64_t n_all = 0;

    *n_batches = 0;
    if (!work->next_number)
        return 0;
    do {
        const unsigned set = *n_batches % work->n_sets;

        if (interrupt_requested())
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        if (*n_batches >= work->n_sets && rank_work_renew(work, set, err))
            return -1;
        forget_counts(placement, work->rank);
        rank_work_fill(work, set);
        n_all += n_lookups(work, set);
        ++*n_batches;
    } while (
        !is_steady(placement, work->rank) &&
        *n_batches < RANK_WORK_MOST_FILLS &&
        (*n_batches < RANK_WORK_LEAST_FILLS || n_all < RANK_WORK_FILL_LOOKUPS));
    forget_counts(placement, work->rank);
    return 0;
}

int rank_work_forward(struct rank_work *work, unsigned set, struct err *err)
{
    for (size_t g = 0; g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];

        if (own->lookup && lookup_forward(own->lookup, &own->sets[set].lookups,
                                          own->group.d_out, err))
            return -1;
    }
    return 0;
}

int rank_work_backward(struct rank_work *work, unsigned set,
                       float learning_rate, struct err *err)
{
    for (size_t g = 0; g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];
        struct lookup *lookup = own->scatter ? own->scatter : own->lookup;

        /* `lookup` is NULL if there are no bags */
        if (lookup &&
            lookup_backward(lookup, LOOKUP_BACKWARD, &own->sets[set].lookups,
                            own->group.d_out,
                            own->scatter ? SCATTER_RATE : learning_rate, err))
            return -1;
    }
    return 0;
}

int rank_work_apply_replicas(const struct placement *placement, uint32_t rank,
                             float learning_rate, struct err *err)
{
    for (const struct group *group = placement->rank_groups[rank];
         group < placement->rank_groups[rank + 1]; group++)
        for (uint32_t i = 0; group->replica && i < group->n_pieces; i++) {
            const struct piece *piece = group->pieces[i];
            struct lookup_table table = table_of(piece);

            if (lookup_apply_dense(placement->device, &table, piece->d_dense,
                                   learning_rate, piece->table->optimizer, err))
                return -1;
        }
    return 0;
}

/* --- a step --- */

/* Runs a part of a rank's step. WORK_ALL runs the forward of all groups, for
 * one of n_chunks chunks. The other kinds of work run a backward, on gradients
 * that have overwritten the outputs. */
static int run_rank(const struct placement *placement, uint32_t rank,
                    enum work_part part, uint32_t chunk, uint32_t n_chunks,
                    struct err *err)
{
    struct rank_work work = {.placement = placement,
                             .rank = rank,
                             .first_number = STEP_BATCH,
                             .n_sets = 1,
                             .chunk = chunk,
                             .n_chunks = n_chunks};
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (rank_work_open(&work, part, err))
        return -1;
    if (part != WORK_SCATTER)
        rank_work_fill(&work, 0);
    rc = part == WORK_ALL ? rank_work_forward(&work, 0, err)
                          : rank_work_backward(&work, 0, STEP_RATE, err);
    /* The device must finish the queued work before the index sets of the work
     * are freed. */
    if (!rc)
        rc = device_wait(placement->device, err);
    rank_work_close(&work);
    return rc;
}

/* Moves the rows of two other batches through the caches of a rank, if it has
 * any. */
static int stir_caches(const struct placement *placement, uint32_t rank,
                       struct err *err)
{
    struct rank_work work = {.placement = placement,
                             .rank = rank,
                             .first_number =
                                 STEP_BATCH + 1 + n_filled(placement, rank),
                             .n_sets = 2,
                             .n_chunks = 1};

    if (!has_caches(placement, rank))
        return 0;
    if (rank_work_open(&work, WORK_SHARDS, err))
        return -1;
    rank_work_fill(&work, 0);
    rank_work_fill(&work, 1);
    rank_work_close(&work);
    return 0;
}

/* Runs the forward of a rank chunk by chunk. If the rank is the last rank of
 * this process, sends each chunk after its forward. */
static int forward_rank(const struct placement *placement, uint32_t rank,
                        const struct exchange_set *set, struct err *err)
{
    uint32_t n = placement->n_chunks;

    if (stir_caches(placement, rank, err))
        return -1;
    for (uint32_t chunk = 0; chunk < n; chunk++)
        if (run_rank(placement, rank, WORK_ALL, chunk, n, err) ||
            (rank + 1 == placement->here.end &&
             exchange_start(set, false, chunk, n, err)))
            return -1;
    return 0;
}

int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err)
{
    for (uint32_t turn = 0; turn < placement->n_turns; turn++) {
        struct rank_range ranks = placement->turns[turn];

        if (placement_load(placement, turn, err))
            return -1;
        for (uint32_t r = ranks.begin; r < ranks.end; r++)
            if (forward_rank(placement, r, set, err))
                return -1;
    }
    if (comm_finish(placement->comm, err))
        return -1;
    return device_wait(placement->device, err);
}

/* --- gradients --- */

/* A group, and the block of its outputs whose bags get gradients. */
struct some_bags {
    const struct group *group;
    struct output_block block;
};

static void make_bags(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct made *made = ctx;
    const struct some_bags *bags = made->ctx;
    const struct group *group = bags->group;
    float *row = mem_alloc(group->out_dim, sizeof(*row));

    (void)thread;
    for (uint64_t i = begin; i < end; i++) {
        for (uint32_t k = 0; k < group->n_pieces; k++) {
            const struct piece *piece = group->pieces[k];

            values_gradient(row + piece->out_begin, piece->table_seed,
                            bags->block.bag_begin + made->first + i,
                            piece->col_begin, piece->width, group->precision);
        }
        values_store(made->out + i * made->item_bytes, row, group->out_dim,
                     group->precision);
    }
    mem_free(row);
}

/* Overwrites the pooled outputs with loss gradients, for the samples of every
 * receiver in this process. The host computes the gradients chunk by chunk. */
static int fill_pooled(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        for (size_t g = 0; g < placement->n_groups; g++) {
            const struct group *group = &placement->groups[g];
            struct some_bags bags = {group, exchange_block(set, group, r)};
            struct made made = {make_bags, &bags, group_bag_bytes(group), 0,
                                NULL};

            if (!group->vectors && bags.block.n_bags &&
                placement_upload(placement, bags.block.d_at, bags.block.n_bags,
                                 &made, err))
                return -1;
        }
    return 0;
}

int step_gradients(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    if (fill_pooled(set, err) || sequence_gradients_fill(set, err) ||
        exchange_outputs(set, true, err))
        return -1;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        if (run_rank(placement, r, WORK_SCATTER, 0, 1, err))
            return -1;
    if (exchange_allreduce(set, err))
        return -1;
    return device_wait(placement->device, err);
}

int step_update(struct placement *placement, uint32_t turn, struct err *err)
{
    struct rank_range ranks = placement->turns[turn];

    if (placement_load(placement, turn, err))
        return -1;
    for (uint32_t r = ranks.begin; r < ranks.end; r++)
        if (run_rank(placement, r, WORK_SHARDS, 0, 1, err) ||
            rank_work_apply_replicas(placement, r, STEP_RATE, err) ||
            stir_caches(placement, r, err))
            return -1;
    if (device_wait(placement->device, err))
        return -1;
    rank_caches_write_back(placement);
    return 0;
}
