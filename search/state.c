/* SPDX-License-Identifier: MIT */
#include "search/state.h"

#include "search/movement.h"
#include "search/state_check.h"
#include "search/trial.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * What holds between two commits, and state_check.h works out again:
 *
 *     a piece that has a part is in its unit's list once, and in its device's
 *     holding at its slot; one that has none is in the free list, by `next`
 *     bytes, excess and moved bytes are exact: a layout keeps its limits where
 *     excess is 0, and nowhere else
 *     sums and loads are what the pieces add up to, but for rounding; a device
 *     without pieces has 0, not what rounding leaves
 *     terms, local_ms and total_ms are what the oracle says of these very sums,
 *     and tops are their largest
 *
 * A commit costs the pieces that change and devices x terms, whatever the
 * number of tables is.
 */

/* After so many changes of a device its sums are added up afresh, so that
 * rounding does not pile up. */
#define REFRESH 64

/* No pieces, all free. What was allotted stays: layouts are loaded often. */
static void clear(struct layout *layout)
{
    layout->n_pieces = layout->n_live = 0;
    layout->first_free = NO_PIECE;
    for (uint32_t u = 0; u < layout->parts->n_units; u++)
        layout->first_of[u] = NO_PIECE;
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        layout->holdings[r].n = 0;
        layout->bytes[r] = 0;
        layout->n_commits[r] = 0;
    }
    memset(layout->sums, 0,
           layout->n_devices * layout_width(layout) * sizeof(double));
}

void layout_init(struct layout *layout, const struct parts *parts)
{
    const struct oracle *oracle = parts->oracle;
    uint32_t n = parts->n_devices;
    struct arena *arena = &layout->arena;

    *layout = (struct layout){.parts = parts,
                              .n_devices = n,
                              .has_terms = oracle->ops->terms != NULL,
                              .n_terms = 1,
                              .move_limit_bytes = NO_MOVE_LIMIT};
    if (layout->has_terms)
        layout->n_terms = oracle->n_terms;
    layout->first_of = ARENA_NEW(arena, uint32_t, parts->n_units);
    layout->holdings = ARENA_NEW(arena, struct holding, n);
    layout->n_commits = ARENA_NEW(arena, uint32_t, n);
    layout->sums = ARENA_NEW(arena, double, (size_t)n * oracle->width);
    layout->compute_ms = ARENA_NEW(arena, double, n);
    layout->local_ms = ARENA_NEW(arena, double, n);
    layout->load_ms =
        layout->has_terms ? layout->local_ms : ARENA_NEW(arena, double, n);
    layout->terms_ms =
        layout->has_terms
            ? ARENA_NEW(arena, double, (size_t)n * oracle->n_terms)
            : layout->compute_ms;
    layout->bytes = ARENA_NEW(arena, uint64_t, n);
    layout->tops = ARENA_NEW(arena, struct top, layout->n_terms);
    if (parts->homes)
        layout->moved_bytes = ARENA_NEW(arena, uint64_t, parts->n_units);
    clear(layout);
}

void layout_release(struct layout *layout)
{
    for (uint32_t r = 0; layout->holdings && r < layout->n_devices; r++)
        mem_free(layout->holdings[r].pieces);
    mem_free(layout->pieces);
    arena_release(&layout->arena);
    *layout = (struct layout){0};
}

/* A piece knows its slot on its device, so that it goes in O(1): the last one
 * takes its place. Any order will do, as all draws are of slots. */
static void hold(struct layout *layout, uint32_t piece)
{
    struct holding *holding = &layout->holdings[layout->pieces[piece].device];

    if (holding->n == holding->capacity) {
        holding->capacity = 2 * holding->capacity + 8;
        holding->pieces = mem_grow(holding->pieces, holding->capacity,
                                   sizeof(*holding->pieces));
    }
    layout->pieces[piece].slot = holding->n;
    holding->pieces[holding->n++] = piece;
}

