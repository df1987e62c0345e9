/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_COMPARE_TABLE_H
#define NEUROSHARD_EMIT_COMPARE_TABLE_H

#include "base/json.h"
#include "core/plan.h"

/*
 * What compare prints: planners beside each other on one task, or on many. On
 * many, means are paired: over the tasks that both planners solved, or all of
 * them; a mean over what each solved by itself would favour who gives up.
 */

/* One planner on one task. */
struct compare_entry {
    const char *planner;
    bool valid;
    const char *reason; /* where not valid */
    double total_ms, max_over_mean, compute_ms, fwd_comm_ms, bwd_comm_ms;
    double parts_ms[N_STEP_PARTS]; /* each of the GPU where it takes longest;
                                      NAN where not known */
    double memory_frac;            /* of the fullest GPU */
    double search_ms;
    const char *cut_short_by; /* "time" ..., or NULL */
    double ratio; /* of total_ms to ours; NAN where not both solved it */
    double lookup_ms, exchange_ms; /* shares of total_ms, NAN likewise */
    struct cost_source cost;
    /* What the ratio may be off, as a fraction, NAN where it is not known, and
     * whether it is farther from 1. */
    double gain_error_frac;
    bool is_significant;
};

struct compare_task {
    const char *name;              /* file, or file and number */
    struct compare_entry *entries; /* [n_planners]; the last one is ours */
};

/* Of a plan that is valid and priced. */
void compare_fill(struct compare_entry *entry, const struct plan *plan);
/* What the ratio of entry's total to ours may be off, nine times in ten, where
 * one cost model has priced both; NAN where that is not known. */
double compare_gain_error(const struct compare_entry *entry,
                          const struct compare_entry *ours);
/* Fills entry's ratio, gain_error_frac and is_significant; ours may be it. */
void compare_pair(struct compare_entry *entry,
                  const struct compare_entry *ours);

/* One planner on all tasks. */
struct compare_mean {
    const char *planner;
    uint64_t n_valid;
    uint64_t n_paired;      /* tasks that ours solved, too */
    double ratio;           /* mean of total / ours over those; NAN for none */
    double common_ms;       /* mean total over the common tasks; NAN for none */
    double search_ms;       /* mean over all tasks */
    uint64_t n_significant; /* paired tasks on which ours is faster for sure */
    uint64_t n_cut_short;
};

struct comparison {
    struct compare_task *tasks; /* [n_tasks] */
    size_t n_tasks, n_planners;
    const struct problem *problem; /* of the last task; not owned */
    const struct job *job;         /* that totals are of, not owned; or NULL */
    struct cost_source cost;       /* what priced them */
    struct compare_mean *means;    /* [n_planners] */
    size_t n_common; /* tasks: solved by every planner that solved any */
};
/* Fills the entries' ratios, the means and n_common. */
void compare_means(struct comparison *comparison);

/* A table of one task, or of the means of several. */
void compare_print(const struct comparison *comparison, struct buf *out);
/* The same and more: of one task {cost_model, hash, basis, planners}; of
 * several, `planners` holds means and `tasks` the planners of each. */
json_t *compare_to_json(const struct comparison *comparison);
json_t *compare_entries_to_json(const struct compare_entry *entries, size_t n);
/* A line a task and planner, whatever the number of tasks. */
void compare_to_csv(const struct comparison *comparison, struct buf *out);

#endif
