/* SPDX-License-Identifier: MIT */
#include "search/reshardable.h"

#include "search/moves.h"
#include "search/to_plan.h"
#include "tests/tap.h"
#include "tests/unit/search/standing.h"

#include <string.h>

/* Opens a current plan for reshard: a grid, row blocks, columns, replicas and
 * whole tables, of which all but columns and whole tables stay. */
static void open_reshard(struct standing *standing, struct tuning *tuning)
{
    struct err err = {0};

    standing_open(standing, 7, ROW_CUT_ANY, 1, UINT64_C(1) << 40);
    ok(!reshardable_begin(&standing->current, &standing->from,
                          &standing->problem, &standing->arena, &err),
       "reshard can change the plan: %s", err.msg);
    reshardable_restrict(&standing->space, tuning);
    ok(!reshardable_check_nearest(&standing->nearest, &standing->space, &err),
       "all pieces can be kept: %s", err.msg);
}

/* Returns whether a table has the same pieces in two plans. */
static bool has_same_pieces(const struct table_pieces *a,
                            const struct table_pieces *b)
{
    bool is_same = a->n == b->n;

    for (size_t i = 0; i < b->n && is_same; i++) {
        const struct shard *x = &a->pieces[i], *y = &b->pieces[i];

        is_same = x->row_begin == y->row_begin && x->row_end == y->row_end &&
                  x->col_begin == y->col_begin && x->col_end == y->col_end;
    }
    return is_same;
}

static void check_plan(const struct standing *standing)
{
    const struct problem *problem = &standing->problem;
    struct table_pieces pieces[STANDING_TABLES];
    struct plan plan = {.problem = *problem};
    struct snapshot found = {0};
    struct arena arena = {0};

    snapshot_save(&found, &standing->evaluator.assignment);
    snapshot_to_plan(&found, &standing->space, &plan, &arena);
    table_pieces_find(pieces, problem->tables, STANDING_TABLES, &plan);
    for (size_t t = 0; t < STANDING_TABLES; t++) {
        const struct table_pieces *before = &standing->current.before[t];
        const bool stays = t == 0 || t == 1 || t == 3;
        size_t n_same = 0;

        for (size_t i = 0; i < before->n && i < pieces[t].n; i++)
            n_same += before->pieces[i].device == pieces[t].pieces[i].device;
        ok(has_same_pieces(before, &pieces[t]), "table %zu keeps its cuts", t);
        ok(!stays || n_same == before->n, "table %zu may move or stays", t);
    }
    ok(pieces[2].pieces[0].device != pieces[2].pieces[1].device,
       "two pieces of a table are on two devices");
    snapshot_release(&found);
    arena_release(&arena);
}

/* Marks the units that the candidate changes. */
static void note_units(bool *has_moved, const struct standing *standing)
{
    const struct snapshot *changes = &standing->evaluator.candidate.changes;

    for (uint32_t c = 0; c < changes->n; c++)
        has_moved[standing->space.types[changes->pieces[c].type].unit] = true;
}

/* Random changes, committed whatever they cost, move whole pieces only. */
static void test_walk(void)
{
    struct tuning tuning;
    struct standing standing;
    bool has_moved[STANDING_TABLES] = {false};

    open_reshard(&standing, &tuning);
    standing.evaluator.assignment.move_limit_bytes = NO_MOVE_LIMIT;
    for (uint32_t i = 0; i < 1000; i++) {
        propose(&standing.evaluator.candidate, &standing.evaluator.assignment,
                &standing.rng);
        if (!standing.evaluator.candidate.changes.n)
            continue;
        (void)evaluator_price(&standing.evaluator);
        candidate_commit(&standing.evaluator.assignment,
                         &standing.evaluator.candidate);
        note_units(has_moved, &standing);
    }
    for (uint32_t u = 0; u < standing.space.n_units; u++)
        ok(has_moved[u] != standing.space.units[u].stays, "unit %u %s", u,
           has_moved[u] ? "moves" : "stays");
    check_plan(&standing);
    standing_close(&standing);
}

/* A piece on another device than in the current plan is noticed if it stays. */
static void test_nearest(void)
{
    struct tuning tuning;
    struct standing standing;
    struct err err = {0};

    open_reshard(&standing, &tuning);
    for (uint32_t i = 0; i < standing.nearest.n; i++) {
        struct change *piece = &standing.nearest.pieces[i];

        if (standing.space.types[piece->type].kind == SHARD_ROW) {
            piece->device = 0;
            break;
        }
    }
    ok(reshardable_check_nearest(&standing.nearest, &standing.space, &err) &&
           strstr(err.msg, "cannot keep its pieces"),
       "refused: %s", err.msg);
    standing_close(&standing);
}

int main(void)
{
    test_walk();
    test_nearest();
    return tap_done();
}
