/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PROBLEM_H
#define NEUROSHARD_CORE_PROBLEM_H

#include "core/cluster.h"
#include "core/dense.h"
#include "core/hot_rows.h"
#include "core/step.h"

/* The input of a planner: the tables, the cluster, the batch and the training
 * job. This file also has the functions that compute the memory and the lookups
 * of a piece of a table. It has no results of the search. */

/*
 * Ways to count memory:
 *
 *     "full"     weights + optimizer + memory of a step + reserve
 *     "weights"  only rows x dim x bytes, as research papers count
 *     "batch"    like "full", but the memory of a step is only 8 B per lookup
 *                and the outputs and gradients of the shards. Plan files that
 *                have the item `io` call this model "full".
 */
enum memory_model { MEMORY_FULL, MEMORY_WEIGHTS, MEMORY_BATCH };
extern const char *const memory_model_names[];

/* Optimizer of replicas. Frameworks keep replicas as dense parameters, so the
 * optimizer of the dense part of the model updates them, with a state of full
 * size. */
enum dense_optimizer {
    /* Each table's own optimizer. Used for plans that do not name a dense
     * optimizer. */
    DENSE_AS_TABLE,
    DENSE_SGD,
    DENSE_ADAGRAD,
    DENSE_ADAM
};
extern const char *const dense_optimizer_names[]; /* "table", "sgd" ... */

/*
 * Layout of weights and optimizer state in memory.
 *
 * fbgemm: momenta are fp32 for all weight types. An int8 row has
 * LAYOUT_INT8_BYTES more bytes for its scale and bias. For a replica, the
 * weights, the optimizer state and the gradient have the type of the table's
 * weights.
 *
 * plain: optimizer state with one value per element has the type of the
 * weights, and the gradient of a replica is fp32. A plan file that names no
 * layout has the layout plain.
 */
enum table_layout { LAYOUT_PLAIN, LAYOUT_FBGEMM };
extern const char *const table_layout_names[]; /* "plain", "fbgemm", NULL */
#define LAYOUT_INT8_BYTES 8

/*
 * Rule by which the buffers of a step are counted (core/memory.h).
 *
 * traced: by the source of each allocation
 *
 * copies: by the number of copies that the allocator reserves. A plan file that
 * names no rule was counted so.
 */
enum buffer_rule { BUFFERS_COPIES, BUFFERS_TRACED };
extern const char *const buffer_rule_names[]; /* "copies", "traced", NULL */

/* Largest global batch that files and options may give, in samples. */
#define PROBLEM_MAX_BATCH 1e12

/*
 * De-duplication within a local batch: repeated ids, or samples of one session,
 * are sent and looked up only once. `dedup` of struct table is the share that
 * is left after de-duplication.
 *
 *     "ids"       TorchRec's index de-duplication, for tables whose output is a
 *                 sequence
 *     "sessions"  samples of one session as in RecD (MLSys 2023), for all
 *                 tables
 *
 * Cost models with a total that their authors published ignore de-duplication.
 */
enum dedup { DEDUP_NONE, DEDUP_IDS, DEDUP_SESSIONS };
extern const char *const dedup_names[]; /* NULL-terminated */

/* How the training job executes its steps (core/step.h). */
struct job {
    enum pipeline pipeline;
    /* number of chunks (core/step.h), 1 to JOB_MAX_CHUNKS; 0 means 1 */
    uint32_t n_chunks;
    /* Forward and backward time of the dense part; 0: unknown. They take the
     * place of the price of `dense`. */
    double dense_ms[2];
    enum dedup dedup;
    /* true: the user set host_ms, which replaces the host model
     * (core/host.h) */
    bool asks_host;
    double host_ms; /* time of the host for a step, whatever the plan */
    /* Dense part of the model, fitted to the problem's tables; NULL: unknown.
     * Not owned. */
    const struct dense *dense;
};
#define JOB_MAX_CHUNKS 64
#define JOB_MAX_DENSE_MS 1e9

static inline uint32_t job_n_chunks(const struct job *job)
{
    return job->n_chunks ? job->n_chunks : 1;
}

static inline double job_dense_ms(const struct job *job)
{
    return job->dense_ms[0] + job->dense_ms[1];
}

