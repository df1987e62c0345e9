/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_ORACLE_H
#define NEUROSHARD_CORE_ORACLE_H

#include "base/json.h"
#include "core/problem.h"

/*
 * The contract between cost models and the search.
 *
 * The cost of a device is not the sum of the costs of its tables, but every
 * cost model here has this form:
 *
 *     cost(device) = head( sum over its shards of embed(shard) )
 *
 * So a search can price a move of a shard by two calls of head, one for each
 * device, and it embeds each shard only once. embed() returns a vector of
 * `width` doubles: the learned part, and figures for communication that add up
 * over shards.
 *
 * An oracle is a cost model that was opened for one problem. It must not be
 * used after the problem is freed. Its functions are pure and thread-safe:
 * equal inputs give equal bits, at any thread count and on any instruction set.
 */

/* Origin of the predicted times. Reports print the origin with each
 * prediction. */
enum cost_basis {
    BASIS_ANALYTIC, /* formulas with published constants */
    /* a neural net that was trained without measurements of this device */
    BASIS_MODELLED,
    /* a neural net that was trained on measurements of this device */
    BASIS_MEASURED
};
extern const char *const cost_basis_names[];

/* Whether a host queues the operations of a step (core/host.h), and what its
 * time is based on. */
enum host_basis {
    HOST_NONE,    /* no host: the device is a CPU, or the cost model's total is
                     a formula that its authors published */
    HOST_ASSUMED, /* the time measured on a host with another GPU */
    HOST_MEASURED /* the time measured on a host with this GPU */
};
extern const char *const host_basis_names[]; /* NULL-terminated */

/* Error of a cost model's predictions. `frac` is the error against
 * measurements: for nine of ten times, the measured and the predicted time
 * differ by a factor of at most 1 + frac. */
struct cost_error {
    double frac; /* 0: unknown */
    /* data that the error was computed from, as one phrase, such as "503
     * held-out samples"; NULL: unknown */
    const char *ground;
};

/* One input of a prediction that lies outside the range of the cost model's
 * training data. */
struct cost_outside {
    /* table that the input describes; NULL: the input describes a device or the
     * whole problem */
    const char *table;
    const char *feature; /* name of the input, such as "rows" */
    double value, least, most;
};
#define N_OUTSIDE_FIELDS 5
extern const struct place_field cost_outside_fields[N_OUTSIDE_FIELDS];

/* Bandwidths of an all-to-all that a cost model assumes, per GPU, in 10^9 bytes
 * a second; 0: there is no such exchange. */
struct wire {
    double intra_gbps; /* inside a host or NVLink domain */
    double inter_gbps; /* between hosts or NVLink domains */
    /* true: the bandwidth is a published figure, neither measured nor given by
     * the user */
    bool assumes_intra, assumes_inter;
};

/* Description of the cost model of an oracle, or of the cost model with which a
 * plan was priced. */
struct cost_source {
    const char *name; /* "roofline:h100", "model:h200.nsm" ... */
    /* hash of the model's constants or weights, 16 hex digits */
    const char *hash;
    enum cost_basis basis;
    const char *comm; /* origin of the communication times, as one phrase */
    /* device that the model's data were measured on, or NULL */
    const char *device;
    struct cost_error lookup_error, exchange_error;
    /* Error of the time of tables in host memory, as a share of the plan's
     * total. Set only in a plan that was priced. */
    struct cost_error tier_error;
    enum host_basis host;
    /* The following members are set only in a plan that was priced. */
    struct cost_outside *outside; /* [n_outside] */
    size_t n_outside;
    struct wire wire; /* not in plan files */
};
/* Prints one line for each of the first 3 inputs in cost->outside, which are
 * outside the range of the model's training data. */
void cost_print_outside(const struct cost_source *cost, struct buf *out);
/* Returns all inputs in cost->outside as a JSON list. The caller decrefs the
 * list. */
json_t *cost_outside_to_json(const struct cost_source *cost);

/* Bandwidths at which a plan is judged if the bandwidth is assumed, as shares
 * of the assumed one. The first share is 1. */
#define N_WIRES 3
extern const double wire_shares[N_WIRES];
/* Shares in between, in equal ratios: 4^(-1/9), 4^(-2/9) ... 4^(-8/9). Plans
 * for them are starting points of a choice for all bandwidths. */
#define N_WIRES_BETWEEN 8
extern const double wires_between[N_WIRES_BETWEEN];

/* Largest number of terms of an oracle: the terms of a step, with the exchanges
 * once for each wire. */
#define ORACLE_MAX_TERMS (STEP_MAX_TERMS + (N_WIRES - 1) * STEP_MAX_EXCHANGES)

struct oracle;

