/* SPDX-License-Identifier: MIT */
#include "tests/unit/search/assignment_check.h"

#include "search/evaluator.h"
#include "search/fit.h"
#include "search/moves.h"
#include "search/space_init.h"
#include "tests/unit/search/scene.h"
#include "tests/unit/search/standing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TABLES 1000

#define N_STEPS 400

/* Damages the assignment as a forgotten or repeated update would. Returns
 * false, without a change, if the assignment cannot have this fault. */
typedef bool spoil_fn(struct assignment *assignment, uint32_t piece);

/* --- lists --- */

static bool spoil_first(struct assignment *assignment, uint32_t piece)
{
    uint32_t unit =
        assignment->space->types[assignment->pieces[piece].type].unit;

    assignment->first_of[unit] = NO_PIECE;
    return true;
}

static bool spoil_next(struct assignment *assignment, uint32_t piece)
{
    if (assignment->links[piece].next == NO_PIECE)
        return false;
    assignment->links[piece].next = NO_PIECE;
    return true;
}

static bool spoil_loop(struct assignment *assignment, uint32_t piece)
{
    assignment->links[piece].next = piece;
    return true;
}

static bool spoil_slot(struct assignment *assignment, uint32_t piece)
{
    assignment->links[piece].slot++;
    return true;
}

static bool spoil_number(struct assignment *assignment, uint32_t piece)
{
    assignment->pieces[piece].piece++;
    return true;
}

static bool spoil_holding(struct assignment *assignment, uint32_t piece)
{
    assignment->holdings[assignment->pieces[piece].device].n--;
    return true;
}

static bool spoil_held_twice(struct assignment *assignment, uint32_t piece)
{
    assignment->holdings[assignment->pieces[piece].device].n++;
    return true;
}

static bool spoil_held(struct assignment *assignment, uint32_t piece)
{
    struct holding *holding =
        &assignment->holdings[assignment->pieces[piece].device];

    if (holding->n < 2)
        return false;
    holding->pieces[0] = holding->pieces[1];
    return true;
}

static bool spoil_live(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->n_live--;
    return true;
}

static bool spoil_free(struct assignment *assignment, uint32_t piece)
{
    assignment->first_free = piece;
    return true;
}

static bool spoil_leak(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    if (assignment->first_free == NO_PIECE)
        return false;
    assignment->first_free = NO_PIECE;
    return true;
}

/* --- pieces --- */

static bool spoil_unit(struct assignment *assignment, uint32_t piece)
{
    uint32_t unit =
        assignment->space->types[assignment->pieces[piece].type].unit;

    assignment->pieces[piece].type =
        assignment->space->units[(unit + 1) % assignment->space->n_units]
            .whole[TIER_HBM];
    return true;
}

static bool spoil_width(struct assignment *assignment, uint32_t piece)
{
    const struct piece_type *type =
        &assignment->space->types[assignment->pieces[piece].type];
    const struct unit *unit = &assignment->space->units[type->unit];

    if (!(type->kind & (SHARD_TABLE | SHARD_COLUMN)) ||
        unit->columns[TIER_HBM] == NO_TYPE || type->width == unit->width_step)
        return false;
    assignment->pieces[piece].type = unit->columns[TIER_HBM];
    return true;
}

static bool is_block(const struct assignment *assignment, uint32_t piece)
{
    const uint32_t type = assignment->pieces[piece].type;

    return space_sharding_of(assignment->space, type)->kind == SHARDING_ROWS;
}

static bool spoil_block(struct assignment *assignment, uint32_t piece)
{
    if (!is_block(assignment, piece))
        return false;
    assignment->pieces[piece].block ^= 1;
    return true;
}

static bool spoil_range(struct assignment *assignment, uint32_t piece)
{
    if (!is_block(assignment, piece))
        return false;
    assignment->pieces[piece].range++;
    return true;
}

static bool spoil_device(struct assignment *assignment, uint32_t piece)
{
    uint32_t *device = &assignment->pieces[piece].device;

    *device = (*device + 1) % assignment->n_devices;
    return true;
}

/* --- figures --- */

static bool spoil_bytes(struct assignment *assignment, uint32_t piece)
{
    assignment->bytes[assignment->pieces[piece].device]++;
    return true;
}

