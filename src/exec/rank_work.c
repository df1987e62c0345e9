/* SPDX-License-Identifier: MIT */
#include "exec/rank_work.h"

#include "exec/replica.h"

unsigned rank_work_n_cold_sets(const struct placement *placement, uint32_t rank)
{
    uint64_t touched_bytes = 0;

    for (size_t g = placement->rank_groups[rank];
         g < placement->rank_groups[rank + 1]; g++) {
        const struct group *group = &placement->groups[g];

        for (uint32_t i = 0; i < group->n_pieces; i++) {
            const struct piece *piece = &placement->pieces[group->pieces[i]];
            double n_lookups = placement_lookups(placement, piece);

            touched_bytes +=
                lookup_touched_bytes((uint64_t)(n_lookups + 0.5), piece->n_rows,
                                     piece->width, piece->table->precision);
        }
    }
    return lookup_n_cold_sets(placement->device, touched_bytes);
}

static int open_lookup(struct group_work *work,
                       const struct placement *placement, uint64_t max_lookups,
                       struct err *err)
{
    const struct group *group = work->group;
    struct lookup_table *tables = mem_alloc(group->n_pieces, sizeof(*tables));
    struct lookup_spec spec = {
        .tables = tables,
        .n_tables = group->n_pieces,
        .batch = group->n_bags,
        .max_lookups = max_lookups,
        .optimizer = placement->optimizers[group->rank],
        .output = group->precision,
    };
    int rc;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[group->pieces[i]];

        tables[i] = (struct lookup_table){
            .d_weight = piece->d_weight,
            .d_state = piece->d_state,
            .n_rows = piece->n_rows,
            .dim = piece->width,
            .out_begin = piece->out_begin,
            .precision = piece->table->precision,
        };
    }
    rc = lookup_open(&work->lookup, placement->device, &spec, err);
    mem_free(tables);
    return rc;
}

static int open_group(struct group_work *work,
                      const struct placement *placement, enum work_part part,
                      unsigned first_number, unsigned n_sets, struct err *err)
{
    const struct group *group = work->group;
    uint64_t max_lookups = 0;

    if (!group->n_bags)
        return 0;
    for (unsigned k = 0; k < n_sets; k++) {
        if (index_batch_init(&work->sets[k], placement, group, first_number + k,
                             err))
            return -1;
        if (work->sets[k].n_lookups > max_lookups)
            max_lookups = work->sets[k].n_lookups;
    }
    if (part != WORK_SCATTER && open_lookup(work, placement, max_lookups, err))
        return -1;
    if (!group->replica)
        return 0;
    return replica_open_scatter(&work->scatter, placement, group, group->n_bags,
                                max_lookups, err);
}

int rank_work_open(struct rank_work *work, const struct placement *placement,
                   uint32_t rank, enum work_part part, unsigned first_number,
                   unsigned n_sets, struct err *err)
{
    size_t first = placement->rank_groups[rank];
    size_t end = placement->rank_groups[rank + 1];

    *work = (struct rank_work){
        .placement = placement,
        .rank = rank,
        .first_number = first_number,
        .n_sets = n_sets,
    };
    work->groups = mem_alloc(end - first, sizeof(*work->groups));
    for (size_t g = first; g < end; g++) {
        const struct group *group = &placement->groups[g];
        struct group_work *own = &work->groups[work->n_groups];

        if (part == (group->replica ? WORK_SHARDS : WORK_SCATTER))
            continue;
        work->n_groups++;
        own->group = group;
        if (open_group(own, placement, part, first_number, n_sets, err)) {
            rank_work_close(work);
            return -1;
        }
    }
    return 0;
}

void rank_work_close(struct rank_work *work)
{
    for (size_t g = 0; g < work->n_groups; g++) {
        lookup_close(work->groups[g].lookup);
        lookup_close(work->groups[g].scatter);
        for (unsigned k = 0; k < work->n_sets; k++)
            index_batch_release(&work->groups[g].sets[k]);
    }
    mem_free(work->groups);
    *work = (struct rank_work){0};
}

int rank_work_forward(struct rank_work *work, unsigned set, struct err *err)
{
    for (size_t g = 0; g < work->n_groups; g++) {
        struct group_work *own = &work->groups[g];
        struct lookup_batch batch = index_batch_lookups(&own->sets[set]);

        if (own->lookup &&
            lookup_forward(own->lookup, &batch, own->group->d_out, err))
            return -1;
    }
    return 0;
}

static int backward_group(struct group_work *own, unsigned set,
                          const void *d_grad, float learning_rate,
                          struct err *err)
{
    struct lookup_batch batch = index_batch_lookups(&own->sets[set]);

    if (own->scatter)
        return lookup_backward(own->scatter, &batch, d_grad,
                               REPLICA_SCATTER_RATE, err);
    if (own->lookup)
        return lookup_backward(own->lookup, &batch, d_grad, learning_rate, err);
    return 0; /* no bags */
}

int rank_work_backward(struct rank_work *work, unsigned set,
                       const void *const *d_grads, float learning_rate,
                       struct err *err)
{
    for (size_t g = 0; g < work->n_groups; g++)
        if (backward_group(&work->groups[g], set, d_grads[g], learning_rate,
                           err))
            return -1;
    return 0;
}

int rank_work_backward_inplace(struct rank_work *work, unsigned set,
                               float learning_rate, struct err *err)
{
    for (size_t g = 0; g < work->n_groups; g++)
        if (backward_group(&work->groups[g], set, work->groups[g].group->d_out,
                           learning_rate, err))
            return -1;
    return 0;
}
