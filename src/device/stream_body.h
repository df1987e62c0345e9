/* SPDX-License-Identifier: MIT */

/*
 * Implementation of `stream_rows` in cpu_kernels.h, included by lookup_body.h.
 * It consists of plain loops over blocks of lookups, which the compiler
 * vectorizes. Calling stream_row for each lookup would be slow, because no
 * branch predictor can foresee the number of steps of a cycle walk or a Zipf
 * draw. Here one step is made for all lookups of a block. The lookups that need
 * further steps are collected in a list, for which the next step is made, and
 * so on.
 */

#include "device/stream_math.h"

#define BLOCK 512

/* Permutes x[0 .. n). One step is made for all elements; then further steps are
 * made for the elements that are still outside [0, n_values). */
static void permute_block(const struct permutation *permutation, uint32_t *x,
                          uint32_t n)
{
    /* local copy, so that it stays in registers */
    const struct permutation own = *permutation;
    const uint32_t n_values = (uint32_t)own.n;
    uint32_t pos[BLOCK], outside[BLOCK], n_outside = 0, n_left;

    for (uint32_t i = 0; i < n; i++)
        x[i] = permutation_step(&own, x[i]);
    for (uint32_t i = 0; i < n; i++) {
        pos[n_outside] = i;
        outside[n_outside] = x[i];
        n_outside += x[i] >= n_values;
    }
    while (n_outside) {
        for (uint32_t i = 0; i < n_outside; i++)
            outside[i] = permutation_step(&own, outside[i]);
        n_left = 0;
        for (uint32_t i = 0; i < n_outside; i++) {
            uint32_t place = pos[i], value = outside[i];

            x[place] = value;
            pos[n_left] = place;
            outside[n_left] = value;
            n_left += value >= n_values;
        }
        n_outside = n_left;
    }
}

static void binned_block(const struct stream_batch *batch, uint32_t *ranks,
                         uint32_t n)
{
    uint32_t pos[BLOCK], cold[BLOCK], n_cold = 0;

    permute_block(&batch->positions, ranks, n);
    for (uint32_t i = 0; i < n; i++) {
        ranks[i] = stream_rank_of_place(batch, ranks[i]);
        pos[n_cold] = i;
        cold[n_cold] = ranks[i] - batch->n_hot;
        n_cold += ranks[i] >= batch->n_hot;
    }
    permute_block(&batch->cold, cold, n_cold);
    for (uint32_t i = 0; i < n_cold; i++)
        ranks[pos[i]] = batch->n_hot + cold[i];
}

static void zipf_block(const struct stream_batch *batch, uint32_t *ranks,
                       uint32_t n)
{
    const struct stream_zipf zipf = batch->zipf;
    uint64_t seeds[BLOCK], seed = batch->seed;
    uint32_t pos[BLOCK], drawn[BLOCK], n_left;

    for (uint32_t i = 0; i < n; i++) {
        pos[i] = i;
        seeds[i] = stream_random(seed, ranks[i]);
    }
    for (uint64_t attempt = 0; n; attempt++, n = n_left) {
        for (uint32_t i = 0; i < n; i++)
            drawn[i] = stream_zipf_attempt(&zipf, seeds[i], attempt);
        n_left = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t place = pos[i], rank = drawn[i];

            ranks[place] = rank - 1;
            pos[n_left] = place;
            seeds[n_left] = seeds[i];
            n_left += !rank;
        }
    }
}

static void stream_rows(const struct stream_batch *batch, uint32_t begin,
                        uint32_t n, uint32_t *rows)
{
    for (uint32_t done = 0, n_block; done < n; done += n_block) {
        uint32_t *block = rows + done, first = begin + done;

        n_block = (uint32_t)min_u64(n - done, BLOCK);
        for (uint32_t i = 0; i < n_block; i++)
            block[i] = first + i;
        if (batch->use_bins)
            binned_block(batch, block, n_block);
        else if (batch->zipf.alpha > 0)
            zipf_block(batch, block, n_block);
        else
            for (uint32_t i = 0; i < n_block; i++)
                block[i] = stream_uniform_rank(batch, block[i]);
        if (batch->rows.order == ROW_ORDER_HASHED)
            permute_block(&batch->rows.hashed, block, n_block);
        else
            for (uint32_t i = 0; i < n_block; i++)
                block[i] = (uint32_t)row_of_rank(&batch->rows, block[i]);
    }
}