struct oracle_ops {
    /* Embeds n shards into out[n][width]. The vector of a shard depends on the
     * table, kind, rows and width of the shard. It does not depend on the first
     * column of the shard. It depends on the device of the shard only through
     * shard_row_ranks. */
    void (*embed)(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out);
    /* Fills compute_ms[n] with the compute times of n devices. sums[n][width]
     * holds, for each device, the sum of the vectors of its shards. */
    void (*compute)(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms);
    /* Optional; NULL if no tier changes a vector. Turns the vector of a shard
     * that differs only in its tier into that of the shard. It costs less than
     * `embed`. */
    void (*embed_tier)(const struct oracle *oracle, const struct shard *shard,
                       double *vector);
    /* Computes the communication times fwd_ms[n][R] and bwd_ms[n][R] of n
     * assignments of R devices. Inputs are sums[n][R][width] and
     * compute_ms[n][R]. fwd_ms includes waiting time: it is counted from the
     * moment when the device has finished compute and bwd. */
    void (*comm)(const struct oracle *oracle, size_t n, const double *sums,
                 const double *compute_ms, double *fwd_ms, double *bwd_ms);
    /* `bwd` and `fwd` are the two halves of comm. They are optional; both are
     * NULL if the oracle only has comm. An oracle may provide them if
     * communication depends only on the arguments of bwd and fwd. lanes[n][R]
     * holds the values of one lane of the sums, oracle->comm_lane. The result
     * depends only on the lanes rounded to float, and every bwd_ms is a float
     * value, too. So a search can cache bwd_ms by lanes (core/bwd_memo.h). */
    void (*bwd)(const struct oracle *oracle, size_t n, const double *lanes,
                double *bwd_ms);
    void (*fwd)(const struct oracle *oracle, size_t n, const double *lanes,
                const double *compute_ms, const double *bwd_ms, double *fwd_ms);
    /*
     * Optional; NULL if the total can only be computed by comm. Takes
     * sums[n][width] of n devices. Fills compute_ms[n], equal to the result of
     * compute, and terms_ms[n][n_terms], the contributions of each device to
     * the total. No term is negative.
     *
     * The total of an assignment is oracle_terms_total_ms of the largest value
     * of each term over the devices. This total is exact if is_additive is set.
     * Otherwise it is an approximation that guides the search, and the search
     * takes its final decisions by comm. With terms, pricing a move takes
     * O(width) time, independent of the number of devices.
     */
    void (*terms)(const struct oracle *oracle, const double *sums, size_t n,
                  double *compute_ms, double *terms_ms);
    /* Optional; NULL if there is no `terms` or no step. Takes sums[n][width] of
     * n devices. Fills exchanges_ms[n][step_n_exchanges] with those of their
     * terms that are exchanges, in the order of step_exchange_term. It costs
     * less than `terms`. */
    void (*exchanges)(const struct oracle *oracle, const double *sums, size_t n,
                      double *exchanges_ms);
    /* Optional; NULL if oracle_terms_total_ms computes the total by the step or
     * as a sum. Returns the total that follows from the terms
     * max_ms[n_terms]. */
    double (*total)(const struct oracle *oracle, const double *max_ms);
    /* Fills phases_ms[R][N_PHASES] with the phase times of one assignment,
     * computed from sums[R][width] and compute_ms[R]. If the phase is an
     * exchange, its time is the duration of the exchange. Required if the
     * oracle has a step. */
    void (*phases)(const struct oracle *oracle, const double *sums,
                   const double *compute_ms, double (*phases_ms)[N_PHASES]);
    /* Optional; NULL if the problem has one sharding group. Returns the time
     * of one sync of the sharding groups, from sums[R][width]. */
    double (*sync_ms)(const struct oracle *oracle, const double *sums);
    /* Optional; NULL if all predictions are equally reliable. Estimates how
     * reliable the predicted time of an assignment is. Inputs are all n shards
     * of the assignment and compute_ms[R]. Stores the error of the lookup time
     * in *error. Stores in *outside an array of the inputs outside the range of
     * the model's training data, the farthest outside first. The array lives in
     * the arena. Returns the length of the array. */
    size_t (*judge)(const struct oracle *oracle, const struct shard *shards,
                    size_t n, const double *compute_ms,
                    struct cost_error *error, struct cost_outside **outside,
                    struct arena *arena);
};

/* Lanes of an oracle that prices tiers, from oracle->tier_lane on. Lanes of the
 * oracle's own may follow. */
enum oracle_tier_lane {
    /* usable memory of the device in bytes; 0: as the largest device */
    ORACLE_TIER_ROOM,
    /* memory of the shards in bytes, without slots of caches */
    ORACLE_TIER_USED,
    /* 1: the device's caches miss the bytes of the next lane per batch; 0: the
     * oracle predicts them, as if all memory that is left were slots of
     * caches */
    ORACLE_TIER_KNOWN,
    ORACLE_TIER_MISSED,
    /* ms to manage the ids of cached tables, and ms of the forward and of the
     * backward for all other work of tiers */
    ORACLE_TIER_IDS,
    ORACLE_TIER_FORWARD,
    ORACLE_TIER_BACKWARD,
    N_ORACLE_TIERS
};

struct cache_curve;

