/* SPDX-License-Identifier: MIT */
#include "core/step.h"

#include "base/mem.h"

#include <string.h>

const char *const pipeline_names[] = {"sdd", "none", "prefetch", "semisync",
                                      NULL};
const char *const step_part_names[] = {
    "input", "forward", "output", "gradient", "backward", "replicas", NULL};

/* Terms of the step time. They are ordered so that each pipeline needs only the
 * first n_terms terms. A step in chunks uses all terms. */
enum term {
    TERM_OUTPUT,
    TERM_REDUCE,
    /* backward pass and the update of replicas; TERM_TURN includes this update,
     * too */
    TERM_BACKWARD,
    TERM_INPUT,
    /* Critical path between the input exchange and the output exchange:
     * permute, cache and lookups. Does not include phases that the pipeline
     * runs ahead of time, during an earlier step. */
    TERM_ON,
    TERM_PERMUTE,
    TERM_TURN, /* backward pass, and then the lookups of the next batch */
    TERM_CACHE,
    /* like TERM_ON, but with only the first chunk of the lookups */
    TERM_ON_PART,
    TERM_TURN_PART,
    N_TERMS
};
_Static_assert(N_TERMS + 1 == STEP_MAX_TERMS, "a sync is one more term");

static const enum term exchange_terms[] = {TERM_OUTPUT, TERM_REDUCE,
                                           TERM_INPUT};
#define N_EXCHANGE_TERMS (sizeof exchange_terms / sizeof *exchange_terms)
_Static_assert(N_EXCHANGE_TERMS + 1 == STEP_MAX_EXCHANGES,
               "a sync is one more exchange");

static const struct {
    /* 1 / (number of batches in flight). The step takes at least this share of
     * the sum of all phase times. */
    double share;
    unsigned n_terms;
} pipelines[N_PIPELINES] = {
    [PIPELINE_SDD] = {1. / 2, TERM_TURN + 1},
    [PIPELINE_NONE] = {1, TERM_ON + 1},
    [PIPELINE_PREFETCH] = {1. / 3, TERM_CACHE + 1},
    [PIPELINE_SEMISYNC] = {1. / 2, TERM_TURN + 1},
};

static unsigned n_terms_without_sync(const struct step *step)
{
    return step->n_chunks > 1 ? N_TERMS : pipelines[step->pipeline].n_terms;
}

unsigned step_n_terms(const struct step *step)
{
    return n_terms_without_sync(step) + step->syncs;
}

unsigned step_n_exchanges(const struct step *step)
{
    return N_EXCHANGE_TERMS + step->syncs;
}

unsigned step_exchange_term(const struct step *step, unsigned exchange)
{
    return exchange < N_EXCHANGE_TERMS ? exchange_terms[exchange]
                                       : n_terms_without_sync(step);
}

void step_terms(const struct step *step, const double phases_ms[N_PHASES],
                double *terms_ms)
{
    const unsigned n_terms = n_terms_without_sync(step);
    const bool is_ahead = step->pipeline == PIPELINE_SEMISYNC;
    const bool fills_cache = step->pipeline == PIPELINE_PREFETCH;
    /* time between the input exchange and the lookups */
    const double before = (is_ahead ? 0 : phases_ms[PHASE_PERMUTE]) +
                          (fills_cache ? phases_ms[PHASE_CACHE] : 0);
    /* time of the lookups in one chunk; look_up is their time in n_chunks
     * chunks */
    const double forward = phases_ms[PHASE_FORWARD];
    const double look_up =
        forward > 0 ? forward + (step->n_chunks - 1) * step->look_up_ms : 0;
    const double backward = phases_ms[PHASE_BACKWARD] + phases_ms[PHASE_UPDATE];

    terms_ms[TERM_OUTPUT] = phases_ms[PHASE_OUTPUT];
    terms_ms[TERM_REDUCE] = phases_ms[PHASE_REDUCE];
    terms_ms[TERM_BACKWARD] = backward;
    terms_ms[TERM_INPUT] = phases_ms[PHASE_INPUT];
    terms_ms[TERM_ON] = before + look_up;
    if (n_terms > TERM_TURN) {
        terms_ms[TERM_PERMUTE] = phases_ms[PHASE_PERMUTE];
        terms_ms[TERM_TURN] = backward + look_up;
    }
    if (n_terms > TERM_CACHE)
        terms_ms[TERM_CACHE] = phases_ms[PHASE_CACHE];
    if (n_terms > TERM_TURN_PART) {
        terms_ms[TERM_ON_PART] = before + look_up / step->n_chunks;
        terms_ms[TERM_TURN_PART] = backward + look_up / step->n_chunks;
    }
    if (step->syncs)
        terms_ms[n_terms] = phases_ms[PHASE_SYNC];
}

