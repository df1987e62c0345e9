/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_STREAM_KERNELS_H
#define NEUROSHARD_DEVICE_STREAM_KERNELS_H

#include "device/stream_math.h"

/* rows[0 .. n) = stream_row(batch, begin ...): the same bits, many at a time;
 * one body for each instruction set. */
void stream_rows_portable(const struct stream_batch *batch, uint32_t begin,
                          uint32_t n, uint32_t *rows);
void stream_rows_avx2(const struct stream_batch *batch, uint32_t begin,
                      uint32_t n, uint32_t *rows);
void stream_rows_avx512(const struct stream_batch *batch, uint32_t begin,
                        uint32_t n, uint32_t *rows);

/* By the best of them. */
void stream_rows(const struct stream_batch *batch, uint32_t begin, uint32_t n,
                 uint32_t *rows);
/* Where the bags begin; returns where the last one ends. */
uint64_t stream_offsets(const struct stream_batch *batch, uint32_t n_bags,
                        uint64_t offset_begin, uint64_t *offsets);

#endif
