/* SPDX-License-Identifier: MIT */
#include "device/stream.h"

#include "base/mem.h"
#include "core/rank_law.h"
#include "device/cpu_kernels.h"
#include "device/device_ops.h"

#include <assert.h>

/* Salts that give the permutations and draws of a stream different seeds. Salt
 * 1 is used for the row order of the stream. */
enum { SALT_POSITIONS = 2, SALT_COLD, SALT_DRAWS, SALT_BAGS };

uint64_t stream_n_lookups(const struct stream *stream)
{
    return (uint64_t)(stream->pooling_factor * stream->batch + 0.5);
}

static void bins_init(struct stream_batch *state, const double bins[])
{
    uint64_t unique[REUSE_BINS], lookups[REUSE_BINS];
    uint32_t first_lookup = 0, first_rank = 0;

    law_apportion(bins, state->n_lookups, state->n_rows, unique, lookups);
    for (int k = REUSE_BINS - 1; k >= 0; k--) {
        struct stream_bin *bin = &state->bins[REUSE_BINS - 1 - k];

        bin->first_lookup = first_lookup;
        bin->first_rank = first_rank;
        bin->count = unique[k] ? (uint32_t)(lookups[k] / unique[k]) : 1;
        bin->n_more = unique[k] ? (uint32_t)(lookups[k] % unique[k]) : 0;
        first_lookup += (uint32_t)lookups[k];
        first_rank += (uint32_t)unique[k];
        if (k >= LAW_FIRST_HOT_BIN)
            state->n_hot = first_rank;
    }
}

void stream_batch_init(struct stream_batch *state, const struct stream *stream,
                       uint64_t batch_seed)
{
    uint64_t n_lookups = stream_n_lookups(stream);
    uint64_t seed = stream_random(stream->table_seed, batch_seed);

    memset(state, 0, sizeof *state);
    state->use_bins = stream->use_bins;
    state->n_rows = (uint32_t)stream->n_rows;
    state->n_lookups = (uint32_t)n_lookups;
    state->seed = stream_random(seed, SALT_DRAWS);
    row_map_init(&state->rows, stream->row_order, state->n_rows,
                 stream->table_seed);
    if (stream->use_bins) {
        bins_init(state, stream->bins);
        permutation_init(&state->positions, state->n_lookups,
                         stream_random(seed, SALT_POSITIONS));
        permutation_init(&state->cold, state->n_rows - state->n_hot,
                         stream_random(seed, SALT_COLD));
    } else {
        stream_zipf_init(&state->zipf, stream->zipf_alpha, state->n_rows);
    }
    if (!stream->batch)
        return;
    state->bag_lookups = (uint32_t)(n_lookups / stream->batch);
    state->longer_bags = (uint32_t)(n_lookups % stream->batch);
    permutation_init(&state->bags, stream->batch,
                     stream_random(seed, SALT_BAGS));
}

uint64_t stream_offsets(const struct stream_batch *state, uint32_t n_bags,
                        uint64_t offset_begin, uint64_t *offsets)
{
    uint64_t offset = offset_begin;

    for (uint32_t bag = 0; bag < n_bags; bag++) {
        offsets[bag] = offset;
        offset += stream_bag_size(state, bag);
    }
    return offset;
}

void stream_fill(const struct stream *stream, uint64_t batch_seed,
                 uint64_t offset_begin, uint64_t *offsets, uint32_t *indices)
{
    struct stream_batch state;

    stream_batch_init(&state, stream, batch_seed);
    offsets[stream->batch] =
        stream_offsets(&state, stream->batch, offset_begin, offsets);
    cpu_kernels_best()->stream_rows(&state, 0, state.n_lookups, indices);
}

int stream_draw(struct device *device, const struct stream *streams,
                uint32_t n_streams, uint64_t batch_seed, uint32_t *d_indices,
                uint64_t *d_offsets, struct err *err)
{
    assert(n_streams);
    return device->ops->draw(device, streams, n_streams, batch_seed, d_indices,
                             d_offsets, err);
}

int stream_measure(struct device *device, const struct stream *streams,
                   uint32_t n_streams, const uint32_t *d_indices,
                   struct sample_table *tables, struct err *err)
{
    return device->ops->measure(device, streams, n_streams, d_indices, tables,
                                err);
}

double stream_shares(const unsigned n_rows[REUSE_BINS], double bins[REUSE_BINS])
{
    uint64_t n_unique = 0;

    for (int k = 0; k < REUSE_BINS; k++)
        n_unique += n_rows[k];
    for (int k = 0; k < REUSE_BINS; k++)
        bins[k] = n_unique ? (double)n_rows[k] / (double)n_unique : 0;
    return (double)n_unique;
}

/* Counts how often each row occurs, in a hash table with open addressing. If
 * the table has at least as many slots as there are rows, each row has its own
 * slot. */
double stream_histogram(const uint32_t *indices, uint64_t n, uint64_t n_rows,
                        double bins[REUSE_BINS])
{
    struct slot {
        uint32_t row, count;
    } * slots;
    size_t n_slots = 1, mask;
    unsigned rows[REUSE_BINS] = {0};
    bool is_direct;

    while (n_slots < n_rows && n_slots < 2 * n)
        n_slots *= 2;
    is_direct = n_slots >= n_rows;
    mask = n_slots - 1;
    slots = mem_alloc(n_slots, sizeof *slots);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t row = indices[i];
        size_t pos = is_direct ? row : stream_mix64(row) & mask;

        while (slots[pos].count && slots[pos].row != row)
            pos = (pos + 1) & mask;
        slots[pos].row = row;
        slots[pos].count++;
    }
    for (size_t pos = 0; pos < n_slots; pos++)
        if (slots[pos].count)
            rows[stream_reuse_bin(slots[pos].count)]++;
    mem_free(slots);
    return stream_shares(rows, bins);
}
