/* SPDX-License-Identifier: MIT */
#include "search/choices.h"

#include "base/ranked.h"
#include "base/text.h"
#include "search/movement.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Widths of a unit: one a device, in 1 to 16 times this; few in long lists. */
#define MAX_QUANTA 64
#define MIN_QUANTA 8
#define TOTAL_QUANTA 65536
#define MAX_RANGES 16
/* Sorts of blocks of a cut: likewise. */
#define MAX_SORTS 64
#define MIN_SORTS 4
#define TOTAL_SORTS 16384
/* Parts priced by one task of the pool. */
#define CHUNK 32

/*
 * A list is gone through twice by the same code: parts, at most, and forms are
 * counted, then written into arrays of that size. What a number stands for
 * hangs on the list alone: plans by any cost model are compared part by part.
 */

/* Pieces of one table are quanta, added up, so that what is cut off here can be
 * put on there. The smallest multiple of four that divides dim, is no less than
 * min_width and gives at most max widths, else the coarsest cut there is; dim
 * where it cannot be cut. Where a plan is to be replaced, fine enough for the
 * widths that stand, unless that is finer than pieces may be. */
static uint32_t choose_quantum(const struct parts *parts, const struct unit *of,
                               uint32_t max_quanta)
{
    const struct table_pieces *old =
        parts->homes ? &parts->homes->standing[of->tables[0]] : NULL;
    const uint32_t dim = of->first->dim;
    uint32_t coarse = dim, quantum;

    for (uint32_t step = table_min_width(parts->problem, of->first);
         step <= dim / 2; step += TABLE_COLUMN_STEP) {
        if (dim % step)
            continue;
        coarse = step;
        if (dim / step <= max_quanta)
            break;
    }
    quantum = coarse;
    for (size_t i = 0; old && i < old->n; i++) {
        uint32_t rest = old->pieces[i].col_end - old->pieces[i].col_begin;

        while (rest) { /* Euclid */
            uint32_t next = quantum % rest;

            quantum = rest;
            rest = next;
        }
    }
    return quantum < table_least_width(parts->problem, of->first) ? coarse
                                                                  : quantum;
}

/* While counting parts->parts is NULL. A part is listed before the form that it
 * is for. */
static uint32_t add_part(struct parts *parts, struct part part)
{
    part.form = parts->of[part.unit].n_forms;
    if (parts->parts)
        parts->parts[parts->n_parts] = part;
    return parts->n_parts++;
}

static void add_form(struct parts *parts, uint32_t unit, struct form form)
{
    if (parts->forms)
        parts->forms[parts->n_forms] = form;
    parts->n_forms++;
    parts->of[unit].n_forms++;
}

/* n pieces of this part. */
static struct form form_of(enum form_kind kind, uint32_t part, uint32_t n)
{
    return (struct form){.kind = kind,
                         .n_blocks = 1,
                         .n_ranges = 1,
                         .n_pieces = n,
                         .part = part,
                         .last = part};
}

/* Columns of n ranges, as even as quanta allow: of as many pieces as there are
 * devices, at least two; where they have one device, columns are cut only where
 * they must be, into the fewest that are equal. */
static void add_column_forms(struct parts *parts, uint32_t unit)
{
    const struct unit *of = &parts->of[unit];
    uint32_t least = 2, most = parts->n_devices;

    if (of->device != NO_PIECE) {
        while (of->n_quanta % least)
            least++;
        most = of->whole == NO_PART ? least : 0;
    }
    for (uint32_t n = least; n <= most && n <= of->n_quanta; n++) {
        struct form form =
            form_of(FORM_COLUMNS, of->columns + of->n_quanta / n - 1, n);

        form.n_ranges = n;
        form.last++;
        form.n_last = of->n_quanta % n;
        add_form(parts, unit, form);
    }
}

/* The parts of n blocks such as this one, as few as are told apart: each is
 * priced as a block with about the mean to do. */