/* Returns whether the dense part of the model is known: its time, or its
 * layers. */
static inline bool job_knows_dense(const struct job *job)
{
    return job_dense_ms(job) > 0 || job->dense;
}

static inline bool job_is_default(const struct job *job)
{
    return job->pipeline == PIPELINE_SDD && job_n_chunks(job) == 1 &&
           !(job_dense_ms(job) > 0) && job->dedup == DEDUP_NONE &&
           !job->asks_host && !job->dense;
}

/* Prints a description of the job, such as "pipeline sdd, dense part not
 * known". */
void job_describe(const struct job *job, struct buf *out);

/* Ways in which a search may cut the rows of a table. */
enum row_cut {
    ROW_CUT_ANY,
    /* Only blocks of ceil(rows / k) rows, with a shorter last block. k is the
     * number of devices of the cluster or of one host. Tables with sequence
     * output are cut over all devices. See shard_row_ranks. */
    ROW_CUT_RANKS
};

/* Ranks of the sharding groups of a job (core/sharding_groups.h). */
enum groups_layout { GROUPS_CONTIGUOUS, GROUPS_STRIDED };
extern const char *const groups_layout_names[]; /* NULL-terminated */

/* Sharding groups of a job (core/sharding_groups.h). */
struct sharding_groups {
    /* G; 0 or 1: all GPUs are one group, and the other members are 0 */
    uint32_t count;
    enum groups_layout layout;
    /* hosts and NVLink domains of the whole job, like the members of struct
     * cluster */
    uint32_t devices_per_host, hosts_per_domain;
    /* K: steps from one sync of the groups to the next; 0: not known, so that a
     * sync takes no time of a step */
    uint64_t sync_every;
};
/* Largest K that files and options may give. */
#define GROUPS_MAX_SYNC_EVERY 1e12

/* Framework that runs the plan. Its rules are in core/target_rules.h. A plan
 * file that names no target has TARGET_ANY. */
enum target {
    TARGET_ANY, /* no rules */
    TARGET_TORCHREC,
    TARGET_TORCHREC_EC, /* all tables fit an EmbeddingCollection of TorchRec */
    TARGET_DLRM,        /* dlrm_main.py of facebookresearch/dlrm */
    TARGET_HUGECTR
};
#define N_TARGETS 5

/* Returns whether plan files name the target. They name neither TARGET_ANY nor
 * TARGET_TORCHREC, the default of `plan`. */
static inline bool target_is_named(enum target target)
{
    return target != TARGET_ANY && target != TARGET_TORCHREC;
}

struct problem {
    struct table *tables; /* [n_tables], in the order of the input */
    size_t n_tables;
    const char *source; /* file that the tables come from */
    /* [n_tables], not owned: distribution of the lookups of each table over its
     * rows. NULL: the lookups are spread evenly over the rows. */
    const struct hot_rows *hot;
    struct cluster cluster;
    /* the global batch B in samples; each device has B / R samples */
    uint64_t batch;
    /* batch per device in samples, if the user set it. Then B = R x
     * device_batch for any R. 0: B does not change with R. */
    uint64_t device_batch;
    enum memory_model memory_model;
    enum dense_optimizer dense_optimizer;
    enum table_layout layout;
    enum buffer_rule buffers; /* for MEMORY_FULL; MEMORY_BATCH counts copies */
    /* mask of the shard kinds that the user allows (--shard) */
    unsigned kinds;
    /* true: the user named grids in --shard, so they are allowed even if
     * TorchRec cannot train them */
    bool asks_for_grids;
    enum target target; /* framework whose rules the plan obeys */
    /* Row cuts that a search may use. Plans made by hand may use any row
     * cuts. */
    enum row_cut row_cut;
    /* Least width in columns of the pieces that a search makes, a multiple of
     * TABLE_COLUMN_STEP; 0 means TABLE_COLUMN_STEP. Plans made by hand may have
     * narrower pieces. */
    uint32_t min_width;
    struct job job;
    /* If the job has several sharding groups, the cluster and the batch of the
     * problem are those of one group. */
    struct sharding_groups groups;
};

/* Returns the number of sharding groups, >= 1. */
static inline uint32_t problem_n_groups(const struct problem *problem)
{
    return problem->groups.count > 1 ? problem->groups.count : 1;
}

