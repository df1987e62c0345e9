/* SPDX-License-Identifier: MIT */
#include "tests/unit/search/assignment_check.h"

#include "core/cache_pools.h"
#include "core/plan_check.h"
#include "search/assignment.h"
#include "search/to_plan.h"

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

static int check_free(const struct assignment *assignment, struct err *err)
{
    uint32_t n = 0, i = assignment->first_free;

    for (; i != NO_PIECE && n <= assignment->n_pieces; n++) {
        if (i >= assignment->n_pieces || assignment->pieces[i].type != NO_TYPE)
            return wrong("a piece in the free list is none", i, err);
        i = assignment->links[i].next;
    }
    if (n != assignment->n_pieces - assignment->n_live)
        return wrong("free pieces", n, err);
    return 0;
}

/* Checks one piece: it belongs to its unit's list and to its unit's
 * sharding. */
static int check_piece(const struct assignment *assignment, uint32_t unit,
                       uint32_t i, struct err *err)
{
    const struct search_space *space = assignment->space;
    const struct change *piece = &assignment->pieces[i];
    const uint32_t slot = assignment->links[i].slot;
    const struct sharding *cut;

    if (piece->type >= space->n_types || space->types[piece->type].unit != unit)
        return wrong("the part of a piece is of its unit", i, err);
    if (piece->piece != i)
        return wrong("the number of a piece", i, err);
    if (piece->device >= assignment->n_devices ||
        slot >= assignment->holdings[piece->device].n ||
        assignment->holdings[piece->device].pieces[slot] != i)
        return wrong("the slot of a piece", i, err);
    cut = space_sharding_of(space, piece->type);
    if (cut->kind == SHARDING_ROWS &&
        (piece->block >= cut->n_blocks || piece->range >= cut->n_ranges ||
         sharding_type_of_block(cut, piece->block) != piece->type))
        return wrong("the block of a piece", i, err);
    return 0;
}

static int check_lists(const struct assignment *assignment, struct err *err)
{
    uint32_t n_live = 0, n_held = 0;

    for (uint32_t u = 0; u < assignment->space->n_units; u++) {
        uint32_t i = assignment->first_of[u];

        for (; i != NO_PIECE; i = assignment->links[i].next)
            if (i >= assignment->n_pieces || ++n_live > assignment->n_live)
                return wrong("the list of a unit", u, err);
            else if (check_piece(assignment, u, i, err))
                return -1;
    }
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        n_held += assignment->holdings[r].n;
    if (n_live != assignment->n_live || n_held != n_live)
        return wrong("pieces in lists, in all", n_live, err);
    return check_free(assignment, err);
}

/* Gives cached tables the smallest caches, because an assignment has none. */
static void set_caches(struct plan *plan, struct arena *arena)
{
    plan->load_factors = ARENA_NEW(arena, double, plan->problem.n_tables);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].tier == TIER_CACHED)
            plan->load_factors[plan->shards[i].table] = CACHE_MIN_LOAD_FACTOR;
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
    set_caches(&plan, &arena);
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

static int check_sums(const struct assignment *assignment,
                      const struct assignment *fresh, struct err *err)
{
    const struct search_space *space = assignment->space;
    const double rounding = ROUNDING * (assignment->n_live + 1);
    const size_t width = space->oracle->width;

    for (size_t lane = 0; lane < width; lane++)
        if (compare("the sums of a device", assignment->sums + lane,
                    fresh->sums + lane, assignment->n_devices, width,
                    rounding *
                        largest(space->vectors + lane, space->n_types, width),
                    err))
            return -1;
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        if (assignment->bytes[r] != fresh->bytes[r])
            return wrong("the bytes of a device", r, err);
    return 0;
}

/* If the oracle has terms, a load must equal the total of the stored terms to
 * the bit. */
static int check_loads(const struct assignment *assignment,
                       const struct assignment *fresh, struct err *err)
{
    const double rounding =
        ROUNDING * (assignment->n_live + 1) *
        largest(assignment->space->load_ms, assignment->space->n_types, 1);

    if (!assignment->space->oracle->ops->terms)
        return compare("the load of a device", assignment->load_ms,
                       fresh->load_ms, assignment->n_devices, 1, rounding, err);
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        if (assignment->load_ms[r] !=
            oracle_terms_total_ms(assignment->space->oracle,
                                  assignment->terms_ms +
                                      r * assignment->n_terms))
            return wrong("the load of a device", r, err);
    return 0;
}

