/* SPDX-License-Identifier: MIT */
#include "explain/shifts.h"

#include "base/ranked.h"
#include "core/plan_check.h"
#include "core/plan_price.h"

#define N_GPUS_TRIED 32u
#define N_GPUS_SWAPPED 8u
#define MAX_TRIED 20000u
/* Largest number of shifts that are checked by plan_check. The shifts with the
 * lowest rough price are checked first. */
#define MAX_JUDGED 40u

struct shift_finder {
    struct shifts *shifts;
    struct what_if *what_if;
    struct arena *arena;
    /* [n]: shifts that reduce the step time by their rough price */
    struct shift *tried;
    size_t n;
};

static bool may_go(const struct problem *problem, const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];

    return !shard_is_replica(shard->kind) && table->device < 0 &&
           !table->group &&
           !(shard_cuts_rows(shard->kind) && shard_row_ranks(problem, shard));
}

/* Returns the edit that makes a shift. gone[] and come[] hold the data of the
 * edit and must have room for two items. */
static struct edit edit_of(const struct shift *shift, const struct plan *plan,
                           size_t *gone, struct shard *come)
{
    const size_t n = shift->other == NO_SHARD ? 1 : 2;

    gone[0] = shift->shard;
    gone[1] = shift->other;
    for (size_t i = 0; i < n; i++)
        come[i] = plan->shards[gone[i]];
    if (n > 1)
        come[1].device = come[0].device;
    come[0].device = shift->gpu;
    return (struct edit){gone, n, come, n};
}

/* Prices a shift roughly. Returns false if the shift does not fit in memory, or
 * if too many shifts have been tried already. */
static bool try(struct shift_finder *finder, struct shift *shift)
{
    const struct plan *plan = finder->what_if->plan;
    struct shard come[2];
    size_t gone[2];
    const struct edit edit = edit_of(shift, plan, gone, come);

    if (finder->shifts->n_moves + finder->shifts->n_swaps >= MAX_TRIED)
        return false;
    ++*(edit.n_gone > 1 ? &finder->shifts->n_swaps : &finder->shifts->n_moves);
    if (!what_if_fits(finder->what_if, &edit))
        return false;
    shift->total_ms = what_if_step(finder->what_if, &edit);
    if (shift->total_ms < plan->total_ms)
        finder->tried[finder->n++] = *shift;
    return true;
}

/* Makes and prices the complete plan after the shift. Stores the reason in
 * shift->why_not if plan_check does not allow the plan. */
static void judge(const struct shift_finder *finder, struct shift *shift)
{
    const struct plan *now = finder->what_if->plan;
    const struct arena_mark mark = arena_mark(finder->arena);
    struct err err = {0};
    struct shard come[2];
    struct plan plan;
    size_t gone[2];
    const struct edit edit = edit_of(shift, now, gone, come);

    if (!plan_price_edit(&plan, finder->what_if, &edit, finder->arena, &err) &&
        !plan_check(&plan, &err))
        shift->total_ms = plan.total_ms;
    arena_rewind(finder->arena, mark);
    if (err.code)
        shift->why_not = arena_strdup(finder->arena, err.msg);
    shift->gain_ms = now->total_ms - shift->total_ms;
    shift->table = now->problem.tables[come[0].table].name;
    if (edit.n_come > 1)
        shift->other_table = now->problem.tables[come[1].table].name;
}

/* Tries to move one piece to each of n GPUs, and to swap it with each piece of
 * these GPUs. */
static void shift_piece(struct shift_finder *finder, size_t shard,
                        const struct ranked *gpus, uint32_t n)
{
    const struct plan *plan = finder->what_if->plan;
    struct shifts *shifts = finder->shifts;
    struct shift best = {.total_ms = INFINITY};

    for (uint32_t i = 0; i < n; i++) {
        struct shift shift = {
            .shard = shard, .other = NO_SHARD, .gpu = gpus[i].idx};

        if (try(finder, &shift) && shift.total_ms < best.total_ms)
            best = shift;
        for (size_t j = 0; i < N_GPUS_SWAPPED && j < plan->n_shards; j++) {
            shift.other = j;
            if (plan->shards[j].device == shift.gpu &&
                plan->shards[j].table != plan->shards[shard].table &&
                may_go(&plan->problem, &plan->shards[j]))
                try(finder, &shift);
        }
    }
    if (isfinite(best.total_ms)) {
        judge(finder, &best);
        shifts->places[shifts->n_places++] = best;
    }
}

void shifts_find(struct shifts *shifts, struct what_if *what_if, uint32_t gpu,
                 struct arena *arena)
{
    const struct plan *plan = what_if->plan;
    const uint32_t n = plan->problem.cluster.n_devices;
    struct shift_finder finder = {
        .shifts = shifts,
        .what_if = what_if,
        .arena = arena,
        .tried = ARENA_NEW(arena, struct shift, MAX_TRIED)};
    struct ranked *gpus = ARENA_NEW(arena, struct ranked, n), *order;

    /* sort the other GPUs by the time when they finish compute and backward
     * communication */
    for (uint32_t r = 0; r < n; r++)
        gpus[r] = (struct ranked){r == gpu ? INFINITY
                                           : plan->devices[r].compute_ms +
                                                 plan->devices[r].bwd_comm_ms,
                                  r};
    ranked_sort(gpus, n);
    *shifts = (struct shifts){
        .places = ARENA_NEW(arena, struct shift, plan->n_shards)};
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].device == gpu &&
            may_go(&plan->problem, &plan->shards[i]))
            shift_piece(&finder, i, gpus,
                        (uint32_t)min_u64(n - 1, N_GPUS_TRIED));
    order = ARENA_NEW(arena, struct ranked, finder.n);
    for (uint32_t i = 0; i < finder.n; i++)
        order[i] = (struct ranked){finder.tried[i].total_ms, i};
    ranked_sort(order, finder.n);
    for (size_t i = 0;
         i < finder.n && i < MAX_JUDGED && shifts->n_gains < MAX_GAINS; i++) {
        struct shift *shift = &finder.tried[order[i].idx];

        judge(&finder, shift);
        if (!shift->why_not && shift->gain_ms > 0)
            shifts->gains[shifts->n_gains++] = *shift;
    }
}
