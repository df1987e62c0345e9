/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_COMPARE_TABLE_H
#define NEUROSHARD_EMIT_COMPARE_TABLE_H

#include "base/json.h"
#include "core/plan.h"

/*
 * Output of `compare`: planners side by side on one task or on many. For many
 * tasks the means are paired: over the tasks that both planners solved, or that
 * all solved. A mean over the tasks that each planner solved by itself would
 * favour a planner that gives up on hard tasks.
 */

/* One planner on one task. */
struct compare_entry {
    const char *planner;
    bool valid;
    const char *reason; /* why it is not valid; else NULL */
    double total_ms, max_over_mean, compute_ms, fwd_comm_ms, bwd_comm_ms;
    /* per part, the time of the GPU that takes longest for it; NAN if
     * unknown */
    double parts_ms[N_STEP_PARTS];
    double memory_frac; /* used fraction of the fullest GPU */
    double search_ms;
    /* stop reason, such as "time"; NULL: not cut short */
    const char *cut_short_by;
    double ratio; /* total_ms / our total_ms; NAN unless both solved the task */
    /* parts of total_ms, in ms; NAN if unknown */
    double lookup_ms, exchange_ms;
    struct cost_source cost;
    /* Error of the ratio, as a fraction (NAN if unknown), and whether the ratio
     * differs from 1 by more than that. */
    double gain_error_frac;
    bool is_significant;
};

struct compare_task {
    const char *name;              /* file, or file and number */
    struct compare_entry *entries; /* [n_planners]; the last one is ours */
};

/* Fills an entry from a plan, which must be valid and priced. */
void compare_fill(struct compare_entry *entry, const struct plan *plan);
/* Returns the error of the ratio of entry's total to ours, as a fraction. Nine
 * in ten ratios are within it. One cost model must have priced both. NAN if
 * unknown. */
double compare_gain_error(const struct compare_entry *entry,
                          const struct compare_entry *ours);
/* Fills entry's ratio, gain_error_frac and is_significant. `ours` may be
 * `entry`. */
void compare_pair(struct compare_entry *entry,
                  const struct compare_entry *ours);

/* One planner on all tasks. */
struct compare_mean {
    const char *planner;
    uint64_t n_valid;
    uint64_t n_paired; /* tasks that ours solved, too */
    /* mean of total / ours over the paired tasks; NAN without any */
    double ratio;
    double common_ms; /* mean total over the common tasks; NAN without any */
    double search_ms; /* mean over all tasks */
    /* paired tasks on which ours is significantly faster */
    uint64_t n_significant;
    uint64_t n_cut_short;
};

struct comparison {
    struct compare_task *tasks; /* [n_tasks] */
    size_t n_tasks, n_planners;
    const struct problem *problem; /* problem of the last task; not owned */
    const struct job *job; /* job that the totals assume; not owned; or NULL */
    struct cost_source cost;    /* cost model of all totals */
    struct compare_mean *means; /* [n_planners] */
    /* common tasks: solved by every planner that solved any task */
    size_t n_common;
};
/* Fills the entries' ratios, the means and n_common. */
void compare_means(struct comparison *comparison);

/* Prints a table of one task, or of the means over several tasks. */
void compare_print(const struct comparison *comparison, struct buf *out);
/* Returns the table as JSON, with more details. One task gives {cost_model,
 * hash, basis, planners}. For several tasks, `planners` holds the means and
 * `tasks` the planners of each task. */
json_t *compare_to_json(const struct comparison *comparison);
json_t *compare_entries_to_json(const struct compare_entry *entries, size_t n);
/* Prints one line per task and planner, also for a single task. */
void compare_to_csv(const struct comparison *comparison, struct buf *out);

#endif
