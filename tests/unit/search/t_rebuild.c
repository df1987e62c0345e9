/* SPDX-License-Identifier: MIT */
#include "search/moves.h"

#include "search/evaluator.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/scene.h"
#include "tests/unit/search/standing.h"

#define N_REBUILDS 2000

struct site {
    struct scene scene;
    struct evaluator evaluator;
    struct rng rng;
};

/* Opens a scene with all tables placed. */
static void site_open(struct site *site, enum scene_sort sort)
{
    scene_open(&site->scene, sort);
    evaluator_init(&site->evaluator, &site->scene.space);
    snapshot_load(&site->scene.start, &site->evaluator.assignment);
    rng_init(&site->rng, 11, 0);
}

static void site_close(struct site *site)
{
    evaluator_release(&site->evaluator);
    scene_close(&site->scene);
}

/* Rebuilds some units: in random shardings, or poured into the gaps between
 * device loads (search/moves.h). */
static void rebuild_some(struct site *site, bool pours)
{
    const struct sharding *shardings[TUNING_MAX_REBUILT];
    uint32_t order[SCENE_TABLES],
        n = 1 + rng_draw(&site->rng, TUNING_MAX_REBUILT);

    for (uint32_t i = 0; i < SCENE_TABLES; i++)
        order[i] = i;
    rng_shuffle(&site->rng, order, SCENE_TABLES);
    for (uint32_t i = 0; i < n; i++) {
        const struct unit *unit = &site->scene.space.units[order[i]];

        shardings[i] =
            &unit->shardings[pours ? 0
                                   : rng_draw(&site->rng, unit->n_shardings)];
    }
    candidate_clear(&site->evaluator.candidate);
    rebuild(&site->evaluator.candidate, &site->evaluator.assignment, shardings,
            n, &site->rng);
}

/* Returns true if the loads and bytes that the rebuild assumed follow from its
 * changes. */
static bool knows_loads(const struct candidate *candidate,
                        const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;
    double ms[SCENE_DEVICES];
    uint64_t bytes[SCENE_DEVICES];
    bool knows = true;

    memcpy(ms, assignment->load_ms, sizeof ms);
    memcpy(bytes, assignment->bytes, sizeof bytes);
    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        const struct change *change = &candidate->changes.pieces[c];
        const struct change *piece = &assignment->pieces[change->piece];

        if (change->piece != NO_PIECE) {
            ms[piece->device] -= space->standalone_ms[piece->type];
            bytes[piece->device] -= space->types[piece->type].bytes;
        }
        if (change->type != NO_TYPE) {
            ms[change->device] += space->standalone_ms[change->type];
            bytes[change->device] += space->types[change->type].bytes;
        }
    }
    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        knows &= bytes[r] == candidate->estimates[r].bytes &&
                 fabs(ms[r] - candidate->estimates[r].load_ms) <= 1e-9;
    return knows;
}

/* After any rebuild the assignment is valid, and its stored values are
 * right. */
static void check_assignments(enum scene_sort sort)
{
    struct err err = {0};
    unsigned n_wrong = 0, n_off = 0;
    struct site site;

    site_open(&site, sort);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        rebuild_some(&site, i % 2);
        n_off +=
            !knows_loads(&site.evaluator.candidate, &site.evaluator.assignment);
        (void)evaluator_price(&site.evaluator);
        candidate_commit(&site.evaluator.assignment, &site.evaluator.candidate);
        n_wrong += assignment_check(&site.evaluator.assignment, &err) != 0;
    }
    ok(!n_wrong, "assignments stay valid, %u times not: %s", n_wrong, err.msg);
    ok(!n_off, "assumed loads match the assignment, %u times not", n_off);
    site_close(&site);
}

static double most_load(const struct assignment *assignment, double *mean)
{
    double most = 0;

    *mean = 0;
    for (uint32_t r = 0; r < SCENE_DEVICES; r++) {
        *mean += assignment->load_ms[r] / SCENE_DEVICES;
        most = fmax(most, assignment->load_ms[r]);
    }
    return most;
}

/* Rebuilds that lower the load of the busiest device are committed, the others
 * are not. */
static void check_pouring(void)
{
    struct site site;
    struct assignment *assignment = &site.evaluator.assignment;
    const struct candidate *candidate = &site.evaluator.candidate;
    double most, mean, first;

    site_open(&site, ADDITIVE);
    first = most_load(assignment, &mean);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        bool is_kept = true;

        most = most_load(assignment, &mean);
        rebuild_some(&site, true);
        (void)evaluator_price(&site.evaluator);
        for (uint32_t k = 0; k < candidate->after.n_devices; k++)
            is_kept =
                is_kept &&
                candidate->estimates[candidate->after.devices[k]].load_ms <=
                    most;
        if (is_kept)
            candidate_commit(assignment, candidate);
    }
    most = most_load(assignment, &mean);
    ok(first > 1.2 * mean && most < 1.05 * mean,
       "gaps are filled: %.3g ms, then %.3g, the mean is %.3g", first, most,
       mean);
    site_close(&site);
}

