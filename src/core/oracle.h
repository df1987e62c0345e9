/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_ORACLE_H
#define NEUROSHARD_CORE_ORACLE_H

#include "base/json.h"
#include "core/problem.h"

/*
 * The contract between cost models and the search. The cost of a device is
 * not the sum of its tables' costs, but every model here has the shape
 *
 *     cost(device) = head( sum over its shards of embed(shard) )
 *
 * so a move costs two heads and no shard is embedded twice. A vector has
 * `width` doubles: the learned part, and the additive facts that
 * communication needs. An oracle is opened for one problem and must not
 * outlive it. Its functions are pure and thread-safe: same input, same bits,
 * at any thread count and on any instruction set.
 */

/* How the numbers came about; a report says it beside each prediction. */
enum cost_basis {
    BASIS_ANALYTIC, /* formulas over published constants */
    BASIS_MODELLED, /* a net trained on something else than this device */
    BASIS_MEASURED  /* a net trained on measurements of this device */
};
extern const char *const cost_basis_names[];

/* How far predictions were from the truth where that is known: nine in ten
 * times lie between what is predicted over 1 + frac and 1 + frac times it. */
struct cost_error {
    double frac;      /* 0: not known */
    const char *of;   /* one phrase, "503 held-out samples"; NULL: no more is
                         known */
    double pair_frac; /* likewise of the ratio of two that the same model
                         predicts; 0: not known */
};

/* What a model was asked that lies outside of what it was made from. */
struct cost_outside {
    const char *table;   /* NULL: it is of a device, or of all */
    const char *feature; /* "rows" */
    double value, least, most;
};
#define N_OUTSIDE_FIELDS 5
extern const struct place_field cost_outside_fields[N_OUTSIDE_FIELDS];

/* Who prices plans, or priced one. */
struct cost_source {
    const char *name; /* "roofline:h100", "model:h200.nsm" ... */
    const char *hash; /* 16 hex digits of the constants or weights */
    enum cost_basis basis;
    const char *comm;   /* one phrase: where communication figures come from */
    const char *device; /* what it was measured on, or NULL */
    struct cost_error lookup_error, exchange_error;
    /* Of a plan that was priced. */
    struct cost_outside *outside; /* [n_outside] */
    size_t n_outside;
    double host_ms; /* of struct step */
};
/* A line for each of a few inputs outside of what the model was made from. */
void cost_print_outside(const struct cost_source *cost, struct buf *out);
/* All of them; the caller decrefs it. */
json_t *cost_outside_to_json(const struct cost_source *cost);

#define ORACLE_MAX_TERMS STEP_MAX_TERMS

struct oracle;

struct oracle_ops {
    /* out[n][width]; a shard's device does not matter, nor where in its table
     * its columns begin: those of one table, kind, rows and width are alike,
     * but for what shard_row_ranks tells apart by the device.
     */
    void (*embed)(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out);
    /* Compute time of n devices from sums[n][width], in ms. */
    void (*compute)(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms);
    /* n assignments of R devices: sums[n][R][width], compute_ms[n][R] ->
     * fwd_ms[n][R], bwd_ms[n][R]. fwd holds the waiting: it counts from
     * compute + bwd of each device. */
    void (*comm)(const struct oracle *oracle, size_t n, const double *sums,
                 const double *compute_ms, double *fwd_ms, double *bwd_ms);
    /*
     * Optional, NULL where comm is all there is: its two halves, where they
     * hang on the sums of one lane alone, oracle->comm_lane, and on what is
     * handed over: lanes[n][R], as floats, and bwd_ms are floats, too. So a
     * search need not ask twice for the bwd_ms of the same lanes
     * (core/bwd_memo.h).
     */
    void (*bwd)(const struct oracle *oracle, size_t n, const double *lanes,
                double *bwd_ms);
    void (*fwd)(const struct oracle *oracle, size_t n, const double *lanes,
                const double *compute_ms, const double *bwd_ms, double *fwd_ms);
    /*
     * Optional, NULL where only comm can tell: what each of n devices adds to
     * the total by itself, sums[n][width] -> compute_ms[n], as compute has it,
     * and terms_ms[n][n_terms], none negative. The total of an assignment is
     * oracle_terms_total_ms of the largest of each that a device has, exactly
     * where is_additive is set, else about: a search is led by it, and comm
     * decides. So a move takes O(width), however many devices there are.
     */
    void (*terms)(const struct oracle *oracle, const double *sums, size_t n,
                  double *compute_ms, double *terms_ms);
    /* What the phases of one assignment take, where the oracle has a step:
     * sums[R][width], compute_ms[R] -> phases_ms[R][N_PHASES], of an exchange
     * its time. */
    void (*phases)(const struct oracle *oracle, const double *sums,
                   const double *compute_ms, double (*phases_ms)[N_PHASES]);
    /* Optional, NULL where all prices are worth the same: what that of an
     * assignment is, of its shards, all of them, and compute_ms[R]: *error
     * becomes that of its look-ups, *outside[], in the arena, what is outside,
     * the farthest first; returns how many. */
    size_t (*judge)(const struct oracle *oracle, const struct shard *shards,
                    size_t n, const double *compute_ms,
                    struct cost_error *error, struct cost_outside **outside,
                    struct arena *arena);
};