static void add_blocks(struct parts *parts, struct part part, uint8_t *sorts,
                       uint32_t n)
{
    struct ranked *order = mem_alloc(n, sizeof(*order));
    struct shard shard =
        shard_whole(parts->problem, parts->of[part.unit].tables[0], 0);
    double share = 1;
    uint8_t sort = 0;

    for (uint32_t b = 0; b < n; b++) {
        parts_place_block(&shard, &part, 0, b);
        order[b] = (struct ranked){-shard_lookups(parts->problem, &shard), b};
    }
    ranked_sort(order, n);
    if (!parts->oracle->prices_even_rows)
        share = ranked_share(order, n, parts->most_sorts);
    for (uint32_t begin = 0, end; begin < n; begin = end, sort++) {
        double mean = 0;
        uint32_t typical = begin;

        end = (uint32_t)ranked_run_end(order, n, begin, share);
        for (uint32_t i = begin; i < end; i++) {
            mean += order[i].key / (end - begin);
            sorts[order[i].idx] = sort;
        }
        while (typical + 1 < end && order[typical].key < mean)
            typical++;
        part.hottest = order[begin].idx;
        part.block = order[typical].idx;
        part.row_begin = part.block * part.n_rows;
        add_part(parts, part);
    }
    mem_free(order);
}

/* The next n blocks of a cut are of this part. */
static void add_block(struct parts *parts, const struct form *cut,
                      struct part part, uint8_t *sorts, uint64_t n)
{
    if (!n)
        return;
    memset(sorts, (int)(parts->n_parts - cut->part), n);
    add_part(parts, part);
}

/* The unit's cut into the same blocks, of other ranges or of a host, that is
 * listed already: its parts again. False where there is none. */
static bool add_alike(struct parts *parts, struct form *cut, struct part part)
{
    const struct unit *of = &parts->of[part.unit];
    uint32_t i = 0;

    while (i < of->n_forms &&
           (of->forms[i].kind != FORM_CUT ||
            of->forms[i].n_blocks != cut->n_blocks ||
            parts->parts[of->forms[i].part].n_rows != part.n_rows))
        i++;
    if (i == of->n_forms)
        return false;
    cut->sorts = of->forms[i].sorts;
    for (uint32_t p = of->forms[i].part; p <= of->forms[i].last; p++) {
        struct part like = parts->parts[p];

        like.kind = part.kind;
        like.width = part.width;
        like.first_device = part.first_device;
        add_part(parts, like);
    }
    return true;
}

/* As TorchRec cuts rows: blocks of ceil(rows / ways), the last one shorter, or
 * gone, where that is more than there are: an oracle that prices blocks of no
 * rows gets those, too. It takes what is the same over all ranks and over the
 * first host for the former. All ranges of one block cost alike. */
static void add_cut(struct parts *parts, uint32_t unit, uint32_t n_ways,
                    uint32_t n_ranges, bool fills_host)
{
    const struct table *table = parts->of[unit].first;
    const bool has_empty = parts->oracle->prices_empty_blocks;
    uint64_t rows = table->num_embeddings;
    uint64_t block = (rows - 1) / n_ways + 1;
    uint64_t n_full = (rows - 1) / block + 1;
    uint64_t last = rows - (n_full - 1) * block;
    uint32_t n_blocks = has_empty ? n_ways : (uint32_t)n_full;
    struct form cut = form_of(FORM_CUT, parts->n_parts, n_blocks * n_ranges);
    struct part part = {.unit = unit,
                        .kind = n_ranges > 1 ? SHARD_GRID : SHARD_ROW,
                        .width = table->dim / n_ranges,
                        .n_rows = block},
                rest;
    uint8_t *sorts;

    if (n_full < 2)
        return;
    cut.n_blocks = n_blocks;
    cut.n_ranges = n_ranges;
    cut.fills_host = fills_host;
    if (fills_host && has_empty && n_ranges == 1 &&
        block == (rows - 1) / parts->n_devices + 1)
        part.first_device = n_ways;
    if (!parts->parts) {
        parts->n_parts += (uint32_t)min_u64(n_full, parts->most_sorts) + 2;
    } else if (!add_alike(parts, &cut, part)) {
        cut.sorts = sorts = ARENA_NEW(parts->arena, uint8_t, n_blocks);
        add_blocks(parts, part, sorts, (uint32_t)n_full - (last < block));
        rest = part;
        rest.row_begin = rows - last;
        rest.n_rows = last;
        rest.block = rest.hottest = (uint32_t)n_full - 1;
        add_block(parts, &cut, rest, sorts + rest.block, last < block);
        part.is_empty = true;
        add_block(parts, &cut, part, sorts + n_full, n_blocks - n_full);
    }
    cut.last = parts->n_parts - 1;
    add_form(parts, unit, cut);
}