/* Returns true if the whole unit goes to a device with the least excess memory,
 * and among these to the one with the least load. */
static bool goes_best(const struct site *site, uint32_t unit)
{
    const struct assignment *assignment = &site->evaluator.assignment;
    const struct candidate *candidate = &site->evaluator.candidate;
    const struct change *put =
        &candidate->changes.pieces[candidate->changes.n - 1];
    double ms[SCENE_DEVICES], excess[SCENE_DEVICES];
    uint64_t bytes[SCENE_DEVICES];
    bool is_best = true;

    memcpy(ms, assignment->load_ms, sizeof ms);
    memcpy(bytes, assignment->bytes, sizeof bytes);
    for (uint32_t i = assignment->first_of[unit]; i != NO_PIECE;
         i = assignment->links[i].next) {
        const struct change *piece = &assignment->pieces[i];

        ms[piece->device] -= assignment->space->standalone_ms[piece->type];
        bytes[piece->device] -= assignment->space->types[piece->type].bytes;
    }
    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        excess[r] = assignment_excess(
            assignment, r,
            bytes[r] + assignment->space->types[put->type].bytes);
    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        is_best &= excess[r] > excess[put->device] ||
                   (excess[r] == excess[put->device] &&
                    ms[r] >= ms[put->device] - 1e-12);
    return is_best;
}

static void check_devices(void)
{
    const uint64_t room_bytes[SCENE_DEVICES] = {1 << 18, 1 << 19, 1 << 20,
                                                1 << 21};
    struct tuning tuning = tuning_default;
    unsigned n_wrong = 0;
    struct site site;

    site_open(&site, ADDITIVE);
    tuning.pours = false;
    site.scene.space.tuning = &tuning;
    site.scene.space.room_bytes = room_bytes;
    assignment_price(&site.evaluator.assignment);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        const uint32_t u = rng_draw(&site.rng, SCENE_TABLES);
        const struct sharding *whole = site.scene.space.units[u].shardings;

        rebuild_some(&site, false);
        (void)evaluator_price(&site.evaluator);
        candidate_commit(&site.evaluator.assignment, &site.evaluator.candidate);
        candidate_clear(&site.evaluator.candidate);
        rebuild(&site.evaluator.candidate, &site.evaluator.assignment, &whole,
                1, &site.rng);
        n_wrong += !goes_best(&site, u);
    }
    is_i64(n_wrong, 0, "whole tables go where there is room, and least to do");
    site_close(&site);
}

/* Returns true if the candidate puts two pieces on one device. */
static bool has_two(const struct candidate *candidate)
{
    unsigned used = 0; /* one bit per device */
    bool any = false;

    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        if (candidate->changes.pieces[c].type == NO_TYPE)
            continue;
        any |= used >> candidate->changes.pieces[c].device & 1;
        used |= 1u << candidate->changes.pieces[c].device;
    }
    return any;
}

/* The column ranges of a grid that fills hosts go to different hosts,
 * regardless of the other tables. Six devices make three hosts. */
static void check_hosts(void)
{
    struct standing standing;
    struct evaluator *evaluator = &standing.evaluator;
    const struct sharding *sharding;
    const struct search_space *space = &standing.space;
    unsigned n_grids = 0, n_wrong = 0;

    standing_open(&standing, 3, ROW_CUT_RANKS, 1, UINT64_C(1) << 30);
    for (uint32_t i = 0; i < N_REBUILDS; i++) {
        propose(&evaluator->candidate, &evaluator->assignment, &standing.rng);
        if (evaluator->candidate.changes.n &&
            isfinite(evaluator_price(evaluator)))
            candidate_commit(&evaluator->assignment, &evaluator->candidate);
        sharding = &space->units[0].shardings[i % space->units[0].n_shardings];
        if (!sharding->fills_host || sharding->n_ranges > 3)
            continue;
        candidate_clear(&evaluator->candidate);
        rebuild(&evaluator->candidate, &evaluator->assignment, &sharding, 1,
                &standing.rng);
        n_grids += sharding->n_ranges > 1;
        n_wrong += has_two(&evaluator->candidate);
    }
    ok(n_grids > 50 && !n_wrong, "%u grids; pieces of %u share a device",
       n_grids, n_wrong);
    standing_close(&standing);
}

int main(void)
{
    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++)
        check_assignments(sort);
    check_pouring();
    check_devices();
    check_hosts();
    return tap_done();
}
