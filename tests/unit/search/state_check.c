/* SPDX-License-Identifier: MIT */
#include "tests/unit/search/state_check.h"

#include "core/plan_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Relative tolerance of sums to which pieces were added and subtracted since
 * they were last computed from scratch. */
#define ROUNDING 1e-9
/* Relative tolerance of costs, which are computed from such rounded sums. */
#define COST_ROUNDING 1e-6

static int wrong(const char *what, uint32_t idx, struct err *err)
{
    return err_set(err, ERR_INPUT, "layout: %s (%" PRIu32 ")", what, idx);
}

/* Compares n values, one every `stride`. NaNs compare as equal, because
 * search/finish.h reports values that are not finite. */
static int compare(const char *what, const double *kept, const double *now,
                   uint32_t n, size_t stride, double tolerance, struct err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (fabs(kept[i * stride] - now[i * stride]) > tolerance)
            return wrong(what, i, err);
    return 0;
}

/* --- lists --- */

static int check_free(const struct layout *layout, struct err *err)
{
    uint32_t n = 0, i = layout->first_free;

    for (; i != NO_PIECE && n <= layout->n_pieces; n++) {
        if (i >= layout->n_pieces || layout->pieces[i].type != NO_TYPE)
            return wrong("a piece in the free list is none", i, err);
        i = layout->links[i].next;
    }
    if (n != layout->n_pieces - layout->n_live)
        return wrong("free pieces", n, err);
    return 0;
}

/* Checks one piece: it belongs to its unit's list and to its unit's
 * sharding. */
static int check_piece(const struct layout *layout, uint32_t unit, uint32_t i,
                       struct err *err)
{
    const struct search_space *space = layout->space;
    const struct change *piece = &layout->pieces[i];
    const uint32_t slot = layout->links[i].slot;
    const struct sharding *cut;

    if (piece->type >= space->n_types || space->types[piece->type].unit != unit)
        return wrong("the part of a piece is of its unit", i, err);
    if (piece->piece != i)
        return wrong("the number of a piece", i, err);
    if (piece->device >= layout->n_devices ||
        slot >= layout->holdings[piece->device].n ||
        layout->holdings[piece->device].pieces[slot] != i)
        return wrong("the slot of a piece", i, err);
    cut = space_sharding_of(space, piece->type);
    if (cut->kind == SHARDING_ROWS &&
        (piece->block >= cut->n_blocks || piece->range >= cut->n_ranges ||
         sharding_type_of_block(cut, piece->block) != piece->type))
        return wrong("the block of a piece", i, err);
    return 0;
}

static int check_lists(const struct layout *layout, struct err *err)
{
    uint32_t n_live = 0, n_held = 0;

    for (uint32_t u = 0; u < layout->space->n_units; u++) {
        uint32_t i = layout->first_of[u];

        for (; i != NO_PIECE; i = layout->links[i].next)
            if (i >= layout->n_pieces || ++n_live > layout->n_live)
                return wrong("the list of a unit", u, err);
            else if (check_piece(layout, u, i, err))
                return -1;
    }
    for (uint32_t r = 0; r < layout->n_devices; r++)
        n_held += layout->holdings[r].n;
    if (n_live != layout->n_live || n_held != n_live)
        return wrong("pieces in lists, in all", n_live, err);
    return check_free(layout, err);
}

/* Checks that the plan made of the pieces passes plan_check, apart from
 * memory. */
static int check_tiling(const struct snapshot *pieces,
                        const struct search_space *space, struct err *err)
{
    struct plan plan = {.problem = *space->problem, .bound_ms = NAN};
    struct arena arena = {0};
    int rc;

    snapshot_to_plan(pieces, space, &plan, &arena);
    plan_derive_kinds(&plan);
    rc = plan_check(&plan, err);
    arena_release(&arena);
    if (rc && err->code == ERR_NO_PLAN)
        *err = (struct err){0};
    return err->code == ERR_NONE ? 0 : -1;
}

/* --- values computed from the pieces --- */

/* Returns the largest magnitude of n values, one every `stride`. */
static double largest(const double *values, size_t n, size_t stride)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(values[i * stride]));
    return most;
}

static int check_sums(const struct layout *layout, const struct layout *fresh,
                      struct err *err)
{
    const struct search_space *space = layout->space;
    const double rounding = ROUNDING * (layout->n_live + 1);
    const size_t width = space->oracle->width;

    for (size_t lane = 0; lane < width; lane++)
        if (compare("the sums of a device", layout->sums + lane,
                    fresh->sums + lane, layout->n_devices, width,
                    rounding *
                        largest(space->vectors + lane, space->n_types, width),
                    err))
            return -1;
    for (uint32_t r = 0; r < layout->n_devices; r++)
        if (layout->bytes[r] != fresh->bytes[r])
            return wrong("the bytes of a device", r, err);
    return 0;
}

/* If the oracle has terms, a load must equal the total of the stored terms to
 * the bit. */
