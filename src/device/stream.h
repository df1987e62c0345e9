/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_STREAM_H
#define NEUROSHARD_DEVICE_STREAM_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Index streams. A stream generates the lookups of one table in one batch. It
 * has no state and gives the same lookups on every device. There are two kinds
 * of streams:
 *
 *   histogram  The stream has exactly the given reuse histogram. A Feistel
 *              network with cycle walking permutes the positions. The bin and
 *              slot of a position follow from the prefix sums of the bins.
 *   Zipf       Ranks follow a Zipf exponent over finite rows. They are drawn by
 *              Hoermann-Derflinger rejection-inversion with a counter-based
 *              generator.
 *
 * A rank is the position of a row in the order of popularity. The table's row
 * order maps ranks to rows (core/row_order.h).
 *
 * A new `batch_seed` gives a new batch with the same statistics. `table_seed`
 * determines the hot rows. With a histogram, the rows that are looked up three
 * times or more in a batch are the same in every batch. The rows that are
 * looked up once or twice are drawn anew for each batch, from all other rows.
 */

struct stream {
    uint64_t n_rows; /* rows of the table; >= 1, < 2^32 */
    uint32_t batch;  /* bags in the batch */
    /* Mean lookups per bag, >= 0. If it is fractional, the size of a bag is
     * either its floor or its ceiling, chosen so that the batch has
     * round(pooling * batch) lookups in total. The total must be < 2^32. */
    double pooling_factor;
    int use_bins; /* true: histogram stream; false: Zipf stream */
    /* Zipf exponent, >= 0; with 0 all rows are equally likely */
    double zipf_alpha;
    /* Reuse histogram: share of the rows in each bin. The shares need not add
     * up to 1. If all shares are zero, every row is looked up once. */
    double bins[REUSE_BINS];
    enum row_order row_order;
    uint64_t table_seed;
};

/* Returns the number of lookups of one batch: round(pooling_factor * batch). */
uint64_t stream_n_lookups(const struct stream *stream);

/* Draws one batch on the host, in 2 to 40 ns per lookup on one thread. Stores
 * offsets[batch + 1], of which the first is offset_begin, and as many indices
 * as stream_n_lookups returns. */
void stream_fill(const struct stream *stream, uint64_t batch_seed,
                 uint64_t offset_begin, uint64_t *offsets, uint32_t *indices);

/* Draws one batch of each of n >= 1 streams into the device's memory. All
 * streams must have the same batch size. The layout is that of struct
 * lookup_batch (device/lookup.h), so d_offsets has n * batch + 1 entries. On a
 * GPU both arrays are computed by the GPU itself. */
int stream_draw(struct device *device, const struct stream *streams,
                uint32_t n_streams, uint64_t batch_seed, uint32_t *d_indices,
                uint64_t *d_offsets, struct err *err) MUST_CHECK;
/* Measures a batch that stream_draw has drawn. For each stream, stores in its
 * element of `tables` the number of unique rows (n_unique) and the reuse
 * histogram (bins) that the batch really has, counted as by
 * stream_histogram. */
int stream_measure(struct device *device, const struct stream *streams,
                   uint32_t n_streams, const uint32_t *d_indices,
                   struct sample_table *tables, struct err *err) MUST_CHECK;

/* State that stream_row (stream_math.h) needs. It is for callers that draw a
 * stream on a device, or that draw only a part of a batch. */
struct stream_batch;
void stream_batch_init(struct stream_batch *state, const struct stream *stream,
                       uint64_t batch_seed);
/* Stores in `offsets` where each bag begins. Returns where the last bag
 * ends. */
uint64_t stream_offsets(const struct stream_batch *state, uint32_t n_bags,
                        uint64_t offset_begin, uint64_t *offsets);

/* Converts n_rows, the number of rows in each bin, into `bins`, the shares of
 * all rows. Returns the number of all rows. If there are no rows, all shares
 * are 0. */
double stream_shares(const unsigned n_rows[REUSE_BINS],
                     double bins[REUSE_BINS]);
/* Counts how often each row occurs in indices[n]. Stores the reuse histogram
 * (shares of the unique rows) in `bins`. Returns the number of unique rows. n <
 * 2^32; if n is 0, everything is 0. */
double stream_histogram(const uint32_t *indices, uint64_t n, uint64_t n_rows,
                        double bins[REUSE_BINS]);

EXTERN_C_END

#endif