/* Leaves a part of a piece's sums on its device. */
static bool spoil_sums(struct assignment *assignment, uint32_t piece)
{
    uint32_t width = assignment->space->oracle->width;
    double *sums = assignment->sums + assignment->pieces[piece].device * width;

    sums[0] +=
        1e-3 *
        assignment->space->vectors[assignment->pieces[piece].type * width];
    return true;
}

static bool spoil_compute(struct assignment *assignment, uint32_t piece)
{
    assignment->compute_ms[assignment->pieces[piece].device] +=
        1e-3 * assignment->total_ms;
    return true;
}

static bool spoil_term(struct assignment *assignment, uint32_t piece)
{
    assignment
        ->terms_ms[assignment->pieces[piece].device * assignment->n_terms] *=
        1.001;
    return true;
}

static bool spoil_load(struct assignment *assignment, uint32_t piece)
{
    assignment->load_ms[assignment->pieces[piece].device] *= 1.001;
    return true;
}

static bool spoil_excess(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->excess += ASSIGNMENT_ANY_EXCESS;
    return true;
}

static bool spoil_total(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->total_ms *= 1.001;
    return true;
}

static bool spoil_most(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->most_ms[0] *= 0.999;
    return true;
}

static bool spoil_block_most(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->block_ms[0] *= 1.001;
    return assignment->block_ms[0] > 0;
}

static bool spoil_leader(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->leader[0] = (assignment->leader[0] + 1) % assignment->n_devices;
    return assignment->n_devices > 1;
}

/* Makes another device the leader, with that device's own value, which is not
 * the largest. */
static bool spoil_lead(struct assignment *assignment, uint32_t piece)
{
    const uint32_t other = (assignment->leader[0] + 1) % assignment->n_devices;
    const double most_ms = assignment->most_ms[0];

    (void)piece;
    assignment->leader[0] = other;
    assignment->most_ms[0] = assignment->terms_ms[other * assignment->n_terms];
    return assignment->most_ms[0] < most_ms;
}

static bool spoil_none_leads(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->leader[0] = assignment->n_devices;
    return true;
}

/* Migration is counted only if a plan is replaced. */
static bool spoil_moved(struct assignment *assignment, uint32_t piece)
{
    uint32_t unit =
        assignment->space->types[assignment->pieces[piece].type].unit;

    if (!assignment_counts_moves(assignment))
        return false;
    assignment->moved_bytes[unit]++;
    return true;
}

static bool spoil_all_moved(struct assignment *assignment, uint32_t piece)
{
    (void)piece;
    assignment->all_moved_bytes++;
    return assignment_counts_moves(assignment);
}

static const struct {
    const char *name;
    spoil_fn *spoil;
    const char *says[2]; /* text of the check's message, or an alternative */
} faults[] = {
    {"the first of a unit", spoil_first, {"pieces in lists"}},
    {"the next of a unit", spoil_next, {"pieces in lists"}},
    {"a list that goes round", spoil_loop, {"the list of a unit"}},
    {"the slot", spoil_slot, {"the slot of a piece"}},
    {"the number", spoil_number, {"the number of a piece"}},
    {"pieces of a device, their number",
     spoil_holding,
     {"the slot of a piece"}},
    {"a piece too many of a device", spoil_held_twice, {"pieces in lists"}},
    {"pieces of a device", spoil_held, {"the slot of a piece"}},
    {"live pieces", spoil_live, {"the list of a unit"}},
    {"a live piece that is free", spoil_free, {"in the free list"}},
    {"free pieces that are lost", spoil_leak, {"free pieces"}},
    {"a part of another unit", spoil_unit, {"is of its unit"}},
    {"the width", spoil_width, {"is in "}},
    {"the block", spoil_block, {"the block of a piece", "is in "}},
    {"the range", spoil_range, {"the block of a piece", "is in "}},
    {"the device", spoil_device, {"the slot of a piece"}},
    {"bytes", spoil_bytes, {"the bytes of a device"}},
    {"sums", spoil_sums, {"the sums of a device"}},
    {"compute", spoil_compute, {"a term", "the compute"}},
    {"terms", spoil_term, {"a term"}},
    {"load", spoil_load, {"the load of a device"}},
    {"excess", spoil_excess, {"the excess"}},
    {"total", spoil_total, {"the total"}},
    {"largest term", spoil_most, {"leads a term"}},
    {"the largest of a block", spoil_block_most, {"of a block"}},
    {"the device that has it", spoil_leader, {"leads a term"}},
    {"both", spoil_lead, {"leads a term"}},
    {"a device that there is not", spoil_none_leads, {"leads a term"}},
    {"bytes of a unit that move", spoil_moved, {"the bytes that a unit moves"}},
    {"bytes that move", spoil_all_moved, {"the bytes that move"}},
};
#define N_FAULTS (sizeof faults / sizeof *faults)

