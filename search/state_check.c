/* SPDX-License-Identifier: MIT */
#include "search/state_check.h"

#include "search/homes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of what was added and taken away since it was added up afresh. */
#define ROUNDING 1e-9
/* Of costs, which follow from sums that were rounded. */
#define COST_ROUNDING 1e-6

struct checker {
    const struct layout *layout;
    const struct parts *parts;
    struct err *err;
    struct arena arena;
    uint32_t *marks; /* is_first */
};

static int wrong(const struct checker *checker, const char *what, uint32_t idx)
{
    return err_set(checker->err, ERR_INPUT, "layout: %s (%" PRIu32 ")", what,
                   idx);
}

static bool is_near(double kept, double now, double scale, double rounding)
{
    return kept == now || fabs(kept - now) <= rounding * scale;
}

static bool is_near_ms(const struct checker *checker, double kept, double now)
{
    double scale = fabs(now) + fabs(checker->layout->total_ms);

    return is_near(kept, now, scale, COST_ROUNDING) || !isfinite(kept) ||
           !isfinite(now);
}

/* --- lists --- */

static int check_free(const struct checker *checker)
{
    const struct layout *layout = checker->layout;
    uint32_t n = 0, i = layout->first_free;

    for (; i != NO_PIECE && n <= layout->n_pieces; n++) {
        if (i >= layout->n_pieces || layout->pieces[i].part != NO_PART)
            return wrong(checker, "a piece in the free list is none", i);
        i = layout->pieces[i].next;
    }
    if (n != layout->n_pieces - layout->n_live)
        return wrong(checker, "free pieces", n);
    return 0;
}

static int check_unit_list(const struct checker *checker, uint32_t unit,
                           uint32_t *n_live)
{
    const struct layout *layout = checker->layout;
    uint32_t before = NO_PIECE, i = layout->first_of[unit];

    for (; i != NO_PIECE; i = layout->pieces[i].next) {
        const struct piece *piece;

        if (i >= layout->n_pieces || ++*n_live > layout->n_live)
            return wrong(checker, "the list of a unit", unit);
        piece = &layout->pieces[i];
        if (piece->part >= checker->parts->n_parts ||
            checker->parts->parts[piece->part].unit != unit)
            return wrong(checker, "the part of a piece is of its unit", i);
        if (piece->prev != before)
            return wrong(checker, "the piece before a piece", i);
        if (piece->device >= layout->n_devices ||
            piece->slot >= layout->holdings[piece->device].n ||
            layout->holdings[piece->device].pieces[piece->slot] != i)
            return wrong(checker, "the slot of a piece", i);
        before = i;
    }
    return 0;
}

static int check_lists(const struct checker *checker)
{
    const struct layout *layout = checker->layout;
    uint32_t n_live = 0, n_held = 0;

    for (uint32_t u = 0; u < checker->parts->n_units; u++)
        if (check_unit_list(checker, u, &n_live))
            return -1;
    for (uint32_t r = 0; r < layout->n_devices; r++)
        n_held += layout->holdings[r].n;
    if (n_live != layout->n_live || n_held != n_live)
        return wrong(checker, "pieces in lists, in all", n_live);
    return check_free(checker);
}

/* --- tiling --- */

/* Pieces of a unit by what they are. */
struct tiling {
    uint32_t n, n_wholes, n_columns, n_replicas;
    uint64_t width;        /* of all */
    const struct cut *cut; /* of its row blocks, if any */
    uint32_t n_blocks;     /* of that cut, each once */
};

/* Room for a mark on each device, and on each block of a cut. */
static uint32_t *new_marks(struct checker *checker)
{
    uint32_t n = checker->layout->n_devices;

    for (uint32_t c = 0; c < checker->parts->n_cuts; c++) {
        const struct cut *cut = &checker->parts->cuts[c];

        if (cut->n_blocks * cut->n_ranges > n)
            n = cut->n_blocks * cut->n_ranges;
    }
    return ARENA_NEW(&checker->arena, uint32_t, n);
}

/* Whether it is the unit's first piece on this device, or of this block. */
static bool is_first(const struct checker *checker, uint32_t unit, uint32_t at)
{
    if (checker->marks[at] == unit + 1)
        return false;
    checker->marks[at] = unit + 1;
    return true;
}

static void count_piece(const struct checker *checker, struct tiling *tiling,
                        const struct piece *piece)
{
    const struct part *part = &checker->parts->parts[piece->part];
    const struct cut *cut = parts_cut_of(checker->parts, piece->part);

    tiling->n++;
    tiling->n_wholes += part->kind == SHARD_TABLE;
    tiling->n_columns += part->kind == SHARD_COLUMN;
    tiling->n_replicas += part->kind == SHARD_REPLICATE &&
                          is_first(checker, part->unit, piece->device);
    tiling->width += part->width;
    if (!cut || (tiling->cut && tiling->cut != cut))
        return;
    tiling->cut = cut;
    tiling->n_blocks += piece->block < cut->n_blocks &&
                        piece->range < cut->n_ranges &&
                        parts_of_block(cut, piece->block) == piece->part &&
                        is_first(checker, part->unit,
                                 piece->range * cut->n_blocks + piece->block);
}