/* --- what stands --- */

/* The row blocks that there are, each a part of its own, as none need be like
 * another. They can stay where they stand at no cost of movement, which equal
 * blocks of a grown table cannot. */
static void add_standing_cut(struct parts *parts, uint32_t unit)
{
    struct unit *of = &parts->of[unit];
    const struct table_pieces *old = &parts->homes->standing[of->tables[0]];
    struct form cut = form_of(FORM_CUT, parts->n_parts, (uint32_t)old->n);

    if (!old->n || !(old->pieces[0].kind & of->kinds) ||
        !shard_cuts_rows(old->pieces[0].kind))
        return;
    cut.n_blocks = cut.n_pieces;
    for (size_t i = 0; i < old->n; i++) {
        const struct shard *shard = &old->pieces[i];

        cut.last = add_part(
            parts, (struct part){.unit = unit,
                                 .kind = shard->kind,
                                 .width = shard->col_end - shard->col_begin,
                                 .row_begin = shard->row_begin,
                                 .n_rows = shard->row_end - shard->row_begin,
                                 .col_begin = shard->col_begin,
                                 .stands = true});
    }
    add_form(parts, unit, cut);
}

/* Over how many devices rows are cut: all, one host's, and 2 to 8, 12, 16 ...
 * No more ranges than a block's pieces have devices to stand on: a grid over
 * the ranks of one host is only for tables that may be nothing else. */
static void add_cuts(struct parts *parts, uint32_t unit, uint32_t n_ranges)
{
    const struct cluster *cluster = &parts->problem->cluster;
    uint32_t n = cluster->n_devices, host = cluster_group(cluster);
    bool any = parts->oracle->row_cut == ROW_CUT_ANY;
    bool is_sequence = parts->of[unit].first->output == OUTPUT_SEQUENCE;
    bool is_forced = parts->of[unit].kinds == SHARD_GRID;
    enum rows_over over =
        n_ranges == 1 ? parts->of[unit].first->rows_over : ROWS_OVER_ANY;

    if (n < 2 || (!any && is_sequence && n_ranges > 1))
        return;
    if ((any || n_ranges == 1 || (host >= n && is_forced)) &&
        (over != ROWS_OVER_HOST || host >= n))
        add_cut(parts, unit, n, n_ranges, false);
    if (host > 1 && host < n && (any || !is_sequence) &&
        over != ROWS_OVER_ALL && n_ranges <= (any ? n : n / host))
        add_cut(parts, unit, host, n_ranges, !any);
    for (uint32_t ways = 2; any && over == ROWS_OVER_ANY && ways < n;
         ways += ways < 8 ? 1 : ways / (ways % 3 ? 2 : 3))
        if (ways != host)
            add_cut(parts, unit, ways, n_ranges, false);
}

/* The parts and forms of a unit, in this order: whole; columns of 1, 2 ...
 * n - 1 quanta, which parts_of_quanta counts on; replica; blocks of rows, then
 * of grids. Groups are not cut, and pinned tables only by columns, as all
 * pieces of a cut by rows would stand on one device. */
