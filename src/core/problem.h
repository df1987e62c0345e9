/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PROBLEM_H
#define NEUROSHARD_CORE_PROBLEM_H

#include "core/hot_rows.h"
#include "core/step.h"

/*
 * What is to be planned: tables, the devices they go on, the batch, and what
 * a piece of a table takes there. Everything here is given, nothing found.
 */

/* Of the bandwidths that a cluster may have. */
#define CLUSTER_MIN_GBPS 0.001
#define CLUSTER_MAX_GBPS 1e6

struct cluster {
    uint32_t n_devices; /* R, >= 1 */
    uint32_t devices_per_host;
    uint32_t hosts_per_domain; /* that NVLink joins; 0 is 1: each by itself */
    uint64_t *memory_bytes;    /* [R]: what a device has */
    uint64_t *reserve_bytes;   /* [R]: of that, not to be used: to be left free,
                                  or taken already; with NCCL's buffers */
    uint64_t nccl_bytes;       /* of each reserve, as far as it goes: NCCL's
                                  buffers (cluster_nccl_bytes); 0: not told */
    /* What a device exchanges inside its group and across groups, where the
     * user says so; 0: as the cost model has it. */
    double intra_gbps, inter_gbps;
    /* What the devices are, or NULL; in a plan where its cost model was not
     * measured there. In no plan: what is to stay free of each, as it was asked
     * for ("15%", "4GiB"; in reserve_bytes already), or NULL; and where nobody
     * said how many devices a host has, how many such hosts are sold with, else
     * 0. */
    const char *gpu, *reserve;
    uint32_t host_size;
    /* Nor in plans: devices of a host and hosts of a domain as somebody said,
     * of which the only one may have fewer (cluster_take_hosts); or 0. */
    uint32_t asked_host, asked_domain;
};

/* Gives a device at least so much memory; what is to stay free of it may be a
 * share. */
void cluster_raise_memory(struct cluster *cluster, uint32_t device,
                          uint64_t least_bytes);

/* Devices of a group: those of a host, or of an NVLink domain of several. What
 * is fast inside a host is fast inside of it, and rows that are cut over one
 * host are cut over it: the searches and cost models say host for either. A
 * group is a run of devices, the first of which begins with device 0. */
uint32_t cluster_group(const struct cluster *cluster);
/* "host" or "NVLink domain": what a group of this cluster is. */
const char *cluster_group_name(const struct cluster *cluster);
/* "16 GPUs, 2 hosts of 8 (assumed)". */
void cluster_describe(const struct cluster *cluster, struct buf *out);
/* Whether all hosts, and all domains, are whole ones. ERR_INPUT. */
int cluster_check_hosts(const struct cluster *cluster,
                        struct err *err) MUST_CHECK;

/* Hosts of so many devices, and domains of so many hosts, of which a smaller
 * cluster has but a part. */
void cluster_take_hosts(struct cluster *cluster, uint32_t per_host,
                        uint32_t per_domain);
/* Devices of a host for n of them in hosts of up to host_size: the largest
 * divisor of n up to there. 1 where there is no other. */
uint32_t cluster_assumed_host(uint32_t n_devices, uint32_t host_size);
/* Another number of devices, without their memory: in hosts and domains that
 * stay as large as they are, or were asked for; but where nobody gave hosts in
 * such as the number divides, and one that holds all holds all. */
void cluster_resize(struct cluster *cluster, uint32_t n);
/* The same with their memory, in the arena: devices that are there keep theirs,
 * others are like that one. */
void cluster_grow(struct cluster *cluster, uint32_t n, uint32_t like,
                  struct arena *arena);
/* The least number of devices from n >= 1 up that makes whole ones of these:
 * where hosts are assumed, any but of one device each. */
uint32_t cluster_whole_hosts(const struct cluster *cluster, uint32_t n);

/* What the buffers of one communicator of NCCL take of a GPU whose group is one
 * NVLink domain, once it has exchanged with all others; 0 for one GPU. */
uint64_t cluster_nccl_bytes(const struct cluster *cluster);
/* Whether all devices have the same memory, and the same of it to be used. */
bool cluster_is_even(const struct cluster *cluster);

/* full: weights + optimizer + what a step holds + reserve.
 * weights: rows x dim x bytes only, as the papers count.
 * batch: of a step only 8 B a look-up, outputs and gradients of the shards:
 * what plan files that name them `io` mean by full. */
enum memory_model { MEMORY_FULL, MEMORY_WEIGHTS, MEMORY_BATCH };
extern const char *const memory_model_names[];

/* What updates replicas: frameworks keep them as dense parameters, for the
 * optimizer of the dense part of the model, with a state of full size. */
