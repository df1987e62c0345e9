/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOB_H
#define NEUROSHARD_EXEC_JOB_H

#include "core/plan.h"
#include "core/sample.h"

/*
 * Step times of a real training job, compared with the plan that the job uses:
 * the time of each rank's tables, the time of the exchanges, stragglers, and
 * causes of the difference between measured and predicted times.
 *
 * Medians are taken over many steps, so occasional delays by the dense part of
 * the model, a data loader or another job do not count. On each rank an
 * exchange lasts from the arrival of that rank until all ranks are done. So the
 * time of an exchange is shortest on the rank that arrives last. There it is
 * the time that the transfer of the bytes needs, without waiting.
 */
struct job_phase {
    /* number of the rank, such as "3"; "all" for an exchange */
    const char *rank;
    const char *name; /* name of the part of the step */
    enum step_part part;
    struct timing time;  /* its median is NAN if the time is unknown */
    double predicted_ms; /* NAN if the plan does not predict the time */
    double differs_frac; /* measured / predicted - 1; NAN if unknown */
    double straggles;    /* slowdown if the rank straggles; otherwise 1 */
    /* measured / predicted of the rank's lookups, over that of a typical rank;
     * NAN if unknown */
    double relative;
    /* text about the straggling rank; NULL if it does not straggle */
    const char *note;
};

struct job_times {
    uint32_t n_ranks;
    size_t n_steps; /* number of steps after the warm-up */
    /* [n_phases], in the arena: forward and backward of rank 0, forward and
     * backward of rank 1 and so on, then the exchanges. */
    struct job_phase *phases;
    size_t n_phases;
    /* [n_ranks]: time of forward plus backward in a step. */
    struct timing *totals;
    /* Sentence about missing times; NULL if no time is missing. */
    const char *doubt;
};

/* Reads the step times of a job, and leaves out its first n_warm_up steps. If
 * the plan does not predict the parts of a step, no stragglers are found.
 * ERR_INPUT if no step is left, a rank has no times or a time occurs twice.
 * O(steps x ranks). */
int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err) MUST_CHECK;

/* Returns the slowdown of each rank, [n_ranks] in the arena, and sets it in the
 * cluster of the plan; the cluster has none if no rank is slow. It changes on a
 * rank that straggles, and on one that was slow in the plan. */
const double *job_slowdown(const struct job_times *job, struct cluster *cluster,
                           struct arena *arena);

/* A possible cause of the difference between measured and predicted times.
 * explained_frac assumes that it is the only cause. */
struct job_cause {
    const char *what; /* in the arena; for example "a base of +0.137 ms" */
    /* explained share of the sum of absolute differences; may be < 0 */
    double explained_frac;
};
/* Largest number of causes: a base time of forward and backward, a factor for
 * each rank, a factor for stragglers, and a factor for each phase. The first
 * three are one cause each. */
#define JOB_CAUSES (3 + N_STEP_PARTS)
/* Fills `causes` with the causes that can be computed from the known times.
 * Returns their number. */
size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, struct arena *arena);

/* Returns one sentence about where the difference between measured and
 * predicted times comes from: a rank that straggles, nothing if the times are
 * within JOB_AS_PREDICTED of the predicted ones, the cause that explains at
 * least half of the difference, or no single one. The result is in the arena;
 * NULL if the plan predicts no times. */
#define JOB_AS_PREDICTED 0.1
const char *job_verdict(const struct job_times *job,
                        const struct job_cause *causes, size_t n_causes,
                        struct arena *arena);

#endif
