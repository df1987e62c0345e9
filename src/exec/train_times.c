/* SPDX-License-Identifier: MIT */
#include "exec/train_times.h"

#include <string.h>

void train_times_of_step(const struct step_times *times, uint32_t n_ranks,
                         bool is_pipelined, double phases_ms[N_TRAIN_PHASES])
{
    double *ends_ms = mem_alloc(n_ranks, sizeof(*ends_ms));
    double begin_ms = 0;

    memset(ends_ms, 0, n_ranks * sizeof(*ends_ms));
    for (unsigned phase = 0; phase < N_TRAIN_PHASES; phase++) {
        double longest_ms = 0, end_ms = 0;

        for (uint32_t r = 0; r < n_ranks; r++) {
            longest_ms = fmax(longest_ms, times[r].phases_ms[phase]);
            if (phase == TRAIN_GRADIENT)
                ends_ms[r] += times[r].wait_ms;
            begin_ms = fmax(begin_ms, ends_ms[r]);
            if (phase != TRAIN_INPUT || !is_pipelined)
                ends_ms[r] += times[r].phases_ms[phase];
            end_ms = fmax(end_ms, ends_ms[r]);
        }
        phases_ms[phase] = train_is_exchange((enum train_phase)phase)
                               ? end_ms - begin_ms
                               : longest_ms;
    }
    mem_free(ends_ms);
}

/* Figures of a step: its phases, the wait and the step itself. */
#define N_FIGURES (N_TRAIN_PHASES + 2)

/* Fills figures_ms from the times of all ranks in one step. */
static void sum_up(const struct train_state *run,
                   const struct step_times *times, double figures_ms[N_FIGURES])
{
    const uint32_t n_ranks = run->placement.n_ranks;
    const bool is_pipelined = run->options->pipeline == PIPELINE_SDD;
    double wait_ms = 0, step_ms = 0, sum_ms = 0;

    train_times_of_step(times, n_ranks, is_pipelined, figures_ms);
    for (unsigned phase = 0; phase < N_TRAIN_PHASES; phase++)
        if (phase != TRAIN_INPUT || !is_pipelined)
            sum_ms += figures_ms[phase];
    for (uint32_t r = 0; r < n_ranks; r++) {
        wait_ms = fmax(wait_ms, times[r].wait_ms);
        step_ms = fmax(step_ms, times[r].step_ms);
    }
    figures_ms[N_TRAIN_PHASES] = wait_ms;
    figures_ms[N_TRAIN_PHASES + 1] =
        run->result->n_processes > 1 ? step_ms : sum_ms + wait_ms;
}

/* Stores medians and deciles of times[n_steps][n_ranks], without the
 * warm-up. */
static void find_medians(const struct train_state *run,
                         const struct step_times *times)
{
    struct train_result *result = run->result;
    const unsigned n_steps = run->options->n_steps;
    const unsigned first = n_steps > TRAIN_N_WARM_UP ? TRAIN_N_WARM_UP : 0;
    double *ms = mem_alloc((size_t)n_steps * N_FIGURES, sizeof(*ms));

    result->n_timed = n_steps - first;
    for (unsigned step = first; step < n_steps; step++) {
        double figures_ms[N_FIGURES];

        sum_up(run, times + step * (size_t)run->placement.n_ranks, figures_ms);
        for (unsigned i = 0; i < N_FIGURES; i++)
            ms[i * (size_t)n_steps + step - first] = figures_ms[i];
    }
    for (unsigned i = 0; i < N_TRAIN_PHASES; i++)
        result->phases[i] =
            timing_of(ms + i * (size_t)n_steps, result->n_timed);
    result->wait =
        timing_of(ms + N_TRAIN_PHASES * (size_t)n_steps, result->n_timed);
    result->step =
        timing_of(ms + (N_TRAIN_PHASES + 1) * (size_t)n_steps, result->n_timed);
    mem_free(ms);
}

int train_times_collect(struct train_state *run, struct err *err)
{
    const uint32_t n_ranks = run->placement.n_ranks;
    struct world *world = run->placement.comm->world;
    const struct rank_range here = run->placement.here;
    const size_t n_here = here.end - here.begin;
    struct step_times *own = mem_alloc(n_here, sizeof(*own));
    int rc = 0;

    for (unsigned step = 0; !rc && step < run->options->n_steps; step++) {
        struct step_times *times = run->times + step * (size_t)n_ranks;

        memcpy(own, times + here.begin, n_here * sizeof(*own));
        rc = world_all_gather(world, own, n_here * sizeof(*own), times, err);
    }
    mem_free(own);
    if (!rc)
        find_medians(run, run->times);
    return rc;
}
