/* SPDX-License-Identifier: MIT */
#include "search/bump.h"

#include "search/build.h"

#include <math.h>

/* Cuts, and pieces placed in all, at most. */
#define MAX_BUMPS 256
#define MAX_PLACED (1u << 16)

static enum form_kind kind_of(enum bump bump)
{
    switch (bump) {
    case BUMP_COLUMNS:
        return FORM_COLUMNS;
    case BUMP_ROWS:
        return FORM_CUT;
    case BUMP_REPLICATE:
        return FORM_REPLICA;
    case BUMP_FINER:
        break;
    }
    return FORM_WHOLE;
}

/* The next form of a unit whose dearest piece takes piece_ms; false where there
 * is none. */
static bool next_form(struct form *next, const struct parts *parts,
                      uint32_t unit, enum bump bump, double piece_ms)
{
    double least = INFINITY;
    bool is_found = false;

    for (uint32_t i = 0; i < forms_count(parts, unit); i++) {
        struct form form = forms_get(parts, unit, i);
        double price = form.load_ms;

        if (bump != BUMP_FINER)
            price = -(double)form.n_pieces;
        if (bump == BUMP_FINER ? form.peak_ms >= piece_ms
                               : form.kind != kind_of(bump))
            continue;
        if (price >= least || (form.kind == FORM_CUT && bump == BUMP_ROWS &&
                               parts->cuts[form.n].n_ranges > 1))
            continue;
        least = price;
        *next = form;
        is_found = true;
    }
    return is_found;
}

/* The unit of the dearest piece on the slowest device that may be cut anew, or
 * of the smallest where it is to be replicated, and how then; false where there
 * is none. */
static bool find_bump(const struct layout *layout, const struct form *forms,
                      enum bump bump, uint32_t *unit, struct form *next)
{
    const struct parts *parts = layout->parts;
    const struct holding *holding = &layout->holdings[layout->slowest];
    double most = 0;

    for (uint32_t i = 0; i < holding->n; i++) {
        uint32_t part = layout->pieces[holding->pieces[i]].part;
        uint32_t of = parts->parts[part].unit;
        double piece_ms = parts->alone_ms[part];
        double urge = bump == BUMP_REPLICATE
                          ? 1.0 / (1.0 + (double)parts->parts[part].bytes)
                          : piece_ms;
        struct form form = {0};

        if (urge <= most || !parts_can_move(parts, part) ||
            !next_form(&form, parts, of, bump, piece_ms) ||
            (form.kind == forms[of].kind && form.n == forms[of].n))
            continue;
        most = urge;
        *unit = of;
        *next = form;
    }
    return most > 0;
}

static struct form *first_forms(const struct parts *parts, bool is_whole)
{
    struct form *forms = mem_alloc(parts->n_units, sizeof(*forms));

    for (uint32_t u = 0; u < parts->n_units; u++)
        if (is_whole && forms_find(parts, u, FORM_WHOLE))
            forms[u] = *forms_find(parts, u, FORM_WHOLE);
    return forms;
}

bool bump_start(struct snapshot *out, const struct parts *parts, enum bump bump,
                bool is_whole, uint64_t *n_priced)
{
    struct form *forms = first_forms(parts, is_whole);
    struct build_options options = {.peak_ms = INFINITY,
                                    .replica_frac = 1,
                                    .unit_forms = forms,
                                    .peak_bytes = parts->units->most_room_bytes,
                                    .max_replicas = BUILD_MAX_REPLICAS};
    struct snapshot next = {0};
    struct layout layout;
    struct build_outcome outcome;
    uint32_t unit = 0;
    bool goes_on = true;

    layout_init(&layout, parts);
    out->n = 0;
    out->total_ms = INFINITY;
    for (uint32_t i = 0, n_placed = 0;
         i < MAX_BUMPS && n_placed < MAX_PLACED && goes_on; i++) {
        struct form form = {0};

        if (!build(&next, parts, &options, &outcome))
            break;
        snapshot_load(&next, &layout);
        next.total_ms = layout_true_total(&layout);
        ++*n_priced;
        n_placed += next.n;
        if (next.total_ms < out->total_ms)
            snapshot_copy(out, &next);
        goes_on = find_bump(&layout, forms, bump, &unit, &form);
        if (goes_on)
            forms[unit] = form;
    }
    layout_release(&layout);
    snapshot_release(&next);
    mem_free(forms);
    return out->n > 0;
}
