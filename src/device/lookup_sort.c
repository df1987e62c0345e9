/* SPDX-License-Identifier: MIT */
#include "device/lookup_sort.h"

#include <string.h>

/*
 * Radix sort from the least significant digit, over the bits that the row
 * numbers have and no more, cut into equal digits of at most MAX_DIGIT bits.
 * Each pass counts the digits of every chunk, turns the counts into places
 * (by digit, then by chunk: that keeps it stable) and scatters. The first pass
 * reads the indices themselves and adds the bag to each.
 */
#define MAX_DIGIT 11

_Static_assert(1 << MAX_DIGIT == LOOKUP_SORT_COUNTS, "counts of a chunk");

struct pass {
    const struct lookup_sort *sort;
    const uint32_t *from; /* NULL: the indices */
    uint32_t *to;
    size_t n;
    unsigned shift;
    uint32_t mask;
};

static size_t chunk_begin(const struct pass *pass, size_t chunk)
{
    return pass->n * chunk / pass->sort->n_chunks;
}

static void count_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct pass *pass = ctx;
    const struct lookup_sort *sort = pass->sort;
    uint32_t *counts = sort->counts + chunk * LOOKUP_SORT_COUNTS;
    const uint32_t *rows = pass->from;
    size_t step = 2;

    (void)thread;
    if (!rows) {
        step = sort->index_step;
        rows = sort->indices + sort->offsets[0] * step;
    }
    memset(counts, 0, (pass->mask + 1) * sizeof *counts);
    for (size_t i = chunk_begin(pass, chunk); i < chunk_begin(pass, chunk + 1);
         i++)
        counts[rows[i * step] >> pass->shift & pass->mask]++;
}

static void counts_to_places(const struct pass *pass)
{
    uint32_t place = 0;

    for (uint32_t digit = 0; digit <= pass->mask; digit++)
        for (size_t chunk = 0; chunk < pass->sort->n_chunks; chunk++) {
            uint32_t *count =
                &pass->sort->counts[chunk * LOOKUP_SORT_COUNTS + digit];
            uint32_t n = *count;

            *count = place;
            place += n;
        }
}

static inline void put(const struct pass *pass, uint32_t *places, uint32_t row,
                       uint32_t bag)
{
    uint32_t pair[2] = {row, bag};

    memcpy(pass->to + 2 * (size_t)places[row >> pass->shift & pass->mask]++,
           pair, sizeof pair);
}

/* The bag of look-up i, counted from the table's first. */
static uint32_t bag_of(const struct lookup_sort *sort, size_t i)
{
    uint32_t begin = 0, end = sort->batch;

    while (end - begin > 1) {
        uint32_t middle = begin + (end - begin) / 2;

        if (sort->offsets[middle] - sort->offsets[0] <= i)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

static void scatter_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct pass *pass = ctx;
    const struct lookup_sort *sort = pass->sort;
    uint32_t *places = sort->counts + chunk * LOOKUP_SORT_COUNTS, bag;
    size_t i = chunk_begin(pass, chunk), end = chunk_begin(pass, chunk + 1);

    (void)thread;
    if (pass->from) {
        for (; i < end; i++)
            put(pass, places, pass->from[2 * i], pass->from[2 * i + 1]);
        return;
    }
    if (i == end)
        return;
    for (bag = bag_of(sort, i); i < end; bag++) {
        size_t bag_end = sort->offsets[bag + 1] - sort->offsets[0];

        if (bag_end > end)
            bag_end = end;
        for (; i < bag_end; i++)
            put(pass, places,
                sort->indices[(sort->offsets[0] + i) * sort->index_step], bag);
    }
}

void lookup_sort(struct pool *pool, const struct lookup_sort *sort)
{
    unsigned n_bits = 0, n_passes, digit_bits;
    struct pass pass = {.sort = sort};

    pass.n = sort->offsets[sort->batch] - sort->offsets[0];
    while (n_bits < 32 && (sort->n_rows - 1) >> n_bits)
        n_bits++;
    n_passes = n_bits ? (n_bits + MAX_DIGIT - 1) / MAX_DIGIT : 1;
    digit_bits = (n_bits + n_passes - 1) / n_passes;
    pass.mask = (1u << digit_bits) - 1;
    for (unsigned k = 0; k < n_passes; k++) {
        /* the last pass ends in `pairs` */
        pass.to = (n_passes - k) % 2 ? sort->pairs : sort->scratch;
        pass.shift = k * digit_bits;
        pool_run(pool, sort->n_chunks, count_chunk, &pass);
        counts_to_places(&pass);
        pool_run(pool, sort->n_chunks, scatter_chunk, &pass);
        pass.from = pass.to;
    }
}
