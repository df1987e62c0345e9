/* SPDX-License-Identifier: MIT */
/* A candidate has the same price in a batch and alone, and its predicted values
 * match the assignment after the commit. */
#include "search/evaluator.h"

#include "search/fit.h"
#include "search/moves.h"
#include "search/space_init.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/scene.h"
#include "tests/unit/search/standing.h"

#define N_STEPS 200
#define N_TOGETHER 4

struct tally {
    unsigned n, n_empty;
    unsigned n_other; /* candidates whose total differs if priced alone */
    /* candidates whose prediction differs from the committed assignment */
    unsigned n_surprise;
    unsigned n_unsound, n_exceeding, n_miscounted;
    unsigned n_apart; /* devices whose sums differ if computed by themselves */
};

static void come_true(struct evaluator *evaluator, struct tally *tally)
{
    struct assignment *assignment = &evaluator->assignment;
    const double total_ms = evaluator->candidate.after.total_ms;
    const double excess = evaluator->candidate.after.excess;
    struct err err = {0};

    candidate_commit(assignment, &evaluator->candidate);
    /* committing computes sums from scratch now and then, and the excess always
     */
    tally->n_surprise +=
        !(fabs(assignment->total_ms - total_ms) <= 1e-9 * fabs(total_ms)) ||
        !(fabs(assignment->excess - excess) <= 1e-12);
    tally->n_exceeding += excess > 0;
    if (assignment_check(assignment, &err) && !tally->n_unsound++)
        printf("# %s\n", err.msg);
}

/* Counts the devices whose sum, computed for one device alone beforehand,
 * differs. */
static unsigned n_summed_otherwise(struct evaluator *evaluator)
{
    const struct assignment *assignment = &evaluator->assignment;
    struct candidate *candidate = &evaluator->candidate;
    const size_t width = assignment->space->oracle->width;
    const size_t n = assignment->n_devices * width;
    double *alone = mem_alloc(n, sizeof(*alone));
    unsigned n_other = 0;

    for (uint32_t r = 0; r < assignment->n_devices; r++)
        memcpy(alone + r * width, candidate_sum_on(candidate, assignment, r),
               width * sizeof(*alone));
    candidate_sum(candidate, assignment);
    for (uint32_t i = 0; i < candidate->after.n_devices; i++)
        n_other += memcmp(alone + candidate->after.devices[i] * width,
                          candidate->after.sums + i * width,
                          width * sizeof(*alone)) != 0;
    mem_free(alone);
    return n_other;
}

static void step(struct evaluator *const *evaluators, struct pricing *pricing,
                 struct rng *rng, struct tally *tally)
{
    uint64_t n_priced[N_TOGETHER];

    for (unsigned i = 0; i < N_TOGETHER; i++) {
        propose(&evaluators[i]->candidate, &evaluators[i]->assignment, rng);
        tally->n_apart += n_summed_otherwise(evaluators[i]);
        n_priced[i] = evaluators[i]->n_priced;
    }
    evaluators_price(evaluators, N_TOGETHER, pricing);
    for (unsigned i = 0; i < N_TOGETHER; i++) {
        struct candidate *candidate = &evaluators[i]->candidate;
        const double together_ms = candidate->after.total_ms;
        struct pricing alone; /* without any earlier prices */

        tally->n++;
        tally->n_empty += !candidate->changes.n;
        tally->n_miscounted +=
            evaluators[i]->n_priced - n_priced[i] != (candidate->changes.n > 0);
        pricing_init(&alone, evaluators[i]->assignment.space, 1);
        evaluators_price(&evaluators[i], 1, &alone);
        tally->n_other += candidate->after.total_ms != together_ms;
        if (candidate->changes.n)
            come_true(evaluators[i], tally);
        pricing_release(&alone);
    }
}

