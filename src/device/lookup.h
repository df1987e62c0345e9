/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_H
#define NEUROSHARD_DEVICE_LOOKUP_H

#include "device/device.h"

EXTERN_C_BEGIN

/*
 * Fused embedding operator of one rank. One call looks up and sum-pools all T
 * tables. The backward pass is exact and includes the optimizer step. "Exact"
 * means that the gradients of all duplicates of a row in a batch are summed
 * before one optimizer step on that row. There are no atomics: results have the
 * same bits in every run, at every thread count and with every instruction set.
 *
 * Order of additions in forward: the rows of a bag are added to zero, in the
 * order of the bag's indices.
 *
 * Order of additions in backward: all lookups of one row in one batch, in bag
 * order, are a run. A run is cut into parts of LOOKUP_RUN_PART lookups, and
 * each part into pieces of LOOKUP_RUN_PIECE lookups.
 *
 *   1. The gradients of each piece are added to zero, in order.
 *   2. The sums of a part's later pieces are added to the sum of its first
 *      piece, in order.
 *   3. The sums of the later parts are added to the sum of the first part, in
 *      order.
 *
 * A row's new value therefore depends on its own lookups only. In a run of 10^6
 * lookups, the longest chains of additions at these three levels have 32, 63
 * and 488 additions.
 *
 * Order of additions of the squares for row-wise Adagrad:
 *
 *   1. The square of column c is added to sum c mod 16.
 *   2. The 16 sums are folded by halves: sum j + 8 is added to sum j, then sum
 *      j + 4, then sum j + 2, then sum j + 1.
 *
 * All products are rounded before they are added.
 */
#define LOOKUP_RUN_PIECE 32
#define LOOKUP_RUN_PART (64 * LOOKUP_RUN_PIECE)

/* One table, or a piece of one, on the device. Rows are contiguous: row i
 * starts at d_weight + i * dim * precision_bytes. */
struct lookup_table {
    void *d_weight;  /* [n_rows][dim], fp32 or fp16; 16-byte aligned */
    float *d_state;  /* [n_rows], row-wise Adagrad; NULL for SGD */
    uint64_t n_rows; /* < 2^32 */
    uint32_t dim;    /* a multiple of 4 */
    /* First column of the table's output in [B][sum dim]; a multiple of 4. */
    uint32_t out_begin;
    enum precision precision;
    /* Outputs are pooled: the rows of bag b are summed into output row b.
     * Sequence tables, which have one output vector per lookup, are not
     * supported. */
};

/* Lookups of one batch. Bag b of table t has the number bag = t * batch + b and
 * owns indices[offsets[bag] .. offsets[bag + 1]). `offsets` has T * batch + 1
 * ascending entries and need not start at 0: n_lookups is its last entry minus
 * its first. Every index is less than n_rows of its table. These conditions are
 * not checked. */
struct lookup_batch {
    const void *d_indices; /* uint32_t, or uint64_t if `wide` */
    const uint64_t *d_offsets;
    uint64_t n_lookups;
    bool wide;
};

/* Input of lookup_open: a set of tables to be looked up together. A zeroed
 * `optimizer` is SGD, a zeroed `output` is fp32. */
struct lookup_spec {
    const struct lookup_table *tables; /* [n_tables], copied */
    uint32_t n_tables;
    uint32_t batch; /* bags per table */
    /* Most lookups of a batch that backward accepts; < 2^32. */
    uint64_t max_lookups;
    enum optimizer optimizer; /* SGD or row-wise Adagrad */
    enum precision output;    /* precision of d_out and d_grad: fp32 or fp16 */
};

/* Prepares a set of tables and allocates the scratch that backward needs
 * (lookup_scratch_bytes). Forward accepts any number of lookups. Fails with
 * ERR_INPUT if the tables cannot be executed: more columns or lookups than 32
 * bits can count, or on a GPU a dim above 3072. Fails with ERR_DEVICE if memory
 * is short. Forward and backward are not reentrant. On a GPU both return as
 * soon as the work is queued. */
struct lookup; /* opaque */
int lookup_open(struct lookup **out, struct device *device,
                const struct lookup_spec *spec, struct err *err) MUST_CHECK;
