/* SPDX-License-Identifier: MIT */
/* Random assignments are moved back towards the current plan. */
#include "search/carry_over.h"

#include "search/moves.h"
#include "search/replan.h"
#include "search/space_init.h"
#include "tests/unit/search/standing.h"

#define N_ASSIGNMENTS 60
#define N_CHANGES 40

struct tally {
    unsigned n_less; /* assignments whose migration shrank, as it should */
    unsigned n_more, n_over, n_left, n_front;
};

/* Opens a replan of the current plan, as search_replan makes it. */
static void replan_open(struct replan *replan, struct standing *standing)
{
    *replan =
        (struct replan){.plan = ARENA_NEW(&standing->arena, struct plan, 1),
                        .current = standing->current,
                        .space = standing->space};
    replan->space.current = &replan->current;
    evaluator_init(&replan->evaluator, &replan->space);
    replan->evaluator.assignment.move_limit_bytes = COUNT_MOVES;
    snapshot_load(&standing->nearest, &replan->evaluator.assignment);
}

static void replan_close(struct replan *replan)
{
    evaluator_release(&replan->evaluator);
    front_release(&replan->front);
}

static void change(struct replan *replan, struct rng *rng)
{
    struct evaluator *evaluator = &replan->evaluator;

    for (uint32_t n = rng_draw(rng, N_CHANGES) + 1; n > 0; n--) {
        propose(&evaluator->candidate, &evaluator->assignment, rng);
        if (evaluator->candidate.changes.n &&
            isfinite(evaluator_price(evaluator)))
            candidate_commit(&evaluator->assignment, &evaluator->candidate);
    }
}

/* Returns true if returning this unit to the current plan would lower the
 * migration. */
static bool could_go(struct replan *replan, uint32_t unit)
{
    struct evaluator *evaluator = &replan->evaluator;

    candidate_clear(&evaluator->candidate);
    current_propose(&evaluator->candidate, &evaluator->assignment, unit);
    return evaluator->candidate.changes.n &&
           isfinite(evaluator_price(evaluator)) &&
           evaluator->candidate.after.excess <= evaluator->assignment.excess &&
           evaluator->candidate.after.all_moved_bytes <
               evaluator->assignment.all_moved_bytes;
}

static void lessen(struct replan *replan, struct tally *tally)
{
    const struct assignment *assignment = &replan->evaluator.assignment;
    uint64_t moved_bytes = assignment->all_moved_bytes;
    double excess = assignment->excess;

    (void)replan_offer_assignment(replan);
    replan_lessen(replan);
    tally->n_less += assignment->all_moved_bytes < moved_bytes;
    tally->n_more += assignment->all_moved_bytes > moved_bytes;
    tally->n_over += assignment->excess > excess;
    for (uint32_t u = 0; u < replan->space.n_units; u++)
        tally->n_left += could_go(replan, u);
    tally->n_front +=
        assignment->excess <= 0 &&
        !(replan->front.n &&
          replan->front.points[0].moved_bytes <= assignment->all_moved_bytes);
}

/* Runs the test with memory that does or does not hold the current plan. */
static void check(uint64_t memory_bytes, bool fits)
{
    struct tally tally = {0};
    struct standing standing;
    struct replan replan;

    standing_open(&standing, 2, ROW_CUT_ANY, 1, memory_bytes);
    replan_open(&replan, &standing);
    ok(!(replan.evaluator.assignment.excess > 0) == fits, "the current plan %s",
       fits ? "fits" : "does not fit");
    for (unsigned i = 0; i < N_ASSIGNMENTS; i++) {
        change(&replan, &standing.rng);
        lessen(&replan, &tally);
    }
    ok(tally.n_less > N_ASSIGNMENTS / 2, "movement becomes less %u times",
       tally.n_less);
    is_i64(tally.n_more, 0, "and never more");
    is_i64(tally.n_over, 0, "never for memory");
    is_i64(tally.n_left, 0, "until no unit could go home");
    is_i64(tally.n_front, 0, "and what fits is offered");
    replan_close(&replan);
    standing_close(&standing);
}

/* Two of three tables have moved. Returning the first costs less per byte than
 * returning the second, so it is returned first, and that assignment is on the
 * path. */
static void check_order(void)
{
    const uint64_t rows[] = {1000, 1000, 1100};
    const uint32_t dims[] = {16, 16, 16}, home[] = {0, 0, 0};
    const double pooling[] = {100, 1, 10};
    struct standing standing = {0};
    struct replan replan;
    const struct snapshot *points = replan.front.points;
    struct snapshot away = {0};
    struct err err = {0};

    rng_init(&standing.rng, 62, 0);
    fake_problem(&standing.problem, rows, dims, 3, 2, UINT64_C(1) << 30,
                 &standing.arena);
    standing.problem.kinds = SHARD_TABLE;
    for (unsigned t = 0; t < 3; t++)
        standing.problem.tables[t].pooling_factor = pooling[t];
    do
        random_oracle_init(&standing.oracle, &standing.problem, &standing.rng);
    while (!standing.oracle.base.is_additive);
    standing.oracle.piece_ms = standing.oracle.vector_ms = 0;
    standing.oracle.output_ms = standing.oracle.narrow = 0;
    standing.from =
        fake_whole_plan(&standing.problem, home, 3, &standing.arena);
    current_init(&standing.current, &standing.problem, &standing.from,
                 &standing.arena);
    ok(!space_init(&standing.space, &standing.problem, &standing.oracle.base,
                   &standing.current, NULL, &standing.arena, &err),
       "three tables: %s", err.msg);
    carry_over(&standing.nearest, &standing.space);
    current_keep_nearest(&standing.current, &standing.nearest, &standing.space,
                         &standing.arena);
    replan_open(&replan, &standing);
    for (uint32_t u = 0; u < 3; u++)
        *snapshot_next(&away) =
            (struct change){.piece = NO_PIECE,
                            .type = standing.space.units[u].whole[TIER_HBM],
                            .device = standing.space.units[u].tables[0] > 0};
    snapshot_load(&away, &replan.evaluator.assignment);
    (void)replan_offer_assignment(&replan);
    replan_lessen(&replan);
    if (ok(replan.front.n == 3,
           "three assignments: none, one or both tables returned"))
        is_near(points[1].total_ms / points[2].total_ms, 1.01, 1e-9,
                "the middle one returned the cheaper table");
    snapshot_release(&away);
    replan_close(&replan);
    snapshot_release(&standing.nearest);
    arena_release(&standing.arena);
}

int main(void)
{
    check_order();
    check(UINT64_C(1) << 30, true);
    check(230000, false);
    return tap_done();
}
