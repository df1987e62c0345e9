/* SPDX-License-Identifier: MIT */
#include "core/step.h"

#include "base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const char *const pipeline_names[] = {"sdd", "none", "prefetch", "semisync",
                                      NULL};

#define BIT(i) (1u << (i))
#define AHEAD (BIT(PHASE_INPUT) | BIT(PHASE_PERMUTE))

static const struct {
    unsigned depth;    /* batches under way, of those one after the other */
    unsigned is_aside; /* phases that run beside others, a mask */
} pipelines[N_PIPELINES] = {
    [PIPELINE_SDD] = {2, AHEAD},
    [PIPELINE_NONE] = {1, 0},
    [PIPELINE_PREFETCH] = {3, AHEAD | BIT(PHASE_CACHE)},
    [PIPELINE_SEMISYNC] = {2, AHEAD | BIT(PHASE_FORWARD) | BIT(PHASE_OUTPUT)},
};

/* Phases by themselves; then what a rank does between two exchanges. */
enum term {
    TERM_PERMUTE_ON = N_PHASES, /* permuted, cached, looked up */
    TERM_PERMUTE_ON_PART,       /* but of that look-up the first chunk */
    TERM_TURN,                  /* a backward, and the next look-up */
    TERM_TURN_PART,
    N_TERMS
};

static const struct {
    unsigned phases;    /* a mask */
    bool is_part;       /* of the forward a chunk only */
    unsigned pipelines; /* that have it, a mask */
} terms[N_TERMS] = {
#define ALL (BIT(N_PIPELINES) - 1)
#define IN_TURN (ALL & ~BIT(PIPELINE_SEMISYNC))
#define ON (BIT(PHASE_PERMUTE) | BIT(PHASE_CACHE) | BIT(PHASE_FORWARD))
#define TURN (BIT(PHASE_BACKWARD) | BIT(PHASE_FORWARD))
    [PHASE_INPUT] = {BIT(PHASE_INPUT), false, ALL},
    [PHASE_PERMUTE] = {BIT(PHASE_PERMUTE), false, ALL & ~BIT(PIPELINE_NONE)},
    [PHASE_CACHE] = {BIT(PHASE_CACHE), false, BIT(PIPELINE_PREFETCH)},
    [PHASE_FORWARD] = {BIT(PHASE_FORWARD), false, BIT(PIPELINE_SEMISYNC)},
    [PHASE_OUTPUT] = {BIT(PHASE_OUTPUT), false, ALL},
    [PHASE_GRADIENT] = {BIT(PHASE_GRADIENT), false, ALL},
    [PHASE_BACKWARD] = {BIT(PHASE_BACKWARD), false, ALL},
    [PHASE_REDUCE] = {BIT(PHASE_REDUCE), false, ALL},
    [PHASE_UPDATE] = {BIT(PHASE_UPDATE), false, ALL},
    [TERM_PERMUTE_ON] = {ON, false, IN_TURN},
    [TERM_PERMUTE_ON_PART] = {ON, true, IN_TURN},
    [TERM_TURN] = {TURN, false, ALL & ~BIT(PIPELINE_NONE)},
    [TERM_TURN_PART] = {TURN, true, ALL & ~BIT(PIPELINE_NONE)},
};
_Static_assert(N_TERMS == STEP_MAX_TERMS, "as the header says");

/* Whether the step has this term: one chunk is the whole. */
static bool has_term(const struct step *step, unsigned term)
{
    return terms[term].pipelines & BIT(step->pipeline) &&
           !(terms[term].is_part && step->n_chunks == 1);
}

unsigned step_n_terms(const struct step *step)
{
    unsigned n = 0;

    for (unsigned k = 0; k < N_TERMS; k++)
        n += has_term(step, k);
    return n;
}

static bool is_phase_of(const struct step *step, unsigned phase)
{
    return phase != PHASE_CACHE || step->pipeline == PIPELINE_PREFETCH;
}

void step_terms(const struct step *step, const double phases_ms[N_PHASES],
                double *terms_ms)
{
    for (unsigned k = 0; k < N_TERMS; k++) {
        double ms = 0;

        if (!has_term(step, k))
            continue;
        for (unsigned p = 0; p < N_PHASES; p++)
            if (terms[k].phases & BIT(p) && is_phase_of(step, p))
                ms += p == PHASE_FORWARD && terms[k].is_part
                          ? phases_ms[p] / step->n_chunks
                          : phases_ms[p];
        *terms_ms++ = ms;
    }
}

