/* SPDX-License-Identifier: MIT */
#include "device/stream.h"

#include "base/mem.h"
#include "device/cpu_kernels.h"
#include "device/device_ops.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Seeds of the permutations and draws of one stream; 1 is that of its rows. */
enum { SALT_POSITIONS = 2, SALT_COLD, SALT_DRAWS, SALT_BAGS };

/* Rows in these bins and above stay hot from batch to batch. */
#define FIRST_HOT_BIN 2

uint64_t stream_n_lookups(const struct stream *stream)
{
    return (uint64_t)(stream->pooling_factor * stream->batch + 0.5);
}

/* Shares `total` out in proportion to the weights: floors first, what is left
 * by largest remainder, ties to the smaller index. */
static void largest_remainder(uint64_t total, const double weight[REUSE_BINS],
                              uint64_t out[REUSE_BINS])
{
    double sum = 0, rest[REUSE_BINS];
    uint64_t given = 0;

    for (int k = 0; k < REUSE_BINS; k++)
        sum += weight[k];
    for (int k = 0; k < REUSE_BINS; k++) {
        double exact = (double)total * weight[k] / sum;

        out[k] = (uint64_t)exact;
        if (out[k] > total - given) /* rounding only */
            out[k] = total - given;
        rest[k] = weight[k] > 0 ? exact - (double)out[k] : -1;
        given += out[k];
    }
    while (given < total) {
        int best = 0;

        for (int k = 1; k < REUSE_BINS; k++)
            if (rest[k] > rest[best])
                best = k;
        out[best]++;
        rest[best]--;
        given++;
    }
}

/* Fewest and most look-ups of a row in bin k. */
static uint64_t bin_min(int k)
{
    return k ? (1ull << (k - 1)) + 1 : 1;
}

static uint64_t bin_max(int k)
{
    return k < REUSE_BINS - 1 ? 1ull << k : UINT32_MAX;
}

/* Steps 2 and 3 of stream_apportion. */
static void settle_lookups(uint64_t n_lookups,
                           const uint64_t unique[REUSE_BINS],
                           uint64_t lookups[REUSE_BINS])
{
    int64_t missing = (int64_t)n_lookups;
    int hottest = 0;

    for (int k = 0; k < REUSE_BINS; k++) {
        lookups[k] = unique[k] * (uint64_t)reuse_bin_count((unsigned)k);
        missing -= (int64_t)lookups[k];
        if (unique[k])
            hottest = k;
    }
    for (int strict = 1; strict >= 0; strict--)
        for (int k = hottest; k >= 0 && missing; k--) {
            uint64_t low = unique[k] * (strict ? bin_min(k) : 1);
            uint64_t high = unique[k] * (strict ? bin_max(k) : UINT32_MAX);
            int64_t change = missing;

            if (change > (int64_t)(high - lookups[k]))
                change = (int64_t)(high - lookups[k]);
            if (change < -(int64_t)(lookups[k] - low))
                change = -(int64_t)(lookups[k] - low);
            lookups[k] = (uint64_t)((int64_t)lookups[k] + change);
            missing -= change;
        }
}

void stream_apportion(const double bins[REUSE_BINS], uint64_t n_lookups,
                      uint64_t n_rows, uint64_t unique[REUSE_BINS],
                      uint64_t lookups[REUSE_BINS])
{
    double weight[REUSE_BINS], share = 0, used = 0, wanted;
    uint64_t n_unique;

    memset(unique, 0, REUSE_BINS * sizeof *unique);
    memset(lookups, 0, REUSE_BINS * sizeof *lookups);
    if (!n_lookups)
        return;
    memcpy(weight, bins, sizeof weight);
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        share += weight[k];
        used += weight[k] * reuse_bin_count(k);
    }
    if (share <= 0)
        share = used = weight[0] = 1;
    wanted = floor((double)n_lookups * share / used + 0.5);
    n_unique = wanted < 1 ? 1 : (uint64_t)wanted;
    if (n_unique > n_rows)
        n_unique = n_rows;
    largest_remainder(n_unique, weight, unique);
    if (wanted > (double)n_rows) {
        for (unsigned k = 0; k < REUSE_BINS; k++)
            weight[k] = (double)unique[k] * reuse_bin_count(k);
        largest_remainder(n_lookups, weight, lookups);
    } else {
        settle_lookups(n_lookups, unique, lookups);
    }
}

static void bins_init(struct stream_batch *state, const double bins[])
{
    uint64_t unique[REUSE_BINS], lookups[REUSE_BINS];
    uint32_t first_lookup = 0, first_rank = 0;

    stream_apportion(bins, state->n_lookups, state->n_rows, unique, lookups);
    for (int k = REUSE_BINS - 1; k >= 0; k--) {
        struct stream_bin *bin = &state->bins[REUSE_BINS - 1 - k];

        bin->first_lookup = first_lookup;
        bin->first_rank = first_rank;
        bin->count = unique[k] ? (uint32_t)(lookups[k] / unique[k]) : 1;
        bin->n_more = unique[k] ? (uint32_t)(lookups[k] % unique[k]) : 0;
        first_lookup += (uint32_t)lookups[k];
        first_rank += (uint32_t)unique[k];
        if (k >= FIRST_HOT_BIN)
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
    state->alpha = stream->zipf_alpha;
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
    return device->ops->draw(device, streams, n_streams, batch_seed, d_indices,
                             d_offsets, err);
}

int stream_measure(struct device *device, const struct stream *streams,
                   uint32_t n_streams, const uint32_t *d_indices,
                   double *n_unique, double (*bins)[REUSE_BINS],
                   struct err *err)
{
    return device->ops->measure(device, streams, n_streams, d_indices, n_unique,
                                bins, err);
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

/* Counts by open addressing; where the slots are as many as the rows, each row
 * has its own. */
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
        size_t at = is_direct ? row : stream_mix64(row) & mask;

        while (slots[at].count && slots[at].row != row)
            at = (at + 1) & mask;
        slots[at].row = row;
        slots[at].count++;
    }
    for (size_t at = 0; at < n_slots; at++)
        if (slots[at].count)
            rows[stream_reuse_bin(slots[at].count)]++;
    mem_free(slots);
    return stream_shares(rows, bins);
}