/* Checks the costs against the oracle's prices of the stored sums. */
static int check_costs(const struct assignment *assignment,
                       struct assignment *fresh, struct err *err)
{
    const struct oracle *oracle = assignment->space->oracle;
    const uint32_t n = assignment->n_devices;
    const double total_ms =
        oracle->ops->terms ? oracle_terms_total_ms(oracle, assignment->most_ms)
                           : assignment_true_total(assignment);
    const double rounding = COST_ROUNDING * total_ms;

    if (oracle->ops->terms)
        oracle->ops->terms(oracle, assignment->sums, n, fresh->compute_ms,
                           fresh->terms_ms);
    else
        oracle->ops->compute(oracle, assignment->sums, n, fresh->compute_ms);
    if (compare("a term of a device", assignment->terms_ms, fresh->terms_ms,
                n * assignment->n_terms, 1, rounding, err) ||
        compare("the compute of a device", assignment->compute_ms,
                fresh->compute_ms, n, 1, rounding, err) ||
        compare("the total", &assignment->total_ms, &total_ms, 1, 1, rounding,
                err))
        return -1;
    return check_loads(assignment, fresh, err);
}

/* Checks the largest value of term k over a block of devices. */
static int check_block(const struct assignment *assignment, uint32_t block,
                       size_t k, struct err *err)
{
    const uint32_t first = block * ASSIGNMENT_BLOCK;
    double most_ms = assignment->terms_ms[first * assignment->n_terms + k];

    for (uint32_t r = first;
         r < assignment->n_devices && r < first + ASSIGNMENT_BLOCK; r++)
        most_ms =
            fmax(most_ms, assignment->terms_ms[r * assignment->n_terms + k]);
    return assignment->block_ms[block * assignment->n_terms + k] == most_ms
               ? 0
               : wrong("the largest of a block", block, err);
}

/* Checks that the leader of term k is the first device with the largest
 * value. */
static int check_leader(const struct assignment *assignment, size_t k,
                        struct err *err)
{
    const double *of = assignment->terms_ms + k;
    const uint32_t leader = assignment->leader[k];
    bool leads = leader < assignment->n_devices;

    for (uint32_t r = 0; leads && r < assignment->n_devices; r++) {
        const double ms = of[r * assignment->n_terms];

        leads = ms < assignment->most_ms[k] ||
                (ms == assignment->most_ms[k] && r >= leader);
    }
    if (!leads || of[leader * assignment->n_terms] != assignment->most_ms[k])
        return wrong("the device that leads a term", (uint32_t)k, err);
    return 0;
}

static int check_figures(const struct assignment *assignment,
                         struct assignment *fresh, struct err *err)
{
    const bool counts_moves = assignment_counts_moves(assignment);

    if (check_sums(assignment, fresh, err))
        return -1;
    for (uint32_t u = 0; counts_moves && u < assignment->space->n_units; u++)
        if (assignment->moved_bytes[u] != fresh->moved_bytes[u])
            return wrong("the bytes that a unit moves", u, err);
    if (counts_moves && assignment->all_moved_bytes != fresh->all_moved_bytes)
        return wrong("the bytes that move", 0, err);
    if (assignment->excess != fresh->excess)
        return wrong("the excess", 0, err);
    if (!isfinite(assignment->total_ms))
        return 0;
    for (size_t k = 0; k < assignment->n_terms; k++)
        if (check_leader(assignment, k, err))
            return -1;
    for (uint32_t b = 0; b < assignment_n_blocks(assignment->n_devices); b++)
        for (size_t k = 0; k < assignment->n_terms; k++)
            if (check_block(assignment, b, k, err))
                return -1;
    return check_costs(assignment, fresh, err);
}

int assignment_check(const struct assignment *assignment, struct err *err)
{
    struct snapshot pieces = {0};
    struct assignment fresh = {0};
    int rc = -1;

    if (check_lists(assignment, err))
        return -1;
    assignment_init(&fresh, assignment->space);
    fresh.move_limit_bytes = assignment->move_limit_bytes;
    snapshot_save(&pieces, assignment);
    snapshot_load(&pieces, &fresh);
    if (assignment->is_partial ||
        !check_tiling(&pieces, assignment->space, err))
        rc = check_figures(assignment, &fresh, err);
    assignment_release(&fresh);
    snapshot_release(&pieces);
    return rc;
}

static void check_or_abort(const struct assignment *assignment)
{
    struct err err = {0};

    if (assignment_check(assignment, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
}

/* Runs before any test or command begins. */
__attribute__((constructor)) static void install(void)
{
    assignment_checker = check_or_abort;
}
