/* SPDX-License-Identifier: MIT */
#include "search/forms.h"

/* Whether all pieces stand on one device. */
static bool has_one_device(const struct parts *parts,
                           const struct part_unit *of)
{
    return of->unit->device >= 0 || parts->problem->cluster.n_devices < 2;
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
    uint32_t most = parts->problem->cluster.n_devices;

    if (of->columns == NO_PART)
        return 0;
    if (has_one_device(parts, of))
        return of->whole == NO_PART;
    return (most < of->n_quanta ? most : of->n_quanta) - 1;
}

bool forms_has(const struct parts *parts, uint32_t unit, enum form_kind kind)
{
    const struct part_unit *of = &parts->of[unit];

    switch (kind) {
    case FORM_WHOLE:
        return of->whole != NO_PART;
    case FORM_COLUMNS:
        return n_column_forms(parts, of) > 0;
    case FORM_REPLICA:
        return of->replica != NO_PART;
    case FORM_CUT:
        return of->n_cuts > 0;
    }
    return false;
}

uint32_t forms_count(const struct parts *parts, uint32_t unit)
{
    const struct part_unit *of = &parts->of[unit];

    return (of->whole != NO_PART) + n_column_forms(parts, of) +
           (of->replica != NO_PART) + of->n_cuts;
}

struct form forms_get(const struct parts *parts, uint32_t unit, uint32_t idx)
{
    const struct part_unit *of = &parts->of[unit];
    uint32_t n_columns = n_column_forms(parts, of);

    if (of->whole != NO_PART && idx-- == 0)
        return (struct form){FORM_WHOLE, 1};
    if (idx < n_columns && has_one_device(parts, of))
        return (struct form){FORM_COLUMNS, fewest_pieces(of)};
    if (idx < n_columns)
        return (struct form){FORM_COLUMNS, idx + 2};
    idx -= n_columns;
    if (of->replica != NO_PART && idx-- == 0)
        return (struct form){FORM_REPLICA, 0};
    return (struct form){FORM_CUT, of->first_cut + idx};
}

static void add_figures(struct form_figures *figures, const struct parts *parts,
                        uint32_t part, uint32_t n)
{
    double ms = parts->alone_ms[part];
    uint64_t bytes = parts->parts[part].bytes;

    figures->load_ms += ms * n;
    figures->bytes += (double)bytes * n;
    figures->n_pieces += n;
    if (n && ms > figures->peak_ms)
        figures->peak_ms = ms;
    if (n && bytes > figures->peak_bytes)
        figures->peak_bytes = bytes;
}

struct form_figures forms_figures(const struct parts *parts, uint32_t unit,
                                  struct form form)
{
    const struct part_unit *of = &parts->of[unit];
    struct form_figures figures = {0};
    const struct cut *cut;
    uint32_t wide;

    switch (form.kind) {
    case FORM_WHOLE:
        add_figures(&figures, parts, of->whole, 1);
        break;
    case FORM_COLUMNS:
        wide = of->n_quanta % form.n;
        add_figures(&figures, parts, of->columns + of->n_quanta / form.n - 1,
                    form.n - wide);
        if (wide)
            add_figures(&figures, parts, of->columns + of->n_quanta / form.n,
                        wide);
        break;
    case FORM_REPLICA:
        add_figures(&figures, parts, of->replica,
                    parts->problem->cluster.n_devices);
        break;
    case FORM_CUT:
        cut = &parts->cuts[form.n];
        if (!cut->stands)
            add_figures(&figures, parts, cut->block,
                        (cut->n_blocks - 1) * cut->n_ranges);
        for (uint32_t b = 0; cut->stands && b + 1 < cut->n_blocks; b++)
            add_figures(&figures, parts, parts_of_block(cut, b), 1);
        add_figures(&figures, parts, cut->last, cut->n_ranges);
        break;
    }
    return figures;
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