/* --- the random walk --- */

struct tally {
    unsigned n_wrong; /* assignments that are refused */
    unsigned n_made[N_FAULTS], n_caught[N_FAULTS];
};

static bool is_caught(const struct assignment *assignment, size_t fault)
{
    const char *const *says = faults[fault].says;
    struct err err = {0};

    return assignment_check(assignment, &err) && err.code == ERR_INPUT &&
           (strstr(err.msg, says[0]) || (says[1] && strstr(err.msg, says[1])));
}

static void spoil_once(struct evaluator *evaluator, uint32_t piece,
                       size_t fault, struct tally *tally)
{
    struct assignment *assignment = &evaluator->assignment;
    struct snapshot saved = {0};

    if (assignment->pieces[piece].type == NO_TYPE)
        return;
    snapshot_save(&saved, assignment);
    if (faults[fault].spoil(assignment, piece)) {
        tally->n_made[fault]++;
        tally->n_caught[fault] += is_caught(assignment, fault);
    }
    snapshot_load(&saved, &evaluator->assignment);
    snapshot_release(&saved);
}

/* After each step of a random walk the assignment passes the check, and a
 * damaged one does not. */
static void walk(struct evaluator *evaluator, struct rng *rng,
                 struct tally *tally)
{
    struct err err = {0};

    for (unsigned i = 0; i < N_STEPS; i++) {
        propose(&evaluator->candidate, &evaluator->assignment, rng);
        if (evaluator->candidate.changes.n &&
            isfinite(evaluator_price(evaluator)))
            candidate_commit(&evaluator->assignment, &evaluator->candidate);
        tally->n_wrong += assignment_check(&evaluator->assignment, &err) != 0;
        spoil_once(evaluator, rng_draw(rng, evaluator->assignment.n_pieces),
                   i % N_FAULTS, tally);
    }
    ok(!tally->n_wrong, "layouts are right, %u times not: %s", tally->n_wrong,
       err.msg);
}

static void walk_scene(enum scene_sort sort, struct tally *tally)
{
    struct scene scene;
    struct evaluator evaluator;
    struct rng rng;

    scene_open(&scene, sort);
    evaluator_init(&evaluator, &scene.space);
    snapshot_load(&scene.start, &evaluator.assignment);
    rng_init(&rng, 23, sort);
    walk(&evaluator, &rng, tally);
    evaluator_release(&evaluator);
    scene_close(&scene);
}

static void walk_from_current(enum row_cut row_cut, uint64_t move_limit_bytes,
                              struct tally *tally)
{
    struct standing standing;

    standing_open(&standing, 24, row_cut, 1.07, UINT64_C(1) << 30);
    standing.evaluator.assignment.move_limit_bytes = move_limit_bytes;
    snapshot_load(&standing.nearest, &standing.evaluator.assignment);
    walk(&standing.evaluator, &standing.rng, tally);
    standing_close(&standing);
}

/* Returns true if a search would be aborted that commits n changes of an
 * assignment with one byte too many, if every `every`-th commit is checked. */
static bool is_aborted(uint32_t every, unsigned n)
{
    struct standing standing;
    struct evaluator *evaluator = &standing.evaluator;
    pid_t child = fork();
    int status = 0;

    if (child) {
        ok(child > 0 && waitpid(child, &status, 0) == child, "a child");
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    }
    if (!freopen("/dev/null", "w", stdout) ||
        !freopen("/dev/null", "w", stderr))
        _exit(1);
    assignment_check_every = 0;
    standing_open(&standing, 24, ROW_CUT_ANY, 1, UINT64_C(1) << 30);
    assignment_check_every = every;
    for (unsigned i = 0; i < n;) {
        propose(&evaluator->candidate, &evaluator->assignment, &standing.rng);
        if (!evaluator->candidate.changes.n ||
            !isfinite(evaluator_price(evaluator)))
            continue;
        for (uint32_t k = 0; !i && k < evaluator->candidate.after.n_devices;
             k++)
            evaluator->candidate.after.bytes[k]++;
        candidate_commit(&evaluator->assignment, &evaluator->candidate);
        i++;
    }
    _exit(0);
}

