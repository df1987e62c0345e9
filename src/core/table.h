/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TABLE_H
#define NEUROSHARD_CORE_TABLE_H

#include "base/host_device.h"

#include <stdbool.h>
#include <stddef.h>

EXTERN_C_BEGIN

/* Embedding tables of a training job: hash size, dim, pooling factor, reuse and
 * number formats. All sizes are 64-bit, because real lists hold tables of
 * 5*10^9 rows and of 2*10^9 rows x 256. */

enum precision {
    PRECISION_FP32,
    PRECISION_FP16,
    PRECISION_BF16,
    PRECISION_INT8
};
#define N_PRECISIONS 4
enum optimizer {
    OPTIMIZER_SGD,
    OPTIMIZER_ROWWISE_ADAGRAD,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMA, /* Adam that accumulates micro-batches in its state */
    OPTIMIZER_LAMB,
    OPTIMIZER_PARTIAL_ROWWISE_ADAM, /* Adam with one second moment per row */
    OPTIMIZER_PARTIAL_ROWWISE_LAMB
};
#define N_OPTIMIZERS 8
/* Number of optimizers for which measurements are made and stored
 * (data/schema.sql). They are the first 4 of enum optimizer. */
#define N_MEASURED_OPTIMIZERS 4
/*
 * Output of a table:
 *
 *     OUTPUT_POOLED     num_outputs vectors per sample
 *     OUTPUT_SEQUENCE   one vector per lookup
 */
enum table_output { OUTPUT_POOLED, OUTPUT_SEQUENCE };
/* Order of a table's rows: where the rows with the most lookups are
 * (core/row_order.h). */
enum row_order {
    ROW_ORDER_HASHED,    /* scattered over the table, as if by a hash */
    ROW_ORDER_FREQUENCY, /* sorted by heat, the hottest row first */
    ROW_ORDER_UNIFORM    /* spread evenly over the table */
};
#define N_ROW_ORDERS 3
/* Devices that may hold the row blocks of a table. */
enum rows_over {
    ROWS_OVER_ANY,
    ROWS_OVER_ALL, /* all devices of the cluster, as in TorchRec's row_wise */
    /* the devices of one host or NVLink domain, as in TorchRec's
     * table_row_wise */
    ROWS_OVER_HOST
};
#define N_ROWS_OVER 3

/* Memory that holds a table. */
enum tier {
    TIER_HBM,    /* all rows in the memory of the device */
    TIER_CACHED, /* all rows in host memory, and a cache of them on the device
                  */
    TIER_HOST /* all rows in host memory, which the device reads and writes */
};
#define N_TIERS 3
/* Mask of all tiers; the bit of a tier is 1 << tier. */
#define ALL_TIERS 7u

/* Kinds of shards. Each kind is one bit, so a set of kinds is a mask. */
enum shard_kind {
    SHARD_TABLE = 1,     /* the whole table, on one device */
    SHARD_COLUMN = 2,    /* column ranges */
    SHARD_ROW = 4,       /* row ranges, full width */
    SHARD_GRID = 8,      /* row ranges x column ranges */
    SHARD_REPLICATE = 16 /* the whole table on every device (data-parallel) */
};
#define SHARD_ALL_KINDS 31u
#define N_SHARD_KINDS 5

/* Properties of a shard kind. Code that depends on a shard kind reads its
 * properties from this struct. */
struct shard_traits {
    enum shard_kind kind;
    /* name of the kind in files and options, such as "row" */
    const char *name;
    const char *initials; /* initials of the kind in reports, such as "RW" */
    /* meaning of the initials in a report, such as "row pieces" */
    const char *pieces;
    const char *cut; /* how a table is cut, in a report, such as "by rows" */
    bool cuts_rows, cuts_columns;
    /* true: the table is whole on every device. Each device looks up its share
     * of the batch, and the dense optimizer updates the copies. */
    bool is_replica;
    /* true: the rows are cut only over the devices of one group (a host or an
     * NVLink domain) */
    bool is_within_group;
    /* mask of other kinds, or 0: if all kinds of the mask are allowed, this
     * kind is allowed, too */
    unsigned made_of;
};
/* Traits of the shard kinds, indexed by the bit number of the kind. */
extern const struct shard_traits shard_traits[N_SHARD_KINDS];

static inline unsigned shard_kind_idx(enum shard_kind kind)
{
    return (unsigned)__builtin_ctz((unsigned)kind);
}

static inline bool shard_cuts_rows(enum shard_kind kind)
{
    return shard_traits[shard_kind_idx(kind)].cuts_rows;
}

static inline bool shard_cuts_columns(enum shard_kind kind)
{
    return shard_traits[shard_kind_idx(kind)].cuts_columns;
}

static inline bool shard_is_replica(enum shard_kind kind)
{
    return shard_traits[shard_kind_idx(kind)].is_replica;
}

/* Returns the kind of the pieces of a table. is_replica: every device has a
 * copy of the whole table. Otherwise cuts_rows and cuts_columns are true if the
 * table is cut by rows and by columns. */
enum shard_kind shard_kind_of_cuts(bool cuts_rows, bool cuts_columns,
                                   bool is_replica);
/* The width of a column piece is a multiple of this many columns (FBGEMM's
 * kernels use vectors of this size). */
#define TABLE_COLUMN_STEP 4u

/* Number of bins of a reuse histogram. Bin k holds the share of the *unique
 * accessed rows* of a batch whose number of lookups is in the range k of:
 * (0,1], (1,2], (2,4] ... (16384,32768], >32768. */
