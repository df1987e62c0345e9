/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_STREAM_H
#define NEUROSHARD_DEVICE_STREAM_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Index streams: the lookups of one table in one batch, stateless and the same
 * on every device. A stream is of one of two kinds:
 *
 *   histogram  The stream has exactly the given reuse histogram. A Feistel
 *              network with cycle walking permutes the positions; a position's
 *              bin and slot follow from the prefix sums of the bins.
 *   Zipf       Ranks follow a Zipf exponent over finite rows. They are drawn by
 *              Hoermann-Derflinger rejection-inversion with a counter-based
 *              generator.
 *
 * The table's row order places ranks on rows (core/row_order.h).
 *
 * A new `batch_seed` gives a new batch of the same statistics; `table_seed`
 * fixes which rows are hot. With a histogram, rows that a batch looks up three
 * times or more are the same in every batch. Rows that it looks up once or
 * twice are drawn anew from all other rows.
 */

struct stream {
    uint64_t n_rows; /* >= 1, < 2^32 */
    uint32_t batch;  /* bags */
    /* Mean lookups per bag, >= 0. If it is fractional, bags get its floor or
     * its ceiling, so that the total is round(pooling * batch), < 2^32. */
    double pooling_factor;
    int use_bins;      /* true: histogram; false: Zipf */
    double zipf_alpha; /* >= 0; 0 is uniform */
    /* Reuse histogram. It need not add up to 1. All zero means that every row
     * is looked up once. */
    double bins[REUSE_BINS];
    enum row_order row_order;
    uint64_t table_seed;
};

/* Returns the number of lookups of a batch: round(pooling_factor * batch). */
uint64_t stream_n_lookups(const struct stream *stream);

/* Draws a batch on the host, in 2 to 40 ns per lookup on one thread. Stores
 * offsets[batch + 1], which start at offset_begin, and stream_n_lookups
 * indices. */
void stream_fill(const struct stream *stream, uint64_t batch_seed,
                 uint64_t offset_begin, uint64_t *offsets, uint32_t *indices);

/* Draws one batch of n >= 1 streams, all of one batch size, into the device's
 * memory. The layout is that of struct lookup_batch (device/lookup.h), so
 * d_offsets has n * batch + 1 entries. A GPU makes both arrays itself. */
int stream_draw(struct device *device, const struct stream *streams,
                uint32_t n_streams, uint64_t batch_seed, uint32_t *d_indices,
                uint64_t *d_offsets, struct err *err) MUST_CHECK;
/* Measures a batch from stream_draw. Stores each stream's realised unique rows
 * and reuse histogram, as stream_histogram counts them, in n_unique and bins of
 * the tables. */
int stream_measure(struct device *device, const struct stream *streams,
                   uint32_t n_streams, const uint32_t *d_indices,
                   struct sample_table *tables, struct err *err) MUST_CHECK;

/* State that stream_row (stream_math.h) needs, for callers that draw a stream
 * on a device or only a part of a batch. */
struct stream_batch;
void stream_batch_init(struct stream_batch *state, const struct stream *stream,
                       uint64_t batch_seed);
/* Stores where each bag begins. Returns where the last bag ends. */
uint64_t stream_offsets(const struct stream_batch *state, uint32_t n_bags,
                        uint64_t offset_begin, uint64_t *offsets);

/* Converts the number of rows in each bin into shares of all rows. Returns the
 * number of all rows. Without rows, all shares are 0. */
double stream_shares(const unsigned n_rows[REUSE_BINS],
                     double bins[REUSE_BINS]);
/* Stores the realised reuse histogram (shares of unique rows) in `bins`.
 * Returns the number of unique rows. n < 2^32; n = 0 gives zeros. */
double stream_histogram(const uint32_t *indices, uint64_t n, uint64_t n_rows,
                        double bins[REUSE_BINS]);

EXTERN_C_END

#endif