static void check_sometimes(void)
{
    ok(!is_aborted(0, 5), "no commit is checked");
    ok(is_aborted(1, 1), "each is, and the search ends");
    ok(!is_aborted(3, 2) && is_aborted(3, 3), "or each third");
}

/* Makes a scene of n whole tables on two devices. */
static void open_tables(struct scene *scene, uint32_t n)
{
    uint64_t rows[MAX_TABLES];
    uint32_t dims[MAX_TABLES];
    struct err err = {0};
    struct rng rng;

    *scene = (struct scene){0};
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 1000 + i;
        dims[i] = 16;
    }
    fake_problem(&scene->problem, rows, dims, n, 2, UINT64_C(1) << 30,
                 &scene->arena);
    scene->problem.kinds = SHARD_TABLE;
    rng_init(&rng, 43, n);
    random_oracle_init(&scene->oracle, &scene->problem, &rng);
    ok(!space_init(&scene->space, &scene->problem, &scene->oracle.base, NULL,
                   NULL, &scene->arena, &err) &&
           fit_by_memory(&scene->start, &scene->space, NULL),
       "%u tables: %s", n, err.msg);
}

/* A device's sums are computed from scratch after 64 changes, or after as many
 * changes as the device has pieces if that is more. Tables are swapped
 * between two devices. Returns how often the sums of one device were computed
 * from scratch. */
static unsigned count_refreshes(uint32_t n_tables)
{
    struct scene scene;
    struct evaluator evaluator;
    const struct assignment *assignment = &evaluator.assignment;
    unsigned n_refreshed = 0, n_wrong = 0;
    struct rng rng;

    open_tables(&scene, n_tables);
    evaluator_init(&evaluator, &scene.space);
    snapshot_load(&scene.start, &evaluator.assignment);
    rng_init(&rng, 43, n_tables);
    for (unsigned i = 0; i < 2000; i++) {
        const uint32_t piece = rng_draw(&rng, assignment->n_pieces);
        const uint32_t before[] = {assignment->n_commits[0],
                                   assignment->n_commits[1]};

        candidate_clear(&evaluator.candidate);
        candidate_send(&evaluator.candidate, assignment, piece, 0,
                       1 - assignment->pieces[piece].device);
        (void)evaluator_price(&evaluator);
        candidate_commit(&evaluator.assignment, &evaluator.candidate);
        for (uint32_t r = 0; r < 2; r++) {
            const uint32_t n = assignment->holdings[r].n;
            const bool is_due = before[r] + 1 >= (n > 64 ? n : 64);

            n_refreshed += is_due;
            n_wrong += assignment->n_commits[r] != (is_due ? 0 : before[r] + 1);
        }
    }
    is_i64(n_wrong, 0, "sums are added up afresh in time");
    (void)evaluator_release(&evaluator);
    scene_close(&scene);
    return n_refreshed;
}

static void check_refreshes(void)
{
    unsigned n_many;

    is_i64(count_refreshes(20), 2 * (2000 / 64),
           "a device of ten pieces at each 64th change");
    n_many = count_refreshes(MAX_TABLES);
    ok(n_many >= 6 && n_many <= 8,
       "a device of about 500 pieces at each 500th: %u", n_many);
}

int main(void)
{
    struct tally tally = {0};

    check_sometimes();
    check_refreshes();

    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++)
        walk_scene(sort, &tally);
    walk_from_current(ROW_CUT_ANY, COUNT_MOVES, &tally);
    walk_from_current(ROW_CUT_RANKS, 10000, &tally);
    for (size_t i = 0; i < N_FAULTS; i++)
        ok(tally.n_made[i] > 0 && tally.n_caught[i] == tally.n_made[i],
           "%s: %u of %u caught", faults[i].name, tally.n_caught[i],
           tally.n_made[i]);
    return tap_done();
}