static bool is_tiled(const struct checker *checker, const struct tiling *tiling,
                     uint32_t dim)
{
    if (tiling->n_wholes)
        return tiling->n == 1;
    if (tiling->n_columns)
        return tiling->n == tiling->n_columns && tiling->width == dim;
    if (tiling->n_replicas)
        return tiling->n == tiling->n_replicas &&
               tiling->n == checker->layout->n_devices;
    return tiling->cut && tiling->n == tiling->n_blocks &&
           tiling->n == tiling->cut->n_blocks * tiling->cut->n_ranges;
}

static int check_tiling(const struct checker *checker, uint32_t unit)
{
    const struct layout *layout = checker->layout;
    const struct part_unit *of = &checker->parts->of[unit];
    uint32_t table = of->unit->tables[0];
    struct tiling tiling = {0};

    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        if (of->unit->device >= 0 &&
            layout->pieces[i].device != of->unit->device)
            return wrong(checker, "a piece is where its unit is pinned", i);
        count_piece(checker, &tiling, &layout->pieces[i]);
    }
    if (!layout->is_partial &&
        !is_tiled(checker, &tiling, checker->parts->problem->tables[table].dim))
        return wrong(checker, "the pieces of a unit are all of it", unit);
    return 0;
}

/* --- devices --- */

/* Each lane's largest share of a piece: what rounding may be of. */
static const double *lane_scales(struct checker *checker)
{
    const struct parts *parts = checker->parts;
    uint32_t width = parts->oracle->width;
    double *scales = ARENA_NEW(&checker->arena, double, width);

    for (size_t i = 0; i < (size_t)parts->n_parts * width; i++)
        scales[i % width] = fmax(scales[i % width], fabs(parts->vectors[i]));
    return scales;
}

static int check_sums(struct checker *checker, uint32_t r, const double *scales)
{
    const struct layout *layout = checker->layout;
    const struct holding *holding = &layout->holdings[r];
    uint32_t width = checker->parts->oracle->width;
    double *sum = ARENA_NEW(&checker->arena, double, width);
    double load_ms = 0, most_ms = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < holding->n; i++) {
        uint32_t part = layout->pieces[holding->pieces[i]].part;

        bytes = saturating_add(bytes, checker->parts->parts[part].bytes);
        load_ms += checker->parts->marginal_ms[part];
        for (uint32_t w = 0; w < width; w++)
            sum[w] += checker->parts->vectors[(size_t)part * width + w];
    }
    if (bytes != layout->bytes[r])
        return wrong(checker, "the bytes of a device", r);
    for (uint32_t w = 0; w < width; w++)
        if (!is_near(layout->sums[(size_t)r * width + w], sum[w],
                     scales[w] * (holding->n + 1), ROUNDING))
            return wrong(checker, "the sums of a device", r);
    for (uint32_t p = 0; p < checker->parts->n_parts; p++)
        most_ms = fmax(most_ms, fabs(checker->parts->marginal_ms[p]));
    if (!layout->terms_ms && !is_near(layout->load_ms[r], load_ms,
                                      most_ms * (holding->n + 1), ROUNDING))
        return wrong(checker, "the load of a device", r);
    return 0;
}

/* What is none is for search/watch.h. */
static bool are_numbers(const struct layout *layout)
{
    size_t n_terms = layout->terms_ms ? layout->parts->oracle->n_terms : 0;
    bool are = isfinite(layout->total_ms);

    for (uint32_t r = 0; r < layout->n_devices; r++)
        are = are && isfinite(layout->compute_ms[r]);
    for (size_t k = 0; k < layout->n_devices * n_terms; k++)
        are = are && isfinite(layout->terms_ms[k]);
    return are;
}

static int check_costs(struct checker *checker)
{
    const struct layout *layout = checker->layout;
    const struct oracle *oracle = checker->parts->oracle;
    size_t n_terms = layout->terms_ms ? oracle->n_terms : 0;
    double *compute_ms = ARENA_NEW(&checker->arena, double, layout->n_devices);
    double *terms_ms =
        ARENA_NEW(&checker->arena, double, layout->n_devices *n_terms);

    oracle->ops->compute(oracle, layout->sums, layout->n_devices, compute_ms);
    if (n_terms)
        oracle->ops->terms(oracle, layout->sums, layout->compute_ms,
                           layout->n_devices, terms_ms);
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        double local_ms = n_terms ? 0 : layout->compute_ms[r];

        for (size_t k = r * n_terms; k < (r + 1) * n_terms; k++) {
            local_ms += layout->terms_ms[k];
            if (!is_near_ms(checker, layout->terms_ms[k], terms_ms[k]))
                return wrong(checker, "a term of a device", r);
        }
        if (!is_near_ms(checker, layout->compute_ms[r], compute_ms[r]))
            return wrong(checker, "the compute of a device", r);
        if (layout->local_ms[r] != local_ms ||
            (n_terms && layout->load_ms[r] != local_ms))
            return wrong(checker, "what a device takes by itself", r);
    }
    return 0;
}