void lookup_close(struct lookup *lookup); /* NULL is fine */

/* Returns the bytes of device memory that lookup_open allocates for a backward,
 * except some KiB per table. They hold the row and the bag of each lookup,
 * twice (on a GPU with 8 bytes per row, as if all tables together had 2^32
 * rows), and the partial sums of runs: one sum per part on a CPU, one per piece
 * on a GPU. */
double lookup_scratch_bytes(const struct device *device, double n_lookups,
                            uint32_t max_dim);

/* Stores the pooled sums in d_out[batch][out_dim], which is 16-byte aligned.
 * Rows are added in fp32. An fp16 output is rounded once, to nearest even.
 * Empty bags give zeros. */
int lookup_forward(struct lookup *lookup, const struct lookup_batch *batch,
                   void *d_out, struct err *err) MUST_CHECK;

/* Phases of a backward, separate so that each can be timed alone. The phases of
 * one backward must run in this order and with the same arguments.
 * LOOKUP_BACKWARD is all of them. On a CPU, LINEARISE does nothing: SORT lists
 * and sorts in one step. */
enum lookup_phase {
    /* Lists (row over all tables, bag) of every lookup. */
    LOOKUP_LINEARISE = 1,
    LOOKUP_SORT = 2,   /* Sorts this list by row. */
    LOOKUP_UPDATE = 4, /* Sums the runs and makes the optimizer step. */
    LOOKUP_BACKWARD = 7
};
/*
 * Updates the weights (and state) with the gradient d_grad[batch][out_dim],
 * which has the outputs' precision and is 16-byte aligned.
 *
 *   SGD:               w -= lr * g
 *   row-wise Adagrad:  state += mean(g^2 over the piece's dim)
 *                      w -= lr / (sqrt(state) + eps) * g
 *
 * fp16 weights are updated in fp32 arithmetic and rounded to nearest even.
 */
#define LOOKUP_ADAGRAD_EPS 1e-8f
int lookup_backward(struct lookup *lookup, unsigned phases,
                    const struct lookup_batch *batch, const void *d_grad,
                    float learning_rate, struct err *err) MUST_CHECK;

/* Optimizer step of a data-parallel table: updates every row whose dense
 * gradient d_dense[n_rows][dim] is not all zero, with the arithmetic of
 * lookup_backward, and zeroes the gradients of these rows. To make the dense
 * gradient itself, call lookup_backward with SGD at rate -1 on a zeroed fp32
 * table. */
int lookup_apply_dense(struct device *device, const struct lookup_table *table,
                       float *d_dense, float learning_rate,
                       enum optimizer optimizer, struct err *err) MUST_CHECK;

/*
 * Number of index sets, batches of the same statistics, that a benchmark of
 * lookups rotates between. If it repeated one batch, rows would be in a cache
 * because they were looked up just before. In training the dense layers run in
 * between. Small tables and hot rows stay cached, as they do in training. Times
 * are comparable only if all benchmarks choose the number by this one rule:
 *
 *   - all sets together touch LOOKUP_COLD_BYTES, which is more than the
 *     last-level cache that a core can reach
 *   - at least 4 sets, because other memory displaces cached rows too
 *   - at most 16 sets, because each has to be drawn and kept
 */
#define LOOKUP_MIN_COLD_SETS 4
#define LOOKUP_MAX_COLD_SETS 16
#define LOOKUP_COLD_BYTES ((uint64_t)96 << 20)
/* Returns the number of index sets. touched_bytes: bytes that one batch touches
 * in all its tables. On a GPU the number is LOOKUP_MIN_COLD_SETS, because its
 * cache is flushed instead (device_flush). */
unsigned lookup_n_cold_sets(const struct device *device,
                            uint64_t touched_bytes);
/* Returns the most bytes of a table that a batch with n_lookups in it touches:
 * each row and the cache line of its state. */
uint64_t lookup_touched_bytes(uint64_t n_lookups, uint64_t n_rows, uint32_t dim,
                              enum precision precision);

EXTERN_C_END

#endif
