/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_H
#define NEUROSHARD_CORE_PLAN_H

#include "core/oracle.h"

#include <math.h>

/* A plan: every shard of every table, the device that holds it, and the
 * predicted cost of one training step. A plan contains its problem, so it is
 * complete without other files. */

struct device_cost {
    double compute_ms;  /* forward lookup + backward + optimizer */
    double bwd_comm_ms; /* backward all-to-all and all-reduce */
    /* Forward communication, from the moment the device has finished compute
     * and backward communication. Includes the waiting for the slowest device
     * and the rest of the step that is neither a lookup nor an exchange of
     * outputs. */
    double fwd_comm_ms;
    /* sum of the three times above; none includes waiting for the host */
    double total_ms;
    /* Time of each part of the step; for an exchange, the time that it takes.
     * NAN if the cost model predicts no parts. */
    double parts_ms[N_STEP_PARTS];
    struct memory_items memory; /* includes the reserve */
};

struct plan {
    struct problem problem;
    struct shard *shards; /* [n_shards], sorted by (table, col, row, device) */
    size_t n_shards;
    struct device_cost *devices; /* [R]; NULL if the plan has no costs */
    /* [n_shards]: predicted compute of each shard alone on a device, in ms, or
     * NULL if the plan is not priced. Does not add up to the compute times of
     * the devices. */
    double *shard_ms;
    /* step time that the job waits for: the maximum over the devices and their
     * host */
    double total_ms;
    /* exposed time of each part: the amount by which the step would be shorter
     * without the part; NAN if the cost model predicts no parts */
    double exposed_ms[N_STEP_PARTS];
    /* proven lower bound of total_ms, or NAN */
    double bound_ms;
    /* term that sets the lower bound, or NULL; not in plan files */
    const char *bound_term;
    /* table whose piece sets the lower bound, or NULL; not in plan files */
    const char *bound_table;
    /* number of devices whose compute is raised to the physical floor */
    uint32_t n_floored;
    struct cost_source cost;
    /* name of the search: "reference", "baseline:dim" ... */
    const char *search;
    /* reason why the search ended: "done", "budget", "time", "interrupt" or
     * "proposals" */
    const char *stopped;
    uint64_t seed;
    /* wall-clock time of the search; not in plan files, because it differs from
     * run to run */
    double search_ms;
    uint64_t n_evaluations;
    const char *inputs_hash; /* 16 hex digits (plan_inputs_hash) */
    const char *version;
    /* build id of that program, or NULL if the plan file has none */
    const char *build;     /* version of the program that made the plan */
};

/* Computes the shares of total_ms that are exposed lookups and exposed
 * exchanges. The rest is the dense part. NAN if the parts are unknown, or if
 * the step waits for the host. */
enum { SPLIT_LOOKUPS, SPLIT_EXCHANGES, N_SPLIT };
void plan_split(const struct plan *plan, double shares[N_SPLIT]);
/* Returns the relative error of total_ms, from the errors of lookups and
 * exchanges, which are taken as independent. 0: unknown, as it is for the time
 * of a host. */
double plan_error_frac(const struct plan *plan);
/* Prints " +-16 %" after the step time, or nothing if the error is unknown. */
void plan_print_error(const struct plan *plan, struct buf *out);

/* Returns true if the devices have costs. */
static inline bool plan_is_priced(const struct plan *plan)
{
    return plan->devices && !isnan(plan->total_ms);
}

/* Returns true if the devices wait for their host, so that no other plan is
 * faster. total_ms is the step time that `cost` predicts. */
static inline bool step_waits_for_host(const struct cost_source *cost,
                                       double total_ms)
{
    return cost->host_ms > 0 && total_ms <= cost->host_ms * (1 + 1e-9);
}

/* Upper limit of times: longer than any step, and small enough that sums stay
 * finite. */
#define PLAN_MAX_MS 1e15
/* Fields of a plan file and of other files: an array [N_STEP_PARTS], and a
 * shard. The caller decrefs the shard. */
extern const struct place_field step_part_fields[N_STEP_PARTS];
/* Fields of struct device_cost in ms. */
#define N_COST_FIELDS 4
extern const struct place_field device_cost_fields[N_COST_FIELDS];
json_t *shard_to_json(const struct shard *shard);

/* Fills the memory of devices[R]: the bytes that each device uses. */
void plan_count_memory(struct plan *plan);

/* plan_fullest returns the device that uses the largest share of its memory,
 * and plan_used_frac returns this share of a device. */
uint32_t plan_fullest(const struct plan *plan);
double plan_used_frac(const struct plan *plan, uint32_t device);

/*
 * Prices the plan by the oracle and counts memory by plan->problem.
 *
 * Fills devices, shard_ms, total_ms, exposed_ms, n_floored and cost. Embeds
 * each shard once, sums the vectors of each device in the canonical order of
 * tables, and calls head once per device and comm once. If the step waits for
 * the host, bound_ms becomes the time of the host. Otherwise it becomes NAN,
 * because an earlier bound was proven for other costs. Allocates devices and
 * shard_ms in the arena.
 *
 * ERR_INPUT if the oracle cannot price a kind or a row cut, or if a cost is NaN
 * or infinite.
 */
int plan_price(struct plan *plan, const struct oracle *oracle,
               struct arena *arena, struct err *err) MUST_CHECK;

/* Compares two struct shard by (table, col_begin, row_begin, device), for
 * qsort. */
int shard_compare(const void *left, const void *right);
/* Sorts the shards in this order, and shard_ms with them. */
void plan_sort_shards(struct plan *plan);

/* Returns true if the cost model predicted the parts of the plan's step. */
static inline bool plan_has_parts(const struct plan *plan)
{
    return plan->devices && !isnan(plan->devices[0].parts_ms[0]);
}

/* Returns a hash of tables, cluster, batch, memory model, cost source and job.
 * The order of the tables and the spelling of the input do not change it.
 * Allocated in the arena. */
const char *plan_inputs_hash(const struct plan *plan, struct arena *arena);

/*
 * Joins the column pieces of a table that hold the same rows on the same
 * device.
 *
 * Adjacent pieces become one. If the pieces on a device still have different
 * widths, the columns are assigned anew, with one piece per device. If the
 * result is a whole table, or a whole row block, that the problem does not
 * allow, it is cut into pieces of equal width. With only_uneven, changes only
 * tables whose pieces on a device have different widths.
 *
 * Returns true if shards have changed. They are then in the arena, sorted, and
 * with their kinds derived.
 */
bool plan_join_columns(struct plan *plan, bool only_uneven,
                       struct arena *arena);

/* Sets the kind of each shard whose kind is 0, from the geometry of the table's
 * pieces. */
void plan_fill_kinds(struct plan *plan);
/* Sorts the shards and sets the kind of each one. */
void plan_derive_kinds(struct plan *plan);

/* Returns the row cuts that a search needs to be able to find this plan. Plan
 * files do not store them, so they are derived from the plan's own cuts. */
enum row_cut plan_row_cut(const struct plan *plan);

#endif