static int check_moves(const struct checker *checker)
{
    const struct layout *layout = checker->layout;
    const struct parts *parts = checker->parts;
    struct change *pieces = mem_alloc(layout->n_live, sizeof(*pieces));
    uint64_t all = 0;
    int rc = 0;

    for (uint32_t u = 0; u < parts->n_units && !rc; u++) {
        uint64_t bytes;
        uint32_t n = 0;

        for (uint32_t i = layout->first_of[u]; i != NO_PIECE;
             i = layout->pieces[i].next) {
            const struct piece *piece = &layout->pieces[i];

            pieces[n++] = (struct change){i, piece->part, piece->device,
                                          piece->range, piece->block};
        }
        bytes = homes_unit_bytes(parts->homes, parts, pieces, n);
        if (bytes != layout->moved_bytes[u])
            rc = wrong(checker, "the bytes that a unit moves", u);
        all = saturating_add(all, bytes);
    }
    mem_free(pieces);
    if (!rc && all != layout->all_moved_bytes)
        rc = wrong(checker, "the bytes that move", 0);
    return rc;
}

/* --- totals --- */

static int check_top(const struct checker *checker, uint32_t k)
{
    const struct layout *layout = checker->layout;
    const struct top *top = &layout->tops[k];
    const double *ms = layout->terms_ms + k;
    size_t n_terms = checker->parts->oracle->n_terms;
    uint32_t n =
        layout->n_devices < TOP_DEVICES ? layout->n_devices : TOP_DEVICES;
    double last;

    if (top->n != n)
        return wrong(checker, "how many devices lead a term", k);
    last = ms[top->device[n - 1] * n_terms];
    for (uint32_t i = 0; i < n; i++)
        if (top->device[i] >= layout->n_devices ||
            top->ms[i] != ms[top->device[i] * n_terms] ||
            (i && top->ms[i] > top->ms[i - 1]))
            return wrong(checker, "the devices that lead a term", k);
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        uint32_t i = 0;

        while (i < n && top->device[i] != r)
            i++;
        if (i == n && ms[r * n_terms] > last)
            return wrong(checker, "the largest of a term", k);
    }
    return 0;
}

static int check_excess(const struct checker *checker)
{
    const struct layout *layout = checker->layout;
    double excess = 0;

    for (uint32_t r = 0; r < layout->n_devices; r++)
        excess += layout_excess(layout, r, layout->bytes[r]);
    if (layout_counts_moves(layout))
        excess += homes_excess(layout, layout->all_moved_bytes);
    if (layout->excess != excess)
        return wrong(checker, "the excess", 0);
    return 0;
}

static int check_totals(const struct checker *checker)
{
    const struct layout *layout = checker->layout;
    double total_ms = 0;

    for (uint32_t k = 0;
         layout->terms_ms && k < checker->parts->oracle->n_terms; k++) {
        if (check_top(checker, k))
            return -1;
        total_ms += layout->tops[k].ms[0];
    }
    if (!layout->terms_ms)
        total_ms = layout_true_total(layout);
    if (!is_near_ms(checker, layout->total_ms, total_ms))
        return wrong(checker, "the total", 0);
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        if (layout->local_ms[r] > layout->local_ms[layout->slowest])
            return wrong(checker, "the slowest device", layout->slowest);
        if (layout->local_ms[r] < layout->local_ms[layout->fastest])
            return wrong(checker, "the fastest device", layout->fastest);
    }
    return 0;
}

static int check_all(struct checker *checker)
{
    const double *scales = lane_scales(checker);

    checker->marks = new_marks(checker);
    if (check_lists(checker))
        return -1;
    for (uint32_t u = 0; u < checker->parts->n_units; u++)
        if (check_tiling(checker, u))
            return -1;
    for (uint32_t r = 0; r < checker->layout->n_devices; r++)
        if (check_sums(checker, r, scales))
            return -1;
    if (layout_counts_moves(checker->layout) && check_moves(checker))
        return -1;
    if (check_excess(checker))
        return -1;
    if (are_numbers(checker->layout) &&
        (check_costs(checker) || check_totals(checker)))
        return -1;
    return 0;
}

int layout_check(const struct layout *layout, struct err *err)
{
    struct checker checker = {
        .layout = layout, .parts = layout->parts, .err = err};
    int rc;

    arena_init(&checker.arena);
    rc = check_all(&checker);
    arena_release(&checker.arena);
    return rc;
}
