/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include <math.h>

#include "base/clock.h"
#include "search/beam.h"
#include "search/infeasible.h"
#include "search/pack.h"
#include "search/published.h"
#include "search/settle.h"
#include "search/watch.h"

/* A total that is so little above another is as good. */
#define MATCHED_FRAC 1e-4

void search_options_init(struct search_options *options)
{
    *options = (struct search_options){.beam_width = 3,
                                       .beam_depth = 10,
                                       .n_candidates = 10,
                                       .effort = SEARCH_EFFORT_AUTO};
}

/* Where no assignment by cost was found, one by memory may be. */
static int pack_instead(struct beam_result *found, const struct units *units,
                        struct arena *arena, struct err *err)
{
    struct packing packing;

    if (!pack(&packing, units, arena))
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found by the published search");
    found->pieces = packing.pieces;
    found->placement = packing.placement;
    found->n_pieces = packing.n_pieces;
    return 0;
}

/* What comes of a priced plan when pieces change places until the total is
 * most_ms, where that is cheaper. */
static int settle_plan(struct plan *plan, const struct oracle *oracle,
                       double most_ms, struct arena *arena,
                       struct arena *scratch, struct err *err)
{
    struct problem problem = plan->problem;
    struct snapshot snapshot = {0};
    struct units units;
    struct parts parts;

    problem.kinds &= SHARD_TABLE | SHARD_COLUMN;
    if (units_collect(&units, &problem, oracle, scratch, err) ||
        parts_init(&parts, &units, NULL, scratch, err))
        return -1;
    if (snapshot_from_plan(&snapshot, &parts, plan)) {
        plan->n_evaluations += settle_total(&snapshot, &parts, most_ms);
        snapshot_price(&snapshot, &parts);
        if (snapshot.total_ms < plan->total_ms) {
            snapshot_to_plan(&snapshot, &parts, plan, arena);
            plan->total_ms = snapshot.total_ms;
        }
    }
    snapshot_release(&snapshot);
    return 0;
}

/* Pieces of other widths than the rest of their table's on a device are joined;
 * where that costs more than most_ms, as published, pieces change places. */
static int join_uneven(struct plan *plan, const struct oracle *oracle,
                       double most_ms, struct arena *arena,
                       struct arena *scratch, struct err *err)
{
    struct plan even = *plan;

    if (!plan_join_columns(&even, true, arena))
        return 0;
    if (plan_price(&even, oracle, scratch, err))
        return -1;
    if (even.total_ms > most_ms &&
        settle_plan(&even, oracle, most_ms, arena, scratch, err))
        return -1;
    if (even.total_ms > most_ms * (1 + MATCHED_FRAC))
        return 0;
    plan->shards = even.shards;
    plan->n_shards = even.n_shards;
    plan->n_evaluations = even.n_evaluations;
    return 0;
}

int search_published(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    struct beam_result found;
    struct arena scratch;
    struct watch watch;
    struct units units;
    int rc = -1;

    arena_init(&scratch);
    watch_init(&watch, oracle);
    if (units_init(&units, &plan->problem, &watch.base, options->pool, &scratch,
                   err))
        goto out;
    beam_search(&found, &units, options, &scratch);
    if (watch_check(&watch, err))
        goto out;
    if (isinf(found.total_ms) && pack_instead(&found, &units, &scratch, err))
        goto out;
    units_to_plan(&units, found.pieces, found.placement, found.n_pieces, plan,
                  arena);
    plan->stopped = found.is_interrupted ? "interrupt" : "done";
    plan->n_evaluations = found.n_priced;
    if (join_uneven(plan, &watch.base, found.total_ms, arena, &scratch, err) ||
        watch_check(&watch, err))
        goto out;
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}

/* Whole tables and columns of any width, placed by memory alone. */
static int fit_instead(struct plan *plan, const struct oracle *oracle,
                       struct arena *arena, struct err *err)
{
    struct problem problem = plan->problem;
    struct snapshot fitting = {0};
    struct fit_failure failure;
    struct arena scratch;
    struct units units;
    struct parts parts;
    int rc = -1;

    arena_init(&scratch);
    problem.kinds &= SEARCH_PUBLISHED_KINDS;
    if (units_collect(&units, &problem, oracle, &scratch, err) ||
        parts_init_unpriced(&parts, &units, &scratch, err))
        goto out;
    if (!fit_by_memory(&fitting, &parts, FIT_HARD, &failure)) {
        infeasible_report(&plan->problem, oracle, SEARCH_PUBLISHED_KINDS,
                          &failure, err);
        goto out;
    }
    snapshot_to_plan(&fitting, &parts, plan, arena);
    plan_join_columns(plan, false, arena);
    rc = 0;
out:
    snapshot_release(&fitting);
    arena_release(&scratch);
    return rc;
}

int search_reference(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    double start_ms = clock_ms();

    if (infeasible_check(&plan->problem, oracle, SEARCH_PUBLISHED_KINDS, err))
        return -1;
    if (search_published(plan, oracle, options, arena, err)) {
        if (err->code != ERR_NO_PLAN)
            return -1;
        *err = (struct err){0};
        if (fit_instead(plan, oracle, arena, err))
            return -1;
        plan->stopped = "done";
    }
    plan->search = options->beam_width ? "reference" : "grid";
    plan->seed = options->seed;
    plan->search_ms = clock_ms() - start_ms;
    return 0;
}