static void let_go(struct layout *layout, uint32_t piece)
{
    struct holding *holding = &layout->holdings[layout->pieces[piece].device];
    uint32_t slot = layout->pieces[piece].slot;
    uint32_t last = holding->pieces[--holding->n];

    assert(holding->pieces[slot] == piece || slot == holding->n);
    holding->pieces[slot] = last;
    layout->pieces[last].slot = slot;
}

/* Puts a piece there; change->piece is not looked at. */
static void insert(struct layout *layout, const struct change *change)
{
    uint32_t unit = layout->parts->parts[change->part].unit;
    uint32_t idx = layout->first_free;
    struct piece *piece;

    if (idx != NO_PIECE) {
        layout->first_free = layout->pieces[idx].next;
    } else {
        if (layout->n_pieces == layout->capacity) {
            layout->capacity = 2 * layout->capacity + 64;
            layout->pieces = mem_grow(layout->pieces, layout->capacity,
                                      sizeof(*layout->pieces));
        }
        idx = layout->n_pieces++;
    }
    piece = &layout->pieces[idx];
    *piece = (struct piece){.part = change->part,
                            .device = change->device,
                            .range = change->range,
                            .block = change->block,
                            .prev = NO_PIECE,
                            .next = layout->first_of[unit]};
    if (piece->next != NO_PIECE)
        layout->pieces[piece->next].prev = idx;
    layout->first_of[unit] = idx;
    layout->n_live++;
    hold(layout, idx);
}

/* Out of its unit's list and its device; its place is the next that is
 * given out. */
static void drop(struct layout *layout, uint32_t idx)
{
    struct piece *piece = &layout->pieces[idx];
    uint32_t unit = layout->parts->parts[piece->part].unit;

    let_go(layout, idx);
    if (piece->prev != NO_PIECE)
        layout->pieces[piece->prev].next = piece->next;
    else
        layout->first_of[unit] = piece->next;
    if (piece->next != NO_PIECE)
        layout->pieces[piece->next].prev = piece->prev;
    piece->part = NO_PART;
    piece->next = layout->first_free;
    layout->first_free = idx;
    layout->n_live--;
}

/*
 * --- what follows from the sums ---
 *
 * The total is a monotone function of the largest of each term, or comm's of
 * all sums, so most changes of a layout that is nearly even leave it alone:
 * only the devices in tops can lower it.
 */

/* The devices that lead a term, by insertion: a trial that touches some of them
 * finds the largest of the others without a look at each. */
static void find_top(struct layout *layout, size_t k)
{
    const size_t n_terms = layout->n_terms;
    struct top *top = &layout->tops[k];

    top->n = 0;
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        double ms = layout->terms_ms[r * n_terms + k];
        uint32_t i = top->n;

        if (i == TOP_DEVICES && ms <= top->ms[i - 1])
            continue;
        i = i == TOP_DEVICES ? i - 1 : i;
        for (; i > 0 && top->ms[i - 1] < ms; i--) {
            top->ms[i] = top->ms[i - 1];
            top->device[i] = top->device[i - 1];
        }
        top->ms[i] = ms;
        top->device[i] = r;
        if (top->n < TOP_DEVICES)
            top->n++;
    }
}

static void find_tops(struct layout *layout)
{
    for (size_t k = 0; k < layout->n_terms; k++)
        find_top(layout, k);
}

/* Which is also its load where there are terms: the array is the same. */
static void set_local(struct layout *layout, uint32_t r)
{
    const size_t n_terms = layout->n_terms;

    layout->local_ms[r] = 0;
    for (size_t k = 0; k < n_terms; k++)
        layout->local_ms[r] += layout->terms_ms[r * n_terms + k];
}

/* In the order of the holding, which differs with the way the layout came
 * about: totals of one layout may differ in their last bits. */
