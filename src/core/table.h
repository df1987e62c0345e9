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
/* Number of optimizers that are measured and stored (data/schema.sql): the
 * first ones of the enum. */
#define N_MEASURED_OPTIMIZERS 4
/* pooled: num_outputs vectors per sample; sequence: one vector per lookup. */
enum table_output { OUTPUT_POOLED, OUTPUT_SEQUENCE };
/* Positions of the most looked-up rows in the table (core/row_order.h). */
enum row_order {
    ROW_ORDER_HASHED,    /* scattered as by a hash */
    ROW_ORDER_FREQUENCY, /* sorted, the hottest first */
    ROW_ORDER_UNIFORM    /* spread evenly over the table */
};
#define N_ROW_ORDERS 3
/* Devices that may hold the row blocks of a table. */
enum rows_over {
    ROWS_OVER_ANY,
    ROWS_OVER_ALL, /* all devices of the cluster: TorchRec's row_wise */
    /* the devices of one host or NVLink domain: TorchRec's table_row_wise */
    ROWS_OVER_HOST
};
#define N_ROWS_OVER 3

/* Kinds of shards. They are bits, so that a set of kinds is a mask. */
enum shard_kind {
    SHARD_TABLE = 1,     /* whole, on one device */
    SHARD_COLUMN = 2,    /* column ranges */
    SHARD_ROW = 4,       /* row ranges, full width */
    SHARD_GRID = 8,      /* row ranges x column ranges */
    SHARD_REPLICATE = 16 /* whole on every device, data-parallel */
};
#define SHARD_ALL_KINDS 31u
#define N_SHARD_KINDS 5

/* Properties of a shard kind. Code that depends on a kind reads them here. */
struct shard_traits {
    enum shard_kind kind;
    const char *name;     /* name in files and options: "row" */
    const char *initials; /* initials in reports: "RW" */
    /* meaning of the initials, in a report: "row pieces" */
    const char *pieces;
    bool cuts_rows, cuts_columns;
    /* Whole on every device. Each device looks up its share of the batch, and
     * the dense optimizer updates the copies. */
    bool is_replica;
    /* true: its rows are never cut over more devices than those of one group */
    bool is_within_group;
    /* mask of kinds: if all of them are allowed, this kind is, too; or 0 */
    unsigned made_of;
};
/* indexed by bit number */
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

/* Returns the kind of pieces that are cut by rows, cut by columns, cut by both,
 * whole, or replicas. */
enum shard_kind shard_kind_of_cuts(bool cuts_rows, bool cuts_columns,
                                   bool is_replica);
/* The width of a column piece is a multiple of this many columns (FBGEMM's
 * kernels use vectors of this size). */
#define TABLE_COLUMN_STEP 4u

/* Reuse histogram: bin k holds the share of the *unique accessed rows* of a
 * batch that are looked up (0,1], (1,2], (2,4] ... (16384,32768], >32768
 * times. */
#define REUSE_BINS 17

struct table {
    const char *name;        /* unique in its list; owned by the list's arena */
    uint64_t num_embeddings; /* rows (hash size), >= 1 */
    uint32_t dim;            /* columns, >= 1 */
    double pooling_factor;   /* mean lookups per sample, >= 0 */
    double num_outputs;      /* pooled vectors per sample, >= 0 */
    enum table_output output;
    enum precision precision;      /* precision of the weights */
    enum precision comm_precision; /* precision of vectors in the all-to-all */
    enum optimizer optimizer;
    bool has_bins;     /* bins are given; they override zipf_alpha */
    bool skew_assumed; /* true: the input had no bins and no zipf_alpha */
    /* Bytes per row of each piece in addition to weights and state: keys,
     * scores and counters of a hash table; 0 .. TABLE_MAX_ROW_OVERHEAD. */
    double row_overhead_bytes;
    /* share of the ids, or of the sessions, of a local batch that are unique:
     * TABLE_MIN_DEDUP .. 1 */
    double dedup;
    /* Zipf exponent over the rows, 0 .. TABLE_MAX_ZIPF */
    double zipf_alpha;
    /* shares that add up to 1 within TABLE_BINS_TOLERANCE, or all 0 */
    double bins[REUSE_BINS];
    enum row_order row_order;
    /* seed of the hash that scatters the rows; tables_load draws it
     * (core/canonical.h), and a plan stores it */
    uint64_t row_seed;
    unsigned kinds; /* allowed shard kinds, a mask */
    enum rows_over rows_over;
    uint32_t min_width; /* least width of its pieces in columns; 0: no limit */
    int64_t device;     /* device that the table is pinned to, or -1 */
    /* group name, or NULL; the tables of a group stay on one device */
    const char *group;
};

#define DEFAULT_ZIPF_ALPHA 1.05
#define TABLE_MAX_ZIPF 100.0
#define TABLE_MIN_DEDUP 1e-6
#define TABLE_MAX_ROW_OVERHEAD 1e6
/* Largest error of the sum of bins, which files print with few digits. */
#define TABLE_BINS_TOLERANCE 0.01

/* Sets the defaults: dim 0, pooling 0, one output, no duplicates, fp32,
 * row-wise Adagrad, Zipf 1.05 assumed, rows hashed, every kind allowed, no
 * pin. */
void table_init(struct table *table);

unsigned precision_bytes(enum precision precision);
/* Indexed by enum value; NULL-terminated. */
extern const char *const precision_names[], *const optimizer_names[];
extern const char *const table_output_names[], *const row_order_names[],
                                                   *const rows_over_names[];

const char *shard_kind_name(enum shard_kind kind);
/* Returns the mask of a list of kind names such as "table,column", or 0 if any
 * name is unknown. With the separator '\0' the text is one name. */
unsigned shard_kinds_from_list(const char *text, char separator);

struct table_list {
    struct table *tables; /* in the order of the input */
    size_t n_tables;
    const char *source; /* file name, for messages */
};

/*
 * Reuse of the rows of a table in one batch of n_lookups lookups.
 *
 * Fills `bins` with the reuse histogram: the table's own, or the one that
 * follows from its Zipf exponent over its rows (Poisson counts; exact for the
 * first ranks, log-spaced rank buckets beyond). Returns the expected number of
 * unique rows, <= min(num_embeddings, n_lookups). With a histogram of its own
 * this is n_lookups / mean use.
 *
 * If n_lookups is 0, or the table's histogram is all zeros, the results are
 * zeros. Takes about 50 microseconds for any number of rows.
 */
double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS]);

/* Returns the mean number of uses of a row in bin k, the middle of the bin: 1,
 * 2, 3, 6, 12 ... 24576; and 49152 for the last bin, which has no upper end. */
double reuse_bin_count(unsigned k);
/* Returns the bin of rows that are used `count` > 0 times. */
unsigned reuse_bin_of(double count);

EXTERN_C_END

#endif
