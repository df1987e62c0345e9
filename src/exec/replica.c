/* SPDX-License-Identifier: MIT */
#include "exec/replica.h"

int replica_open_scatter(struct lookup **scatter,
                         const struct placement *placement,
                         const struct group *group, uint32_t n_bags,
                         uint64_t max_lookups, struct err *err)
{
    struct lookup_table *tables = mem_alloc(group->n_pieces, sizeof(*tables));
    int rc;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[group->pieces[i]];

        tables[i] = (struct lookup_table){
            .d_weight = piece->d_dense,
            .n_rows = piece->n_rows,
            .dim = piece->width,
            .out_begin = piece->out_begin,
            .precision = PRECISION_FP32,
        };
    }
    rc = lookup_open(scatter, placement->device,
                     &(struct lookup_spec){.tables = tables,
                                           .n_tables = group->n_pieces,
                                           .batch = n_bags,
                                           .max_lookups = max_lookups},
                     err);
    mem_free(tables);
    return rc;
}

static int apply_piece(const struct placement *placement,
                       const struct piece *piece, float learning_rate,
                       struct err *err)
{
    struct lookup_table table = {
        .d_weight = piece->d_weight,
        .d_state = piece->d_state,
        .n_rows = piece->n_rows,
        .dim = piece->width,
        .precision = piece->table->precision,
    };

    return lookup_apply_dense(placement->device, &table, piece->d_dense,
                              learning_rate, piece->table->optimizer, err);
}

int replica_apply(const struct placement *placement, uint32_t rank,
                  float learning_rate, struct err *err)
{
    for (size_t g = placement->rank_groups[rank];
         g < placement->rank_groups[rank + 1]; g++) {
        const struct group *group = &placement->groups[g];

        for (uint32_t i = 0; group->replica && i < group->n_pieces; i++)
            if (apply_piece(placement, &placement->pieces[group->pieces[i]],
                            learning_rate, err))
                return -1;
    }
    return 0;
}
