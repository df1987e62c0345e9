/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_COMPARE_TABLE_H
#define NEUROSHARD_EMIT_COMPARE_TABLE_H

#include "base/json.h"
#include "core/host.h"

/*
 * Output of `compare`: planners side by side on one task or on several tasks.
 *
 * The mean ratio of a planner to ours covers the tasks that both planners
 * solved. Mean totals cover the common tasks, which all planners solved. If
 * each planner's mean covered all tasks that this planner solved, a planner
 * that gives up on hard tasks would look better than it is.
 */

/* Result of one planner on one task. */
struct compare_entry {
    const char *planner;
    bool valid;
    /* reason why the plan is not valid; NULL if it is valid */
    const char *reason;
    struct step_parts step; /* GPU work, its parts, and host time */
    double step_ms;         /* step time with the host (core/host.h) */
    double max_over_mean, compute_ms, fwd_comm_ms, bwd_comm_ms;
    /* for each part of the step, the longest time that a GPU takes for the
     * part; NAN if unknown */
    double parts_ms[N_STEP_PARTS];
    double memory_frac; /* used fraction of the memory of the fullest GPU */
    double search_ms;
    /* stop reason of the search, such as "time"; NULL if the search was not cut
     * short */
    const char *cut_short_by;
    /* GPU work and step time as multiples of our planner's; NAN unless both
     * solved the task */
    double ratio, step_ratio;
    struct cost_source cost;
    /* Error of `ratio`, which is within ratio +- gain_error_frac, and relative
     * error of `step_ratio`; NAN if unknown. is_significant: `ratio` differs
     * from 1 by more than its error. */
    double gain_error_frac, step_error_frac;
    bool is_significant;
};

struct compare_task {
    /* name of the file, or name of the file and number in it */
    const char *name;
    /* [n_planners]; our planner is the last one */
    struct compare_entry *entries;
};

/* Fills an entry from a plan, which must be valid and priced. */
void compare_fill(struct compare_entry *entry, const struct plan *plan);
/* Compares `entry` with `ours`: fills `entry`'s ratios, their errors and
 * is_significant. `ours` and `entry` may be the same entry. */
void compare_pair(struct compare_entry *entry,
                  const struct compare_entry *ours);

/* Means of one planner over all tasks. */
struct compare_mean {
    const char *planner;
    uint64_t n_valid;
    /* number of paired tasks: solved by this planner and by ours */
    uint64_t n_paired;
    /* mean of total / our planner's total over the paired tasks; NAN if there
     * are no paired tasks */
    double ratio;
    /* mean total over the common tasks; NAN if there are no common tasks */
    double common_ms;
    double search_ms; /* mean time of the search over all tasks */
    /* number of paired tasks on which our planner is significantly faster */
    uint64_t n_significant;
    uint64_t n_cut_short;
};

struct comparison {
    struct compare_task *tasks; /* [n_tasks] results by task */
    size_t n_tasks, n_planners;
    const struct problem *problem; /* problem of the last task; not owned */
    /* job that the totals assume; not owned; may be NULL */
    const struct job *job;
    struct cost_source cost;    /* cost model that predicted all totals */
    struct compare_mean *means; /* [n_planners] means by planner */
    /* number of common tasks. A common task is solved by every planner, except
     * by planners that solved no task at all. */
    size_t n_common;
};
/* Fills the ratios of all entries, the means of all planners, and n_common. */
void compare_means(struct comparison *comparison);

/* Prints the table of one task, or the table of the means over several
 * tasks. */
void compare_print(const struct comparison *comparison, struct buf *out);
/* Returns the comparison as JSON, with more details than the printed table. For
 * one task the members are {cost_model, hash, basis, planners}. For several
 * tasks, `planners` holds the means, and another member `tasks` holds the
 * planners of each task. */
json_t *compare_to_json(const struct comparison *comparison);
json_t *compare_entries_to_json(const struct compare_entry *entries, size_t n);
/* Prints the comparison as CSV, with one line per task and planner. */
void compare_to_csv(const struct comparison *comparison, struct buf *out);

#endif
