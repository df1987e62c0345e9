/* SPDX-License-Identifier: MIT */
#include "exec/placement_load.h"

#include "exec/rank_caches.h"
#include "exec/values.h"

#include <assert.h>

/* Bytes of a chunk. The host computes and uploads weights one chunk at a
 * time. */
#define CHUNK_BYTES ((size_t)16 << 20)
/* Approximate number of bytes that one task computes in a chunk. */
#define TASK_BYTES ((size_t)16 << 10)

static uint64_t n_elements(const struct piece *piece)
{
    return piece->n_rows * piece->width;
}

/* Divides d_block, the memory of a rank's weights and states, among the rank's
 * pieces. If d_block is NULL, all places become NULL. No piece of the rank may
 * be loaded. Returns the bytes of the block. */
static size_t lay_out_weights(const struct placement *placement, uint32_t rank,
                              char *d_block)
{
    struct device_parts parts = {d_block, 0};

    assert(placement->loaded == NO_TURN);
    for (size_t i = 0; i < placement->n_pieces; i++) {
        struct piece *piece = &placement->pieces[i];

        if (piece->rank != rank)
            continue;
        piece->d_weight =
            device_part(&parts, n_elements(piece) *
                                    precision_bytes(piece->table->precision));
        if (piece->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
            piece->d_state = device_part(&parts, piece->n_rows * sizeof(float));
        if (piece->cache)
            piece->d_places =
                device_part(&parts, piece->n_rows * sizeof(uint32_t));
    }
    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == rank)
            placement->caches[k].d_slots =
                device_part(&parts, placement->caches[k].n_slots *
                                        placement->caches[k].slot_bytes);
    return parts.n_bytes;
}

/* Divides the second memory block of a rank among its outputs and dense
 * gradients. Returns the bytes of the block. */
static size_t lay_out_buffers(struct placement *placement, uint32_t rank,
                              char *d_block)
{
    struct device_parts parts = {d_block, 0};

    for (size_t i = 0; i < placement->n_pieces; i++) {
        struct piece *piece = &placement->pieces[i];

        if (piece->rank == rank && piece->replica)
            piece->d_dense =
                device_part(&parts, n_elements(piece) * sizeof(float));
    }
    placement->d_dense[rank] = (void *)d_block;
    placement->n_dense = parts.n_bytes / sizeof(float);
    /* Each group gets space for at least one bag, because WORK_OTHERS needs one
     * bag for its gradients. */
    for (struct group *group = placement->rank_groups[rank];
         group < placement->rank_groups[rank + 1]; group++)
        group->d_out = device_part(&parts, max_u64(group->n_bags, 1) *
                                               group_bag_bytes(group));
    return parts.n_bytes;
}

size_t placement_weight_bytes(const struct placement *placement, uint32_t rank)
{
    size_t n_bytes = lay_out_weights(placement, rank, NULL);

    for (size_t k = 0; k < placement->n_caches; k++)
        if (placement->caches[k].rank == rank)
            n_bytes += placement->caches[k].n_slots * ROW_CACHE_SLOT_BYTES;
    return n_bytes;
}

int placement_open(struct placement *placement, struct err *err)
{
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        size_t n_bytes = lay_out_buffers(placement, r, NULL);

        if (n_bytes && device_alloc(placement->device, &placement->d_buffers[r],
                                    n_bytes, err))
            return -1;
        lay_out_buffers(placement, r, placement->d_buffers[r]);
        if (placement->n_dense &&
            device_set(placement->device, placement->d_dense[r],
                       placement->n_dense, 0, err))
            return -1;
    }
    return 0;
}

int placement_upload(const struct placement *placement, void *d_at, uint64_t n,
                     struct made *made, struct err *err)
{
    uint64_t most = min_u64(CHUNK_BYTES / made->item_bytes + 1, n);
    int rc = 0;

    made->out = mem_alloc((size_t)most, made->item_bytes);
    for (made->first = 0; !rc && made->first < n; made->first += most) {
        uint64_t n_made = min_u64(n - made->first, most);

        pool_run_range(placement->pool, n_made,
                       TASK_BYTES / made->item_bytes + 1, made->make, made);
        rc = device_upload(placement->device,
                           (char *)d_at + made->first * made->item_bytes,
                           made->out, (size_t)n_made * made->item_bytes, err);
    }
    mem_free(made->out);
    return rc;
}

static void make_states(void *ctx, uint64_t begin, uint64_t end,
                        unsigned thread)
{
    const struct made *made = ctx;
    const struct piece *piece = made->ctx;

    (void)thread;
    for (uint64_t i = begin; i < end; i++)
        ((float *)(void *)made->out)[i] =
            values_state(piece->table_seed, piece->row_begin + made->first + i,
                         piece->col_begin);
}

static int load_piece(const struct placement *placement,
                      const struct piece *piece, struct err *err)
{
    struct fill_window window = {
        .seed = piece->table_seed,
        .first = piece->row_begin * piece->table->dim + piece->col_begin,
        .stride = piece->table->dim,
        .n_rows = piece->n_rows,
        .width = piece->width,
        .precision = piece->table->precision,
    };
    struct made states = {make_states, piece, sizeof(float), 0, NULL};

    if (device_fill_window(placement->device, piece->d_weight, &window, err))
        return -1;
    return piece->d_state ? placement_upload(placement, piece->d_state,
                                             piece->n_rows, &states, err)
                          : 0;
}

static void unload(struct placement *placement)
{
    placement->loaded = NO_TURN;
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        device_free(placement->device, placement->d_weights[r]);
        placement->d_weights[r] = NULL;
        lay_out_weights(placement, r, NULL);
    }
    rank_caches_close(placement);
}

int placement_load(struct placement *placement, uint32_t turn, struct err *err)
{
    struct rank_range ranks = placement->turns[turn];

    if (placement->loaded == turn)
        return 0;
    unload(placement);
    for (uint32_t r = ranks.begin; r < ranks.end; r++) {
        void **d_block = &placement->d_weights[r];
        size_t n_bytes = lay_out_weights(placement, r, NULL);

        if (n_bytes && device_alloc(placement->device, d_block, n_bytes, err))
            return -1;
        lay_out_weights(placement, r, *d_block);
    }
    for (size_t i = 0; i < placement->n_pieces; i++)
        if (placement->pieces[i].d_weight &&
            load_piece(placement, &placement->pieces[i], err))
            return -1;
    rank_caches_open(placement, ranks);
    placement->loaded = turn;
    return 0;
}

void placement_release(struct placement *placement)
{
    if (!placement || !placement->d_buffers)
        return;
    unload(placement);
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        device_free(placement->device, placement->d_buffers[r]);
        placement->d_buffers[r] = NULL;
    }
    pool_close(placement->pool);
    placement->pool = NULL;
}