/* The end of the chunks of a look-up: `part` until the first one is looked up,
 * `whole` until the last one is. What their exchanges hide costs a share. */
static double exchanged_ms(const struct step *step, double part, double whole,
                           double output_ms)
{
    double n = step->n_chunks;
    double each_ms = output_ms / n + (step->n_chunks > 1 ? step->chunk_ms : 0);

    double end_ms = fmax(part + n * each_ms, whole + each_ms);
    double hidden_ms = fmax(whole + output_ms - end_ms, 0);

    return end_ms + step->overlap_cost[PHASE_OUTPUT] * hidden_ms;
}

/* What phases that run beside others, which take rest_ms, cost them. */
static double aside_ms(const struct step *step, const double most[N_TERMS],
                       double rest_ms)
{
    double ms = 0;

    for (unsigned p = 0; p < N_PHASES; p++)
        if (pipelines[step->pipeline].is_aside & BIT(p))
            ms += step->overlap_cost[p] * fmin(most[p], rest_ms);
    return ms;
}

double step_ms(const struct step *step, const double *most_ms)
{
    double most[N_TERMS] = {0}, after, in_turn, turn, rest, ahead, ms;
    const double n = step->n_chunks;

    for (unsigned k = 0; k < N_TERMS; k++)
        if (has_term(step, k))
            most[k] = *most_ms++;
        else if (terms[k].is_part)
            most[k] = most[k - 1];

    after = step->dense_ms + most[PHASE_GRADIENT] + most[PHASE_REDUCE] +
            most[PHASE_UPDATE];
    in_turn = most[PHASE_INPUT] +
              exchanged_ms(step, most[TERM_PERMUTE_ON_PART],
                           most[TERM_PERMUTE_ON], most[PHASE_OUTPUT]) +
              after + most[PHASE_BACKWARD];
    turn = after + exchanged_ms(step, most[TERM_TURN_PART], most[TERM_TURN],
                                most[PHASE_OUTPUT]);
    ahead = most[PHASE_INPUT] + most[PHASE_PERMUTE];
    if (step->pipeline == PIPELINE_NONE)
        return in_turn;
    if (step->pipeline == PIPELINE_SEMISYNC) {
        rest = after + most[PHASE_BACKWARD];
        ms = fmax(fmax(rest, turn / 2),
                  exchanged_ms(step, most[PHASE_FORWARD] / n,
                               most[PHASE_FORWARD], most[PHASE_OUTPUT]));
    } else {
        rest = turn;
        ms = fmax(fmax(turn, most[PHASE_CACHE]),
                  in_turn / pipelines[step->pipeline].depth);
    }
    ms = fmax(ms, ahead) + aside_ms(step, most, rest);
    return fmax(ms, most[PHASE_INPUT] + most[PHASE_OUTPUT] +
                        most[PHASE_GRADIENT] + most[PHASE_REDUCE]);
}

double step_of_ranks(const struct step *step, size_t n_ranks,
                     const double (*phases_ms)[N_PHASES])
{
    double most_ms[STEP_MAX_TERMS] = {0}, terms_ms[STEP_MAX_TERMS];

    for (size_t r = 0; r < n_ranks; r++) {
        step_terms(step, phases_ms[r], terms_ms);
        for (unsigned k = 0; k < step_n_terms(step); k++)
            most_ms[k] = fmax(most_ms[k], terms_ms[k]);
    }
    return step_ms(step, most_ms);
}

void step_exposed(const struct step *step, size_t n_ranks,
                  const double (*phases_ms)[N_PHASES], double *exposed_ms)
{
    double(*without)[N_PHASES] = mem_alloc(n_ranks, sizeof(*without));
    double ms = step_of_ranks(step, n_ranks, phases_ms);

    for (unsigned p = 0; p < N_PHASES; p++) {
        memcpy(without, phases_ms, n_ranks * sizeof(*without));
        for (size_t r = 0; r < n_ranks; r++)
            without[r][p] = 0;
        exposed_ms[p] = ms - step_of_ranks(step, n_ranks,
                                           (const double(*)[N_PHASES])without);
    }
    mem_free(without);
}
