/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_JOB_H
#define NEUROSHARD_EXEC_JOB_H

#include "base/mem.h"
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
struct job_rank {
    /* Of the forward and the backward, and of both in one step; medians are
     * NAN where they are not known. */
    struct timing parts[N_STEP_PARTS], total;
    double straggles; /* by this factor in all that it computes; else 1 */
};

struct job_times {
    uint32_t n_ranks;
    size_t n_steps;                        /* without warm-up */
    struct job_rank *ranks;                /* [n_ranks], in the arena */
    struct timing exchanges[N_STEP_PARTS]; /* likewise */
};

static inline bool step_part_is_compute(enum step_part part)
{
    return part == STEP_FORWARD || part == STEP_BACKWARD;
}

/* Without the first n_warm_up steps. A plan that tells no parts finds no
 * stragglers. ERR_INPUT where no step is left, a rank has no times or a time is
 * there twice. O(steps x ranks). */
int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err) MUST_CHECK;

/* The median that stands for a rank's part, or NAN. */
double job_measured_ms(const struct job_times *job, uint32_t rank,
                       enum step_part part);

/* What is left of the difference between measured and predicted, where it is
 * explained by one thing alone. */
struct job_cause {
    const char *what;      /* in the arena; "a base of +0.137 ms" */
    double explained_frac; /* of the sum of absolute differences; may be < 0 */
};
#define JOB_CAUSES (3 + N_STEP_PARTS) /* a base, ranks, stragglers, a phase */
/* How many there are, of a plan that tells its parts. */
size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, const struct plan *plan,
                  struct arena *arena);

#endif
