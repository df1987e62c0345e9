/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_H
#define NEUROSHARD_DEVICE_LOOKUP_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * The fused embedding operator of one rank: T tables, sum pooling, one call
 * for all of them; and its exact backward with the optimizer fused in.
 * "Exact": the gradients of all duplicates of a row in a batch are summed
 * before one optimizer step on that row. No atomics: the same bits every run,
 * at every thread count and with every instruction set.
 *
 * The order of additions. Forward: the rows of a bag, in the order of its
 * indices, to zero. Backward: the look-ups of one row in one batch are taken
 * in bag order and cut into parts of LOOKUP_RUN_PART, and those into pieces of
 * LOOKUP_RUN_PIECE; the gradients of each piece are added in order to zero,
 * then the sums of a part's pieces in order to its first, then the parts' sums
 * in order to the first. A row's new value so depends on nothing but its own
 * look-ups, and of 10^6 of them no chain of additions is longer than 32, 63
 * and 488. The squares for row-wise Adagrad: column c is added to sum c mod 16,
 * then sums j and j + 8, j + 4, j + 2, j + 1. Products are rounded before they
 * are added.
 */
#define LOOKUP_RUN_PIECE 32
#define LOOKUP_RUN_PART (64 * LOOKUP_RUN_PIECE)

/* One table (or piece of one) on the device. Rows are dense: row i starts at
 * weight + i * dim * precision_bytes. */
struct lookup_table {
    void *d_weight;     /* [n_rows][dim], fp32 or fp16; 16-byte aligned */
    float *d_state;     /* [n_rows], row-wise Adagrad; NULL for SGD */
    uint64_t n_rows;    /* < 2^32 */
    uint32_t dim;       /* a multiple of 4 */
    uint32_t out_begin; /* first column of its output in [B][sum dim]; a
                           multiple of 4 */
    enum precision precision;
    /* Pooled outputs: bag b of the table adds into output row b. Sequence
     * tables have one output vector a look-up and are not looked up here. */
};

/* The look-ups of one batch. Bag (t, b) is number t * batch + b and owns
 * indices[offsets[bag] .. offsets[bag + 1]); offsets has T * batch + 1
 * entries, ascending, and need not start at 0: n_lookups is its last entry
 * minus its first. Every index is < n_rows of its table. None of that is
 * checked here. */
struct lookup_batch {
    const void *d_indices; /* uint32_t, or uint64_t where `wide` */
    const uint64_t *d_offsets;
    uint64_t n_lookups;
    bool wide;
};

/* What is prepared once for a set of fused tables. A zeroed field is SGD, and
 * outputs in fp32. */
struct lookup_spec {
    const struct lookup_table *tables; /* [n_tables], copied */
    uint32_t n_tables;
    uint32_t batch;           /* bags a table */
    uint64_t max_lookups;     /* of a batch that backward takes; < 2^32 */
    enum optimizer optimizer; /* SGD or row-wise Adagrad */
    enum precision output;    /* of d_out and d_grad: fp32 or fp16 */
};

/* Allocates the scratch that backward needs: lookup_scratch_bytes. Forward
 * takes any number of look-ups. ERR_INPUT for what is not executed: columns or
 * look-ups that 32 bits do not count, on a GPU also dims above 3072; ERR_DEVICE
 * where memory is short. Neither forward nor backward is reentrant. On a GPU
 * both return once the work is queued. */
struct lookup; /* opaque */
int lookup_open(struct lookup **out, struct device *device,
                const struct lookup_spec *spec, struct err *err) MUST_CHECK;
void lookup_close(struct lookup *lookup); /* NULL is fine */

/* What of the device's memory lookup_open takes for a backward, but for some
 * KiB a table: a look-up's row and bag, twice (on a GPU, as if all tables
 * together had 2^32 rows), and the sums of runs, of parts on a CPU and of
 * pieces on a GPU. */
double lookup_scratch_bytes(const struct device *device, double n_lookups,
                            uint32_t max_dim);

/* d_out[batch][out_dim], 16-byte aligned, = pooled sums, added in fp32 and, for
 * fp16 outputs, rounded to nearest even once; empty bags give zeros. */
int lookup_forward(struct lookup *lookup, const struct lookup_batch *batch,
                   void *d_out, struct err *err) MUST_CHECK;

/* The phases of a backward, so that each can be timed alone. Those of one
 * backward are run in this order with the same arguments; all together are
 * LOOKUP_BACKWARD. A CPU lists and sorts in one: there LINEARISE does
 * nothing. */
enum lookup_phase {
    LOOKUP_LINEARISE = 1, /* (row over all tables, bag) of every look-up */
    LOOKUP_SORT = 2,      /* by row */
    LOOKUP_UPDATE = 4,    /* sums of runs, optimizer step */
    LOOKUP_BACKWARD = 7
};
/* Given d_grad[batch][out_dim], of the outputs' precision and 16-byte aligned,
 * updates weights (and state):
 * SGD: w -= lr * g. Row-wise Adagrad: state += mean(g^2 over the piece's dim);
 * w -= lr / (sqrt(state) + eps) * g. fp16 weights: fp32 arithmetic, rounded
 * to nearest even. */
#define LOOKUP_ADAGRAD_EPS 1e-8f
int lookup_backward(struct lookup *lookup, unsigned phases,
                    const struct lookup_batch *batch, const void *d_grad,
                    float learning_rate, struct err *err) MUST_CHECK;

/* Data-parallel tables: the optimizer's step on every row whose dense gradient
 * d_dense[n_rows][dim] is not all zero, with the same arithmetic as
 * lookup_backward's; those gradients are zeroed. The dense gradient itself is
 * made by lookup_backward: SGD at rate -1 on a zeroed fp32 table. */
int lookup_apply_dense(struct device *device, const struct lookup_table *table,
                       float *d_dense, float learning_rate,
                       enum optimizer optimizer, struct err *err) MUST_CHECK;

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
/* touched_bytes: of one batch, all its tables together. A GPU flushes its
 * cache instead (device_flush) and takes LOOKUP_MIN_COLD_SETS. */
unsigned lookup_n_cold_sets(const struct device *device,
                            uint64_t touched_bytes);
/* What a batch with n_lookups in a table touches of it, at most: each row with
 * its state's cache line. */
uint64_t lookup_touched_bytes(uint64_t n_lookups, uint64_t n_rows, uint32_t dim,
                              enum precision precision);

EXTERN_C_END

#endif
