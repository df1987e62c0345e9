/* SPDX-License-Identifier: MIT */
#include "search/choices.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "search/listing.h"
#include "search/search.h"
#include "search/state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>

/* Number of widths of a unit: one for each device, within 1 to 16 times
 * MAX_QUANTA. Long lists get fewer: about TOTAL_QUANTA / units, but at least
 * MIN_QUANTA. */
#define MAX_QUANTA 64
#define MIN_QUANTA 8
#define TOTAL_QUANTA 65536
/* Number of piece types among the blocks of one row cut: MAX_SORTS at most.
 * Long lists get fewer: about TOTAL_SORTS / units, but at least MIN_SORTS. */
#define MAX_SORTS 64
#define MIN_SORTS 4
#define TOTAL_SORTS 16384
/* Units of a short list, at most. */
#define MOST_OF_SHORT 256
/* Runs in which the units are listed, at most. */
#define MOST_RUNS 256

struct shard parts_shard(const struct parts *parts, const struct part *part,
                         uint32_t table)
{
    struct shard shard = shard_whole(parts->problem, table, 0);

    if (part->kind != SHARD_TABLE)
        parts_place_block(&shard, part, 0, part->block);
    shard.device = part->first_device + part->block;
    return shard;
}

/* Returns the standalone cost in ms of a device whose pieces add up to
 * `vector`. It is the sum of the oracle's terms, which is the cost in an
 * additive plan. If the oracle has no terms, it is the compute alone:
 * communication then depends on all devices and is left out. */
double parts_alone_ms(const struct oracle *oracle, const double *vector)
{
    double terms_ms[ORACLE_MAX_TERMS], compute_ms;

    if (oracle->ops->terms) {
        oracle->ops->terms(oracle, vector, 1, &compute_ms, terms_ms);
        return oracle_terms_total_ms(oracle, terms_ms);
    }
    oracle->ops->compute(oracle, vector, 1, &compute_ms);
    return compute_ms;
}

/* Returns the reason why a unit has no sharding, as the end of a message. The
 * text is empty if no shard kind is allowed at all. */
static const char *why_nowhere(const struct parts *parts,
                               const struct unit *unit, struct arena *arena)
{
    const struct table *table = unit->first;

    if (!unit->kinds)
        return "";
    if (table->group)
        return text_say(arena, ": group '%s' keeps it whole, on one GPU",
                        table->group);
    if (unit->pin >= 0)
        return text_say(
            arena, ": it is pinned to GPU %" PRId64 ", whole or cut by columns",
            unit->pin);
    return text_say(arena,
                    ": it has %" PRIu64 " rows and %u columns, %u of "
                    "them at least a piece, for %u GPU%s",
                    table->num_embeddings, table->dim,
                    table_min_width(parts->problem, table), parts->n_devices,
                    parts->n_devices == 1 ? "" : "s");
}

/* Fails if a unit has no sharding or a piece type has no finite cost. A cost
 * that is not finite would win or lose silently later. */
static int check(const struct parts *parts, struct err *err)
{
    for (uint32_t u = 0; u < parts->n_units; u++)
        if (!parts->of[u].n_forms)
            return err_set(err, ERR_USAGE,
                           "table '%s' can be placed in no way that its kinds, "
                           "'--shard' and cost model '%s' allow together%s",
                           parts->of[u].first->name, parts->oracle->cost.name,
                           why_nowhere(parts, &parts->of[u], parts->arena));
    for (uint32_t i = 0; i < parts->n_parts; i++)
        if (!isfinite(parts->alone_ms[i]))
            return err_set(
                err, ERR_INPUT,
                "cost model '%s' gives no finite cost for table '%s'",
                parts->oracle->cost.name,
                parts->of[parts->parts[i].unit].first->name);
    return 0;
}

static uint32_t share_of(uint32_t total, uint32_t n, uint32_t least,
                         uint32_t most)
{
    return (uint32_t)max_u64(least, min_u64(total / (n + 1), most));
}

/* Runs of units that are being listed, and the progress. */
struct setup {
    struct listing *runs;
    struct progress progress;
    atomic_uint n_listed; /* units listed so far */
};

static void list_run(void *ctx, size_t i, unsigned thread)
{
    struct setup *setup = ctx;
    struct listing *run = &setup->runs[i];

    listing_fill(run);
    setup->n_listed += run->end - run->begin;
    if (!thread) /* only the calling thread reports */
        progress_update(&setup->progress, setup->n_listed);
}

