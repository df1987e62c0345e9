/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TABLE_H
#define NEUROSHARD_CORE_TABLE_H

#include "base/host_device.h"

#include <stdbool.h>
#include <stddef.h>

EXTERN_C_BEGIN

/*
 * Embedding tables as a training job has them: what is looked up, how often,
 * how wide, in which number format. All sizes are 64-bit: real lists hold
 * tables of 5*10^9 rows and of 2*10^9 rows x 256.
 */

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
    OPTIMIZER_PARTIAL_ROWWISE_ADAM, /* second moments by row */
    OPTIMIZER_PARTIAL_ROWWISE_LAMB
};
#define N_OPTIMIZERS 8
/* That are measured, and so stored (data/schema.sql): the first. */
#define N_MEASURED_OPTIMIZERS 4
/* pooled: num_outputs vectors a sample. sequence: one vector a look-up. */
enum table_output { OUTPUT_POOLED, OUTPUT_SEQUENCE };
/* How the rows that are looked up most lie in the table (core/row_order.h). */
enum row_order {
    ROW_ORDER_HASHED,    /* as a hash scatters them */
    ROW_ORDER_FREQUENCY, /* the hottest first */
    ROW_ORDER_UNIFORM    /* dealt evenly over it */
};
#define N_ROW_ORDERS 3
/* Over which devices the blocks of row shards may lie. */
enum rows_over {
    ROWS_OVER_ANY,
    ROWS_OVER_ALL, /* of the cluster: TorchRec's row_wise */
    ROWS_OVER_HOST /* of one host, or NVLink domain: its table_row_wise */
};
#define N_ROWS_OVER 3

/* How a table may be cut; bits, so that a set of kinds is a mask. */
enum shard_kind {
    SHARD_TABLE = 1,     /* whole, on one device */
    SHARD_COLUMN = 2,    /* column ranges */
    SHARD_ROW = 4,       /* row ranges, full width */
    SHARD_GRID = 8,      /* row ranges x column ranges */
    SHARD_REPLICATE = 16 /* whole on every device, data-parallel */
};
#define SHARD_ALL_KINDS 31u
#define N_SHARD_KINDS 5

/* What is to be known of a kind; a rule about kinds asks here. */
struct shard_traits {
    enum shard_kind kind;
    const char *name;     /* in files and options: "row" */
    const char *initials; /* "RW", and what it stands for in a report */
    const char *pieces;
    bool cuts_rows, cuts_columns;
    bool is_replica; /* whole on every device, each of which looks up its share
                        of the batch; the dense optimizer updates it */
    bool is_within_group; /* its rows are never cut over more devices than those
                             of one group */
    unsigned made_of; /* kinds, a mask: who allows them all allows it; or 0 */
};
extern const struct shard_traits shard_traits[N_SHARD_KINDS]; /* bit by bit */

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

/* The kind of pieces that are cut so. */
enum shard_kind shard_kind_of_cuts(bool cuts_rows, bool cuts_columns,
                                   bool is_replica);
/* Columns of a cut table come in vectors of so many (FBGEMM's kernels). */
#define TABLE_COLUMN_STEP 4u

/* Reuse histogram: bin k holds the share of the *unique accessed rows* of a
 * batch that are looked up (0,1], (1,2], (2,4] ... (16384,32768], >32768
 * times. */
#define REUSE_BINS 17

struct table {
    const char *name;        /* unique in its list; owned by the list's arena */
    uint64_t num_embeddings; /* rows (hash size), >= 1 */
    uint32_t dim;            /* columns, >= 1 */
    double pooling_factor;   /* mean look-ups a sample, >= 0 */
    double num_outputs;      /* pooled vectors a sample, >= 0 */
    enum table_output output;
    enum precision precision;      /* of the weights */
    enum precision comm_precision; /* what the all-to-all carries */
    enum optimizer optimizer;
    bool has_bins;             /* bins given; they win over zipf_alpha */
    bool skew_assumed;         /* neither bins nor zipf_alpha given */
    double row_overhead_bytes; /* of each row of each piece, beside weights and
                                  state: keys, scores and counters of a hash
                                  table; 0 .. TABLE_MAX_ROW_OVERHEAD */
    double dedup; /* share of a local batch's ids, or of its sessions, that are
                     unique: TABLE_MIN_DEDUP .. 1 */
    double zipf_alpha;       /* exponent over the rows, 0 .. TABLE_MAX_ZIPF */
    double bins[REUSE_BINS]; /* shares that add up to 1 within
                                TABLE_BINS_TOLERANCE, or all 0 */
    enum row_order row_order;
    uint64_t row_seed; /* of the hash that scatters its rows: tables_load draws
                          it (core/canonical.h), a plan keeps it */
    unsigned kinds;    /* allowed kinds, a mask */
    enum rows_over rows_over;
    uint32_t min_width; /* columns of its narrowest piece, 0: any number */
    int64_t device;     /* pin, or -1 */
    const char *group;  /* tables of one group stay on one device; or NULL */
};

#define DEFAULT_ZIPF_ALPHA 1.05
#define TABLE_MAX_ZIPF 100.0
#define TABLE_MIN_DEDUP 1e-6
#define TABLE_MAX_ROW_OVERHEAD 1e6
/* Bins are printed with few digits, so they add up to 1 only about. */
#define TABLE_BINS_TOLERANCE 0.01

/* dim 0, pooling 0, one output, nothing said twice, fp32, row-wise Adagrad,
 * Zipf 1.05 assumed, rows hashed, every kind allowed, no pin. */
void table_init(struct table *table);

unsigned precision_bytes(enum precision precision);
/* By value, and at the end NULL. */
extern const char *const precision_names[], *const optimizer_names[];
extern const char *const table_output_names[], *const row_order_names[],
                                                   *const rows_over_names[];

const char *shard_kind_name(enum shard_kind kind);
/* "table,column", or with another separator: a mask; 0 where any is unknown.
 * With the separator '\0' it is one name. */
unsigned shard_kinds_from_list(const char *text, char separator);

struct table_list {
    struct table *tables; /* in the order of the input */
    size_t n_tables;
    const char *source; /* file name, for messages */
};

/*
 * Reuse of the rows of a table in one batch of n_lookups look-ups.
 * `bins` gets the reuse histogram: the table's own, or the one that its Zipf
 * exponent gives over its rows (Poisson counts; exact for the first ranks,
 * log-spaced rank buckets beyond). Returns the expected number of unique rows,
 * <= min(num_embeddings, n_lookups); a table's own histogram gives n_lookups /
 * mean use. n_lookups == 0 gives zeros, and so does a histogram of zeros.
 * Takes some 50 microseconds, however many rows there are.
 */
double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS]);

/* Mean times of use of a row in bin k, the middle of the bin: 1, 2, 3, 6,
 * 12 ... 24576; and 49152 for the last bin, which has no end. */
double reuse_bin_count(unsigned k);
/* The bin of rows that are used `count` > 0 times. */
unsigned reuse_bin_of(double count);

EXTERN_C_END

#endif