/* Common part of all oracles: the first member of the struct that each cost
 * model defines for its oracle. */
struct oracle {
    const struct oracle_ops *ops;
    const struct problem *problem; /* not owned */
    struct cost_source cost;
    /* one sentence with the reason why the predicted times may be wrong for the
     * devices of the problem; or NULL */
    const char *warning;
    uint32_t width; /* number of doubles in the vector of a shard */
    /* [R][width]: sums of each device before it holds a shard: the time that
     * it spends on tables that the plan does not place (busy_ms of the
     * cluster). NULL: all 0 */
    const double *busy_sums;
    /* index of the lane of the sums that ops->bwd and ops->fwd use */
    uint32_t comm_lane;
    /* number of terms that ops->terms computes, at most ORACLE_MAX_TERMS */
    uint32_t n_terms;
    /* The training step; its duration is the total. NULL if the total is a
     * formula that the authors of the cost model published. This formula does
     * not depend on the job. */
    const struct step *step;
    /* Predicted time of the dense part, which is in dense_ms of the step; NULL
     * if the problem has none or the user gave its time. */
    const struct dense_cost *dense;
    /* true: the terms are linear in the sums. The terms of a device are then
     * the sums of the terms of its shards. The total is the sum of the largest
     * value of each term over the devices. So the sum of the means over the
     * devices is a lower bound of the total. */
    bool is_additive;
    /* Shard kinds (a mask) and row cuts that the oracle can price and the
     * problem allows (oracle_keep_to). */
    unsigned kinds;
    enum row_cut row_cut;
    /* true: follow TorchRec's rule for rows that are cut over more ranks than
     * there are row blocks. Each rank without a row block gets an empty block,
     * which costs as much as a full block. */
    bool prices_empty_blocks;
    /* true: the oracle prices tables in host memory (enum tier) */
    bool prices_tiers;
    /* Set if the oracle prices tiers: index of the first lane of enum
     * oracle_tier_lane, and curves of the tables (cache_curves, [n_tables]). */
    uint32_t tier_lane;
    const struct cache_curve *curves;
    double link_gbps; /* bandwidth of the link between a device and its host */
    /* true: the cost model ignores hot rows. All row blocks of a table with the
     * same number of rows then cost the same. */
    bool prices_even_rows;
    /* Index of the lane of the sums that holds the physical lower bound of the
     * compute time in ms (bytes / peak bandwidth), or -1. compute() never
     * returns less than this bound. */
    int32_t floor_lane;
};

/* Returns true if devices wait for each other in the cost model. Returns false
 * if the total of each device depends only on the device itself. */
bool oracle_waits(const struct oracle *oracle);

/* Removes shardings that the problem forbids from oracle->kinds and
 * oracle->row_cut. If the problem has ROW_CUT_RANKS, removes all row cuts
 * except TorchRec's own. Then it also removes grids over several hosts if a
 * table uses row-wise Adagrad and the user did not ask for grids by name,
 * because TorchRec has no row-wise Adagrad for such grids. oracle_open calls it
 * for each cost model. */
void oracle_keep_to(struct oracle *oracle, const struct problem *problem);

/* Fills sum[width] with the sums of a device that holds no shards. */
void oracle_empty_sum(const struct oracle *oracle, uint32_t device,
                      double *sum);
/* Fills sums[R][width] with the sums of devices that hold no shards. */
void oracle_empty_sums(const struct oracle *oracle, double *sums);

/* Adds sign x vectors[i] to the sums of the device of shards[i], for each
 * i < n; vectors[n][width] are the embeddings of shards[n], and sums is
 * [R][width]. Then adds the empty row blocks (only if
 * oracle->prices_empty_blocks). Row blocks of one cut must be adjacent in
 * shards[]. */
void oracle_add_shards(const struct oracle *oracle, const struct shard *shards,
                       const double *vectors, size_t n, double sign,
                       double *sums);

/*
 * Returns the total that follows from the terms max_ms[n_terms]. For an
 * assignment, max_ms holds the largest value of each term over the devices. For
 * a single device, max_ms holds the terms of the device.
 *
 * The result is that of ops->total, or the step time (step_ms), or the sum of
 * the terms if the oracle has neither. The total never falls if a term grows.
 * The search relies only on this property. The lower bound by means (see
 * is_additive) also requires that the total is the sum of the terms, so it is
 * valid only for an oracle without a step.
 */
double oracle_terms_total_ms(const struct oracle *oracle, const double *max_ms);

/* Returns the total of one assignment: the largest compute + bwd + fwd over the
 * devices, or the first value that is not finite. The three arrays are the
 * results of compute and comm, each [n_devices]. */
double oracle_total_ms(size_t n_devices, const double *compute_ms,
                       const double *bwd_ms, const double *fwd_ms);

/* Calls comm for one assignment with sums[R][width] and compute_ms[R], and
 * returns the total of the assignment (oracle_total_ms). */
double oracle_comm_total_ms(const struct oracle *oracle, const double *sums,
                            const double *compute_ms);

#endif
