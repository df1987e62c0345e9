/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_STREAM_H
#define NEUROSHARD_DEVICE_STREAM_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Index streams: the look-ups of one table in one batch, stateless and the
 * same on every device. Either a reuse histogram hit exactly (positions
 * permuted by a Feistel network with cycle walking, then bin and slot by
 * prefix), or a Zipf exponent over finite rows (Hoermann-Derflinger
 * rejection-inversion with a counter-based generator). Row ranks are put over
 * the table in its order (core/row_order.h).
 *
 * A new `batch_seed` gives a new batch of the same statistics; `table_seed`
 * fixes which rows are hot. With a histogram, the rows that a batch looks up
 * three times or more are the same in every batch, those it looks up once or
 * twice are drawn anew from all others.
 */

struct stream {
    uint64_t n_rows;         /* >= 1, < 2^32 */
    uint32_t batch;          /* bags */
    double pooling_factor;   /* mean look-ups a bag, >= 0; fractional: bags get
                                floor or ceil of it, so that the total is
                                round(pooling * batch), < 2^32 */
    int use_bins;            /* else Zipf */
    double zipf_alpha;       /* >= 0; 0 is uniform */
    double bins[REUSE_BINS]; /* need not add up to 1; all zero counts as every
                                row once */
    enum row_order row_order;
    uint64_t table_seed;
};

/* Look-ups of a batch: round(pooling_factor * batch). */
uint64_t stream_n_lookups(const struct stream *stream);

/* Host code, 2 to 40 ns a look-up on one thread. offsets[batch + 1] start at
 * offset_begin; indices get stream_n_lookups values. */
void stream_fill(const struct stream *stream, uint64_t batch_seed,
                 uint64_t offset_begin, uint64_t *offsets, uint32_t *indices);

/* The same for n >= 1 streams of one batch size, into the device's memory: the
 * layout of struct lookup_batch (device/lookup.h), d_offsets[n * batch + 1].
 * On a GPU both are made there. */
int stream_draw(struct device *device, const struct stream *streams,
                uint32_t n_streams, uint64_t batch_seed, uint32_t *d_indices,
                uint64_t *d_offsets, struct err *err) MUST_CHECK;
/* Realised unique rows and reuse histogram of each stream of such a batch,
 * as stream_histogram counts them, into n_unique and bins of the tables. */
int stream_measure(struct device *device, const struct stream *streams,
                   uint32_t n_streams, const uint32_t *d_indices,
                   struct sample_table *tables, struct err *err) MUST_CHECK;

/* What stream_row of stream_math.h needs, for those who fill elsewhere: on a
 * device, or a part of a batch. */
struct stream_batch;
void stream_batch_init(struct stream_batch *state, const struct stream *stream,
                       uint64_t batch_seed);
/* Where the bags begin; returns where the last one ends. */
uint64_t stream_offsets(const struct stream_batch *state, uint32_t n_bags,
                        uint64_t offset_begin, uint64_t *offsets);

/* Rows in each bin as shares of them all, which are returned; of none: 0. */
double stream_shares(const unsigned n_rows[REUSE_BINS],
                     double bins[REUSE_BINS]);
/* Realised reuse histogram (shares of unique rows) and unique rows. n < 2^32;
 * n 0 gives zeros. */
double stream_histogram(const uint32_t *indices, uint64_t n, uint64_t n_rows,
                        double bins[REUSE_BINS]);

EXTERN_C_END

#endif