/* Random walks of several assignments, some of which exceed the memory. */
static void walk(const char *name, struct search_space *space,
                 const struct snapshot *start)
{
    uint64_t room_bytes[SCENE_DEVICES];
    struct evaluator all[N_TOGETHER], *evaluators[N_TOGETHER];
    struct tally tally = {0};
    struct pricing pricing;
    struct rng rng;

    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        room_bytes[r] = (r + 1) << 20;
    space->room_bytes = room_bytes;
    pricing_init(&pricing, space, N_TOGETHER);
    for (unsigned i = 0; i < N_TOGETHER; i++) {
        evaluators[i] = &all[i];
        evaluator_init(evaluators[i], space);
        snapshot_load(start, &evaluators[i]->assignment);
    }
    rng_init(&rng, 61, 0);
    for (unsigned i = 0; i < N_STEPS; i++)
        step(evaluators, &pricing, &rng, &tally);
    ok(tally.n_empty < tally.n * 3 / 4 && tally.n_exceeding &&
           tally.n_exceeding < tally.n,
       "%s: %u candidates: %u change nothing, %u exceed the memory", name,
       tally.n, tally.n_empty, tally.n_exceeding);
    is_i64(tally.n_other, 0, "a candidate costs the same in a batch and alone");
    is_i64(tally.n_surprise, 0, "assignments are as the candidates predicted");
    is_i64(tally.n_unsound, 0, "and valid");
    is_i64(tally.n_miscounted, 0, "candidates without changes are not counted");
    is_i64(tally.n_apart, 0, "a device's sums are the same computed alone");
    for (unsigned i = 0; i < N_TOGETHER; i++)
        evaluator_release(evaluators[i]);
    pricing_release(&pricing);
}

/* An oracle whose comm is priced in halves; the backward half is remembered. */
static void walk_by_halves(void)
{
    struct snapshot start = {0};
    struct err err = {0};
    struct oracle oracle;
    struct scene scene;
    struct search_space space;

    scene_open(&scene, BY_COMM);
    oracle = fake_oracle(&scene.problem);
    if (ok(!space_init(&space, &scene.problem, &oracle, NULL, NULL,
                       &scene.arena, &err) &&
               fit_by_memory(&start, &space, NULL),
           "a start by halves: %s", err.msg))
        walk("by halves", &space, &start);
    snapshot_release(&start);
    scene_close(&scene);
}

/* --- row blocks on one device --- */

/* Computes the devices of a grid's pieces after the candidate. Returns true if
 * two pieces of one row block would share a device. */
static bool would_meet(const struct candidate *candidate,
                       const struct assignment *assignment)
{
    const struct piece_type *types = assignment->space->types;
    struct change all[64];
    uint32_t n = 0;

    for (uint32_t i = 0; i < assignment->n_pieces; i++) {
        const struct change *piece = &assignment->pieces[i];

        if (piece->type == NO_TYPE || types[piece->type].kind != SHARD_GRID)
            continue;
        all[n] = (struct change){i, piece->type, piece->device, piece->range,
                                 piece->block};
        for (uint32_t c = 0; c < candidate->changes.n; c++)
            if (candidate->changes.pieces[c].piece == i)
                all[n] = candidate->changes.pieces[c];
        for (uint32_t k = 0; k < n; k++)
            if (all[k].device == all[n].device &&
                all[k].block == all[n].block &&
                types[all[k].type].unit == types[all[n].type].unit)
                return true;
        n++;
    }
    return false;
}

/* Some pieces of a grid move to random devices. A candidate is refused if a
 * piece would join another piece of its rows, in any order of the changes. */
static void check_meeting(void)
{
    unsigned n_met = 0, n_wrong = 0, n = 1000;
    struct standing standing;
    struct candidate *candidate = &standing.evaluator.candidate;
    const struct assignment *assignment = &standing.evaluator.assignment;

    standing_open(&standing, 3, ROW_CUT_ANY, 1, UINT64_C(1) << 30);
    for (unsigned i = 0; i < n; i++) {
        bool meet;

        candidate_clear(candidate);
        for (uint32_t k = 0; k < assignment->n_pieces; k++) {
            const struct change *piece = &assignment->pieces[k];

            if (piece->type != NO_TYPE &&
                standing.space.types[piece->type].kind == SHARD_GRID &&
                rng_below(&standing.rng, 2))
                *snapshot_next(&candidate->changes) = (struct change){
                    k, piece->type, rng_draw(&standing.rng, STANDING_GPUS),
                    piece->range, piece->block};
        }
        meet = would_meet(candidate, assignment);
        n_met += meet;
        n_wrong += candidate_join(candidate, assignment) == meet;
    }
    ok(n_met > n / 10 && n_met < n * 9 / 10,
       "%u candidates: in %u two pieces would share a device", n, n_met);
    is_i64(n_wrong, 0, "exactly these are refused");
    standing_close(&standing);
}

int main(void)
{
    static const char *const names[] = {"additive", "by terms", "by comm"};

    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++) {
        struct scene scene;

        scene_open(&scene, sort);
        walk(names[sort], &scene.space, &scene.start);
        scene_close(&scene);
    }
    walk_by_halves();
    check_meeting();
    return tap_done();
}