/* Returns the time until the last chunk of the outputs is exchanged: e(a) of
 * core/step.h plus the cost of the overlap. `whole` is the term with all
 * lookups, and `part` is the same term with only the first chunk of the
 * lookups. The links carry another exchange until busy_ms. The cost of the
 * overlap is overlap_cost[PHASE_OUTPUT] times the overlapped time. */
static double exchanged_ms(const struct step *step, const double *most_ms,
                           enum term whole, enum term part, double busy_ms)
{
    const double output_ms = most_ms[TERM_OUTPUT];
    const double ready_ms = max_of(most_ms[whole], busy_ms);
    double n = step->n_chunks, each_ms, end_ms, hidden_ms;

    if (step->n_chunks == 1)
        return ready_ms + output_ms;
    each_ms = output_ms / n + step->chunk_ms;
    end_ms = max_of(max_of(most_ms[part], busy_ms) + n * each_ms,
                    most_ms[whole] + each_ms);
    hidden_ms = ready_ms + n * each_ms - end_ms;
    return end_ms + step->overlap_cost[PHASE_OUTPUT] * hidden_ms;
}

/* Returns the delay that a phase causes because it runs at the same time as
 * other phases. The other phases take rest_ms. */
static double aside_ms(const struct step *step, enum phase phase,
                       double phase_ms, double rest_ms)
{
    return step->overlap_cost[phase] *
           (phase_ms < rest_ms ? phase_ms : rest_ms);
}

/* Returns the time of a step in which the ids of the next batch have their turn
 * on the links: after the outputs of this batch (sdd), or before them
 * (prefetch). Does not include costs of overlap. critical_ms is the time from
 * the ids to the outputs, and after_ms that of the exchanges after the dense
 * part. Sets *beside_ms to the time of the work that runs beside the exchange
 * of ids. */
static double ordered_ms(const struct step *step, const double *most_ms,
                         double critical_ms, double after_ms, double *beside_ms)
{
    const bool is_sdd = step->pipeline == PIPELINE_SDD;
    const double input = most_ms[TERM_INPUT];
    const double ahead = input + critical_ms;
    double dense = step->dense_ms, least, turn;

    *beside_ms = is_sdd ? dense : most_ms[TERM_TURN];
    least = is_sdd ? ahead : (ahead + dense + after_ms) / 2;
    if (is_sdd)
        dense = max_of(dense, input + step->dense_reduce_ms);
    turn = dense + after_ms +
           exchanged_ms(step, most_ms, TERM_TURN, TERM_TURN_PART,
                        is_sdd ? 0 : input);
    return max_of(turn, least);
}