/* Returns the number of devices of the job, over all sharding groups. */
static inline uint32_t problem_all_devices(const struct problem *problem)
{
    return problem->cluster.n_devices * problem_n_groups(problem);
}

/* Returns the samples of a step over all sharding groups. */
static inline uint64_t problem_all_samples(const struct problem *problem)
{
    return problem->batch * problem_n_groups(problem);
}

/* A piece of a table on a device. Its ranges of rows and columns are half-open:
 * `end` is excluded. */
struct shard {
    uint32_t table; /* index into problem.tables */
    enum shard_kind kind;
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end;
    uint32_t device;
    /* memory that holds the piece: the same for all pieces of a table, and
     * TIER_HBM for replicas */
    enum tier tier;
};

/* Memory in bytes, split into items. */
#define N_MEMORY_ITEMS 9
extern const char *const memory_item_names[]; /* "weights" ... */
struct memory_items {
    union {
        struct {
            uint64_t weights;
            uint64_t optimizer;
            uint64_t cache; /* slots of caches of rows */
            /* map from rows to slots, and the state of the slots */
            uint64_t cache_state;
            uint64_t input; /* ids and lengths of the batches in flight */
            /* outputs of a batch and their gradients, and the gradients of
             * replicas */
            uint64_t outputs;
            uint64_t dense; /* dense part of the model (struct dense_memory) */
            uint64_t nccl;  /* buffers of NCCL */
            uint64_t reserve; /* reserve without the buffers of NCCL */
        };
        uint64_t item[N_MEMORY_ITEMS];
    };
    uint64_t total;
    uint64_t host; /* bytes in host memory, which are not part of `total` */
};
/* True for items that only some plans have. Messages leave them out if they are
 * 0. */
extern const bool memory_item_is_optional[N_MEMORY_ITEMS];

/* Returns a + b, or UINT64_MAX if the sum overflows. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Converts a number of bytes that was computed as a double to an integer;
 * rounds up. */
uint64_t bytes_from_double(double bytes);

/* Bytes of an id and of the length of a bag in the input exchange. */
#define PROBLEM_ID_BYTES 8
#define PROBLEM_LENGTH_BYTES 4
/* Sets problem->hot, the distribution of the lookups of each table over its
 * rows. The share of the lookups that a row block gets is computed from it.
 * Must be called after a problem is read or made, and again after a change of
 * the tables, the batch or the de-duplication. The result lives in the
 * arena. */
void problem_find_hot_rows(struct problem *problem, struct arena *arena);
/* Returns the lookups per step on the shard's device: pooling factor x B x
 * share of the lookups that fall to the rows of the shard. For a replica, B / R
 * takes the place of B, because a replica serves only the samples of its
 * device. If the job de-duplicates, only the table's share `dedup` of the
 * lookups, bags and outputs counts. */
double shard_lookups(const struct problem *problem, const struct shard *shard);
/* Returns the reuse of the rows of table t over a batch of `batch` samples. If
 * sessions are de-duplicated, there are fewer lookups with the same
 * distribution. If ids are de-duplicated, there are as many unique rows, but
 * fewer uses of each row. */
struct table_use problem_use(const struct problem *problem, size_t t,
                             double batch);
/* Returns problem_use of each table, [n_tables]. The reuse of one table takes
 * about 30 microseconds to compute, so it is computed once for equal tables.
 * The result is kept with problem->hot, so copies of a problem that share it
 * (for example with other bandwidths) share the result, too. Without
 * problem->hot the result is allocated in the arena. */
const struct table_use *problem_use_all(const struct problem *problem,
                                        double batch, struct arena *arena);
/* Returns the reuse of the shard's rows over a batch of `batch` samples; *whole
 * must be the result of problem_use for the shard's table and the same
 * batch. */
struct table_use shard_use(const struct problem *problem,
                           const struct shard *shard, double batch,
                           const struct table_use *whole);
/* Returns the bags per step on the shard's device: num_outputs x B, or
 * num_outputs x B / R for a replica. */
double shard_bags(const struct problem *problem, const struct shard *shard);
/* Returns the number of vectors that the shard outputs per step. A vector has
 * the width of the shard. There is one vector per lookup if the output is a
 * sequence, otherwise one per bag. A row piece of a pooled table also outputs
 * one vector per bag: a partial sum. */
