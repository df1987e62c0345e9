/* SPDX-License-Identifier: MIT */
#include "exec/pooled.h"

/* The columns of a piece in the two matrices, for one output of its table. */
struct columns {
    /* outputs in the exchange, in the group's precision */
    struct device_matrix block;
    struct device_matrix pooled; /* pooled vectors or their gradients, fp32 */
    uint64_t n_samples, n_cols;
    bool is_half; /* true: the block is fp16 */
    /* True if the piece has the first rows of its columns. Other row blocks are
     * added to it. */
    bool is_first;
};

typedef int columns_fn(struct device *device, const struct columns *columns,
                       struct err *err);

static int run(struct device *device, const struct columns *columns,
               enum elementwise_kind kind, struct device_matrix out,
               struct device_matrix a, struct err *err)
{
    const struct elementwise job = {.kind = kind,
                                    .n_rows = columns->n_samples,
                                    .n_cols = columns->n_cols,
                                    .out = out,
                                    .a = a};

    return device_elementwise(device, &job, err);
}

static int gather(struct device *device, const struct columns *columns,
                  struct err *err)
{
    static const enum elementwise_kind kinds[2][2] = {
        {ELEMENTWISE_ADD, ELEMENTWISE_COPY},
        {ELEMENTWISE_ADD_FROM_HALF, ELEMENTWISE_COPY_FROM_HALF}};

    return run(device, columns, kinds[columns->is_half][columns->is_first],
               columns->pooled, columns->block, err);
}

static int scatter(struct device *device, const struct columns *columns,
                   struct err *err)
{
    return run(device, columns,
               columns->is_half ? ELEMENTWISE_COPY_TO_HALF : ELEMENTWISE_COPY,
               columns->block, columns->pooled, err);
}

/* Calls fn for each output of a piece. table_begin: column of the table's first
 * output in the pooled matrix. */
static int for_piece(const struct exchange_set *set, const struct piece *piece,
                     uint32_t receiver, struct device_matrix pooled,
                     uint64_t table_begin, columns_fn *fn, struct err *err)
{
    const struct group *group = piece->group;
    const struct output_block block = exchange_block(set, group, receiver);
    const uint64_t row_elements = (uint64_t)group->n_outputs * group->out_dim;
    struct columns columns = {
        .n_samples = block.n_bags / group->n_outputs,
        .n_cols = piece->width,
        .is_half = group->precision == PRECISION_FP16,
        .is_first = !piece->row_begin,
    };

    if (!block.n_bags)
        return 0;
    for (uint32_t i = 0; i < group->n_outputs; i++) {
        uint64_t from = i * (uint64_t)group->out_dim + piece->out_begin;
        uint64_t to =
            table_begin + i * (uint64_t)piece->table->dim + piece->col_begin;

        columns.block = (struct device_matrix){
            (char *)block.d_at + from * precision_bytes(group->precision),
            row_elements};
        columns.pooled =
            (struct device_matrix){(float *)pooled.d_at + to, pooled.stride};
        if (fn(set->placement->device, &columns, err))
            return -1;
    }
    return 0;
}

static int for_all(const struct exchange_set *set, uint32_t receiver,
                   struct device_matrix pooled, columns_fn *fn, struct err *err)
{
    const struct placement *placement = set->placement;
    const struct problem *problem = &placement->plan->problem;
    uint64_t begin = 0;

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct piece_range pieces = placement_copy_pieces(
            placement, t, placement_copy_of(placement, receiver));

        for (const struct piece *piece = pieces.begin;
             piece < pieces.end && piece->group; piece++)
            if (for_piece(set, piece, receiver, pooled, begin, fn, err))
                return -1;
        begin +=
            (uint64_t)problem->tables[t].num_outputs * problem->tables[t].dim;
    }
    return 0;
}

int pooled_gather(const struct exchange_set *set, uint32_t receiver,
                  struct dense_net *net, struct err *err)
{
    return for_all(set, receiver, net->pooled, gather, err);
}

int pooled_scatter(const struct exchange_set *set, uint32_t receiver,
                   struct dense_net *net, struct err *err)
{
    return for_all(set, receiver, net->pooled_gradient, scatter, err);
}
