/* SPDX-License-Identifier: MIT */
/* Random assignments are simplified. If more cost is allowed, the result never
 * changes the training of more units, with as many changes it never has more
 * pieces, and with as many pieces it never costs more. Half of them may copy no
 * pieces while changes are found. */
#include "search/local_search.h"

#include "search/carry_over.h"
#include "search/evaluator.h"
#include "search/moves.h"
#include "search/space_init.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/standing.h"

#include <float.h>

#define N_ASSIGNMENTS 100
#define N_CHANGES 20
/* Usable memory of a device: six devices hold nearly twice the bytes of all
 * tables. */
#define TIGHT 400000

struct tally {
    unsigned n_wrong, n_over, n_changed, n_more, n_dearer, n_simpler;
};

/* Changes the assignment by a few random changes that do not increase the
 * excess. */
static void change(struct evaluator *evaluator, struct rng *rng)
{
    for (unsigned i = 0; i < N_CHANGES; i++) {
        propose(&evaluator->candidate, &evaluator->assignment, rng);
        if (!evaluator->candidate.changes.n ||
            !isfinite(evaluator_price(evaluator)) ||
            evaluator->candidate.after.excess > evaluator->assignment.excess)
            continue;
        candidate_commit(&evaluator->assignment, &evaluator->candidate);
    }
    assignment_price(&evaluator->assignment);
}

/* Returns the number of pieces of units whose training the snapshot changes. */
static uint32_t count_changed(const struct search_space *space,
                              const struct snapshot *snapshot)
{
    uint32_t n = 0;
    bool *is_changed = mem_alloc(space->n_units, sizeof(*is_changed));

    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct piece_type *type = &space->types[snapshot->pieces[i].type];

        if (type->kind & space->units[type->unit].changing)
            is_changed[type->unit] = true;
    }
    for (uint32_t u = 0; u < space->n_units; u++)
        n += is_changed[u];
    mem_free(is_changed);
    return n;
}

/* Compares a simplification with the one at a lower allowance. */
static void compare(struct tally *tally, const struct standing *standing,
                    const struct snapshot *simple,
                    const struct snapshot *before)
{
    const uint32_t n_changed = count_changed(&standing->space, simple),
                   n_before = count_changed(&standing->space, before);

    tally->n_changed += n_changed > n_before;
    if (n_changed != n_before)
        return;
    tally->n_more += simple->n > before->n;
    tally->n_dearer +=
        simple->n == before->n && simple->total_ms > before->total_ms;
    tally->n_simpler += simple->n < before->n;
}

static void try_assignment(struct standing *standing, struct tally *tally,
                           uint64_t most_copied)
{
    static const double rises[] = {DBL_MIN, 0.002, 0.01, 0.02, 0.05, 0.07,
                                   0.1,     0.15,  0.2,  0.3,  0.5,  1};
    struct assignment *assignment = &standing->evaluator.assignment;
    struct snapshot given = {0}, before = {0};
    struct err err = {0};

    change(&standing->evaluator, &standing->rng);
    tally->n_wrong += assignment->excess > 0;
    snapshot_save(&given, assignment);
    snapshot_price(&given, &standing->space);
    snapshot_copy(&before, &given);
    for (size_t i = 0; i < sizeof rises / sizeof *rises; i++) {
        struct snapshot simple = {0};

        snapshot_copy(&simple, &given);
        (void)simplify(&simple, &standing->space,
                       &(struct simplify_limits){
                           given.total_ms * (1 + rises[i]), NO_MOVE_LIMIT,
                           UINT64_MAX, INFINITY, most_copied});
        tally->n_over += simple.excess > 0 ||
                         simple.total_ms > given.total_ms * (1 + rises[i]);
        compare(tally, standing, &simple, &before);
        snapshot_copy(&before, &simple);
        snapshot_release(&simple);
    }
    snapshot_load(&before, assignment);
    tally->n_wrong += assignment_check(assignment, &err) != 0;
    snapshot_release(&before);
    snapshot_load(&given, assignment);
    snapshot_release(&given);
}

/* A table that may not stay whole keeps two of its four row blocks. */
static void test_rows(void)
{
    static const uint64_t rows[] = {1000};
    static const uint32_t dims[] = {16};
    struct shard blocks[4];
    struct snapshot simple = {0};
    struct arena arena = {0};
    struct problem problem;
    struct oracle oracle;
    struct search_space space;
    struct plan plan;
    struct err err;

    for (uint32_t r = 0; r < 4; r++)
        blocks[r] = (struct shard){0, SHARD_ROW, 250 * r, 250 * r + 250,
                                   0, 16,        r,       TIER_HBM};
    fake_problem(&problem, rows, dims, 1, 4, UINT64_C(1) << 30, &arena);
    problem.kinds = SHARD_ROW;
    oracle = fake_oracle(&problem);
    oracle.kinds = SHARD_ALL_KINDS;
    oracle.row_cut = ROW_CUT_ANY;
    plan = fake_plan(&problem, blocks, 4, &arena);
    if (space_init(&space, &problem, &oracle, NULL, NULL, &arena, &err) ||
        !snapshot_from_plan(&simple, &space, &plan)) {
        ok(0, "four row blocks");
    } else {
        snapshot_price(&simple, &space);
        (void)simplify(&simple, &space,
                       &(struct simplify_limits){2 * simple.total_ms,
                                                 NO_MOVE_LIMIT, UINT64_MAX,
                                                 INFINITY, 0});
        is_i64(simple.n, 2, "four row blocks become two");
    }
    snapshot_release(&simple);
    arena_release(&arena);
}

int main(void)
{
    for (uint64_t memory = TIGHT; memory <= 3 * TIGHT; memory *= 3) {
        struct tally tally = {0};

        for (uint64_t seed = 1; seed < 5; seed++) {
            struct standing standing;

            standing_open(&standing, seed, ROW_CUT_ANY, 1, memory);
            standing.evaluator.assignment.move_limit_bytes = NO_MOVE_LIMIT;
            for (unsigned i = 0; i < N_ASSIGNMENTS; i++)
                try_assignment(&standing, &tally, i % 2 ? 0 : UINT64_MAX);
            standing_close(&standing);
        }
        is_i64(tally.n_wrong, 0, "simpler assignments are valid");
        is_i64(tally.n_over, 0, "all stay within the allowed cost");
        is_i64(tally.n_changed, 0,
               "a higher allowance never changes more training");
        is_i64(tally.n_more, 0, "nor has it more pieces for the same");
        is_i64(tally.n_dearer, 0, "nor as many pieces at a higher cost");
        ok(tally.n_simpler > N_ASSIGNMENTS, "%u are simpler", tally.n_simpler);
    }
    test_rows();
    return tap_done();
}
