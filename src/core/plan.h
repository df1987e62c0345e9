/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_H
#define NEUROSHARD_CORE_PLAN_H

#include "core/oracle.h"

#include <math.h>

/* A plan: every shard of every table, the device that holds it, and the
 * predicted cost of one training step. A plan contains its problem, so it is
 * complete without other files.
 *
 * All times of a plan are GPU work: the time of a step if no GPU has to wait
 * for its host. core/host.h adds the time of the host. */

/* Cache of rows that cached pieces of a device share (core/cache_pools.h). */
struct device_cache {
    const char *pool; /* what the pieces have in common (pool_print) */
    uint64_t n_slots;
    uint32_t slot_width; /* width of the widest piece, in columns */
    double load_factor;  /* wanted slots / rows of the pieces */
    /* Predictions; NAN if the plan is not priced. */
    double rows_per_batch; /* different rows that a batch uses */
    double fills;          /* rows per batch that are not in the cache */
    double miss;           /* fills / rows_per_batch, or 0 */
};

struct device_cost {
    double compute_ms;  /* time of forward lookup + backward + optimizer */
    double bwd_comm_ms; /* time of the backward all-to-all and the all-reduce */
    /* Time from the moment when the device has finished compute and backward
     * communication to the end of the step. Includes forward communication,
     * waiting for the slowest device, and all parts of the step that are
     * neither a lookup nor an exchange of outputs. */
    double fwd_comm_ms;
    /* compute_ms + bwd_comm_ms + fwd_comm_ms */
    double total_ms;
    /* Time of each part of the step. If the part is an exchange, it is the
     * duration of the exchange. NAN if the cost model predicts no parts. */
    double parts_ms[N_STEP_PARTS];
    /* Time that the device's own shards add to a step if the other devices
     * hold none, at most the plan's GPU work without its dense part. NAN if the
     * cost model predicts no parts. Plan files do not store it. */
    double alone_ms;
    struct memory_items memory;  /* memory in use, including the reserve */
    struct device_cache *caches; /* [n_caches], sorted by pool_compare */
    size_t n_caches;
};

/* Loss of a plan if the wire is slower than assumed (search/wire_choice.h). The
 * wire is the link between hosts, or inside the host if there is one host. */
struct wire_regret {
    /* assumed bandwidth of a GPU; 0: not computed, and all members are 0 */
    double assumed_gbps;
    bool is_inter; /* the wire is between hosts or NVLink domains */
    /* at each share of wire_shares: total of the plan / total of the best plan
     * known - 1 */
    double regrets[N_WIRES];
    /* bandwidth below which another known plan is cheaper by more than the
     * error of the ratio; 0: no other plan is, down to the smallest share */
    double break_even_gbps;
    /* total of the plan / total of that plan - 1, at the smallest share */
    double gain_frac;
};

/* One sync of the sharding groups (core/sharding_groups.h). */
struct sync_cost {
    double bytes; /* weights and optimizer state of the device with most */
    double ms;    /* time of the sync; a step has 1 / sync_every of it */
};

struct plan {
    struct problem problem;
    struct shard *shards; /* [n_shards], sorted by (table, col, row, device) */
    size_t n_shards;
    /* [n_tables]: slots of a cached table's cache / its rows, in (0, 1] and the
     * same on all devices; 0 for other tables. NULL: no table is cached. */
    double *load_factors;
    /* [R]: cost of each device; NULL if the plan has no costs */
    struct device_cost *devices;
    /* [n_shards]: predicted compute time of each shard in ms, if it were alone
     * on a device; NULL if the plan is not priced. The sum over the shards of a
     * device is not the compute time of the device. */
    double *shard_ms;
    /* GPU work of a step: the largest time of a device */
    double total_ms;
    /* exposed time of each part of the step: the amount by which the step would
     * be shorter without the part; NAN if the cost model predicts no parts */
    double exposed_ms[N_STEP_PARTS];
    /* proven lower bound of total_ms; NAN if no bound is known */
    double bound_ms;
    /* Predicted time of the dense part, which is part of total_ms; all 0 if it
     * is unknown or the user gave it. */
    struct dense_cost dense;
    /* name of the cost term that determines bound_ms, or NULL; not in plan
     * files */
    const char *bound_term;
    /* name of the table whose piece determines bound_ms, or NULL; not in plan
     * files */
    const char *bound_table;
    /* number of devices whose predicted compute time was below the physical
     * lower bound (bytes / peak bandwidth) and was raised to it */
    uint32_t n_floored;
    struct cost_source cost;
    struct wire_regret wire;
    /* sync of the sharding groups; 0 if there is one group, or without costs */
    struct sync_cost sync;
    /* name of the search that made the plan: "reference", "baseline:dim" ... */
    const char *search;
    /* reason why the search ended: "done", "budget", "time", "interrupt" or
     * "proposals" */
    const char *stopped;
    uint64_t seed;
    /* wall-clock time of the search; plan files do not store it, because it
     * differs from run to run */
    double search_ms;
    uint64_t n_evaluations;
    /* hash of the inputs, 16 hex digits (plan_inputs_hash) */
    const char *inputs_hash;
    const char *version; /* version of the program that made the plan */
    /* build id of the program that made the plan, or NULL if the plan file has
     * no build id */
    const char *build;
};

