/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_H
#define NEUROSHARD_DEVICE_LOOKUP_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The fused embedding operator of one rank: T tables, sum pooling, one call
 * for all of them; and its exact backward with the optimizer fused in.
 * "Exact": the gradients of all duplicates of a row in a batch are summed
 * before one optimizer step on that row. No atomics: the same bits every run,
 * at every thread count and with every instruction set.
 *
 * The order of additions. Forward: the rows of a bag, in the order of its
 * indices, to zero. Backward: the look-ups of one row in one batch are taken
 * in bag order and cut into pieces of LOOKUP_RUN_PIECE; the gradients of each
 * piece are added in order to zero, then the pieces' sums in order to the
 * first. A row's new value so depends on nothing but its own look-ups. The
 * squares for row-wise Adagrad: column c is added to sum c mod 16, then sums
 * j and j + 8, j + 4, j + 2, j + 1. Products are rounded before they are
 * added.
 */
#define LOOKUP_RUN_PIECE 256

/* One table (or piece of one) on the device. Rows are dense: row i starts at
 * weight + i * dim * precision_bytes. */
struct lookup_table {
    void *d_weight;     /* [n_rows][dim], fp32 or fp16 */
    float *d_state;     /* [n_rows], row-wise Adagrad; NULL for SGD */
    uint64_t n_rows;    /* < 2^32 */
    uint32_t dim;       /* a multiple of 4 */
    uint32_t out_begin; /* first column of its output in [B][sum dim] */
    enum precision precision;
    /* Pooled outputs: bag b of the table adds into output row b. Sequence
     * tables have one output vector a look-up and are not looked up here. */
};

/* The look-ups of one batch. Bag (t, b) is number t * batch + b and owns
 * indices[offsets[bag] .. offsets[bag + 1]); offsets has T * batch + 1
 * entries, ascending. Every index is < n_rows of its table. Neither is checked
 * here. */
struct lookup_batch {
    const uint32_t *d_indices;
    const uint64_t *d_offsets;
    uint64_t n_lookups;
};

/* A set of fused tables, prepared once: copies the table array, allocates the
 * scratch that backward needs for up to max_lookups (< 2^32; it takes
 * 16 + max_dim / 64 bytes a look-up). Forward takes any number of look-ups.
 * ERR_INPUT for what is not executed (precisions bf16 and int8, optimizers
 * Adagrad and Adam, a dim that is no multiple of 4), ERR_DEVICE where memory is
 * short. Backward is not reentrant. */
struct lookup; /* opaque */
int lookup_open(struct lookup **out, struct device *device,
                const struct lookup_table *tables, uint32_t n_tables,
                uint32_t batch, uint64_t max_lookups, enum optimizer optimizer,
                struct err *err) MUST_CHECK;
void lookup_close(struct lookup *lookup); /* NULL is fine */
/* sum of dims: floats a row of the output */
uint32_t lookup_out_dim(const struct lookup *lookup);

/* d_out[batch][out_dim] fp32 = pooled sums; empty bags give zeros. */
int lookup_forward(struct lookup *lookup, const struct lookup_batch *batch,
                   float *d_out, struct err *err) MUST_CHECK;

/* Given d_grad[batch][out_dim] fp32, updates weights (and state):
 * SGD: w -= lr * g. Row-wise Adagrad: state += mean(g^2 over the piece's dim);
 * w -= lr / (sqrt(state) + eps) * g. fp16 weights: fp32 arithmetic, rounded
 * to nearest even. */
#define LOOKUP_ADAGRAD_EPS 1e-8f
int lookup_backward(struct lookup *lookup, const struct lookup_batch *batch,
                    const float *d_grad, float learning_rate,
                    struct err *err) MUST_CHECK;

/*
 * Who times look-ups lets several batches of the same statistics take turns,
 * so that no batch finds its rows in a cache because it was looked up just
 * before: in training the dense layers run in between. Small tables and hot
 * rows stay cached, as they do there. Times are comparable only where all
 * choose the number of batches by this one rule: so many that together they
 * touch LOOKUP_COLD_BYTES, which is more than the last-level cache a core can
 * reach; at least 4, as other memory wears caches out too, and at most 16, as
 * each has to be drawn and kept.
 */
#define LOOKUP_MIN_COLD_SETS 4
#define LOOKUP_MAX_COLD_SETS 16
#define LOOKUP_COLD_BYTES ((uint64_t)96 << 20)
/* touched_bytes: of one batch, all its tables together. */
unsigned lookup_n_cold_sets(uint64_t touched_bytes);
/* What a batch with n_lookups in a table touches of it, at most: each row with
 * its state's cache line. */
uint64_t lookup_touched_bytes(uint64_t n_lookups, uint64_t n_rows, uint32_t dim,
                              enum precision precision);

/* Forward and backward in plain C, double accumulation, no threads: what every
 * body is checked against. All pointers are host pointers; weights fp32 or
 * fp16. out and grad as above; updated rows are written back rounded to the
 * table's precision. */
void lookup_forward_ref(const struct lookup_table *tables, uint32_t n_tables,
                        uint32_t batch, const struct lookup_batch *lookups,
                        double *out);
void lookup_backward_ref(const struct lookup_table *tables, uint32_t n_tables,
                         uint32_t batch, const struct lookup_batch *lookups,
                         const float *grad, float learning_rate,
                         enum optimizer optimizer);

#ifdef __cplusplus
}
#endif
#endif
