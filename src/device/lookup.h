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
 * Order of additions in backward: a "run" is the list of all lookups of one row
 * in one batch, in the order of bags. A run is cut into parts of
 * LOOKUP_RUN_PART lookups, and each part into pieces of LOOKUP_RUN_PIECE
 * lookups.
 *
 *   1. Piece: the gradients of a piece are added to zero, in order.
 *   2. Part: the sums of the second and later pieces of a part are added to the
 *      sum of its first piece, in order.
 *   3. Run: the sums of the second and later parts of a run are added to the
 *      sum of its first part, in order.
 *
 * The new value of a row therefore depends only on the lookups of this row. In
 * a run of 10^6 lookups, the longest chains of additions at levels 1, 2 and 3
 * have 32, 63 and 488 additions.
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

/* One table, or a piece of a table, in the device's memory. Rows are
 * contiguous, unless the table has places: row i starts at d_weight + i * dim *
 * precision_bytes. */
struct lookup_table {
    void *d_weight;  /* [n_rows][dim], fp32 or fp16; 16-byte aligned */
    float *d_state;  /* [n_rows], state of row-wise Adagrad; NULL for SGD */
    uint64_t n_rows; /* < 2^32 */
    uint32_t dim;    /* a multiple of 4 */
    /* First column of this table in the output matrix [B][sum dim]; a multiple
     * of 4. */
    uint32_t out_begin;
    enum precision precision;
    /* The table's outputs are pooled: the rows of bag b are summed into output
     * row b. For a sequence, which has one output vector per lookup, each
     * lookup is a bag. */
    /* NULL, or [n_rows]: place of each row, which may change between two calls.
     * Row i then starts at d_weight + places[i] * LOOKUP_PLACE_COLUMNS *
     * precision_bytes. Only CPUs run such tables, and only batches whose first
     * offset is 0 and which have at most max_lookups lookups. */
    const uint32_t *d_places;
};
/* Number of columns in the unit of places. */
#define LOOKUP_PLACE_COLUMNS 4

/* Lookups of one batch in T tables. Bag b of table t has the number bag = t *
 * batch + b. Its lookups are indices[offsets[bag] .. offsets[bag + 1]).
 * `offsets` has T * batch + 1 ascending entries. The first entry need not be 0;
 * n_lookups is the last entry minus the first one. Every index must be less
 * than n_rows of its table. These conditions are not checked. */
struct lookup_batch {
    const void *d_indices; /* uint32_t; uint64_t if `wide` */
    const uint64_t *d_offsets;
    uint64_t n_lookups;
    bool wide;
};

/* Argument of lookup_open: a set of tables that are looked up together. In a
 * zeroed struct, the optimizer is SGD and the output is fp32. */
struct lookup_spec {
    const struct lookup_table *tables; /* [n_tables]; lookup_open copies them */
    uint32_t n_tables;
    uint32_t batch; /* bags per table */
    /* Largest number of lookups of a batch that backward accepts; < 2^32. */
    uint64_t max_lookups;
    enum optimizer optimizer; /* SGD or row-wise Adagrad */
    enum precision output;    /* precision of d_out and d_grad: fp32 or fp16 */
};

/*
 * Prepares a set of tables for lookups. Allocates the scratch memory that
 * backward needs (lookup_scratch_bytes). Forward accepts any number of lookups;
 * backward accepts at most max_lookups. Fails with ERR_INPUT if the tables
 * cannot be executed: they have more columns or lookups than 32 bits can count,
 * or on a GPU a dim above 3072 or places. Fails with ERR_DEVICE if memory is
 * short.
 *
 * Forward and backward are not reentrant. On a GPU both return as soon as the
 * work is queued.
 */
struct lookup; /* opaque */
int lookup_open(struct lookup **out, struct device *device,
                const struct lookup_spec *spec, struct err *err) MUST_CHECK;
void lookup_close(struct lookup *lookup); /* NULL is fine */

/*
 * Returns the bytes of device memory that lookup_open allocates for backward,
 * except some KiB per table. This memory has two uses:
 *
 *   - the row and the bag of each lookup, stored twice. On a GPU, 8 bytes per
 *     row are assumed, as if all tables together had 2^32 rows.
 *   - the partial sums of runs: one sum per part on a CPU, one per piece on a
 *     GPU
 */