static int check_loads(const struct layout *layout, const struct layout *fresh,
                       struct err *err)
{
    const double rounding =
        ROUNDING * (layout->n_live + 1) *
        largest(layout->space->load_ms, layout->space->n_types, 1);

    if (!layout->space->oracle->ops->terms)
        return compare("the load of a device", layout->load_ms, fresh->load_ms,
                       layout->n_devices, 1, rounding, err);
    for (uint32_t r = 0; r < layout->n_devices; r++)
        if (layout->load_ms[r] !=
            oracle_terms_total_ms(layout->space->oracle,
                                  layout->terms_ms + r * layout->n_terms))
            return wrong("the load of a device", r, err);
    return 0;
}

/* Checks the costs against the oracle's prices of the stored sums. */
static int check_costs(const struct layout *layout, struct layout *fresh,
                       struct err *err)
{
    const struct oracle *oracle = layout->space->oracle;
    const uint32_t n = layout->n_devices;
    const double total_ms = oracle->ops->terms
                                ? oracle_terms_total_ms(oracle, layout->most_ms)
                                : layout_true_total(layout);
    const double rounding = COST_ROUNDING * total_ms;

    if (oracle->ops->terms)
        oracle->ops->terms(oracle, layout->sums, n, fresh->compute_ms,
                           fresh->terms_ms);
    else
        oracle->ops->compute(oracle, layout->sums, n, fresh->compute_ms);
    if (compare("a term of a device", layout->terms_ms, fresh->terms_ms,
                n * layout->n_terms, 1, rounding, err) ||
        compare("the compute of a device", layout->compute_ms,
                fresh->compute_ms, n, 1, rounding, err) ||
        compare("the total", &layout->total_ms, &total_ms, 1, 1, rounding, err))
        return -1;
    return check_loads(layout, fresh, err);
}

/* Checks the largest value of term k over a block of devices. */
static int check_block(const struct layout *layout, uint32_t block, size_t k,
                       struct err *err)
{
    const uint32_t first = block * LAYOUT_BLOCK;
    double most_ms = layout->terms_ms[first * layout->n_terms + k];

    for (uint32_t r = first; r < layout->n_devices && r < first + LAYOUT_BLOCK;
         r++)
        most_ms = fmax(most_ms, layout->terms_ms[r * layout->n_terms + k]);
    return layout->block_ms[block * layout->n_terms + k] == most_ms
               ? 0
               : wrong("the largest of a block", block, err);
}

/* Checks that the leader of term k is the first device with the largest
 * value. */
static int check_leader(const struct layout *layout, size_t k, struct err *err)
{
    const double *of = layout->terms_ms + k;
    const uint32_t leader = layout->leader[k];
    bool leads = leader < layout->n_devices;

    for (uint32_t r = 0; leads && r < layout->n_devices; r++) {
        const double ms = of[r * layout->n_terms];

        leads = ms < layout->most_ms[k] ||
                (ms == layout->most_ms[k] && r >= leader);
    }
    if (!leads || of[leader * layout->n_terms] != layout->most_ms[k])
        return wrong("the device that leads a term", (uint32_t)k, err);
    return 0;
}

static int check_figures(const struct layout *layout, struct layout *fresh,
                         struct err *err)
{
    const bool counts_moves = layout_counts_moves(layout);

    if (check_sums(layout, fresh, err))
        return -1;
    for (uint32_t u = 0; counts_moves && u < layout->space->n_units; u++)
        if (layout->moved_bytes[u] != fresh->moved_bytes[u])
            return wrong("the bytes that a unit moves", u, err);
    if (counts_moves && layout->all_moved_bytes != fresh->all_moved_bytes)
        return wrong("the bytes that move", 0, err);
    if (layout->excess != fresh->excess)
        return wrong("the excess", 0, err);
    if (!isfinite(layout->total_ms))
        return 0;
    for (size_t k = 0; k < layout->n_terms; k++)
        if (check_leader(layout, k, err))
            return -1;
    for (uint32_t b = 0; b < layout_n_blocks(layout->n_devices); b++)
        for (size_t k = 0; k < layout->n_terms; k++)
            if (check_block(layout, b, k, err))
                return -1;
    return check_costs(layout, fresh, err);
}

int layout_check(const struct layout *layout, struct err *err)
{
    struct snapshot pieces = {0};
    struct layout fresh = {0};
    int rc = -1;

    if (check_lists(layout, err))
        return -1;
    layout_init(&fresh, layout->space);
    fresh.move_limit_bytes = layout->move_limit_bytes;
    snapshot_save(&pieces, layout);
    snapshot_load(&pieces, &fresh);
    if (layout->is_partial || !check_tiling(&pieces, layout->space, err))
        rc = check_figures(layout, &fresh, err);
    layout_release(&fresh);
    snapshot_release(&pieces);
    return rc;
}

static void check_or_abort(const struct layout *layout)
{
    struct err err = {0};

    if (layout_check(layout, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
}

/* Runs before any test or command begins. */
__attribute__((constructor)) static void install(void)
{
    layout_checker = check_or_abort;
}