/* Lists all units in runs that share no state, then puts the runs together. */
static void list_all(struct parts *parts, struct pool *pool, double end_ms)
{
    const uint32_t size = parts->n_units / MOST_RUNS + 1;
    const uint32_t n_runs = (parts->n_units + size - 1) / size;
    struct setup setup = {.runs = mem_alloc(n_runs, sizeof(*setup.runs))};
    size_t n_parts = 0, n_forms = 0;

    for (uint32_t i = 0; i < n_runs; i++)
        setup.runs[i] = (struct listing){
            .parts = parts,
            .begin = i * size,
            .end = (uint32_t)min_u64((i + 1) * (uint64_t)size, parts->n_units),
            .end_ms = end_ms};
    progress_start(&setup.progress, "listing cuts of tables", parts->n_units,
                   false);
    pool_run(pool, n_runs, list_run, &setup);
    progress_finish(&setup.progress);
    for (uint32_t i = 0; i < n_runs; i++) {
        n_parts += setup.runs[i].n_parts;
        n_forms += setup.runs[i].n_forms;
    }
    parts->forms = ARENA_NEW(parts->arena, struct form, n_forms);
    parts->parts = ARENA_NEW(parts->arena, struct part, n_parts);
    parts->alone_ms = ARENA_NEW(parts->arena, double, n_parts);
    if (parts->oracle->ops->embed)
        parts->vectors =
            ARENA_NEW(parts->arena, double, n_parts * parts->oracle->width);
    for (uint32_t i = 0; i < n_runs; i++)
        listing_append(&setup.runs[i], parts);
    mem_free(setup.runs);
}

/* Units of long lists have coarser width steps and fewer piece types of row
 * blocks. So all widths of all tables are few enough to be priced one by one.
 * The order of the list decides nothing here. */
int parts_init(struct parts *parts, const struct problem *problem,
               const struct oracle *oracle, const struct homes *homes,
               const struct search_options *options, struct arena *arena,
               struct err *err)
{
    const double limit_ms = options ? options->time_limit_ms : 0;
    const double end_ms = limit_ms > 0 ? clock_ms() + limit_ms : INFINITY;
    struct pool *pool = options ? options->pool : NULL;

    if (parts_collect(parts, problem, oracle, arena, err))
        return -1;
    parts->homes = homes;
    parts->most_quanta =
        share_of(TOTAL_QUANTA, parts->n_units, MIN_QUANTA,
                 share_of(parts->n_devices, 0, MAX_QUANTA, 16 * MAX_QUANTA));
    parts->most_sorts =
        share_of(TOTAL_SORTS, parts->n_units, MIN_SORTS, MAX_SORTS);
    parts->is_long = parts->n_units > MOST_OF_SHORT;
    parts->mean_ms = listing_mean_ms(parts, pool);
    list_all(parts, pool, end_ms);
    parts->load_ms = parts->alone_ms;
    if (parts->is_long && interrupt_requested())
        return err_set(err, ERR_INTERRUPTED,
                       "interrupted before a plan was found");
    return check(parts, err);
}

uint32_t parts_of_width(const struct parts *parts, uint32_t unit,
                        uint32_t width)
{
    const struct unit *of = &parts->of[unit];

    assert(width); /* at most the columns of the whole unit */
    return width % of->quantum ? NO_PART
                               : parts_of_quanta(of, width / of->quantum);
}

void parts_place_block(struct shard *shard, const struct part *part,
                       uint32_t range, uint32_t block)
{
    /* rows of every block of the cut except the last one */
    const uint64_t n_rows =
        part->block ? part->row_begin / part->block : part->n_rows;

    shard->kind = part->kind;
    shard->col_begin = part->stands ? part->col_begin : range * part->width;
    shard->col_end = shard->col_begin + part->width;
    shard->row_begin = part->stands ? part->row_begin : block * n_rows;
    shard->row_end = shard->row_begin + part->n_rows;
}

/* False for three sorts of pieces: replicas, which stand on every device;
 * pieces of pinned units; row blocks that the oracle ties to ranks or to a
 * host, which move with all other blocks of their cut or not at all. */
bool parts_can_move(const struct parts *parts, uint32_t part)
{
    const struct part *p = &parts->parts[part];

    return !shard_is_replica(p->kind) && parts->of[p->unit].pin < 0 &&
           (parts->oracle->row_cut == ROW_CUT_ANY || !shard_cuts_rows(p->kind));
}

/* --- drawing shardings, and their pieces --- */

const struct form *forms_draw(const struct parts *parts, uint32_t unit,
                              struct rng *rng)
{
    const struct unit *of = &parts->of[unit];
    uint32_t kind = rng_draw(rng, 4), part = NO_PART;

    if (kind < 2)
        part = kind ? of->replica : of->whole;
    return part == NO_PART ? &of->forms[rng_draw(rng, of->n_forms)]
                           : parts_form_of(parts, part);
}

struct change forms_piece(const struct parts *parts, const struct form *form,
                          uint32_t i)
{
    const uint32_t unit = parts->parts[form->part].unit;
    struct change piece = {.device = parts->of[unit].device,
                           .range = i / form->n_blocks,
                           .block = i % form->n_blocks};

    piece.part =
        i < form->n_last ? form->last : parts_of_block(form, piece.block);
    if (form->kind == FORM_REPLICA)
        piece.device = i;
    else if (form->kind == FORM_CUT && !form->fills_host &&
             parts->oracle->row_cut != ROW_CUT_ANY)
        piece.device = piece.block;
    return piece;
}
