/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_H
#define NEUROSHARD_CORE_PLAN_H

#include "core/oracle.h"

#include <math.h>

/*
 * A plan: every piece of every table and the device that holds it, with what
 * one training step costs there. Self-contained: it carries its problem.
 */

struct device_cost {
    double compute_ms;  /* forward look-up + backward + optimizer */
    double bwd_comm_ms; /* backward all-to-all (and all-reduce) */
    double fwd_comm_ms; /* from the moment the device is ready: holds its
                           waiting for the slowest one, and what of the step is
                           neither look-up nor exchange of outputs */
    double total_ms;    /* no wait for the host is in any of these */
    double parts_ms[N_STEP_PARTS]; /* of an exchange its time; NAN where the
                                      cost model knows none of them */
    struct memory_items memory;    /* reserve included */
};

struct plan {
    struct problem problem;
    struct shard *shards; /* [n_shards], by (table, col, row, device) */
    size_t n_shards;
    struct device_cost *devices; /* [R] */
    double *shard_ms; /* [n_shards] predicted compute of each shard alone, or
                         NULL where not priced; does not add up to devices' */
    double total_ms;  /* what the job waits for: max over devices and their
                         host */
    double exposed_ms[N_STEP_PARTS]; /* by how much the step would be shorter
                                        without a part, or NAN likewise */
    double bound_ms;                 /* proven lower bound, NAN where none */
    const char *bound_term;          /* what sets it, or NULL; in no file */
    const char *bound_table;         /* whose piece does, likewise */
    uint32_t n_floored;              /* devices raised to the physical floor */
    struct cost_source cost;
    const char *search; /* "reference", "baseline:dim" ... */
    const char
        *stopped; /* "done", "budget", "time", "interrupt", "proposals" */
    uint64_t seed;
    double search_ms; /* wall-clock; in no file, as it is never the same */
    uint64_t n_evaluations;
    const char *inputs_hash; /* 16 hex digits, see plan_inputs_hash */
    const char *version;     /* of the program that made it */
    const char *build;       /* build id of that program; NULL: unknown */
};

/* Which shares of total_ms are look-ups and exchanges, by the parts of the step
 * that are exposed; what is left is the dense part. NAN where they are not
 * known, or a host is waited for. */
enum { SPLIT_LOOKUPS, SPLIT_EXCHANGES, N_SPLIT };
void plan_split(const struct plan *plan, double shares[N_SPLIT]);
/* The error of total_ms: those of look-ups and of exchanges, independent of
 * each other. 0: not known, as that of a host. */
double plan_error_frac(const struct plan *plan);
/* " +-16 %" behind the step's time; nothing where it is not known. */
void plan_print_error(const struct plan *plan, struct buf *out);

/* Whether its devices have costs. */
static inline bool plan_is_priced(const struct plan *plan)
{
    return plan->devices && !isnan(plan->total_ms);
}

/* Whether devices wait for their host, so that no other plan is shorter: in a
 * step of so many ms, priced so. */
static inline bool step_waits_for_host(const struct cost_source *cost,
                                       double total_ms)
{
    return cost->host_ms > 0 && total_ms <= cost->host_ms * (1 + 1e-9);
}

/* Longer than any step, shorter than what sums up to infinity. */
#define PLAN_MAX_MS 1e15
/* As a plan file and others have them: what is [N_STEP_PARTS], and a shard,
 * which the caller decrefs. */
extern const struct place_field step_part_fields[N_STEP_PARTS];
/* Its figures in ms. */
#define N_COST_FIELDS 4
extern const struct place_field device_cost_fields[N_COST_FIELDS];
json_t *shard_to_json(const struct shard *shard);

/* Fills the memory of devices[R]: what each holds. */
void plan_count_memory(struct plan *plan);

/* The device whose memory is used most, by the share of it; and that share. */
uint32_t plan_fullest(const struct plan *plan);
double plan_used_frac(const struct plan *plan, uint32_t device);

/* Fills devices, shard_ms, total_ms, exposed_ms, n_floored and cost from the
 * oracle: embeds each shard once, sums by device in the canonical order of
 * tables, one head a device, one comm. Memory by plan->problem. A kind or a cut
 * by rows that the oracle does not price is ERR_INPUT, and so is a cost that is
 * NaN or infinite. bound_ms becomes that of the host where it is reached, else
 * NAN: a bound was proven for other costs. devices and shard_ms are allocated
 * in the arena. */
int plan_price(struct plan *plan, const struct oracle *oracle,
               struct arena *arena, struct err *err) MUST_CHECK;

/* By (table, col_begin, row_begin, device), of two struct shard, for qsort. */
int shard_compare(const void *left, const void *right);
/* Sorts shards so, and shard_ms with them. */
void plan_sort_shards(struct plan *plan);

/* Whether what priced a plan told the parts of its step. */
static inline bool plan_has_parts(const struct plan *plan)
{
    return plan->devices && !isnan(plan->devices[0].parts_ms[0]);
}

/* Hash over tables (in any order), cluster, batch, memory model, cost
 * source and job: the same for a permuted or respelled input. Allocated in
 * arena. */
const char *plan_inputs_hash(const struct plan *plan, struct arena *arena);

/* Pieces of the same rows of a table that meet on a device: those that touch
 * become one, and where some are of other widths than the rest the columns are
 * given out anew, one piece a device; where that would be a table, or a row
 * block, that may not be whole, they are of one width. With only_uneven nothing
 * is done where all that meet are of one width. True where shards have changed:
 * they are sorted then, in the arena, and their kinds derived. */
bool plan_join_columns(struct plan *plan, bool only_uneven,
                       struct arena *arena);

/* Sets the kind of each shard that has none, 0, from the geometry of its
 * table's pieces. */
void plan_fill_kinds(struct plan *plan);
/* Sorts the shards and sets every one's kind. */
void plan_derive_kinds(struct plan *plan);

/* How a search may cut that is to find one such as this: as its own cuts are,
 * for no plan file says. */
enum row_cut plan_row_cut(const struct plan *plan);

#endif
