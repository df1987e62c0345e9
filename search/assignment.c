/* SPDX-License-Identifier: MIT */
#include "search/assignment.h"

#include <assert.h>
#include <string.h>

/*
 * Invariants that hold for an assignment between two commits. assignment_check
 * verifies them:
 *
 *    pieces  A piece that has a piece type is listed once with its unit and
 *            once with its device, at the slot that the piece stores. A
 *            piece without a type is in the free list, linked by `next`.
 *    limits  Bytes, excess and moved bytes are exact. So an assignment keeps
 *            its limits if and only if its excess is 0.
 *    sums    The sums and the load of a device equal the sums over its
 *            pieces, up to rounding. They are exactly oracle_empty_sum on a
 *            device without pieces.
 *    prices  Terms, loads and total_ms are the oracle's answers for exactly
 *            the stored sums. most_ms are the maxima of the terms.
 *
 * The cost of a commit is proportional to the number of changed pieces and to
 * devices x terms. It does not depend on the number of tables.
 */

/* Number of commits on a device after which its sums are recomputed, so that
 * rounding errors do not accumulate. A device with more than REFRESH pieces is
 * recomputed only after as many commits as it has pieces. So a commit
 * recomputes at most one piece on average. */
#define REFRESH 64

#ifndef ASSIGNMENT_CHECK_EVERY
#    define ASSIGNMENT_CHECK_EVERY 0
#endif
uint32_t assignment_check_every = ASSIGNMENT_CHECK_EVERY;
void (*assignment_checker)(const struct assignment *assignment);

void assignment_init(struct assignment *assignment,
                     const struct search_space *space)
{
    const struct oracle *oracle = space->oracle;
    const uint32_t n = space->n_devices;
    const uint32_t n_terms = oracle->ops->terms ? oracle->n_terms : 1;
    struct arena *arena = &assignment->arena;

    *assignment = (struct assignment){.space = space,
                                      .n_devices = n,
                                      .n_terms = n_terms,
                                      .move_limit_bytes = NO_MOVE_LIMIT};
    assignment->first_of = ARENA_NEW(arena, uint32_t, space->n_units);
    assignment->holdings = ARENA_NEW(arena, struct holding, n);
    assignment->n_commits = ARENA_NEW(arena, uint32_t, n);
    assignment->sums = ARENA_NEW(arena, double, (size_t)n * oracle->width);
    assignment->compute_ms = assignment->terms_ms = ARENA_NEW(arena, double, n);
    if (oracle->ops->terms)
        assignment->terms_ms = ARENA_NEW(arena, double, (size_t)n *n_terms);
    assignment->block_ms =
        ARENA_NEW(arena, double, assignment_n_blocks(n) * (size_t)n_terms);
    assignment->load_ms = ARENA_NEW(arena, double, n);
    assignment->bytes = ARENA_NEW(arena, uint64_t, n);
    if (space->has_tiers)
        assignment->host_bytes =
            ARENA_NEW(arena, uint64_t, space_n_hosts(space));
    if (space->current)
        assignment->moved_bytes = ARENA_NEW(arena, uint64_t, space->n_units);
}

void assignment_release(struct assignment *assignment)
{
    for (uint32_t r = 0; assignment->holdings && r < assignment->n_devices; r++)
        mem_free(assignment->holdings[r].pieces);
    mem_free(assignment->pieces);
    mem_free(assignment->links);
    arena_release(&assignment->arena);
    *assignment = (struct assignment){0};
}

/* Copies a list of n entries over another one, which has room for `capacity`
 * entries and grows if that is not enough. Returns the other list. */
static void *copy_list(void *to, size_t *capacity, const void *from, size_t n,
                       size_t size)
{
    if (n > *capacity) {
        to = mem_grow(to, n, size);
        *capacity = n;
    }
    if (n)
        memcpy(to, from, n * size);
    return to;
}

