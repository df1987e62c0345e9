/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOB_H
#define NEUROSHARD_EXEC_JOB_H

#include "core/plan.h"
#include "core/sample.h"

/*
 * What the steps of a real job say of a plan that it trains by: what each rank
 * takes for its tables, what its exchanges take, which ranks straggle, and what
 * explains the difference from what was predicted.
 *
 * Steps repeat, so medians over them are free of what the dense part of the
 * model, a loader or another job do now and then. An exchange lasts on a rank
 * from its arrival to the end of all: on the one that arrives last, which is
 * where it is shortest, it takes what its bytes take.
 */
struct job_phase {
    const char *rank; /* "3", or "all" of an exchange */
    const char *name; /* of the part */
    enum step_part part;
    struct timing time;  /* the median is NAN where it is not known */
    double predicted_ms; /* NAN where the plan tells none, or nothing */
    double differs_frac; /* of the prediction; NAN where either is */
    double straggles;    /* its rank, by this factor; else 1 */
    const char *note;    /* that it does, or NULL */
};

struct job_times {
    uint32_t n_ranks;
    size_t n_steps; /* without warm-up */
    /* [n_phases], in the arena: forward and backward of each rank in turn, then
     * the exchanges. */
    struct job_phase *phases;
    size_t n_phases;
    struct timing *totals; /* [n_ranks] forward and backward of a step */
    const char *doubt;     /* sentence about times that are missing, or NULL */
};

/* Without the first n_warm_up steps. A plan that tells no parts finds no
 * stragglers. ERR_INPUT where no step is left, a rank has no times or a time is
 * there twice. O(steps x ranks). */
int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err) MUST_CHECK;

/* What is left of the difference between measured and predicted, where it is
 * explained by one thing alone. */
struct job_cause {
    const char *what;      /* in the arena; "a base of +0.137 ms" */
    double explained_frac; /* of the sum of absolute differences; may be < 0 */
};
/* A base of forward and backward, a factor for each rank, one for stragglers,
 * one for a phase. */
#define JOB_CAUSES (3 + N_STEP_PARTS)
/* How many there are, of what is known. */
size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, struct arena *arena);

#endif