/* Returns the time of a step without the sync of sharding groups. */
static double unsynced_ms(const struct step *step, const double *most_ms,
                          double gradient_ms)
{
    const double input = most_ms[TERM_INPUT], output = most_ms[TERM_OUTPUT];
    const double backward = most_ms[TERM_BACKWARD];
    const double after = gradient_ms + most_ms[TERM_REDUCE];
    const double critical_ms =
        exchanged_ms(step, most_ms, TERM_ON, TERM_ON_PART, 0);
    const double in_turn =
        input + critical_ms + step->dense_ms + after + backward;
    double permute, turn, rest, beside, ms, aside = 0;

    if (step->pipeline == PIPELINE_NONE)
        return in_turn;
    permute = most_ms[TERM_PERMUTE];
    turn = step->dense_ms + after +
           exchanged_ms(step, most_ms, TERM_TURN, TERM_TURN_PART, 0);
    rest = beside = turn;
    if (step->pipeline == PIPELINE_SEMISYNC) {
        rest = beside = step->dense_ms + after + backward;
        ms = max_of(max_of(rest, turn / 2), critical_ms);
        aside = aside_ms(step, PHASE_FORWARD, most_ms[TERM_ON], rest) +
                aside_ms(step, PHASE_OUTPUT, output, rest);
    } else if (step->knows_dense) {
        ms = ordered_ms(step, most_ms, critical_ms, after, &beside);
    } else {
        ms = max_of(turn, in_turn * pipelines[step->pipeline].share);
    }
    if (step->pipeline == PIPELINE_PREFETCH) {
        ms = max_of(ms, most_ms[TERM_CACHE]);
        aside = aside_ms(step, PHASE_CACHE, most_ms[TERM_CACHE], rest);
    }
    ms = max_of(ms, input + permute) + aside +
         aside_ms(step, PHASE_INPUT, input, beside) +
         aside_ms(step, PHASE_PERMUTE, permute, rest);
    return max_of(ms, input + output + after + step->dense_reduce_ms);
}

static double step_of_terms(const struct step *step, const double *most_ms,
                            double gradient_ms)
{
    const double ms = unsynced_ms(step, most_ms, gradient_ms);

    return step->syncs ? ms + most_ms[n_terms_without_sync(step)] : ms;
}

double step_ms(const struct step *step, const double *most_ms)
{
    return step_of_terms(step, most_ms,
                         most_ms[TERM_OUTPUT] + step->gradient_more_ms);
}

double step_of_ranks(const struct step *step, size_t n_ranks,
                     const double (*phases_ms)[N_PHASES])
{
    double most_ms[STEP_MAX_TERMS] = {0}, terms_ms[STEP_MAX_TERMS];
    double gradient_ms = 0;

    for (size_t r = 0; r < n_ranks; r++) {
        step_terms(step, phases_ms[r], terms_ms);
        for (unsigned k = 0; k < step_n_terms(step); k++)
            most_ms[k] = max_of(terms_ms[k], most_ms[k]);
        gradient_ms = max_of(phases_ms[r][PHASE_GRADIENT], gradient_ms);
    }
    return step_of_terms(step, most_ms, gradient_ms);
}

static const enum step_part parts[N_PHASES] = {
    [PHASE_INPUT] = STEP_INPUT,       [PHASE_PERMUTE] = STEP_INPUT,
    [PHASE_CACHE] = STEP_INPUT,       [PHASE_FORWARD] = STEP_FORWARD,
    [PHASE_OUTPUT] = STEP_OUTPUT,     [PHASE_GRADIENT] = STEP_GRADIENT,
    [PHASE_BACKWARD] = STEP_BACKWARD, [PHASE_REDUCE] = STEP_REPLICAS,
    [PHASE_UPDATE] = STEP_REPLICAS,   [PHASE_SYNC] = STEP_REPLICAS,
};

void step_parts(const double phases_ms[N_PHASES], double parts_ms[N_STEP_PARTS])
{
    memset(parts_ms, 0, N_STEP_PARTS * sizeof(*parts_ms));
    for (unsigned p = 0; p < N_PHASES; p++)
        parts_ms[parts[p]] += phases_ms[p];
}

void step_exposed(const struct step *step, size_t n_ranks,
                  const double (*phases_ms)[N_PHASES],
                  double exposed_ms[N_STEP_PARTS])
{
    double(*without)[N_PHASES] = mem_alloc(n_ranks, sizeof(*without));
    const double ms = step_of_ranks(step, n_ranks, phases_ms);

    for (unsigned part = 0; part < N_STEP_PARTS; part++) {
        for (size_t r = 0; r < n_ranks; r++)
            for (unsigned p = 0; p < N_PHASES; p++)
                without[r][p] = parts[p] == part ? 0 : phases_ms[r][p];
        exposed_ms[part] =
            max_of(ms - step_of_ranks(step, n_ranks,
                                      (const double(*)[N_PHASES])without),
                   0);
    }
    mem_free(without);
}
