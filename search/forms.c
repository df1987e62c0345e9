/* SPDX-License-Identifier: MIT */
#include "search/forms.h"

/* Whether all pieces stand on one device. */
static bool has_one_device(const struct parts *parts,
                           const struct part_unit *of)
{
    return of->unit->device >= 0 || parts->n_devices < 2;
}

/* Into so few equal pieces a table is cut that may not be whole. */
static uint32_t fewest_pieces(const struct part_unit *of)
{
    uint32_t n = 2;

    while (of->n_quanta % n)
        n++;
    return n;
}

/* Even column pieces: as many as there are devices, at least two; where they
 * have one device, they are cut only where they must be. */
static uint32_t n_column_forms(const struct parts *parts,
                               const struct part_unit *of)
{
    uint32_t most = parts->n_devices;

    if (of->columns == NO_PART)
        return 0;
    if (has_one_device(parts, of))
        return of->whole == NO_PART;
    return (most < of->n_quanta ? most : of->n_quanta) - 1;
}

const struct form *forms_find(const struct parts *parts, uint32_t unit,
                              enum form_kind kind)
{
    for (uint32_t i = 0; i < parts->of[unit].n_forms; i++)
        if (parts->of[unit].forms[i].kind == kind)
            return &parts->of[unit].forms[i];
    return NULL;
}

static void add_parts(struct form *form, const struct parts *parts,
                      uint32_t part, uint32_t n)
{
    double ms = parts->alone_ms[part];
    uint64_t bytes = parts->parts[part].bytes;

    form->load_ms += ms * n;
    form->bytes += (double)bytes * n;
    form->n_pieces += n;
    if (n && ms > form->peak_ms)
        form->peak_ms = ms;
    if (n && bytes > form->peak_bytes)
        form->peak_bytes = bytes;
}

static void add_form(const struct parts *parts, struct part_unit *of,
                     enum form_kind kind, uint32_t n)
{
    struct form *form = &of->forms[of->n_forms++];
    const struct cut *cut;

    *form = (struct form){.kind = kind, .n = n};
    switch (kind) {
    case FORM_WHOLE:
        add_parts(form, parts, of->whole, 1);
        break;
    case FORM_COLUMNS:
        add_parts(form, parts, of->columns + of->n_quanta / n - 1,
                  n - of->n_quanta % n);
        if (of->n_quanta % n)
            add_parts(form, parts, of->columns + of->n_quanta / n,
                      of->n_quanta % n);
        break;
    case FORM_REPLICA:
        add_parts(form, parts, of->replica, n);
        break;
    case FORM_CUT:
        cut = &parts->cuts[n];
        if (!cut->stands)
            add_parts(form, parts, cut->block,
                      (cut->n_blocks - 1) * cut->n_ranges);
        for (uint32_t b = 0; cut->stands && b + 1 < cut->n_blocks; b++)
            add_parts(form, parts, parts_of_block(cut, b), 1);
        add_parts(form, parts, cut->last, cut->n_ranges);
        break;
    }
}

void forms_list(struct parts *parts, struct arena *arena)
{
    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct part_unit *of = &parts->of[u];
        uint32_t n_columns = n_column_forms(parts, of);

        of->forms = ARENA_NEW(arena, struct form, n_columns + of->n_cuts + 2);
        if (of->whole != NO_PART)
            add_form(parts, of, FORM_WHOLE, 1);
        if (n_columns && has_one_device(parts, of))
            add_form(parts, of, FORM_COLUMNS, fewest_pieces(of));
        else
            for (uint32_t n = 2; n < n_columns + 2; n++)
                add_form(parts, of, FORM_COLUMNS, n);
        if (of->replica != NO_PART)
            add_form(parts, of, FORM_REPLICA, parts->n_devices);
        for (uint32_t c = 0; c < of->n_cuts; c++)
            add_form(parts, of, FORM_CUT, of->first_cut + c);
    }
}

bool forms_fills_host(const struct parts *parts, struct form form)
{
    return form.kind == FORM_CUT && parts->cuts[form.n].fills_host;
}

struct change forms_piece(const struct parts *parts, uint32_t unit,
                          struct form form, uint32_t i)
{
    const struct part_unit *of = &parts->of[unit];
    struct change piece = {.piece = NO_PIECE, .range = i};
    const struct cut *cut;

    piece.device = NO_PIECE;
    if (has_one_device(parts, of))
        piece.device = of->unit->device >= 0 ? (uint32_t)of->unit->device : 0;
    switch (form.kind) {
    case FORM_WHOLE:
        piece.part = of->whole;
        break;
    case FORM_COLUMNS:
        piece.part = of->columns + of->n_quanta / form.n - 1 +
                     (i < of->n_quanta % form.n);
        break;
    case FORM_REPLICA:
        piece.part = of->replica;
        piece.device = i;
        piece.range = 0;
        break;
    case FORM_CUT:
        cut = &parts->cuts[form.n];
        piece.range = i / cut->n_blocks;
        piece.block = i % cut->n_blocks;
        piece.part = parts_of_block(cut, piece.block);
        if (parts->oracle->row_cut != ROW_CUT_ANY && !cut->fills_host)
            piece.device = piece.block;
        break;
    }
    return piece;
}

uint32_t forms_ring_device(const struct parts *parts, struct form form,
                           const struct change *piece, uint32_t at)
{
    const struct cluster *cluster = &parts->problem->cluster;
    uint32_t n = cluster->n_devices, per_host = cluster_group(cluster);
    const struct cut *cut;
    uint32_t apart = 1;

    if (form.kind != FORM_CUT)
        return (at + piece->range) % n;
    cut = &parts->cuts[form.n];
    if (cut->fills_host)
        return (at / per_host + piece->range) % (n / per_host) * per_host +
               piece->block;
    if (cut->n_blocks * cut->n_ranges <= n)
        apart = cut->n_blocks;
    return (at + piece->block + piece->range * apart) % n;
}

struct form forms_draw(const struct parts *parts, uint32_t unit,
                       struct rng *rng)
{
    uint32_t kind = rng_draw(rng, 4);
    const struct form *form = NULL;

    if (kind < 2)
        form = forms_find(parts, unit, kind ? FORM_REPLICA : FORM_WHOLE);
    return form ? *form
                : forms_get(parts, unit,
                            rng_draw(rng, forms_count(parts, unit)));
}

struct form forms_now(const struct layout *layout, uint32_t unit)
{
    const struct parts *parts = layout->parts;
    uint32_t part = layout->pieces[layout->first_of[unit]].part, n = 0;
    const struct cut *cut = parts_cut_of(parts, part);

    if (shard_is_replica(parts->parts[part].kind))
        return *forms_find(parts, unit, FORM_REPLICA);
    if (cut)
        return *(forms_find(parts, unit, FORM_CUT) + (cut - parts->cuts) -
                 parts->of[unit].first_cut);
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next)
        n++;
    return (struct form){
        .kind = n > 1 ? FORM_COLUMNS : FORM_WHOLE, .n = n, .n_pieces = n};
}