/* First member of each oracle's own struct. */
struct oracle {
    const struct oracle_ops *ops;
    const struct problem *problem; /* not owned */
    struct cost_source cost;
    const char *warning; /* one sentence: why its numbers may not be those of
                            what is planned for; or NULL */
    uint32_t width;      /* doubles a vector */
    uint32_t comm_lane;  /* of ops->bwd and fwd */
    uint32_t n_terms;    /* of ops->terms, at most ORACLE_MAX_TERMS */
    const struct step *step; /* that totals are; NULL where they are as their
                                authors published, whatever the job is */
    bool is_additive; /* terms are linear in the sums: a device's are the sums
                         of its shards', and so, as the total is theirs, the
                         mean bounds it */
    /* Shard kinds, a mask, and cuts by rows that it can price and its problem
     * wants (oracle_keep_to). */
    unsigned kinds;
    enum row_cut row_cut;
    bool prices_empty_blocks; /* TorchRec's rule: where rows are cut over more
                                 ranks than there are blocks, the others hold
                                 blocks of no rows that cost as much as a full
                                 one */
    bool prices_even_rows;    /* its authors know no hot rows: blocks of as many
                                 rows of a table are alike */
    int32_t floor_lane; /* lane whose sum is the physical floor of compute in
                           ms (bytes over peak bandwidth), or -1; compute()
                           already respects it */
};

/* Whether it has devices wait for each other; else each adds up by itself. */
bool oracle_waits(const struct oracle *oracle);

/* Leaves out what the problem bars: where rows are cut as TorchRec cuts them
 * all other cuts of rows, and grids over several hosts, for which it has no
 * row-wise Adagrad. For who opens an oracle. */
void oracle_keep_to(struct oracle *oracle, const struct problem *problem);

/* sums[R][width] += sign x vectors[n][width], as embedded of the shards, in
 * their order, and for the blocks of no rows behind those that the oracle
 * prices. The blocks of one cut follow each other. */
void oracle_add_shards(const struct oracle *oracle, const struct shard *shards,
                       const double *vectors, size_t n, double sign,
                       double *sums);

/* What terms come to, max_ms[n_terms]: of an assignment those that are the
 * largest, of a device by itself its own. It falls with none of them, and a
 * search asks nothing else of it. They add up where there is no step; so only
 * the bound by the mean (is_additive) holds for sums alone. */
double oracle_terms_total_ms(const struct oracle *oracle, const double *max_ms);

/* The total of one assignment, of what compute and comm say of its devices,
 * each [n_devices]: the largest compute + bwd + fwd, or one that is not finite.
 */
double oracle_total_ms(size_t n_devices, const double *compute_ms,
                       const double *bwd_ms, const double *fwd_ms);

/* Such a total as the job waits for it (host_ms of struct step). */
double oracle_queued_ms(const struct oracle *oracle, double total_ms);

/* oracle_total_ms of one assignment by comm: sums[R][width], compute_ms[R]. */
double oracle_comm_total_ms(const struct oracle *oracle, const double *sums,
                            const double *compute_ms);

#endif