/* Returns the time that the dense part adds to a step: the time that the user
 * gave, or the predicted time. */
static inline double plan_dense_ms(const struct plan *plan)
{
    return job_dense_ms(&plan->problem.job) + dense_cost_ms(&plan->dense);
}

/* Returns true if the plan has predicted costs. */
static inline bool plan_is_priced(const struct plan *plan)
{
    return plan->devices && !isnan(plan->total_ms);
}

/* Largest time in ms that a plan may have. It is longer than any step, and
 * small enough that sums of times stay finite. */
#define PLAN_MAX_MS 1e15
/* JSON fields of an array [N_STEP_PARTS] of times, in plan files and other
 * files. */
extern const struct place_field step_part_fields[N_STEP_PARTS];
/* JSON fields of the times of struct device_cost, in ms. */
#define N_COST_FIELDS 4
extern const struct place_field device_cost_fields[N_COST_FIELDS];
/* Returns a shard as a JSON object, as in plan files. The caller decrefs it. */
json_t *shard_to_json(const struct shard *shard);

/* plan_used_frac returns the share of a device's memory that is used.
 * plan_fullest returns the device with the largest used share. */
uint32_t plan_fullest(const struct plan *plan);
double plan_used_frac(const struct plan *plan, uint32_t device);

/* Compares two struct shard by (table, col_begin, row_begin, device), for
 * qsort. */
int shard_compare(const void *left, const void *right);
/* Sorts plan->shards in the order of shard_compare, and plan->shard_ms with
 * them. */
void plan_sort_shards(struct plan *plan);
/* Gives the plan the shards and the load factors of another plan of the same
 * problem. Both plans share their arrays from then on. */
void plan_take_shards(struct plan *plan, const struct plan *from);

/* Returns true if the cost model predicted the parts of the plan's step. */
static inline bool plan_has_parts(const struct plan *plan)
{
    return plan->devices && !isnan(plan->devices[0].parts_ms[0]);
}

/* Returns a hash of the tables, cluster, batch, memory model, cost source and
 * job. The hash does not depend on the order of the tables or on the spelling
 * of the input. The text is allocated in the arena. */
const char *plan_inputs_hash(const struct plan *plan, struct arena *arena);

/*
 * Joins the column pieces of a table that hold the same rows on the same
 * device.
 *
 * Adjacent pieces become one piece. If the pieces on a device still have
 * different widths, the columns are assigned anew, so that each device has one
 * piece. The result may be a whole table or a whole row block that the problem
 * does not allow. Then it is cut into pieces of equal width. If only_uneven is
 * true, changes only tables whose pieces on a device have different widths.
 *
 * Returns true if any shard has changed. plan->shards is then a new array in
 * the arena, sorted, with the kinds of the shards set.
 */
bool plan_join_columns(struct plan *plan, bool only_uneven,
                       struct arena *arena);

/* Sets the kind of each shard whose kind is 0. The kind follows from the way in
 * which the table is cut. */
void plan_fill_kinds(struct plan *plan);
/* Sorts the shards and sets the kind of every shard. */
void plan_derive_kinds(struct plan *plan);

/* Returns the row cuts that a search must be allowed to use if it is to find
 * this plan. Plan files do not store the allowed row cuts, so this function
 * derives them from the pieces of the plan. */
enum row_cut plan_row_cut(const struct plan *plan);

#endif