static void add_unit(struct parts *parts, uint32_t u, uint32_t max_quanta)
{
    struct unit *of = &parts->of[u];
    const struct table *table = of->first;
    uint32_t min_width = table_min_width(parts->problem, table), quantum;
    struct part all = {.unit = u,
                       .kind = SHARD_TABLE,
                       .width = table->dim,
                       .n_rows = table->num_embeddings};

    of->whole = of->columns = of->replica = NO_PART;
    of->forms = parts->forms ? &parts->forms[parts->n_forms] : NULL;
    of->n_forms = 0;
    of->n_quanta = 1;
    of->quantum = table->dim;
    if (of->kinds & SHARD_TABLE) {
        of->whole = add_part(parts, all);
        add_form(parts, u, form_of(FORM_WHOLE, of->whole, 1));
    }
    if (table->group)
        return;
    quantum = choose_quantum(parts, of, max_quanta);
    if ((of->kinds & SHARD_COLUMN) && quantum < table->dim) {
        of->quantum = quantum;
        of->n_quanta = table->dim / of->quantum;
        of->columns = parts->n_parts;
        all.kind = SHARD_COLUMN;
        for (all.width = quantum; all.width < table->dim; all.width += quantum)
            add_part(parts, all);
        add_column_forms(parts, u);
    }
    if (of->pin >= 0)
        return;
    if ((of->kinds & SHARD_REPLICATE) && parts->n_devices > 1) {
        all.kind = SHARD_REPLICATE;
        all.width = table->dim;
        of->replica = add_part(parts, all);
        add_form(parts, u,
                 form_of(FORM_REPLICA, of->replica, parts->n_devices));
    }
    if (of->kinds & SHARD_ROW)
        add_cuts(parts, u, 1);
    for (uint32_t n = 2;
         (of->kinds & SHARD_GRID) && n <= MAX_RANGES && n <= parts->n_devices &&
         table->dim % (n * TABLE_COLUMN_STEP) == 0 &&
         table->dim / n >= min_width;
         n *= 2)
        add_cuts(parts, u, n);
    if (parts->homes && parts->oracle->row_cut == ROW_CUT_ANY)
        add_standing_cut(parts, u);
}

static uint32_t share_of(uint32_t total, uint32_t n, uint32_t least,
                         uint32_t most)
{
    return (uint32_t)max_u64(least, min_u64(total / (n + 1), most));
}

/* Long lists have coarser quanta and fewer sorts of blocks: all widths of all
 * tables stay few enough to be priced one by one, and the list's own order
 * decides nothing here. */
static void add_units(struct parts *parts)
{
    const uint32_t max_quanta =
        share_of(TOTAL_QUANTA, parts->n_units, MIN_QUANTA,
                 share_of(parts->n_devices, 0, MAX_QUANTA, 16 * MAX_QUANTA));

    parts->most_sorts =
        share_of(TOTAL_SORTS, parts->n_units, MIN_SORTS, MAX_SORTS);
    parts->n_parts = parts->n_forms = 0;
    for (uint32_t u = 0; u < parts->n_units; u++)
        add_unit(parts, u, max_quanta);
}

struct shard parts_shard(const struct parts *parts, const struct part *part,
                         uint32_t table)
{
    struct shard shard = shard_whole(parts->problem, table, 0);

    if (part->kind != SHARD_TABLE)
        parts_place_block(&shard, part, 0, part->block);
    shard.device = part->first_device + part->block;
    return shard;
}

/* Where an oracle has terms their sum is what an additive plan would cost;
 * where it has none, communication hangs on all devices and is left out. */
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

/* Weighs some parts, and embeds them where the oracle does: a unit's vector is
 * the sum of its tables', which is all that the oracle's contract knows of
 * tables together. Parts are priced apart from each other, so neither
 * their chunks nor the threads that take them change a cost. What takes more
 * bytes than 64 bits say fits no device. */
