/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_STEP_H
#define NEUROSHARD_CORE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The duration of one training step, computed from the time of each phase on
 * each rank and from the pipeline. The pipeline determines which phases
 * overlap.
 *
 * An exchange (a collective, such as an all-to-all) starts when the last rank
 * arrives, and it ends on all ranks together. So the step time is a function of
 * a few terms. A term is a sum of phase times of one rank, and only the largest
 * value of each term over the ranks counts. The step time never falls if a term
 * grows. This is all that a search needs to know about a pipeline. Lower bounds
 * of the terms give a lower bound of the step time.
 */

/* Phases of a step on one rank; times are in ms. The time of an exchange on a
 * rank is the time that the traffic of this rank alone would take. The exchange
 * takes the largest of these times on every rank. */
enum phase {
    /* exchange of ids and lengths: sends them to the ranks that hold the
     * rows */
    PHASE_INPUT,
    /* permutation of the received ids into the order of the tables */
    PHASE_PERMUTE,
    /* fetch of rows into a cache. A phase of its own only in PIPELINE_PREFETCH;
     * in other pipelines it is part of PHASE_FORWARD. */
    PHASE_CACHE,
    PHASE_FORWARD,  /* lookups */
    PHASE_OUTPUT,   /* exchange of the looked-up vectors */
    PHASE_GRADIENT, /* exchange of the gradients of the looked-up vectors */
    PHASE_BACKWARD, /* backward pass with the optimizer update */
    PHASE_REDUCE,   /* all-reduce (an exchange) of the gradients of replicas */
    PHASE_UPDATE,   /* optimizer update of replicas */
    /* average of the tables over sharding groups (core/sharding_groups.h): the
     * time of one sync divided by the steps from one sync to the next */
    PHASE_SYNC,
    N_PHASES
};

/* Training pipelines of TorchRec. PIPELINE_SDD is the default. */
enum pipeline {
    /* TrainPipelineSparseDist: the input exchange of the next batch overlaps
     * the step of this batch */
    PIPELINE_SDD,
    PIPELINE_NONE, /* no overlap: the phases run one after the other */
    /* PrefetchTrainPipelineSparseDist: like PIPELINE_SDD, but the cache is also
     * filled for the next batch */
    PIPELINE_PREFETCH,
    /* TrainPipelineSemiSync: the lookups of the next batch overlap the dense
     * part and the backward pass of this batch */
    PIPELINE_SEMISYNC,
    N_PIPELINES
};
extern const char *const pipeline_names[]; /* NULL-terminated */

/* Parts of a step: groups of phases, as reports and files show them. */
enum step_part {
    STEP_INPUT, /* input exchange, permute, cache */
    STEP_FORWARD,
    STEP_OUTPUT,
    STEP_GRADIENT,
    STEP_BACKWARD,
    STEP_REPLICAS, /* all-reduce and optimizer update of replicas, and the sync
                      of sharding groups */
    N_STEP_PARTS
};
/* names of the parts: "input" ... */
extern const char *const step_part_names[];

/* Measured time of one part of one step on one rank of a real job. */
struct part_time {
    uint64_t step;
    uint32_t rank;
    enum step_part part;
    double ms;
};

struct step {
    enum pipeline pipeline;
    /* Number of chunks, >= 1. The lookups and the output exchange run in
     * n_chunks chunks, and the exchange of a chunk overlaps the lookups of the
     * next one. */
    uint32_t n_chunks;
    /* True if the job says what its dense part is. If not, the dense part
     * counts as 0, and is assumed to leave room for the exchange of ids. */
    bool knows_dense;
    /* Time of the dense part of the model: forward, backward, and the exposed
     * part of the all-reduce of its gradients. */
    double dense_ms;
    /* Time that this all-reduce takes on the links. */
    double dense_reduce_ms;
    /* Time by which the exchange of gradients takes longer than the exchange of
     * outputs; below 0 if it takes less. It comes from tables that the plan
     * does not place. */
    double gradient_more_ms;
    /* cost of each additional exchange, because of its latency */
    double chunk_ms;
    /* cost of each additional lookup operation, because of its overhead */
    double look_up_ms;
    /* Slowdown by overlap, per phase: number of ms by which 1 ms of the phase
     * delays the phases that run at the same time. 0: no delay. 1: the delay of
     * phases that run one after the other. */
    double overlap_cost[N_PHASES];
    bool syncs; /* true: sharding groups sync now and then (PHASE_SYNC) */
};

