/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include <math.h>

#include "base/clock.h"
#include "search/beam.h"
#include "search/infeasible.h"
#include "search/pack.h"
#include "search/published.h"
#include "search/watch.h"

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
    plan->n_shards = units_to_shards(&units, found.pieces, found.placement,
                                     found.n_pieces, &plan->shards, arena);
    plan->shard_ms = NULL; /* of other shards */
    plan_sort_shards(plan);
    plan->stopped = found.is_interrupted ? "interrupt" : "done";
    plan->n_evaluations = found.n_priced;
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
