/* SPDX-License-Identifier: MIT */
#include "exec/gradients.h"

#include "exec/values.h"

#define CHUNK_BYTES ((size_t)16 << 20)
#define BAGS_A_TASK 64

/* Some bags of a block. */
struct chunk {
    const struct placement *placement;
    const struct group *group;
    uint64_t bag_begin, n_bags;
    size_t bag_bytes;
    char *gradients; /* [n_bags][out_dim], of the group's precision */
};

static void make_bag(const struct chunk *chunk, uint64_t i, float *row)
{
    const struct group *group = chunk->group;

    for (uint32_t k = 0; k < group->n_pieces; k++) {
        const struct piece *piece = &chunk->placement->pieces[group->pieces[k]];

        values_gradient(row + piece->out_begin, piece->table_seed,
                        chunk->bag_begin + i, piece->col_begin, piece->width,
                        group->precision);
    }
    values_store(chunk->gradients + i * chunk->bag_bytes, row, group->out_dim,
                 group->precision);
}

static void make_bags(void *ctx, size_t task, unsigned thread)
{
    const struct chunk *chunk = ctx;
    uint64_t begin = (uint64_t)task * BAGS_A_TASK, end = begin + BAGS_A_TASK;
    float *row = mem_alloc(chunk->group->out_dim, sizeof(*row));

    (void)thread;
    for (uint64_t i = begin; i < end && i < chunk->n_bags; i++)
        make_bag(chunk, i, row);
    mem_free(row);
}

static int fill_block(const struct placement *placement,
                      const struct group *group,
                      const struct output_block *block, struct err *err)
{
    uint64_t n = CHUNK_BYTES / block->bag_bytes + 1;
    struct chunk chunk = {
        .placement = placement, .group = group, .bag_bytes = block->bag_bytes};
    int rc = -1;

    if (n > block->n_bags)
        n = block->n_bags;
    chunk.gradients = mem_alloc((size_t)n, block->bag_bytes);
    for (uint64_t bag = 0; bag < block->n_bags; bag += n) {
        chunk.bag_begin = block->bag_begin + bag;
        chunk.n_bags = block->n_bags - bag < n ? block->n_bags - bag : n;
        pool_run(placement->pool,
                 (size_t)((chunk.n_bags + BAGS_A_TASK - 1) / BAGS_A_TASK),
                 make_bags, &chunk);
        if (device_upload(
                placement->device, (char *)block->d_at + bag * block->bag_bytes,
                chunk.gradients, (size_t)chunk.n_bags * block->bag_bytes, err))
            goto out;
    }
    rc = 0;
out:
    mem_free(chunk.gradients);
    return rc;
}

int gradients_fill(const struct exchange_set *set, struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        for (size_t g = 0; g < placement->n_groups; g++) {
            const struct group *group = &placement->groups[g];
            struct output_block block = exchange_block(set, group, r);

            if (block.n_bags && fill_block(placement, group, &block, err))
                return -1;
        }
    return 0;
}