double lookup_scratch_bytes(const struct device *device, double n_lookups,
                            uint32_t max_dim);

/* Looks up a batch. Stores the pooled sums in d_out[batch][out_dim], which is
 * 16-byte aligned. Rows are added in fp32. An fp16 output is rounded once, to
 * nearest even. Empty bags give zeros. */
int lookup_forward(struct lookup *lookup, const struct lookup_batch *batch,
                   void *d_out, struct err *err) MUST_CHECK;

/* Phases of a backward. They are separate so that each can be timed alone. The
 * phases of one backward must run in the order LINEARISE, SORT, UPDATE and with
 * the same arguments. LOOKUP_BACKWARD is all three phases. On a CPU, LINEARISE
 * does nothing, because SORT lists and sorts the lookups in one step. */
enum lookup_phase {
    /* Lists the row (counted over all tables) and the bag of every lookup. */
    LOOKUP_LINEARISE = 1,
    LOOKUP_SORT = 2, /* Sorts the list of lookups by row. */
    /* Sums the gradients of each row and makes the optimizer step. */
    LOOKUP_UPDATE = 4,
    LOOKUP_BACKWARD = 7
};
/*
 * Updates the weights (and state) of the tables with the gradient
 * d_grad[batch][out_dim]. d_grad has the precision of the outputs and is
 * 16-byte aligned.
 *
 *   SGD:               w -= lr * g
 *   row-wise Adagrad:  state += mean(g^2 over the piece's dim)
 *                      w -= lr / (sqrt(state) + eps) * g
 *
 * fp16 weights are updated in fp32 arithmetic and then rounded to nearest even.
 */
#define LOOKUP_ADAGRAD_EPS 1e-8f
int lookup_backward(struct lookup *lookup, unsigned phases,
                    const struct lookup_batch *batch, const void *d_grad,
                    float learning_rate, struct err *err) MUST_CHECK;

/* Optimizer step of a data-parallel table, with the arithmetic of
 * lookup_backward. It updates every row whose dense gradient in
 * d_dense[n_rows][dim] is not all zero, and then zeroes the gradients of these
 * rows. To compute d_dense, call lookup_backward on a zeroed fp32 table with
 * SGD at learning rate -1. */
int lookup_apply_dense(struct device *device, const struct lookup_table *table,
                       float *d_dense, float learning_rate,
                       enum optimizer optimizer, struct err *err) MUST_CHECK;

/*
 * Number of index sets that a benchmark of lookups rotates between. An index
 * set is one batch; all sets have the same statistics. If a benchmark repeated
 * one batch, rows would be in a cache because they were looked up just before.
 * In training the dense layers run in between. Small tables and hot rows stay
 * cached, as they do in training. Times are comparable only if all benchmarks
 * choose the number of sets by the same rule:
 *
 *   - All sets together touch at least LOOKUP_COLD_BYTES, which is more than
 *     the last-level cache that a core can reach.
 *   - There are at least 4 sets, because other memory displaces cached rows
 *     too.
 *   - There are at most 16 sets, because each set has to be drawn and kept.
 */
#define LOOKUP_MIN_COLD_SETS 4
#define LOOKUP_MAX_COLD_SETS 16
#define LOOKUP_COLD_BYTES ((uint64_t)96 << 20)
/* Returns the number of index sets that a benchmark should rotate between.
 * touched_bytes: bytes that one batch touches in all its tables. On a GPU the
 * number is always LOOKUP_MIN_COLD_SETS, because benchmarks flush the GPU's
 * cache instead (device_flush). */
unsigned lookup_n_cold_sets(const struct device *device,
                            uint64_t touched_bytes);
/* Returns the largest number of bytes of a table that n_lookups lookups can
 * touch: for each row that is looked up, the row and the cache line of its
 * state. */
uint64_t lookup_touched_bytes(uint64_t n_lookups, uint64_t n_rows, uint32_t dim,
                              enum precision precision);

EXTERN_C_END

#endif