#define STEP_MAX_TERMS 11
/* Terms that are the time of a single exchange. All other terms have no
 * exchange in them. step_n_exchanges returns their number, and
 * step_exchange_term the index of one of them among the terms. */
#define STEP_MAX_EXCHANGES 4
unsigned step_n_exchanges(const struct step *step);
unsigned step_exchange_term(const struct step *step, unsigned exchange);

/* Returns the larger of a and b, or b if either of them is NaN. Faster than
 * fmax, which tests for NaN. */
static inline double max_of(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the number of terms of the step: 5 to STEP_MAX_TERMS. The sync is the
 * last term if the step has one. */
unsigned step_n_terms(const struct step *step);
/* Fills terms_ms[step_n_terms] with the terms of one rank. */
void step_terms(const struct step *step, const double phases_ms[N_PHASES],
                double *terms_ms);
/* Returns the step time from most_ms[step_n_terms], the largest value of each
 * term over the ranks. Assumes that the exchange of gradients takes
 * gradient_more_ms longer than the exchange of outputs. */
double step_ms(const struct step *step, const double *most_ms);

/*
 * Returns the step time from phases_ms[n_ranks][N_PHASES].
 *
 * Names in the formulas:
 *
 *     T_I, T_O, T_G, T_A    exchanges: input, output, gradient, all-reduce
 *                           of replicas
 *     P, Q, F               permute, cache, forward (lookups)
 *     B                     backward and update
 *     D                     dense part of the model (dense_ms)
 *     T_D                   all-reduce of its gradients (dense_reduce_ms); its
 *                           exposed part is in D
 *     T_S                   share of the sync of sharding groups in a step
 *     N                     number of chunks
 *     t                     T_O / N, plus chunk_ms if N > 1
 *     a                     argument of e(): P, P + Q, B or 0
 *     b                     time until which another exchange runs
 *
 * T_I, T_O, T_G, T_A, P, Q and B are the largest values over the ranks. For
 * (a + F / N) and (a + F), the sum is computed on each rank, and the largest
 * sum counts. If N > 1, F includes the overhead of N - 1 additional lookup
 * operations (look_up_ms for each).
 *
 *     C        = D + T_G + T_A
 *     e(a, b)  = max( max(a + F / N, b) + N t, (a + F) + t )
 *     e(a)     = e(a, 0)
 *
 * Step time by pipeline:
 *
 *     none      T_I + e(P) + C + B
 *     sdd       max( C + e(B), T_I + P, (T_I + e(P) + C + B) / 2 )
 *     prefetch  max( C + e(B), T_I + P, Q, (T_I + e(P + Q) + C + B) / 3 )
 *     semisync  max( C + B, e(0), (C + e(B)) / 2, T_I + P )
 *
 * If the dense part is known, the exchanges of a job run one after the other,
 * in the order in which TorchRec starts them. They use one process group, whose
 * collectives NCCL runs in this order, and on CPUs they share the network. The
 * ids of the next batch can then hide only behind the work between two
 * exchanges, because another exchange waits for them:
 *
 *     sdd       outputs, ids, all-reduce of the dense part, gradients: the ids
 *               hide behind the dense part
 *     prefetch  ids, outputs, all-reduce of the dense part, gradients: the ids
 *               hide behind backward and lookups
 *
 *     sdd       max( max(D, T_I + T_D) + T_G + T_A + e(B), T_I + e(P) )
 *     prefetch  max( C + e(B, T_I), T_I + P, Q, (T_I + e(P + Q) + C) / 2 )
 *
 * The formulas give the steady state of a simulation that runs the ranks and
 * their streams phase by phase (tests/unit/core/t_step.c). Two corrections
 * are applied to the result:
 *
 *   1. A phase that overlaps other phases adds to the step time: overlap_cost
 *      times the duration of the phase or of the other phases, whichever is
 *      shorter.
 *   2. The step is at least T_I + T_O + T_G + T_A + T_D, because all exchanges
 *      share the same links.
 *
 * T_S is added to the result, because nothing runs beside a sync.
 */
double step_of_ranks(const struct step *step, size_t n_ranks,
                     const double (*phases_ms)[N_PHASES]);
/* Fills parts_ms with the times of the parts of the step on one rank: for each
 * part, the sum of its phases. */
void step_parts(const double phases_ms[N_PHASES],
                double parts_ms[N_STEP_PARTS]);
/* Fills exposed_ms with the exposed time of each part: the amount by which the
 * step would be shorter without the part. */
void step_exposed(const struct step *step, size_t n_ranks,
                  const double (*phases_ms)[N_PHASES],
                  double exposed_ms[N_STEP_PARTS]);

#endif