static void add_up(struct layout *layout, uint32_t r)
{
    const size_t width = layout_width(layout);
    const struct holding *holding = &layout->holdings[r];
    double *sum = layout->sums + r * width;

    memset(sum, 0, width * sizeof(*sum));
    layout->load_ms[r] = 0;
    layout->bytes[r] = 0;
    layout->n_commits[r] = 0;
    for (uint32_t i = 0; i < holding->n; i++) {
        uint32_t part = layout->pieces[holding->pieces[i]].part;
        const double *vector = layout->parts->vectors + part * width;

        layout->load_ms[r] += layout->parts->alone_ms[part];
        layout->bytes[r] =
            saturating_add(layout->bytes[r], layout->parts->parts[part].bytes);
        for (size_t w = 0; w < width; w++)
            sum[w] += vector[w];
    }
}

/* Afresh, so that 0 is 0: differences would leave rounding behind, and a layout
 * that keeps all limits would not be known as one. */
static void add_excess(struct layout *layout)
{
    layout->excess = 0;
    for (uint32_t r = 0; r < layout->n_devices; r++)
        layout->excess += layout_excess(layout, r, layout->bytes[r]);
    if (layout_counts_moves(layout))
        layout->excess += homes_excess(layout, layout->all_moved_bytes);
}

/* Devices that the trial leaves alone keep what they have; those it touches get
 * what it has worked out, so nothing is summed up twice. Only where a device
 * has been changed REFRESH times is it added up from its pieces again. */
void layout_commit(struct layout *layout, const struct trial *trial)
{
    const size_t width = layout_width(layout), n_terms = layout->n_terms;
    const double *alone_ms = layout->parts->alone_ms;

    for (uint32_t c = 0; c < trial->n_changes; c++) {
        const struct change *change = &trial->changes[c];

        if (change->piece != NO_PIECE)
            layout->load_ms[layout->pieces[change->piece].device] -=
                alone_ms[layout->pieces[change->piece].part];
        if (change->part != NO_PART)
            layout->load_ms[change->device] += alone_ms[change->part];
        if (change->part == NO_PART) {
            drop(layout, change->piece);
        } else if (change->piece == NO_PIECE) {
            insert(layout, change);
        } else {
            let_go(layout, change->piece);
            layout->pieces[change->piece].part = change->part;
            layout->pieces[change->piece].device = change->device;
            hold(layout, change->piece);
        }
    }
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        uint32_t r = trial->devices[i];

        layout->compute_ms[r] = trial->compute_ms[i];
        layout->bytes[r] = trial->bytes[i];
        memcpy(layout->sums + r * width, trial->sums + i * width,
               width * sizeof(double));
        memcpy(layout->terms_ms + r * n_terms, trial->terms_ms + i * n_terms,
               n_terms * sizeof(double));
        if (++layout->n_commits[r] >= REFRESH)
            add_up(layout, r);
        set_local(layout, r);
    }
    layout->total_ms = trial->total_ms;
    for (uint32_t i = 0; i < trial->n_moved; i++)
        layout->moved_bytes[trial->moved[i].unit] = trial->moved[i].bytes;
    if (layout_counts_moves(layout))
        layout->all_moved_bytes = trial->all_moved_bytes;
    find_tops(layout);
    add_excess(layout);
    layout_check_sometimes(layout);
}

/* Where there are terms a search is led by their maxima, which are comm's total
 * exactly only where the oracle is additive (core/oracle.h): who compares
 * layouts for good asks here. */
double layout_true_total(const struct layout *layout)
{
    return oracle_comm_total_ms(layout->parts->oracle, layout->sums,
                                layout->compute_ms);
}