double shard_output_vectors(const struct problem *problem,
                            const struct shard *shard);
/* Returns the bytes of the vectors that the shard outputs per step
 * (shard_output_vectors), in the precision in which they are sent. */
double shard_output_bytes(const struct problem *problem,
                          const struct shard *shard);

/* Returns the optimizer that updates a shard of the table, if the shard has
 * this kind. `dense` is the optimizer of replicas. */
enum optimizer optimizer_of_kind(const struct table *table,
                                 enum shard_kind kind,
                                 enum dense_optimizer dense);
/* Returns whether training differs from training the uncut table if the table
 * is sharded by this kind. This is so for columns if the optimizer keeps one
 * value for a row or takes a norm over a row, because each column piece then
 * has a value or norm of its own. It is so for replicas if the dense optimizer
 * is not that of the table. */
bool kind_changes_training(const struct table *table, enum shard_kind kind,
                           enum dense_optimizer dense);
/* Returns whether the kind of this shard changes training. */
bool shard_changes_training(const struct problem *problem,
                            const struct shard *shard);
/* Returns the optimizer of the dense part: the problem's dense optimizer, or
 * Adam if replicas have their tables' own. */
enum optimizer problem_dense_optimizer(const struct problem *problem);
/* Returns the memory that the dense part takes on each device; all 0 if it is
 * unknown or the memory model does not count it. */
struct dense_memory problem_dense_memory(const struct problem *problem);
/* Returns the bytes of the values that an optimizer keeps once per row. */
double optimizer_row_bytes(enum optimizer optimizer);
/* Returns the memory of a range of cells of a table that persists from batch to
 * batch: the weights, and the state of `optimizer`. Only this function and the
 * independent count in plan_check know the layouts of memory. */
struct memory_items cells_memory(const struct table *table,
                                 enum optimizer optimizer,
                                 enum table_layout layout,
                                 const struct shard *cells);

/* Returns the reserve of a device, with the buffers of NCCL as an item. */
struct memory_items reserved_memory(const struct cluster *cluster,
                                    uint32_t device);
/* Adds the memory `more` to *items, host memory included. Sums saturate at
 * UINT64_MAX. */
void memory_add(struct memory_items *items, struct memory_items more);
/* Returns the index of the largest item of memory->item. */
unsigned memory_largest(const struct memory_items *items);

/*
 * Returns the number k of devices over which the table of this row or grid
 * piece is cut by rows. This is defined only if the rows are cut into blocks of
 * ceil(rows / k) rows with a shorter last block. k is either R, or the number
 * of devices of one group, which then holds all blocks. For a grid, k is not R.
 * Returns 0 for any other cut.
 *
 * A piece belongs to a cut over k devices if it is block i and is on device i
 * (of the cluster or of its group). If this is true for no k, the number of
 * rows of the piece decides. If both values of k are possible, returns R.
 */
uint32_t shard_row_ranks(const struct problem *problem,
                         const struct shard *shard);

/* Returns the least width of a piece in columns: problem->min_width, or the
 * default if it is 0. */
static inline uint32_t problem_min_width(const struct problem *problem)
{
    return problem->min_width ? problem->min_width : TABLE_COLUMN_STEP;
}

/* Returns the least width in columns of a piece of the table: the larger limit
 * of the problem and of the table, rounded up to a multiple of
 * TABLE_COLUMN_STEP. */
uint32_t table_least_width(const struct problem *problem,
                           const struct table *table);

/* Returns the least width in columns of a piece of the table, or the table's
 * dim if it may not be cut by columns. All sequence tables have the same dim,
 * and TorchRec assumes that all their column pieces have the same width. So
 * sequence tables are cut in halves or not at all. */
uint32_t table_min_width(const struct problem *problem,
                         const struct table *table);

/* Returns true if tables a and b must be placed together: a and b are the same
 * table, or they are in the same group. */
bool tables_share_group(const struct problem *problem, uint32_t a, uint32_t b);

/* Returns a shard on `device` that is the whole table. */
struct shard shard_whole(const struct problem *problem, uint32_t table,
                         uint32_t device);

#endif