void assignment_copy(struct assignment *to, const struct assignment *from)
{
    const struct search_space *space = from->space;
    const size_t n = from->n_devices, n_terms = from->n_terms;
    const size_t width = space->oracle->width;

    to->pieces = copy_list(to->pieces, &to->capacity, from->pieces,
                           from->n_pieces, sizeof(*to->pieces));
    to->links = copy_list(to->links, &to->links_capacity, from->links,
                          from->n_pieces, sizeof(*to->links));
    to->n_pieces = from->n_pieces;
    to->first_free = from->first_free;
    to->n_live = from->n_live;
    memcpy(to->first_of, from->first_of,
           space->n_units * sizeof(*to->first_of));
    for (size_t r = 0; r < n; r++) {
        const struct holding *holding = &from->holdings[r];
        struct holding *copy = &to->holdings[r];

        copy->pieces = copy_list(copy->pieces, &copy->capacity, holding->pieces,
                                 holding->n, sizeof(*copy->pieces));
        copy->n = holding->n;
    }
    memcpy(to->n_commits, from->n_commits, n * sizeof(*to->n_commits));
    memcpy(to->sums, from->sums, n * width * sizeof(*to->sums));
    memcpy(to->compute_ms, from->compute_ms, n * sizeof(*to->compute_ms));
    memcpy(to->terms_ms, from->terms_ms, n * n_terms * sizeof(*to->terms_ms));
    memcpy(to->block_ms, from->block_ms,
           assignment_n_blocks(from->n_devices) * n_terms *
               sizeof(*to->block_ms));
    memcpy(to->load_ms, from->load_ms, n * sizeof(*to->load_ms));
    memcpy(to->bytes, from->bytes, n * sizeof(*to->bytes));
    if (to->host_bytes)
        memcpy(to->host_bytes, from->host_bytes,
               space_n_hosts(space) * sizeof(*to->host_bytes));
    if (to->moved_bytes)
        memcpy(to->moved_bytes, from->moved_bytes,
               space->n_units * sizeof(*to->moved_bytes));
    to->excess = from->excess;
    to->move_limit_bytes = from->move_limit_bytes;
    to->all_moved_bytes = from->all_moved_bytes;
    to->total_ms = from->total_ms;
    memcpy(to->most_ms, from->most_ms, sizeof(to->most_ms));
    memcpy(to->leader, from->leader, sizeof(to->leader));
    memcpy(to->weight, from->weight, sizeof(to->weight));
}

/* Adds the host memory of a piece to its host (sign 1) or removes it (sign
 * -1). */
static void count_host(struct assignment *assignment, uint32_t piece, int sign)
{
    const struct search_space *space = assignment->space;
    const struct change *it = &assignment->pieces[piece];
    const uint64_t bytes = space->types[it->type].host_bytes;

    if (assignment->host_bytes)
        assignment->host_bytes[space_host_of(space, it->device)] +=
            sign < 0 ? -bytes : bytes;
}

/* Adds a piece to the list of its device. The piece stores its slot in that
 * list, so it can be removed in O(1): the last piece of the list takes the
 * freed slot. The order of the list does not matter, because random draws
 * choose slots uniformly. */
static void hold(struct assignment *assignment, uint32_t piece)
{
    struct holding *holding =
        &assignment->holdings[assignment->pieces[piece].device];

    holding->pieces = mem_room(holding->pieces, holding->n, &holding->capacity,
                               sizeof(*holding->pieces));
    assignment->links[piece].slot = holding->n;
    holding->pieces[holding->n++] = piece;
    assignment->load_ms[assignment->pieces[piece].device] +=
        assignment->space->load_ms[assignment->pieces[piece].type];
    count_host(assignment, piece, 1);
}

static void let_go(struct assignment *assignment, uint32_t piece)
{
    struct holding *holding =
        &assignment->holdings[assignment->pieces[piece].device];
    uint32_t slot = assignment->links[piece].slot;
    uint32_t last = holding->pieces[--holding->n];

    assert(holding->pieces[slot] == piece || slot == holding->n);
    holding->pieces[slot] = last;
    assignment->links[last].slot = slot;
    assignment->load_ms[assignment->pieces[piece].device] -=
        assignment->space->load_ms[assignment->pieces[piece].type];
    count_host(assignment, piece, -1);
}

/* Adds a new piece to the assignment. change->piece is not used. */
static void insert(struct assignment *assignment, const struct change *change)
{
    uint32_t unit = assignment->space->types[change->type].unit;
    uint32_t idx = assignment->first_free;

    if (idx != NO_PIECE) {
        assignment->first_free = assignment->links[idx].next;
    } else {
        idx = assignment->n_pieces++;
        assignment->pieces =
            mem_room(assignment->pieces, idx, &assignment->capacity,
                     sizeof(*assignment->pieces));
        assignment->links =
            mem_room(assignment->links, idx, &assignment->links_capacity,
                     sizeof(*assignment->links));
    }
    assignment->pieces[idx] = *change;
    assignment->pieces[idx].piece = idx;
    assignment->links[idx].next = assignment->first_of[unit];
    assignment->first_of[unit] = idx;
    assignment->n_live++;
    hold(assignment, idx);
}