void layout_price(struct layout *layout)
{
    const struct oracle *oracle = layout->parts->oracle;

    for (uint32_t r = 0; r < layout->n_devices; r++)
        add_up(layout, r);
    oracle->ops->compute(oracle, layout->sums, layout->n_devices,
                         layout->compute_ms);
    if (layout->has_terms)
        oracle->ops->terms(oracle, layout->sums, layout->compute_ms,
                           layout->n_devices, layout->terms_ms);
    for (uint32_t r = 0; r < layout->n_devices; r++)
        set_local(layout, r);
    find_tops(layout);
    if (layout->moved_bytes)
        homes_count_layout(layout);
    add_excess(layout);
    layout->total_ms = layout->has_terms ? 0 : layout_true_total(layout);
    for (size_t k = 0; layout->has_terms && k < layout->n_terms; k++)
        layout->total_ms += layout->tops[k].ms[0];
}

/* --- snapshots --- */

void snapshot_release(struct snapshot *snapshot)
{
    mem_free(snapshot->pieces);
    *snapshot = (struct snapshot){0};
}

static void reserve(struct snapshot *snapshot, uint32_t n)
{
    if (snapshot->capacity >= n)
        return;
    snapshot->capacity = n + n / 2 + 8;
    snapshot->pieces = mem_grow(snapshot->pieces, snapshot->capacity,
                                sizeof(*snapshot->pieces));
}

void snapshot_add(struct snapshot *snapshot, struct change piece)
{
    reserve(snapshot, snapshot->n + 1);
    snapshot->pieces[snapshot->n++] = piece;
}

void snapshot_copy(struct snapshot *to, const struct snapshot *from)
{
    reserve(to, from->n);
    if (from->n)
        memcpy(to->pieces, from->pieces, from->n * sizeof(*to->pieces));
    to->n = from->n;
    to->total_ms = from->total_ms;
}

/* In the order of the layout's array: a layout that is loaded from it has other
 * indices and slots, and the draws of a chain that goes on from it differ. */
void snapshot_save(struct snapshot *snapshot, const struct layout *layout)
{
    snapshot->n = 0;
    for (uint32_t i = 0; i < layout->n_pieces; i++) {
        const struct piece *it = &layout->pieces[i];

        if (it->part != NO_PART)
            snapshot_add(snapshot,
                         (struct change){NO_PIECE, it->part, it->device,
                                         it->range, it->block});
    }
    snapshot->total_ms = layout->total_ms;
}

void snapshot_load(const struct snapshot *snapshot, struct layout *layout)
{
    clear(layout);
    for (uint32_t i = 0; i < snapshot->n; i++)
        insert(layout, &snapshot->pieces[i]);
    layout_price(layout);
}

/* A layout of its own, as the caller may have none; not for a chain's steps. */
double snapshot_price(struct snapshot *snapshot, const struct parts *parts)
{
    struct layout layout;
    double excess;

    layout_init(&layout, parts);
    snapshot_load(snapshot, &layout);
    snapshot->total_ms = layout_true_total(&layout);
    excess = layout.excess;
    layout_release(&layout);
    return excess;
}

/* A piece, and what it is sorted by: first by its unit. */
#define N_KEYS 5
struct placed {
    struct change piece;
    const struct part *part;
    uint32_t keys[N_KEYS];
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    for (unsigned k = 0; k < N_KEYS; k++)
        if (a->keys[k] != b->keys[k])
            return a->keys[k] < b->keys[k] ? -1 : 1;
    return 0;
}

/* Pieces of one range follow each other; wide ranges come first. Or by device,
 * so that those that meet follow each other. */
static struct placed *sort_placed(const struct snapshot *snapshot,
                                  const struct parts *parts, bool by_device)
{
    struct placed *placed = mem_alloc(snapshot->n, sizeof(*placed));

    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct change it = snapshot->pieces[i];
        const struct part *part = &parts->parts[it.part];
        uint32_t width = part->width;

        placed[i] = (struct placed){
            it, part, {part->unit, it.device, it.range, it.block, it.part}};
        if (!by_device)
            placed[i] = (struct placed){
                it, part, {part->unit, ~width, it.range, it.block, it.device}};
    }
    qsort(placed, snapshot->n, sizeof(*placed), compare_placed);
    return placed;
}

