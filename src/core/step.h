/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_STEP_H
#define NEUROSHARD_CORE_STEP_H

#include <stddef.h>
#include <stdint.h>

/*
 * The step that a training job waits for, of what its ranks take in each phase
 * of it, as the job's pipeline lets phases run beside each other.
 *
 * An exchange starts on all ranks when the last one arrives and ends on all
 * together. So the step is a function of the largest value of a few terms over
 * the ranks, each a sum of phases of one rank, which falls in none of them: a
 * search needs to know no more of a pipeline, and a bound of each term is one
 * of the step.
 */

/* What one rank takes in a step, in ms. Of an exchange, what its own traffic
 * would take: the slowest one's is the time of all. */
enum phase {
    PHASE_INPUT,    /* exchange: ids and lengths to their owners */
    PHASE_PERMUTE,  /* what came is put in the order of the tables */
    PHASE_CACHE,    /* rows are fetched to a cache; by the prefetch pipeline
                       alone: with others it is part of the forward */
    PHASE_FORWARD,  /* look-ups */
    PHASE_OUTPUT,   /* exchange of what was looked up */
    PHASE_GRADIENT, /* exchange of its gradients */
    PHASE_BACKWARD, /* backward with update */
    PHASE_REDUCE,   /* exchange: the gradients of replicas are summed up */
    PHASE_UPDATE,   /* of replicas */
    N_PHASES
};

/* TorchRec's; the first is the one that jobs use. */
enum pipeline {
    PIPELINE_SDD,      /* TrainPipelineSparseDist: the input of the next batch
                          beside this one's step */
    PIPELINE_NONE,     /* one phase after the other */
    PIPELINE_PREFETCH, /* PrefetchTrainPipelineSparseDist: and the cache is
                          filled a batch ahead */
    PIPELINE_SEMISYNC, /* TrainPipelineSemiSync: the next batch is looked up
                          beside the dense part and the backward of this one */
    N_PIPELINES
};
extern const char *const pipeline_names[]; /* NULL at the end */

/* What reports and files tell apart of the phases. */
enum step_part {
    STEP_INPUT, /* exchange, permuting, cache */
    STEP_FORWARD,
    STEP_OUTPUT,
    STEP_GRADIENT,
    STEP_BACKWARD,
    STEP_REPLICAS, /* reduced and updated */
    N_STEP_PARTS
};
extern const char *const step_part_names[]; /* "input" ... */

/* What a real job's rank took for a part in one of its steps. */
struct part_time {
    uint64_t step;
    uint32_t rank;
    enum step_part part;
    double ms;
};

struct step {
    enum pipeline pipeline;
    uint32_t n_chunks; /* >= 1: look-ups and output exchange run in so many
                          parts, exchange of one beside look-up of the next */
    double dense_ms;   /* the dense part of the model, forward and backward */
    double chunk_ms;   /* an exchange more: its latency */
    double look_up_ms; /* a look-up more: what its operation takes */
    double host_ms; /* of a rank's host, to queue all of it: hosts queue steps
                       one after the other, and the job waits for none that
                       is shorter, whatever the pipeline; 0: not known */
    /* What a millisecond of a phase costs all others while it runs beside
     * them: 0 nothing, 1 as much as in turn. */
    double overlap_cost[N_PHASES];
};

#define STEP_MAX_TERMS 10

/* b where one of them is no number; faster than fmax, which looks for it. */
static inline double max_of(double a, double b)
{
    return a > b ? a : b;
}

/* How many terms the step has. */
unsigned step_n_terms(const struct step *step);
/* Those of one rank. */
void step_terms(const struct step *step, const double phases_ms[N_PHASES],
                double *terms_ms);
/* The time of a step by the largest of each term over the ranks, where the
 * exchange of gradients takes as long as that of outputs; of its devices alone:
 * what their host takes is the same for each plan, and a search that lowers the
 * rest is not to stop there. */
double step_ms(const struct step *step, const double *most_ms);

/*
 * The same by phases_ms[n_ranks][N_PHASES].
 *
 * With T of an exchange (input I, output O, gradient G, replicas A), P, Q, F of
 * permuting, cache and forward, B of backward and update, all of one rank, D of
 * the dense part and the largest over ranks meant where phases stand:
 *
 *     C    = D + T_G + T_A
 *     e(a) = max( (a + F / N) + N t, (a + F) + t )   t = T_O / N and, where
 *                                                    N > 1, a latency; F with
 *                                                    N - 1 look-ups more
 *     none      T_I + e(P) + C + B
 *     sdd       max( C + e(B), T_I + P, (T_I + e(P) + C + B) / 2 )
 *     prefetch  max( C + e(B), T_I + P, Q, (T_I + e(P + Q) + C + B) / 3 )
 *     semisync  max( C + B, e(0), (C + e(B)) / 2, T_I + P )
 *
 * are the steady states of a simulation of ranks and their streams, phase by
 * phase (tests/unit/core/t_step.c). Each phase that runs beside others costs
 * overlap_cost of itself on top, as long as there are others; and all exchanges
 * share their links, so no step is below their sum; nor below step->host_ms.
 */
double step_of_ranks(const struct step *step, size_t n_ranks,
                     const double (*phases_ms)[N_PHASES]);
/* The phases of one rank, part by part. */
void step_parts(const double phases_ms[N_PHASES],
                double parts_ms[N_STEP_PARTS]);
/* By how much the step would be shorter without a part, if no host held it up.
 */
void step_exposed(const struct step *step, size_t n_ranks,
                  const double (*phases_ms)[N_PHASES],
                  double exposed_ms[N_STEP_PARTS]);

#endif
