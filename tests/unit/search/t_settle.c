/* SPDX-License-Identifier: MIT */
/* Local search never makes a random assignment worse. */
#include "search/local_search.h"

#include "search/evaluator.h"
#include "search/moves.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/standing.h"

#define N_ASSIGNMENTS 60
#define N_CHANGES 20
/* Usable memory of a device: six devices hold slightly more than all tables. */
#define TIGHT 230000

struct tally {
    unsigned n_wrong, n_dearer, n_over, n_cheaper;
};

/* Changes the assignment by a few random changes. */
static void change(struct evaluator *evaluator, struct rng *rng)
{
    for (unsigned i = 0; i < N_CHANGES; i++) {
        propose(&evaluator->candidate, &evaluator->assignment, rng);
        if (evaluator->candidate.changes.n &&
            isfinite(evaluator_price(evaluator)))
            candidate_commit(&evaluator->assignment, &evaluator->candidate);
    }
}

static void try_assignment(struct standing *standing, bool by_memory,
                           struct tally *tally)
{
    struct assignment *assignment = &standing->evaluator.assignment;
    struct snapshot settled = {0};
    struct err err = {0};
    double total_ms, excess;

    change(&standing->evaluator, &standing->rng);
    assignment_price(assignment);
    total_ms = assignment->total_ms;
    excess = assignment->excess;
    snapshot_save(&settled, assignment);
    (void)settle(&settled, &standing->space, by_memory, 0);
    snapshot_load(&settled, assignment);
    tally->n_wrong += assignment_check(assignment, &err) != 0;
    tally->n_dearer += assignment->total_ms > total_ms * (1 + 1e-9);
    tally->n_cheaper += assignment->total_ms < total_ms * (1 - 1e-9);
    tally->n_over += assignment->excess > excess + 1e-9;
    snapshot_release(&settled);
}

int main(void)
{
    for (int by_memory = 0; by_memory < 2; by_memory++) {
        struct tally tally = {0};

        for (uint64_t seed = 1; seed < 5; seed++) {
            struct standing standing;

            standing_open(&standing, seed, ROW_CUT_ANY, 1, TIGHT);
            standing.evaluator.assignment.move_limit_bytes = NO_MOVE_LIMIT;
            for (unsigned i = 0; i < N_ASSIGNMENTS; i++)
                try_assignment(&standing, by_memory, &tally);
            standing_close(&standing);
        }
        is_i64(tally.n_wrong, 0,
               "assignments after the local search are valid");
        is_i64(tally.n_dearer, 0, "no assignment costs more");
        is_i64(tally.n_over, 0, "none exceeds the memory more");
        ok(by_memory || tally.n_cheaper > 2 * N_ASSIGNMENTS, "%u are cheaper",
           tally.n_cheaper);
    }
    return tap_done();
}