/* Tables of a group are placed as one piece, but each has its shard. */
static size_t count_shards(const struct snapshot *snapshot,
                           const struct parts *parts)
{
    size_t n = 0;

    for (uint32_t i = 0; i < snapshot->n; i++) {
        uint32_t unit = parts->parts[snapshot->pieces[i].part].unit;

        n += parts->of[unit].unit->n_tables;
    }
    return n;
}

/* Gives out the columns of one piece; col is where its unit's go on. */
static struct shard place_shard(const struct parts *parts,
                                const struct placed *piece, uint32_t table,
                                uint32_t col)
{
    struct shard shard =
        shard_whole(parts->problem, table, piece->piece.device);

    shard.kind = piece->part->kind;
    if (shard_cuts_rows(shard.kind))
        parts_place_block(&shard, piece->part, piece->piece.range,
                          piece->piece.block);
    if (shard.kind == SHARD_COLUMN) {
        shard.col_begin = col;
        shard.col_end = col + piece->part->width;
    }
    return shard;
}

/* A plan that replaces another gives the columns out such that few move. */
static void order_by_homes(const struct parts *parts, struct placed *placed,
                           uint32_t n)
{
    struct column_piece *order = mem_alloc(n, sizeof(*order));

    for (uint32_t begin = 0, end; begin < n; begin = end) {
        uint32_t unit = placed[begin].part->unit;

        for (end = begin; end < n && placed[end].part->unit == unit; end++)
            order[end - begin] = (struct column_piece){
                placed[end].part->width, placed[end].piece.device, end};
        if (placed[begin].part->kind != SHARD_COLUMN)
            continue;
        homes_order(parts->homes, parts->of[unit].unit->tables[0], order,
                    end - begin);
        for (uint32_t i = begin; i < end; i++)
            placed[order[i - begin].idx].keys[1] = i;
    }
    qsort(placed, n, sizeof(*placed), compare_placed);
    mem_free(order);
}

/* A layout says how wide pieces are, not which columns they have: these are
 * given out here, and only here, one range behind the other. */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct parts *parts, struct plan *plan,
                      struct arena *arena)
{
    struct placed *placed = sort_placed(snapshot, parts, false);
    uint32_t col = 0;
    size_t n = 0;

    if (parts->homes)
        order_by_homes(parts, placed, snapshot->n);
    plan->shards =
        ARENA_NEW(arena, struct shard, count_shards(snapshot, parts));
    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct placed *piece = &placed[i], *before = piece - 1;
        const struct unit *unit = parts->of[piece->part->unit].unit;

        if (!i || before->part->unit != piece->part->unit)
            col = 0;
        else if (!piece->piece.block) /* another range begins */
            col += before->part->width;
        for (uint32_t k = 0; k < unit->n_tables; k++)
            plan->shards[n++] = place_shard(parts, piece, unit->tables[k], col);
    }
    plan->n_shards = n;
    plan->shard_ms = NULL; /* of other shards */
    plan_sort_shards(plan);
    mem_free(placed);
}

/* Sorted by unit and device, what meets follows each other. */
bool snapshot_join(struct snapshot *snapshot, const struct parts *parts)
{
    struct placed *sorted = sort_placed(snapshot, parts, true);
    uint32_t n = 0, n_all = snapshot->n, part;
    bool is_fine = true;

    for (uint32_t i = 0; i < n_all; i++) {
        struct change *last = n ? &snapshot->pieces[n - 1] : NULL;

        snapshot->pieces[n++] = sorted[i].piece;
        if (!last || sorted[i].part->unit != sorted[i - 1].part->unit ||
            last->device != sorted[i].piece.device ||
            !parts_is_columns(parts, last->part))
            continue;
        part = parts_joined(parts, last->part, sorted[i].piece.part);
        is_fine = is_fine && part != NO_PART;
        if (part == NO_PART)
            continue;
        last->part = part;
        n--;
    }
    snapshot->n = n;
    mem_free(sorted);
    return is_fine;
}
