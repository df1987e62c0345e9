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
 * So a move needs two calls of head, and no shard is embedded twice. embed()
 * returns a vector of `width` doubles: the learned part, and the additive
 * figures that communication needs.
 *
 * An oracle is a cost model opened for one problem, and it must not outlive the
 * problem. Its functions are pure and thread-safe: equal inputs give equal
 * bits, at any thread count and on any instruction set.
 */

/* Origin of the predicted times. A report prints it with each prediction. */
enum cost_basis {
    BASIS_ANALYTIC, /* formulas over published constants */
    /* a net trained on other data than measurements of this device */
    BASIS_MODELLED,
    BASIS_MEASURED /* a net trained on measurements of this device */
};
extern const char *const cost_basis_names[];

/* Error of the predictions against measurements, if it is known. For nine of
 * ten times, the measured and the predicted time differ by a factor of at most
 * 1 + frac. */
struct cost_error {
    double frac; /* 0: unknown */
    /* basis of the error, one phrase: "503 held-out samples"; NULL: unknown */
    const char *ground;
    /* like frac, but for the ratio of two times that this model predicts;
     * 0: unknown */
    double pair_frac;
};

/* One input of a prediction that lies outside the range of the data that the
 * model was made from. */
struct cost_outside {
    /* table of the input; NULL: the input describes a device or the whole
     * problem */
    const char *table;
    const char *feature; /* name of the input: "rows" */
    double value, least, most;
};
#define N_OUTSIDE_FIELDS 5
extern const struct place_field cost_outside_fields[N_OUTSIDE_FIELDS];

/* Description of the cost model that prices plans, or that priced a plan. */
struct cost_source {
    const char *name; /* "roofline:h100", "model:h200.nsm" ... */
    const char *hash; /* 16 hex digits of the constants or weights */
    enum cost_basis basis;
    const char *comm; /* origin of the communication figures, one phrase */
    /* device that the model's data were measured on, or NULL */
    const char *device;
    struct cost_error lookup_error, exchange_error;
    /* The following members are set in a plan that was priced. */
    struct cost_outside *outside; /* [n_outside] */
    size_t n_outside;
    double host_ms; /* as in struct step */
};
/* Prints one line for each of the first 3 inputs outside the range of the
 * model's data. */
void cost_print_outside(const struct cost_source *cost, struct buf *out);
/* Returns all inputs outside this range as a JSON list. The caller decrefs
 * it. */
json_t *cost_outside_to_json(const struct cost_source *cost);

#define ORACLE_MAX_TERMS STEP_MAX_TERMS

struct oracle;

struct oracle_ops {
    /* Embeds n shards into out[n][width]. The result depends on the table, the
     * kind, the rows and the width of a shard, not on its first column. It does
     * not depend on its device either, except through shard_row_ranks. */
    void (*embed)(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out);
    /* Fills compute_ms[n] with the compute times of n devices from
     * sums[n][width]. */
    void (*compute)(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms);
    /* Prices the communication of n assignments of R devices: from
     * sums[n][R][width] and compute_ms[n][R] to fwd_ms[n][R] and bwd_ms[n][R].
     * fwd_ms includes waiting time: it starts when the device has finished
     * compute + bwd. */
    void (*comm)(const struct oracle *oracle, size_t n, const double *sums,
                 const double *compute_ms, double *fwd_ms, double *bwd_ms);
    /* Optional; NULL if the oracle only has comm. bwd and fwd are the two
     * halves of comm. An oracle may provide them if communication depends on a
     * single lane of the sums, oracle->comm_lane, and otherwise only on the
     * arguments below. lanes[n][R] holds the values of this lane. Only their
     * values rounded to float matter, and every bwd_ms is a float value, too.
     * So a search can cache bwd_ms by lanes (core/bwd_memo.h). */
    void (*bwd)(const struct oracle *oracle, size_t n, const double *lanes,
                double *bwd_ms);
    void (*fwd)(const struct oracle *oracle, size_t n, const double *lanes,
                const double *compute_ms, const double *bwd_ms, double *fwd_ms);
    /*
     * Optional; NULL if the total can only be computed by comm. Fills, for each
     * of n devices with sums[n][width], compute_ms[n] (equal to the result of
     * compute) and terms_ms[n][n_terms]: the contributions of the device to the
     * total, none negative.
     *
     * The total of an assignment is oracle_terms_total_ms of the largest value
     * of each term over the devices. This is exact if is_additive is set.
     * Otherwise it is an approximation that guides the search, and comm
     * decides. With terms a move costs O(width), independent of the number of
     * devices.
     */
    void (*terms)(const struct oracle *oracle, const double *sums, size_t n,
                  double *compute_ms, double *terms_ms);
    /* Fills phases_ms[R][N_PHASES] with the phase times of one assignment from
     * sums[R][width] and compute_ms[R]; for an exchange, the time that it
     * takes. Required if the oracle has a step. */
    void (*phases)(const struct oracle *oracle, const double *sums,
                   const double *compute_ms, double (*phases_ms)[N_PHASES]);
    /* Optional; NULL if all predictions are equally reliable. Estimates how
     * reliable the predicted time of an assignment is, from all its n shards
     * and compute_ms[R]. Stores the error of the lookup time in *error. Stores
     * in *outside an array, in the arena, of the inputs outside the range of
     * the model's data, the farthest first. Returns the length of the array. */
    size_t (*judge)(const struct oracle *oracle, const struct shard *shards,
                    size_t n, const double *compute_ms,
                    struct cost_error *error, struct cost_outside **outside,
                    struct arena *arena);
};