static void measure(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct parts *parts = ctx;
    const struct oracle *oracle = parts->oracle;
    double *room = mem_alloc(oracle->width, sizeof(*room));

    (void)thread;
    for (uint64_t i = begin; i < end; i++) {
        struct part *part = &parts->parts[i];
        const struct unit *unit = &parts->of[part->unit];
        double *vector =
            parts->vectors ? parts->vectors + i * oracle->width : NULL;

        for (uint32_t k = 0; k < unit->n_tables; k++) {
            struct shard shard = parts_shard(parts, part, unit->tables[k]);

            if (vector)
                oracle->ops->embed(oracle, &shard, 1, room);
            if (shard_cuts_rows(part->kind))
                parts_place_block(&shard, part, 0, part->hottest);
            if (!part->is_empty)
                part->bytes = saturating_add(
                    part->bytes, shard_memory(parts->problem, &shard).total);
            for (uint32_t w = 0; vector && w < oracle->width; w++)
                vector[w] += room[w];
        }
        if (vector)
            parts->alone_ms[i] = parts_alone_ms(oracle, vector);
    }
    mem_free(room);
}

/* What leaves a unit none of the kinds that it may be. */
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

/* Every unit has a way to be placed, and every part a cost: what is not finite
 * here would win or lose silently later. */
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

static void add_up(struct form *form, const struct parts *parts, uint32_t part,
                   uint32_t n)
{
    double ms = parts->alone_ms[part];
    uint64_t bytes = parts->parts[part].bytes;

    form->load_ms += ms * n;
    form->bytes += (double)bytes * n;
    form->peak_ms = fmax(form->peak_ms, ms);
    form->least_ms = fmin(form->least_ms, ms);
    form->peak_bytes = max_u64(form->peak_bytes, bytes);
}

/* What the pieces of forms come to. */
static void price_forms(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->n_forms; i++) {
        struct form *form = &parts->forms[i];

        form->least_ms = INFINITY;
        for (uint32_t b = 0; b < form->n_blocks; b++)
            add_up(form, parts, parts_of_block(form, b),
                   form->n_pieces / form->n_blocks - form->n_last);
        if (form->n_last)
            add_up(form, parts, form->last, form->n_last);
    }
}

int parts_init(struct parts *parts, const struct problem *problem,
               const struct oracle *oracle, const struct homes *homes,
               struct pool *pool, struct arena *arena, struct err *err)
{
    if (parts_collect(parts, problem, oracle, arena, err))
        return -1;
    parts->homes = homes;
    add_units(parts);
    parts->forms = ARENA_NEW(arena, struct form, parts->n_forms);
    parts->parts = ARENA_NEW(arena, struct part, parts->n_parts);
    add_units(parts);
    parts->alone_ms = ARENA_NEW(arena, double, parts->n_parts);
    if (oracle->ops->embed)
        parts->vectors =
            ARENA_NEW(arena, double, (size_t)parts->n_parts * oracle->width);
    pool_run_range(pool, parts->n_parts, CHUNK, measure, parts);
    price_forms(parts);
    return check(parts, err);
}

uint32_t parts_of_width(const struct parts *parts, uint32_t unit,
                        uint32_t width)
{
    const struct unit *of = &parts->of[unit];

    assert(width); /* and it is no more than the whole */
    return width % of->quantum ? NO_PART
                               : parts_of_quanta(of, width / of->quantum);
}

void parts_place_block(struct shard *shard, const struct part *part,
                       uint32_t range, uint32_t block)
{
    /* of all but the last block of a cut */
    const uint64_t n_rows =
        part->block ? part->row_begin / part->block : part->n_rows;

    shard->kind = part->kind;
    shard->col_begin = part->stands ? part->col_begin : range * part->width;
    shard->col_end = shard->col_begin + part->width;
    shard->row_begin = part->stands ? part->row_begin : block * n_rows;
    shard->row_end = shard->row_begin + part->n_rows;
}

/* Replicas stand everywhere; blocks of a cut that the oracle ties to ranks or
 * to a host move with all others or not at all. */
bool parts_can_move(const struct parts *parts, uint32_t part)
{
    const struct part *p = &parts->parts[part];

    return !shard_is_replica(p->kind) && parts->of[p->unit].pin < 0 &&
           (parts->oracle->row_cut == ROW_CUT_ANY || !shard_cuts_rows(p->kind));
}

/* --- drawing forms, and their pieces --- */

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