enum dense_optimizer {
    DENSE_AS_TABLE, /* each table's own: what plans without one mean */
    DENSE_SGD,
    DENSE_ADAGRAD,
    DENSE_ADAM
};
extern const char *const dense_optimizer_names[]; /* "table", "sgd" ... */

/* How weights and optimizer state lie in memory. fbgemm: momenta are fp32
 * whatever the weights are, an int8 row has LAYOUT_INT8_BYTES more for its
 * scale and bias, and a replica, its state and its gradient are in the weights'
 * type. plain: state of full size is in the weights' type, a replica's gradient
 * is fp32; plan files that do not name their layout have this one. */
enum table_layout { LAYOUT_PLAIN, LAYOUT_FBGEMM };
extern const char *const table_layout_names[]; /* "plain", "fbgemm", NULL */
#define LAYOUT_INT8_BYTES 8

#define PROBLEM_MAX_BATCH 1e12 /* of any file or option */

/* What a job neither sends nor looks up again within a local batch, of which a
 * table has its share (struct table): TorchRec's index de-duplication, of
 * tables whose output is a sequence; or samples of one session, as RecD (MLSys
 * 2023), of any. Cost models whose authors published totals heed it not. */
enum dedup { DEDUP_NONE, DEDUP_IDS, DEDUP_SESSIONS };
extern const char *const dedup_names[]; /* NULL at the end */

