/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOB_H
#define NEUROSHARD_EXEC_JOB_H

#include "core/plan.h"
#include "core/sample.h"

/*
 * Step times of a real training job, compared with the plan that it uses: the
 * time of each rank's tables, the time of the exchanges, stragglers, and causes
 * of the difference between measured and predicted times.
 *
 * Steps repeat, so medians over steps are free of occasional delays by the
 * dense part of the model, a data loader or another job. On each rank an
 * exchange lasts from that rank's arrival until all ranks are done. So it is
 * shortest on the rank that arrives last, and there it takes only as long as
 * its bytes need.
 */
struct job_phase {
    const char *rank; /* "3", or "all" for an exchange */
    const char *name; /* name of the part */
    enum step_part part;
    struct timing time;  /* median is NAN if the time is not known */
    double predicted_ms; /* NAN if the plan does not predict it */
    double differs_frac; /* measured / predicted - 1; NAN if unknown */
    double straggles;    /* slowdown if its rank straggles; else 1 */
    const char *note;    /* text if its rank straggles; or NULL */
};

struct job_times {
    uint32_t n_ranks;
    size_t n_steps; /* steps after the warm-up */
    /* [n_phases], in the arena: forward and backward of rank 0, then of rank 1
     * and so on; then the exchanges. */
    struct job_phase *phases;
    size_t n_phases;
    /* [n_ranks]: forward plus backward of a step. */
    struct timing *totals;
    /* Sentence about missing times, or NULL. */
    const char *doubt;
};

/* Reads the times of a job, without its first n_warm_up steps. If the plan
 * predicts no parts, it finds no stragglers. ERR_INPUT if no step is left, a
 * rank has no times or a time occurs twice. O(steps x ranks). */
int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err) MUST_CHECK;

/* A possible cause of the difference between measured and predicted times, and
 * the share of the difference that it explains if it is the only cause. */
struct job_cause {
    const char *what;      /* in the arena; for example "a base of +0.137 ms" */
    double explained_frac; /* share of all absolute differences; may be < 0 */
};
/* Largest number of causes: a base time of forward and backward, a factor for
 * each rank, a factor for stragglers, and a factor for each phase. */
#define JOB_CAUSES (3 + N_STEP_PARTS)
/* Fills `causes` as far as the known times allow; returns their number. */
size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, struct arena *arena);

#endif
