/* SPDX-License-Identifier: MIT */
#include "core/step.h"

#include "base/mem.h"

#include <string.h>

const char *const pipeline_names[] = {"sdd", "none", "prefetch", "semisync",
                                      NULL};
const char *const step_part_names[] = {
    "input", "forward", "output", "gradient", "backward", "replicas", NULL};

/* Phases by themselves; then what a rank does between two exchanges. */
enum term {
    TERM_ON = N_PHASES, /* permuted, cached, looked up */
    TERM_ON_PART,       /* but of that look-up the first chunk */
    TERM_TURN,          /* a backward, and the next look-up */
    TERM_TURN_PART,
    N_TERMS
};
_Static_assert(N_TERMS == STEP_MAX_TERMS, "as the header says");

static const struct {
    double share;      /* of all phases in turn: 1 over the batches under way */
    uint8_t n_terms;   /* with one chunk: which is the whole */
    uint8_t n_parts;   /* behind them */
    uint8_t terms[12]; /* what it is a function of */
} pipelines[N_PIPELINES] = {
#define IN_TURN PHASE_OUTPUT, PHASE_GRADIENT, PHASE_REDUCE, PHASE_UPDATE
    [PIPELINE_SDD] = {1. / 2,
                      9,
                      2,
                      {IN_TURN, PHASE_BACKWARD, TERM_TURN, TERM_ON, PHASE_INPUT,
                       PHASE_PERMUTE, TERM_ON_PART, TERM_TURN_PART}},
    [PIPELINE_NONE] = {1,
                       7,
                       1,
                       {IN_TURN, PHASE_BACKWARD, TERM_ON, PHASE_INPUT,
                        TERM_ON_PART}},
    [PIPELINE_PREFETCH] = {1. / 3,
                           10,
                           2,
                           {IN_TURN, PHASE_BACKWARD, TERM_TURN, TERM_ON,
                            PHASE_INPUT, PHASE_PERMUTE, PHASE_CACHE,
                            TERM_ON_PART, TERM_TURN_PART}},
    [PIPELINE_SEMISYNC] = {1. / 2,
                           9,
                           1,
                           {IN_TURN, PHASE_BACKWARD, TERM_TURN, PHASE_FORWARD,
                            PHASE_INPUT, PHASE_PERMUTE, TERM_TURN_PART}},
};

static double max_of(double a, double b)
{
    return a > b ? a : b;
}

static double min_of(double a, double b)
{
    return a < b ? a : b;
}

unsigned step_n_terms(const struct step *step)
{
    unsigned n_parts =
        step->n_chunks > 1 ? pipelines[step->pipeline].n_parts : 0;

    return pipelines[step->pipeline].n_terms + n_parts;
}

void step_terms(const struct step *step, const double phases_ms[N_PHASES],
                double *terms_ms)
{
    const uint8_t *terms = pipelines[step->pipeline].terms;
    const unsigned n_terms = step_n_terms(step);
    const double whole = phases_ms[PHASE_FORWARD];
    const double part = whole / step->n_chunks;
    const double before =
        phases_ms[PHASE_PERMUTE] +
        (step->pipeline == PIPELINE_PREFETCH ? phases_ms[PHASE_CACHE] : 0);
    double all[N_TERMS];

    memcpy(all, phases_ms, N_PHASES * sizeof(*all));
    all[TERM_ON] = before + whole;
    all[TERM_ON_PART] = before + part;
    all[TERM_TURN] = phases_ms[PHASE_BACKWARD] + whole;
    all[TERM_TURN_PART] = phases_ms[PHASE_BACKWARD] + part;
    for (unsigned k = 0; k < n_terms; k++)
        terms_ms[k] = all[terms[k]];
}

/* The end of the chunks of a look-up: `part` until the first one is looked up,
 * `whole` until the last one is. What their exchanges hide costs a share. */
static double exchanged_ms(const struct step *step, double part, double whole,
                           double output_ms)
{
    double n = step->n_chunks, each_ms, end_ms, hidden_ms;

    if (step->n_chunks == 1)
        return whole + output_ms;
    each_ms = output_ms / n + step->chunk_ms;
    end_ms = max_of(part + n * each_ms, whole + each_ms);
    hidden_ms = max_of(whole + output_ms - end_ms, 0);
    return end_ms + step->overlap_cost[PHASE_OUTPUT] * hidden_ms;
}

