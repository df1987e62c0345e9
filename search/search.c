/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include <math.h>

#include "base/clock.h"
#include "search/beam.h"
#include "search/pack.h"
#include "search/watch.h"

void search_options_init(struct search_options *options)
{
    *options = (struct search_options){.beam_width = 3,
                                       .beam_depth = 10,
                                       .n_candidates = 10,
                                       .effort = SEARCH_EFFORT_AUTO};
}

/* Where no assignment by cost was found, one by memory may be. */
static int fall_back(struct beam_result *found, const struct units *units,
                     struct arena *arena, struct err *err)
{
    struct packing packing;

    if (pack(&packing, units, units->room_bytes,
             units->problem->cluster.n_devices, arena))
        return no_plan(units, err);
    found->pieces = packing.pieces;
    found->placement = packing.placement;
    found->n_pieces = packing.n_pieces;
    return 0;
}

int search_reference(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    double start_ms = clock_ms();
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
    if (isinf(found.total_ms) && fall_back(&found, &units, &scratch, err))
        goto out;
    plan->n_shards = units_to_shards(&units, found.pieces, found.placement,
                                     found.n_pieces, &plan->shards, arena);
    plan->shard_ms = NULL; /* of other shards */
    plan_sort_shards(plan);
    plan->search = options->beam_width ? "reference" : "grid";
    plan->stopped = found.is_interrupted ? "interrupt" : "done";
    plan->seed = options->seed;
    plan->n_evaluations = found.n_priced;
    plan->search_ms = clock_ms() - start_ms;
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}