#define REUSE_BINS 17
/* Number of windows for which a table list gives reach and misses. Window k has
 * 2^k successive batches. */
#define REACH_WINDOWS 17

struct table {
    /* name of the table, unique in its list; owned by the list's arena */
    const char *name;
    uint64_t num_embeddings; /* number of rows (hash size), >= 1 */
    uint32_t dim;            /* columns, >= 1 */
    double pooling_factor;   /* mean number of lookups per sample, >= 0 */
    double num_outputs;      /* number of pooled vectors per sample, >= 0 */
    enum table_output output;
    enum precision precision;      /* precision of the weights */
    enum precision comm_precision; /* precision of vectors in the all-to-all */
    enum optimizer optimizer;
    bool has_bins;     /* true: `bins` is given, and it overrides zipf_alpha */
    bool skew_assumed; /* true: the input had no bins and no zipf_alpha */
    /* Bytes per row of each piece, in addition to the weights and the optimizer
     * state, for the keys, scores and counters of a hash table. 0 ..
     * TABLE_MAX_ROW_OVERHEAD. */
    double row_overhead_bytes;
    /* Factors on the predicted time of the table's lookups, forward and
     * backward, TABLE_MIN_FACTOR .. TABLE_MAX_FACTOR. They come from measured
     * times of a job. 1: as the cost model predicts. */
    double forward_factor, backward_factor;
    /* share of the ids (or of the sessions) of a local batch that are unique,
     * TABLE_MIN_DEDUP .. 1 */
    double dedup;
    /* Zipf exponent over the rows, 0 .. TABLE_MAX_ZIPF */
    double zipf_alpha;
    /* reuse histogram: shares that add up to 1 within TABLE_BINS_TOLERANCE, or
     * all 0 */
    double bins[REUSE_BINS];
    /* Measured reuse of rows between global batches, for windows 0 to n_reach -
     * 1; n_reach is 0 if nothing was measured. reach[k] is the mean number of
     * different rows that 2^k successive batches use. misses[k] is the mean
     * number of rows of a batch that none of the 2^k batches before it uses.
     * table_wrong_reach checks the values. */
    uint32_t n_reach;
    double reach[REACH_WINDOWS], misses[REACH_WINDOWS];
    enum row_order row_order;
    /* seed of the hash that scatters the rows; tables_load draws it
     * (core/canonical.h), and a plan stores it */
    uint64_t row_seed;
    unsigned kinds; /* mask of the allowed shard kinds */
    unsigned tiers; /* mask of the allowed tiers (1 << enum tier) */
    enum rows_over rows_over;
    /* least width of a piece of the table, in columns; 0: no limit */
    uint32_t min_width;
    int64_t device; /* device that the table is pinned to, or -1 */
    /* name of the table's group, or NULL. All tables of a group are placed on
     * one device. */
    const char *group;
};

#define DEFAULT_ZIPF_ALPHA 1.05
#define TABLE_MAX_ZIPF 100.0
#define TABLE_MIN_DEDUP 1e-6
#define TABLE_MAX_ROW_OVERHEAD 1e6
#define TABLE_MIN_FACTOR 0.01
#define TABLE_MAX_FACTOR 1e6
/* Largest allowed difference between 1 and the sum of `bins`. The sum is not
 * exactly 1, because files print the bins with few digits. */
#define TABLE_BINS_TOLERANCE 0.01
/* Largest relative error of reach and misses that are given with few digits. */
#define TABLE_REACH_TOLERANCE 0.01

/* Sets the defaults of a table: dim 0, pooling 0, one output, no duplicates,
 * fp32, row-wise Adagrad, Zipf 1.05 assumed, rows hashed, every kind allowed,
 * no pin. */
void table_init(struct table *table);

/* Returns the index of the first window whose reach or misses are impossible,
 * or REACH_WINDOWS if all are possible. Both are finite and not negative. Reach
 * is at most num_embeddings. Misses never grow with the window, and are at most
 * reach[0]. The growth of reach from window k to k + 1 is 2^k times a number
 * between misses[k + 1] and misses[k], within TABLE_REACH_TOLERANCE. */
unsigned table_wrong_reach(const struct table *table);

/* Returns the length of the module's name at the start of a table's name, or 0
 * if the name has no dot. */
size_t table_module_len(const struct table *table);
/* Returns whether two tables belong to one module of TorchRec. The module of
 * the table "sparse.ebc.t1" is "sparse.ebc". All tables without a dot in their
 * names belong to one module. */
bool tables_share_module(const struct table *a, const struct table *b);

unsigned precision_bytes(enum precision precision);
/* Names of the enum values, indexed by the value. Each array ends with NULL. */
extern const char *const precision_names[], *const optimizer_names[];
extern const char *const table_output_names[],
    *const row_order_names[], *const rows_over_names[], *const tier_names[];

const char *shard_kind_name(enum shard_kind kind);
/* Returns the mask of a list of kind names such as "table,column", or 0 if any
 * name is unknown. If the separator is '\0', the whole text is one name. */
unsigned shard_kinds_from_list(const char *text, char separator);
/* Returns the mask of a list of tier names, by the rules of
 * shard_kinds_from_list. */
unsigned tiers_from_list(const char *text, char separator);

struct table_list {
    struct table *tables; /* [n_tables], in the order of the input */
    size_t n_tables;
    const char *source; /* file name, for messages */
};

EXTERN_C_END

#endif
