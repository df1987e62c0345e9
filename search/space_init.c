/* SPDX-License-Identifier: MIT */
#include "search/space_init.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "core/target_rules.h"
#include "search/listing.h"
#include "search/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

/* Number of widths of a unit. There is one width for each device, but at least
 * MAX_WIDTH_STEPS and at most 16 times MAX_WIDTH_STEPS. Units of long lists get
 * fewer widths: about TOTAL_WIDTH_STEPS / units, but at least
 * MIN_WIDTH_STEPS. */
#define MAX_WIDTH_STEPS 64
#define MIN_WIDTH_STEPS 8
#define TOTAL_WIDTH_STEPS 65536
/* Maximum number of piece types among the blocks of one row cut. Units of long
 * lists get fewer types than MAX_SORTS: about TOTAL_SORTS / units, but at least
 * MIN_SORTS. */
#define MAX_SORTS 64
#define MIN_SORTS 4
#define TOTAL_SORTS 16384
/* Maximum number of units of a short list. */
#define MOST_OF_SHORT 256
/* Maximum number of runs into which the units are divided for listing. */
#define MOST_RUNS 256

/* Returns the reason why a unit has no sharding, for the end of a message. The
 * text is empty if no shard kind is allowed for the unit. */
static const char *why_nowhere(const struct search_space *space,
                               const struct unit *unit, struct arena *arena)
{
    const struct table *table = unit->first;
    uint32_t most;

    if (!unit->kinds)
        return "";
    if (table->group)
        return text_say(arena, ": group '%s' keeps it whole, on one GPU",
                        table->group);
    if (unit->pin >= 0)
        return text_say(
            arena, ": it is pinned to GPU %" PRId64 ", whole or cut by columns",
            unit->pin);
    most = problem_target(space->problem)->most_width;
    return text_say(arena,
                    ": it has %" PRIu64
                    " rows and %u columns, at least %u%s per piece, for %u "
                    "GPU%s",
                    table->num_embeddings, table->dim,
                    table_min_width(space->problem, table),
                    most ? text_say(arena, " and at most %u", most) : "",
                    space->n_devices, space->n_devices == 1 ? "" : "s");
}

/* Returns an error if a unit has no sharding or a piece type has no finite
 * cost. Without this check, a cost that is not finite would later win or lose
 * every comparison without a message. */
static int check(const struct search_space *space, struct err *err)
{
    for (uint32_t u = 0; u < space->n_units; u++)
        if (!space->units[u].n_shardings)
            return err_set(
                err, ERR_USAGE,
                "table '%s' cannot be placed in any way that its "
                "kinds, '--shard'%s and cost model '%s' all allow%s",
                space->units[u].first->name,
                target_is_named(space->problem->target) ? ", '--target'" : "",
                space->oracle->cost.name,
                why_nowhere(space, &space->units[u], space->arena));
    for (uint32_t i = 0; i < space->n_types; i++)
        if (!isfinite(space->standalone_ms[i]))
            return err_set(
                err, ERR_INPUT,
                "cost model '%s' gives no finite cost for table '%s'",
                space->oracle->cost.name,
                space->units[space->types[i].unit].first->name);
    return 0;
}

static uint32_t share_of(uint32_t total, uint32_t n, uint32_t least,
                         uint32_t most)
{
    return (uint32_t)max_u64(least, min_u64(total / (n + 1), most));
}

/* The runs of units that are being listed, and the progress of the listing. */
struct setup {
    struct listing *runs;
    struct progress progress;
    atomic_uint n_listed; /* number of units listed so far */
};

static void list_run(void *ctx, size_t i, unsigned thread)
{
    struct setup *setup = ctx;
    struct listing *run = &setup->runs[i];

    listing_fill(run);
    setup->n_listed += run->end - run->begin;
    if (!thread) /* only the calling thread reports progress */
        progress_update(&setup->progress, setup->n_listed);
}

/* Lists all units, divided into runs that share no state. Then puts the lists
 * of all runs together. */
static void list_all(struct search_space *space, struct pool *pool,
                     double end_ms)
{
    const uint32_t size = space->n_units / MOST_RUNS + 1;
    const uint32_t n_runs = (space->n_units + size - 1) / size;
    struct setup setup = {.runs = mem_alloc(n_runs, sizeof(*setup.runs))};
    size_t n_types = 0, n_shardings = 0;

    for (uint32_t i = 0; i < n_runs; i++)
        setup.runs[i] = (struct listing){
            .space = space,
            .begin = i * size,
            .end = (uint32_t)min_u64((i + 1) * (uint64_t)size, space->n_units),
            .end_ms = end_ms};
    progress_start(&setup.progress, "listing cuts of tables", space->n_units,
                   false);
    pool_run(pool, n_runs, list_run, &setup);
    progress_finish(&setup.progress);
    for (uint32_t i = 0; i < n_runs; i++) {
        n_types += setup.runs[i].n_types;
        n_shardings += setup.runs[i].n_shardings;
    }
    space->shardings = ARENA_NEW(space->arena, struct sharding, n_shardings);
    space->types = ARENA_NEW(space->arena, struct piece_type, n_types);
    space->standalone_ms = ARENA_NEW(space->arena, double, n_types);
    if (space->oracle->ops->embed)
        space->vectors =
            ARENA_NEW(space->arena, double, n_types * space->oracle->width);
    for (uint32_t i = 0; i < n_runs; i++)
        listing_append(&setup.runs[i], space);
    mem_free(setup.runs);
}

/* Lists the units of a problem and prices their pieces. In long lists, units
 * have coarser width steps and fewer piece types of row blocks. So the number
 * of widths of all tables is small enough to price each width. The result does
 * not depend on the order of the list. */
int space_init(struct search_space *space, const struct problem *problem,
               const struct oracle *oracle, const struct current_plan *current,
               const struct search_options *options, struct arena *arena,
               struct err *err)
{
    const double limit_ms = options ? options->time_limit_ms : 0;
    const double end_ms = limit_ms > 0 ? clock_ms() + limit_ms : INFINITY;
    struct pool *pool = options ? options->pool : NULL;

    if (space_collect(space, problem, oracle, arena, err))
        return -1;
    space->current = current;
    space->most_width_steps = share_of(
        TOTAL_WIDTH_STEPS, space->n_units, MIN_WIDTH_STEPS,
        share_of(space->n_devices, 0, MAX_WIDTH_STEPS, 16 * MAX_WIDTH_STEPS));
    space->most_types =
        share_of(TOTAL_SORTS, space->n_units, MIN_SORTS, MAX_SORTS);
    space->is_long = space->n_units > MOST_OF_SHORT;
    space->mean_ms = listing_mean_ms(space, pool);
    list_all(space, pool, end_ms);
    space->load_ms = space->standalone_ms;
    if (space->is_long && interrupt_requested())
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted before a plan was found");
    return check(space, err);
}