/* Base of all oracles: the first member of the struct of each cost model. */
struct oracle {
    const struct oracle_ops *ops;
    const struct problem *problem; /* not owned */
    struct cost_source cost;
    /* one sentence that says why its times may be wrong for the devices of the
     * problem; or NULL */
    const char *warning;
    uint32_t width;     /* doubles per vector */
    uint32_t comm_lane; /* lane of the sums that ops->bwd and ops->fwd use */
    /* number of terms of ops->terms, at most ORACLE_MAX_TERMS */
    uint32_t n_terms;
    /* The step whose duration is the total. NULL if the total is a formula that
     * the authors of the cost model published, which does not depend on the
     * job. */
    const struct step *step;
    /* The terms are linear in the sums. The terms of a device are then the sums
     * of the terms of its shards, and because the total is the sum of the
     * largest terms, the mean over the devices is a lower bound. */
    bool is_additive;
    /* Shard kinds (a mask) and row cuts that the oracle can price and that its
     * problem allows (oracle_keep_to). */
    unsigned kinds;
    enum row_cut row_cut;
    /* TorchRec's rule: if rows are cut over more ranks than there are row
     * blocks, each rank without one gets an empty block, which costs as much as
     * a full one. */
    bool prices_empty_blocks;
    /* The cost model ignores hot rows: all row blocks of a table that have the
     * same number of rows cost the same. */
    bool prices_even_rows;
    /* Index of the lane whose sum is the physical lower bound of compute in ms
     * (bytes / peak bandwidth), or -1. compute() never returns less than this
     * bound. */
    int32_t floor_lane;
};

/* Returns true if devices wait for each other in this cost model. If false, the
 * total of each device depends only on the device itself. */
bool oracle_waits(const struct oracle *oracle);

/* Removes from the oracle the shardings that the problem forbids. With
 * ROW_CUT_RANKS these are all row cuts but TorchRec's own, and grids over
 * several hosts: TorchRec has no row-wise Adagrad for them, so they are removed
 * if a table uses it and the user did not ask for grids by name. Every function
 * that opens an oracle calls this. */
void oracle_keep_to(struct oracle *oracle, const struct problem *problem);

/* Adds sign x vectors[n][width] to sums[R][width]; vectors are the embeddings
 * of the n shards, in their order. Then adds the empty row blocks that the
 * oracle prices. Row blocks of one cut must be adjacent in shards[]. */
void oracle_add_shards(const struct oracle *oracle, const struct shard *shards,
                       const double *vectors, size_t n, double sign,
                       double *sums);

/*
 * Returns the total of max_ms[n_terms]. For an assignment, max_ms holds the
 * largest value of each term over the devices. For a single device it holds the
 * device's own terms.
 *
 * The result is the step time (step_ms), or the sum of the terms if the oracle
 * has no step. It never falls if a term grows, and the search relies on this
 * property alone. The bound by the mean (is_additive) also needs the terms to
 * be summed, so it holds only without a step.
 */
double oracle_terms_total_ms(const struct oracle *oracle, const double *max_ms);

/* Returns the total of one assignment: the largest compute + bwd + fwd over the
 * devices, or the first sum that is not finite. The three arrays are the
 * results of compute and comm, each [n_devices]. */
double oracle_total_ms(size_t n_devices, const double *compute_ms,
                       const double *bwd_ms, const double *fwd_ms);

/* Returns the time that the job waits for a step: total_ms, or the host's time
 * if that is longer (host_ms of struct step). */
double oracle_queued_ms(const struct oracle *oracle, double total_ms);

/* Calls comm for one assignment with sums[R][width] and compute_ms[R], and
 * returns its oracle_total_ms. */
double oracle_comm_total_ms(const struct oracle *oracle, const double *sums,
                            const double *compute_ms);

#endif