/* How the training job runs its steps (core/step.h). */
struct job {
    enum pipeline pipeline;
    uint32_t n_chunks;  /* 1 to JOB_MAX_CHUNKS; 0 is 1 */
    double dense_ms[2]; /* forward and backward of the dense part of the model;
                           0: not known */
    enum dedup dedup;
    bool asks_host; /* for host_ms in place of what is known of the device's */
    double host_ms; /* of struct step; 0: none */
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

static inline bool job_is_default(const struct job *job)
{
    return job->pipeline == PIPELINE_SDD && job_n_chunks(job) == 1 &&
           !(job_dense_ms(job) > 0) && job->dedup == DEDUP_NONE &&
           !job->asks_host;
}

/* "pipeline sdd, dense part not known". */
void job_describe(const struct job *job, struct buf *out);

/* How tables may be cut by rows. */
enum row_cut {
    ROW_CUT_ANY,
    ROW_CUT_RANKS /* blocks of ceil(rows / k) and a rest, for k = all devices or
                     the devices of one host (all devices where the output is
                     a sequence): see shard_row_ranks */
};

struct problem {
    struct table *tables; /* [n_tables], order of the input */
    size_t n_tables;
    const char *source;         /* file the tables came from */
    const struct hot_rows *hot; /* [n_tables], not owned; NULL: all rows of a
                                   table are looked up alike */
    struct cluster cluster;
    uint64_t batch;        /* the global batch B; a device has B / R samples */
    uint64_t device_batch; /* what B is R times of, whatever R; 0: B stays */
    enum memory_model memory_model;
    enum dense_optimizer dense_optimizer;
    enum table_layout layout;
    unsigned kinds;       /* kinds the user allows (--shard), a mask */
    bool asks_for_grids;  /* by name: also where TorchRec cannot train them */
    enum row_cut row_cut; /* how a search may cut; plans by hand need not keep
                             it, like the next */
    uint32_t min_width;   /* columns of the narrowest piece that a search may
                             cut, a multiple of TABLE_COLUMN_STEP, or 0: as many
                             as that; plans by hand need not keep it */
    struct job job;
};

/* A piece of a table on a device; ranges are half-open. */
struct shard {
    uint32_t table; /* index into problem.tables */
    enum shard_kind kind;
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end;
    uint32_t device;
};

/* Bytes, itemised. */
#define N_MEMORY_ITEMS 6
extern const char *const memory_item_names[]; /* "weights" ... */
struct memory_items {
    union {
        struct {
            uint64_t weights;
            uint64_t optimizer;
            uint64_t input;   /* ids and lengths of the batches in flight */
            uint64_t outputs; /* of a batch, and gradients; of replicas too */
            uint64_t nccl;    /* its buffers */
            uint64_t reserve; /* without them */
        };
        uint64_t item[N_MEMORY_ITEMS];
    };
    uint64_t total;
};

/* UINT64_MAX where the sum is more. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Bytes of an id, and of the length of its bag, on their way to it. */
#define PROBLEM_ID_BYTES 8
#define PROBLEM_LENGTH_BYTES 4
/* Finds out where the look-ups of each table fall, which the blocks of a row
 * cut share; for who has read or made a problem, and again where tables, the
 * batch or what the job de-duplicates change. It lives in the arena. */
void problem_find_hot_rows(struct problem *problem, struct arena *arena);
/* Look-ups a step on the shard's device: pooling x B x the share that its rows
 * have; a replica serves B / R samples. Of this, the bags and the outputs the
 * job's de-duplication leaves the table's share. */
double shard_lookups(const struct problem *problem, const struct shard *shard);
/* Reuse of a whole table's rows over a batch of so many samples, and, where a
 * whole table's is that, of the shard's. Without sessions there are fewer
 * look-ups of the same law; without ids the same rows are used less. */
struct table_use problem_use(const struct problem *problem, size_t t,
                             double batch);
/* Fills use[n_tables] with problem_use of each table. Tables that are used
 * alike are worked out once, as one takes some 30 microseconds. */
void problem_use_all(const struct problem *problem, double batch,
                     struct table_use *use);
struct table_use shard_use(const struct problem *problem,
                           const struct shard *shard, double batch,
                           const struct table_use *whole);
/* Bags a step on the shard's device: num_outputs x B, of a piece of any kind
 * but a replica, which has B / R. */
double shard_bags(const struct problem *problem, const struct shard *shard);
/* Vectors of the shard's width that it outputs a step: one a bag (a row piece
 * too: partial sums), one a look-up where the output is a sequence. */
double shard_output_vectors(const struct problem *problem,
                            const struct shard *shard);
/* Bytes of them, as they are sent. */
double shard_output_bytes(const struct problem *problem,
                          const struct shard *shard);

/* What updates a table's shards of this kind. */
enum optimizer optimizer_of_kind(const struct table *table,
                                 enum shard_kind kind,
                                 enum dense_optimizer dense);
/* Weights and state, under that optimizer, of these cells of a table: what
 * stays from batch to batch. The only place that knows the layouts, but for the
 * independent count in plan_check. */
struct memory_items cells_memory(const struct table *table,
                                 enum optimizer optimizer,
                                 enum table_layout layout,
                                 const struct shard *cells);

/* Memory of one shard by the problem's memory model; of what is not the shard's
 * 0. Saturates at UINT64_MAX instead of wrapping. Weights by precision and
 * layout, with the table's row overhead; optimizer state: sgd 0, row-wise
 * Adagrad 4 B a row of the shard, Adagrad 1 x, Adam, AdamA and LAMB 2 x the
 * elements (4 B each, or as the layout says), partial row-wise Adam and LAMB
 * 1 x and 4 B a row, of a replica the problem's dense optimizer; input: 8 B a
 * look-up and 4 B a bag, as often as the pipeline keeps what it permutes, of
 * rows one more, put in buckets; outputs: (outputs + gradients) x width x comm
 * precision, and for a replica its dense gradient by the layout. */
struct memory_items shard_memory(const struct problem *problem,
                                 const struct shard *shard);
/* Of a device's own B / R samples, whatever it holds: ids and lengths as the
 * loader delivers them, as often as the pipeline keeps them, and what comes
 * back for them, outputs and gradients of all tables. O(tables). */
struct memory_items sample_memory(const struct problem *problem);
/* What is not to be used of a device. */
struct memory_items reserved_memory(const struct cluster *cluster,
                                    uint32_t device);
/* room_bytes[R]: what that leaves each device for shards; 0 where nothing. */
void problem_room_bytes(const struct problem *problem, uint64_t *room_bytes);
/* items += more, saturating. */
void memory_add(struct memory_items *items, struct memory_items more);
/* Index of the largest item. */
unsigned memory_largest(const struct memory_items *items);

/* Over how many devices the rows of this row or grid piece's table are cut,
 * if they are cut in blocks of ceil(rows / k) and a rest: k = R (not of a
 * grid), or the devices of one group (which then hold all blocks); 0 for any
 * other cut. A piece that is block i of such a cut on device i (of its group)
 * is of that cut, else its number of rows tells; what could be of both counts
 * as one of R. */
uint32_t shard_row_ranks(const struct problem *problem,
                         const struct shard *shard);

/* problem->min_width, whatever it stands for. */
static inline uint32_t problem_min_width(const struct problem *problem)
{
    return problem->min_width ? problem->min_width : TABLE_COLUMN_STEP;
}

/* Columns of the narrowest piece that the problem and the table ask for, in
 * whole steps. */
uint32_t table_least_width(const struct problem *problem,
                           const struct table *table);

/* Columns of the narrowest piece that may be cut of a table; all of them where
 * it may not be cut by columns. TorchRec takes the column pieces of all
 * sequence tables, which are of one dim, to be of one width: so these are cut
 * in halves or not at all. */
uint32_t table_min_width(const struct problem *problem,
                         const struct table *table);

/* A whole table as one shard on `device`. */
struct shard shard_whole(const struct problem *problem, uint32_t table,
                         uint32_t device);

#endif