/* Removes a piece from its unit and its device. The unit's list is searched
 * from its start. This is fast, because either the list is short or the piece
 * comes first. The index of the removed piece is the first to be reused. */
static void drop(struct assignment *assignment, uint32_t idx)
{
    uint32_t *type = &assignment->pieces[idx].type;
    uint32_t *pos = &assignment->first_of[assignment->space->types[*type].unit];

    let_go(assignment, idx);
    while (*pos != idx)
        pos = &assignment->links[*pos].next;
    *pos = assignment->links[idx].next;
    *type = NO_TYPE;
    assignment->links[idx].next = assignment->first_free;
    assignment->first_free = idx;
    assignment->n_live--;
}

/*
 * --- values that follow from the sums ---
 *
 * If the oracle has terms, the total is a monotone function of the maximum of
 * each term over the devices. Without terms, comm computes the total from the
 * sums of all devices. So if an assignment is nearly even, most changes leave
 * the total as it is: only a change of the leading devices can lower the total.
 */

/* Sets the maximum of each term over one block of devices. */
static void find_block(struct assignment *assignment, uint32_t block)
{
    const size_t n_terms = assignment->n_terms;
    const uint32_t begin = block * ASSIGNMENT_BLOCK;
    const uint32_t end =
        (uint32_t)min_u64(begin + ASSIGNMENT_BLOCK, assignment->n_devices);
    double *most_ms = assignment->block_ms + block * n_terms;

    for (size_t k = 0; k < n_terms; k++)
        most_ms[k] = assignment->terms_ms[begin * n_terms + k];
    for (uint32_t r = begin + 1; r < end; r++)
        for (size_t k = 0; k < n_terms; k++)
            most_ms[k] =
                max_of(assignment->terms_ms[r * n_terms + k], most_ms[k]);
}

/* Finds the leader of each term: the device with the largest value, or the
 * first such device if several have this value. The random draws of a chain
 * depend on the leaders. So the leaders must depend only on the assignment, not
 * on the order of the changes that led to it. Recomputes only the blocks of the
 * n given devices, or all blocks if `devices` is NULL. */
static void find_leaders(struct assignment *assignment, const uint32_t *devices,
                         uint32_t n)
{
    const size_t n_terms = assignment->n_terms;
    const uint32_t n_blocks = assignment_n_blocks(assignment->n_devices);

    if (!devices || n > n_blocks)
        for (uint32_t b = 0; b < n_blocks; b++)
            find_block(assignment, b);
    else
        for (uint32_t i = 0; i < n; i++)
            find_block(assignment, devices[i] / ASSIGNMENT_BLOCK);
    for (size_t k = 0; k < n_terms; k++) {
        const double *terms = assignment->block_ms + k;
        uint32_t block = 0, leader;

        for (uint32_t b = 1; b < n_blocks; b++)
            if (terms[b * n_terms] > terms[block * n_terms])
                block = b;
        assignment->most_ms[k] = terms[block * n_terms];
        leader = block * ASSIGNMENT_BLOCK;
        while (assignment->terms_ms[leader * n_terms + k] <
               assignment->most_ms[k])
            leader++;
        assignment->leader[k] = leader;
    }
}

/* Sets the load of a device to the total of its terms if the oracle has terms.
 * Without terms the load stays the sum of the loads of its pieces, which hold()
 * and let_go() keep up to date. */
static void set_load(struct assignment *assignment, uint32_t r)
{
    const struct oracle *oracle = assignment->space->oracle;

    if (oracle->ops->terms)
        assignment->load_ms[r] = oracle_terms_total_ms(
            oracle, assignment->terms_ms + r * assignment->n_terms);
}

/* Number of pieces after which a piece type that was asked for is in the cache.
 * The types of the pieces of a device are spread over all piece types. */
#define AHEAD 4

/* Loads a piece type into the cache. A long list has more piece types than the
 * cache holds, and without this, adding up waits for memory most of the
 * time. */
static void load_ahead(const struct search_space *space, uint32_t type)
{
    const char *vector =
        (const char *)(space->vectors + type * (size_t)space->oracle->width);
    const size_t n_bytes = space->oracle->width * sizeof(*space->vectors);

    __builtin_prefetch(&space->types[type].bytes);
    __builtin_prefetch(&space->load_ms[type]);
    for (size_t i = 0; i < n_bytes; i += CACHE_LINE)
        __builtin_prefetch(vector + i);
}