/* What a phase that runs beside others, which take rest_ms, costs them. */
static double aside_ms(const struct step *step, enum phase phase,
                       const double most[N_TERMS], double rest_ms)
{
    return step->overlap_cost[phase] * min_of(most[phase], rest_ms);
}

/* By all that terms may be; those that the pipeline has not are 0. */
static double step_of_all(const struct step *step, const double most[N_TERMS])
{
    const double output = most[PHASE_OUTPUT], backward = most[PHASE_BACKWARD];
    const double after = step->dense_ms + most[PHASE_GRADIENT] +
                         most[PHASE_REDUCE] + most[PHASE_UPDATE];
    const double in_turn =
        most[PHASE_INPUT] +
        exchanged_ms(step, most[TERM_ON_PART], most[TERM_ON], output) + after +
        backward;
    const double ahead = most[PHASE_INPUT] + most[PHASE_PERMUTE];
    const double turn = after + exchanged_ms(step, most[TERM_TURN_PART],
                                             most[TERM_TURN], output);
    double rest = turn, ms, aside = 0;

    if (step->pipeline == PIPELINE_NONE)
        return in_turn;
    if (step->pipeline == PIPELINE_SEMISYNC) {
        const double whole = most[PHASE_FORWARD];

        rest = after + backward;
        ms = max_of(max_of(rest, turn / 2),
                    exchanged_ms(step, whole / step->n_chunks, whole, output));
        aside = aside_ms(step, PHASE_FORWARD, most, rest) +
                aside_ms(step, PHASE_OUTPUT, most, rest);
    } else {
        ms = max_of(max_of(turn, most[PHASE_CACHE]),
                    in_turn * pipelines[step->pipeline].share);
        aside = aside_ms(step, PHASE_CACHE, most, rest);
    }
    ms = max_of(ms, ahead) + aside + aside_ms(step, PHASE_INPUT, most, rest) +
         aside_ms(step, PHASE_PERMUTE, most, rest);
    return max_of(ms, most[PHASE_INPUT] + output + most[PHASE_GRADIENT] +
                          most[PHASE_REDUCE]);
}

double step_ms(const struct step *step, const double *most_ms)
{
    const uint8_t *terms = pipelines[step->pipeline].terms;
    const unsigned n_terms = step_n_terms(step);
    double most[N_TERMS] = {0};

    for (unsigned k = 0; k < n_terms; k++)
        most[terms[k]] = most_ms[k];
    return step_of_all(step, most);
}

double step_of_ranks(const struct step *step, size_t n_ranks,
                     const double (*phases_ms)[N_PHASES])
{
    double most_ms[STEP_MAX_TERMS] = {0}, terms_ms[STEP_MAX_TERMS];

    for (size_t r = 0; r < n_ranks; r++) {
        step_terms(step, phases_ms[r], terms_ms);
        for (unsigned k = 0; k < step_n_terms(step); k++)
            most_ms[k] = max_of(terms_ms[k], most_ms[k]);
    }
    return step_ms(step, most_ms);
}

static const enum step_part parts[N_PHASES] = {
    [PHASE_INPUT] = STEP_INPUT,       [PHASE_PERMUTE] = STEP_INPUT,
    [PHASE_CACHE] = STEP_INPUT,       [PHASE_FORWARD] = STEP_FORWARD,
    [PHASE_OUTPUT] = STEP_OUTPUT,     [PHASE_GRADIENT] = STEP_GRADIENT,
    [PHASE_BACKWARD] = STEP_BACKWARD, [PHASE_REDUCE] = STEP_REPLICAS,
    [PHASE_UPDATE] = STEP_REPLICAS,
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
    double ms = step_of_ranks(step, n_ranks, phases_ms);

    for (unsigned part = 0; part < N_STEP_PARTS; part++) {
        memcpy(without, phases_ms, n_ranks * sizeof(*without));
        for (size_t r = 0; r < n_ranks; r++)
            for (unsigned p = 0; p < N_PHASES; p++)
                if (parts[p] == part)
                    without[r][p] = 0;
        exposed_ms[part] =
            max_of(ms - step_of_ranks(step, n_ranks,
                                      (const double(*)[N_PHASES])without),
                   0);
    }
    mem_free(without);
}
