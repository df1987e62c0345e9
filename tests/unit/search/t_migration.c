/* SPDX-License-Identifier: MIT */
#include "search/evaluator.h"

#include "core/plan_moves.h"
#include "search/moves.h"
#include "search/to_plan.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/standing.h"

/* Usable memory of a device, in bytes. ROOMY: one device holds all tables.
 * TIGHT: six devices hold slightly more than all tables. */
#define ROOMY (UINT64_C(1) << 30)
#define TIGHT 230000

/* Returns the bytes that the assignment moves, computed from its plan. */
static uint64_t moved(struct standing *standing)
{
    struct plan plan = {.problem = standing->problem};
    struct snapshot now = {0};
    struct plan_moves moves;

    snapshot_save(&now, &standing->evaluator.assignment);
    snapshot_to_plan(&now, &standing->space, &plan, &standing->arena);
    plan_derive_kinds(&plan);
    plan_moves_find(&moves, &standing->from, &plan, &standing->arena);
    snapshot_release(&now);
    return moves.bytes.moved;
}

/* A random walk in which many changes return a unit to its current plan. The
 * migration that a candidate predicts must match the assignment after the
 * commit, and plan_moves. */
static void check_counts(enum row_cut row_cut, double growth, bool stays,
                         uint64_t memory_bytes, uint64_t limit_bytes,
                         uint64_t seed)
{
    struct standing standing;
    struct assignment *assignment = &standing.evaluator.assignment;
    size_t n = 0, n_candidate = 0, n_after = 0, n_plan = 0, n_less = 0,
           n_grids = 0;
    size_t n_excess = 0, n_over = 0, n_wrong = 0, n_astray = 0;
    struct err err = {0};

    standing_open(&standing, seed, row_cut, growth, memory_bytes);
    assignment->move_limit_bytes = limit_bytes;
    assignment_price(assignment);
    ok((assignment->all_moved_bytes == 0) == stays, "%s moves at home",
       stays ? "nothing" : "something");
    is_i64((int64_t)assignment->all_moved_bytes, (int64_t)moved(&standing),
           "as plan_moves counts it");
    for (uint32_t i = 0; i < 3000; i++) {
        struct candidate *candidate = &standing.evaluator.candidate;
        uint64_t said, before = assignment->all_moved_bytes;

        propose(candidate, assignment, &standing.rng);
        if (rng_below(&standing.rng, 4) == 0) {
            candidate_clear(candidate);
            current_propose(candidate, assignment,
                            rng_draw(&standing.rng, standing.space.n_units));
        }
        if (!candidate->changes.n)
            continue;
        n++;
        (void)evaluator_price(&standing.evaluator);
        said = candidate->after.all_moved_bytes;
        candidate_commit(assignment, candidate);
        n_less += said < before;
        n_candidate += said != assignment->all_moved_bytes;
        n_over += candidate->after.excess > 0;
        n_astray += memory_bytes == ROOMY &&
                    (assignment->excess > 0) != (said > limit_bytes);
        n_wrong += i % 4 == 0 && assignment_check(assignment, &err);
        n_excess +=
            !(fabs(candidate->after.excess - assignment->excess) <= 1e-9);
        assignment_price(assignment);
        n_after += said != assignment->all_moved_bytes;
        n_plan += said != moved(&standing);
        for (uint32_t k = 0; k < assignment->n_pieces; k++)
            n_grids += assignment->pieces[k].type != NO_TYPE &&
                       assignment->pieces[k].range > 0 &&
                       standing.space.types[assignment->pieces[k].type].kind ==
                           SHARD_GRID;
    }
    ok(n > 1000 && n_less > 100 && n_grids > 100,
       "%zu changes, %zu move less, %zu with ranges of grids", n, n_less,
       n_grids);
    is_i64((int64_t)n_candidate, 0,
           "the migration is as the candidate predicted");
    is_i64((int64_t)n_after, 0, "and as counted afresh");
    is_i64((int64_t)n_plan, 0, "and as that of the plan");
    ok(!n_wrong, "assignments are valid, %zu times not: %s", n_wrong, err.msg);
    is_i64((int64_t)n_excess, 0, "the excess is as the candidate predicted");
    ok((n_over > 100) == (memory_bytes == TIGHT || limit_bytes != COUNT_MOVES),
       "%zu have some", n_over);
    is_i64((int64_t)n_astray, 0, "where there is room, for what moves too far");
    standing_close(&standing);
}

/* The excess is 0 up to the limit and grows with the bytes beyond it. */
static void check_excess(void)
{
    const uint64_t limit_bytes = 100000;
    struct standing standing;
    double before = 0;
    size_t n_wrong = 0;

    standing_open(&standing, 9, ROW_CUT_ANY, 1, ROOMY);
    for (uint64_t bytes = 0; bytes <= 3 * limit_bytes; bytes += 1000) {
        double excess = migration_excess(&standing.space, limit_bytes, bytes);

        n_wrong += bytes <= limit_bytes
                       ? excess != 0
                       : !(excess > ASSIGNMENT_ANY_EXCESS && excess > before);
        before = excess;
    }
    is_i64((int64_t)n_wrong, 0, "excess begins at the limit, and grows");
    ok(migration_excess(&standing.space, NO_MOVE_LIMIT, UINT64_MAX) == 0,
       "without a limit there is no excess");
    standing_close(&standing);
}

int main(void)
{
    check_counts(ROW_CUT_ANY, 1, true, ROOMY, COUNT_MOVES, 1);
    check_counts(ROW_CUT_ANY, 1.07, true, ROOMY, COUNT_MOVES, 2);
    check_counts(ROW_CUT_ANY, 0.9, true, ROOMY, COUNT_MOVES, 3);
    check_counts(ROW_CUT_RANKS, 1, true, ROOMY, COUNT_MOVES, 4);
    check_counts(ROW_CUT_RANKS, 1.07, false, ROOMY, COUNT_MOVES, 5);
    check_counts(ROW_CUT_ANY, 1, true, TIGHT, COUNT_MOVES, 6);
    check_counts(ROW_CUT_ANY, 1, true, TIGHT, 300000, 7);
    check_counts(ROW_CUT_ANY, 1, true, ROOMY, 300000, 8);
    check_excess();
    return tap_done();
}