/* Recomputes the sums, the load and the bytes of a device from its pieces. The
 * pieces are added in the order of the device's list. That order depends on
 * earlier changes, so the totals of equal assignments may differ in their last
 * bits. */
static void add_up(struct assignment *assignment, uint32_t r)
{
    const size_t width = assignment->space->oracle->width;
    const struct holding *holding = &assignment->holdings[r];
    double *sum = assignment->sums + r * width;

    oracle_empty_sum(assignment->space->oracle, r, sum);
    assignment->load_ms[r] = 0;
    assignment->bytes[r] = 0;
    assignment->n_commits[r] = 0;
    for (uint32_t i = 0; i < holding->n; i++) {
        uint32_t type = assignment->pieces[holding->pieces[i]].type;
        const double *vector = assignment->space->vectors + type * width;

        if (i + AHEAD < holding->n)
            load_ahead(assignment->space,
                       assignment->pieces[holding->pieces[i + AHEAD]].type);
        assignment->load_ms[r] += assignment->space->load_ms[type];
        assignment->bytes[r] = saturating_add(
            assignment->bytes[r], assignment->space->types[type].bytes);
        add_lanes(sum, sum, vector, 1, width);
    }
}

/* Recomputes the excess of the assignment from scratch. If differences were
 * added instead, rounding errors would remain where the excess should be 0, and
 * an assignment that keeps all limits would not be recognised. */
static void add_excess(struct assignment *assignment)
{
    assignment->excess = 0;
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        assignment->excess +=
            assignment_excess(assignment, r, assignment->bytes[r]);
    for (uint32_t h = 0; h < space_n_hosts(assignment->space); h++)
        assignment->excess +=
            space_host_excess(assignment->space, assignment->host_bytes[h]);
    if (assignment_counts_moves(assignment))
        assignment->excess +=
            migration_excess(assignment->space, assignment->move_limit_bytes,
                             assignment->all_moved_bytes);
}

/* Applies changes to their assignment. Devices that the changes do not touch
 * keep their values. Touched devices get the values of the effect. The sums of
 * a device are recomputed from its pieces after REFRESH commits, or after as
 * many commits as it has pieces if that is more. */
void assignment_commit(struct assignment *assignment,
                       const struct snapshot *changes,
                       const struct effect *effect)
{
    const size_t width = assignment->space->oracle->width;
    const size_t n_terms = assignment->n_terms;

    for (uint32_t c = 0; c < changes->n; c++) {
        const struct change *change = &changes->pieces[c];

        if (change->type == NO_TYPE) {
            drop(assignment, change->piece);
        } else if (change->piece == NO_PIECE) {
            insert(assignment, change);
        } else {
            let_go(assignment, change->piece);
            assignment->pieces[change->piece] = *change;
            hold(assignment, change->piece);
        }
    }
    for (uint32_t i = 0; i < effect->n_devices; i++) {
        uint32_t r = effect->devices[i];

        assignment->compute_ms[r] = effect->compute_ms[i];
        assignment->bytes[r] = effect->bytes[i];
        memcpy(assignment->sums + r * width, effect->sums + i * width,
               width * sizeof(double));
        memcpy(assignment->terms_ms + r * n_terms,
               effect->terms_ms + i * n_terms, n_terms * sizeof(double));
        if (++assignment->n_commits[r] >= REFRESH &&
            assignment->n_commits[r] >= assignment->holdings[r].n)
            add_up(assignment, r);
        set_load(assignment, r);
    }
    assignment->total_ms = effect->total_ms;
    for (uint32_t i = 0; i < effect->n_moved; i++)
        assignment->moved_bytes[effect->moved[i].unit] = effect->moved[i].bytes;
    assignment->all_moved_bytes = effect->all_moved_bytes;
    find_leaders(assignment, effect->devices, effect->n_devices);
    if (assignment->excess > 0 || effect->excess > 0)
        add_excess(assignment);
    if (assignment_check_every &&
        ++assignment->n_unchecked >= assignment_check_every) {
        assignment->n_unchecked = 0;
        assignment_checker(assignment);
    }
}

/* Returns the total as comm computes it. If the oracle has terms, the search
 * uses the total of the maxima of the terms instead. This equals comm's total
 * exactly only if the oracle is additive (core/oracle.h). So final comparisons
 * of assignments use this function. */
double assignment_true_total(const struct assignment *assignment)
{
    return oracle_comm_total_ms(assignment->space->oracle, assignment->sums,
                                assignment->compute_ms);
}

/* Sets the weight of each term: the rise of the total in ms per ms of the
 * term's maximum. The weight is a finite difference over a step of near_frac
 * times the maximum. So a term that is hidden by another term still has a
 * weight, as long as the other term is larger by less than this step. */
static void weigh_terms(struct assignment *assignment)
{
    const struct oracle *oracle = assignment->space->oracle;
    const double near_frac = assignment->space->tuning->near_frac;

    for (size_t k = 0; k < assignment->n_terms; k++) {
        const double ms = assignment->most_ms[k];

        assignment->weight[k] = 1;
        if (!oracle->ops->terms || !oracle->step || !(ms > 0))
            continue;
        assignment->most_ms[k] = ms * (1 + near_frac);
        assignment->weight[k] =
            (oracle_terms_total_ms(oracle, assignment->most_ms) -
             assignment->total_ms) /
            (near_frac * ms);
        assignment->most_ms[k] = ms;
    }
}

/* Counts the migration of all units. */
static void count_migration(struct assignment *assignment)
{
    struct snapshot pieces = {0};

    assignment->all_moved_bytes = 0;
    for (uint32_t u = 0; u < assignment->space->n_units; u++) {
        pieces.n = 0;
        for (uint32_t i = assignment->first_of[u]; i != NO_PIECE;
             i = assignment->links[i].next)
            *snapshot_next(&pieces) = assignment->pieces[i];
        assignment->moved_bytes[u] =
            migration_of_unit(assignment->space, &pieces);
        assignment->all_moved_bytes = saturating_add(
            assignment->all_moved_bytes, assignment->moved_bytes[u]);
    }
    snapshot_release(&pieces);
}

void assignment_price(struct assignment *assignment)
{
    const struct oracle *oracle = assignment->space->oracle;

    for (uint32_t r = 0; r < assignment->n_devices; r++)
        add_up(assignment, r);
    if (oracle->ops->terms)
        oracle->ops->terms(oracle, assignment->sums, assignment->n_devices,
                           assignment->compute_ms, assignment->terms_ms);
    else
        oracle->ops->compute(oracle, assignment->sums, assignment->n_devices,
                             assignment->compute_ms);
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        set_load(assignment, r);
    find_leaders(assignment, NULL, 0);
    if (assignment->moved_bytes)
        count_migration(assignment);
    add_excess(assignment);
    assignment->total_ms =
        oracle->ops->terms ? oracle_terms_total_ms(oracle, assignment->most_ms)
                           : assignment_true_total(assignment);
    weigh_terms(assignment);
}

/* --- snapshots --- */

/* Saves the pieces in the order of the assignment's array, without the unused
 * entries between them. An assignment that is loaded from the snapshot has
 * other indices and slots than the saved one. So a chain that continues from
 * the loaded assignment draws other moves. */
void snapshot_save(struct snapshot *snapshot,
                   const struct assignment *assignment)
{
    snapshot->n = 0;
    for (uint32_t i = 0; i < assignment->n_pieces; i++)
        if (assignment->pieces[i].type != NO_TYPE)
            *snapshot_next(snapshot) = assignment->pieces[i];
    snapshot->total_ms = assignment->total_ms;
    snapshot->excess = assignment->excess;
}

/* Replaces all pieces of the assignment by those of the snapshot. The allocated
 * memory is kept, because assignments are loaded often. */
void snapshot_load(const struct snapshot *snapshot,
                   struct assignment *assignment)
{
    assignment->n_pieces = assignment->n_live = 0;
    assignment->first_free = NO_PIECE;
    for (uint32_t u = 0; u < assignment->space->n_units; u++)
        assignment->first_of[u] = NO_PIECE;
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        assignment->holdings[r].n = 0;
    for (uint32_t h = 0; h < space_n_hosts(assignment->space); h++)
        assignment->host_bytes[h] = 0;
    for (uint32_t i = 0; i < snapshot->n; i++)
        insert(assignment, &snapshot->pieces[i]);
    assignment_price(assignment);
}

/* Computes the price of the snapshot. Builds an assignment for this purpose,
 * because the caller may have none. This is too slow for the steps of a
 * chain. */
void snapshot_price(struct snapshot *snapshot, const struct search_space *space)
{
    struct assignment assignment;

    assignment_init(&assignment, space);
    snapshot_load(snapshot, &assignment);
    snapshot->total_ms = assignment_true_total(&assignment);
    snapshot->excess = assignment.excess;
    assignment_release(&assignment);
}
