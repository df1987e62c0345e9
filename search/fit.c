/* SPDX-License-Identifier: MIT */
#include "search/fit.h"

#include "base/ranked.h"
#include "search/starts.h"
#include "search/temper.h"
#include "search/to_plan.h"

#include <string.h>

/* Number of limits on the size of a piece that are tried. The first limit is
 * the usable memory of the largest device. Each further limit is half of the
 * limit before. */
#define N_SIZES 6
/* Work limits of the exact packing, as numbers of items tried. 10^6 items take
 * some hundredths of a second. */
#define QUICK_WORK 1000000
#define PACK_WORK 10000000
/* The last attempt multiplies the work limits by PATIENCE. It is made for the
 * first N_PATIENT assignments. */
#define PATIENCE 10
#define N_PATIENT 2

/* --- packing items into bins --- */

/*
 * Bin completion (Korf 2003): a depth-first search over the bins, in ascending
 * order of their room. It tries each completion of a bin in turn and goes on
 * with the next bin. A completion is a set of items with two properties:
 *
 *    - It leaves at most as much of the bin empty as all remaining bins
 * together can spare.
 *    - No further item can be added to it. If an item can be added, the
 *      completion with that item is as good.
 *
 * Large items are tried first, because small items fit anywhere later. A state
 * that has failed is not tried again. The set of remaining items identifies a
 * state: it determines which bins remain and how much they can spare.
 *
 * The search is run several times. The limit on the work of a run rises from
 * time to time. Each run draws at random which completions it tries first. A
 * run that ends without reaching its limit is a proof.
 */

#define MAX_ITEMS 512
#define MAX_BINS 256
#define OUT_FIRST 4 /* one in 4 items that fit is at first left out */
#define RUN 200000  /* work limit of each of the first N_ALIKE runs */
#define N_ALIKE 8   /* number of runs before the work limit doubles */
#define N_LARGE 4   /* sets of large items that are tried alone */
#define MEMO_BITS 16
#define SEED 5
#define NO_BIN UINT32_MAX

struct bins {
    uint64_t *sizes; /* [n] bytes of the items, in descending order */
    uint64_t *rooms; /* [n_bins] bytes of the bins, in ascending order */
    uint64_t *spare; /* [n_bins]: bytes of the bin that may stay empty */
    uint32_t n, n_bins;
    uint32_t *bin_of; /* [n]: bin of each item, or NO_BIN */
    struct rng rng;
    uint32_t n_runs;
    uint64_t work, run_end;
    /* hashes of the states that failed in this run */
    uint64_t memo[1 << MEMO_BITS];
};

static bool fill(struct bins *bins, uint32_t bin);

/*
 * Completes the bin with items from index i on, then fills all later bins. Each
 * item is tried inside the bin and outside it. Parameters:
 *
 *    room   space left in the bin
 *    rest   size of all items from i on that have no bin
 *    out    size of the smallest item that is left out
 *
 * Returns true if all items are packed.
 */
static bool complete(struct bins *bins, uint32_t bin, uint32_t i, uint64_t room,
                     uint64_t rest, uint64_t out)
{
    while (i < bins->n && rest + bins->spare[bin] >= room) {
        const uint64_t size = bins->sizes[i];
        const bool fits = size <= room;
        uint64_t rest_behind = rest;
        uint32_t next = i;
        bool out_first;

        if (bins->bin_of[i] != NO_BIN) {
            i++;
            continue;
        }
        if (++bins->work > bins->run_end)
            return false;
        for (; next < bins->n && bins->sizes[next] == size; next++)
            if (bins->bin_of[next] == NO_BIN)
                rest_behind -= size;
        out_first = fits && bins->n_runs && !rng_draw(&bins->rng, OUT_FIRST);
        if (out_first && complete(bins, bin, next, room, rest_behind, size))
            return true;
        if (fits) {
            bins->bin_of[i] = bin;
            if (complete(bins, bin, i + 1, room - size, rest - size, out))
                return true;
            bins->bin_of[i] = NO_BIN;
        }
        if (out_first)
            return false;
        out = size;
        rest = rest_behind;
        i = next;
    }
    return i == bins->n && room <= bins->spare[bin] && out > room &&
           fill(bins, bin + 1);
}

/* Fills this bin and all later bins. Returns true if all items are packed. */
static bool fill(struct bins *bins, uint32_t bin)
{
    uint64_t hash = mix64(bins->n_runs + 1), left = 0, room = 0, *failed;
    bool any_left = false;

    for (uint32_t i = 0; i < bins->n; i++)
        if (bins->bin_of[i] == NO_BIN) {
            any_left = true;
            left += bins->sizes[i];
            hash = mix64(hash ^ bins->sizes[i]);
        }
    for (uint32_t b = bin; b < bins->n_bins; b++)
        room += bins->rooms[b];
    failed = &bins->memo[hash % (1 << MEMO_BITS)];
    if (!any_left || bin == bins->n_bins || left > room || *failed == hash)
        return !any_left;
    bins->spare[bin] = room - left;
    if (complete(bins, bin, 0, bins->rooms[bin], left, UINT64_MAX))
        return true;
    if (bins->work <= bins->run_end)
        *failed = hash;
    return false;
}

static enum bins_answer search(struct bins *bins, uint64_t max_work)
{
    for (bins->n_runs = 0; bins->work < max_work; bins->n_runs++) {
        bins->run_end = bins->work + ((uint64_t)RUN << bins->n_runs / N_ALIKE);
        for (uint32_t i = 0; i < bins->n; i++)
            bins->bin_of[i] = NO_BIN;
        if (fill(bins, 0))
            return BINS_PACKED;
        if (bins->work <= bins->run_end)
            return BINS_NONE;
    }
    return BINS_GAVE_UP;
}

/* Returns true if a short search proves that the largest items alone do not
 * fit. The whole search takes much longer to prove that, because it also tries
 * all sets of small items. The items are first those above half of the
 * largest bin, then those above a quarter, and so on. */
static bool are_too_large(struct bins *bins)
{
    const uint32_t n = bins->n;
    bool is_none = false;

    bins->n = 0;
    for (unsigned i = 1; i <= N_LARGE && !is_none && bins->n < n; i++) {
        const uint64_t above = bins->rooms[bins->n_bins - 1] >> i;
        const uint32_t n_before = bins->n;

        while (bins->n < n && bins->sizes[bins->n] > above)
            bins->n++;
        if (bins->n == n_before)
            continue;
        bins->work = 0;
        is_none = search(bins, RUN) == BINS_NONE;
        memset(bins->memo, 0, sizeof(bins->memo));
    }
    bins->n = n;
    bins->work = 0;
    return is_none;
}

/* Returns the indices of the sizes in ascending order if `sign` is 1, or in
 * descending order if it is -1. */
static const struct ranked *rank(const uint64_t *sizes, uint32_t n, double sign,
                                 struct arena *arena)
{
    struct ranked *ranked = ARENA_NEW(arena, struct ranked, n);

    for (uint32_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){sign * (double)sizes[i], i};
    ranked_sort(ranked, n);
    return ranked;
}

/* Returns the sum of the sizes, or UINT64_MAX if the sum is larger. */
static uint64_t add_up(const uint64_t *sizes, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum = saturating_add(sum, sizes[i]);
    return sum;
}

enum bins_answer bins_pack(uint32_t *bin_of, const uint64_t *sizes, uint32_t n,
                           const uint64_t *rooms, uint32_t n_bins,
                           uint64_t max_work)
{
    const uint64_t all = add_up(sizes, n);
    const struct ranked *items, *order;
    enum bins_answer answer;
    struct arena arena = {0};
    struct bins *bins;

    if (all > add_up(rooms, n_bins))
        return BINS_NONE;
    if (n > MAX_ITEMS || n_bins > MAX_BINS || all > UINT64_MAX / MAX_BINS)
        return BINS_GAVE_UP;
    items = rank(sizes, n, -1, &arena);
    order = rank(rooms, n_bins, 1, &arena);
    bins = ARENA_NEW(&arena, struct bins, 1);
    bins->n = n;
    bins->n_bins = n_bins;
    bins->sizes = ARENA_NEW(&arena, uint64_t, n);
    bins->rooms = ARENA_NEW(&arena, uint64_t, n_bins);
    bins->spare = ARENA_NEW(&arena, uint64_t, n_bins);
    bins->bin_of = ARENA_NEW(&arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        bins->sizes[i] = sizes[items[i].idx];
    for (uint32_t b = 0; b < n_bins; b++)
        bins->rooms[b] = min_u64(rooms[order[b].idx], all);
    rng_init(&bins->rng, SEED, n);
    answer = n_bins && are_too_large(bins) ? BINS_NONE : search(bins, max_work);
    for (uint32_t i = 0; i < n && answer == BINS_PACKED; i++)
        bin_of[items[i].idx] = order[bins->bin_of[i]].idx;
    arena_release(&arena);
    return answer;
}

/* --- packing an assignment into the memory --- */

/* Moves pieces of the assignment to devices with memory for them. Only pieces
 * that may stand on any device are moved; all other pieces keep their devices.
 * If only_rigid is set, only units that cannot be cut are considered: each of
 * them is placed whole or not at all. Changes the assignment only if the
 * function returns BINS_PACKED. */
static enum bins_answer pack(struct snapshot *assignment,
                             const struct search_space *space, bool only_rigid,
                             uint64_t max_work)
{
    uint32_t n_devices = space->n_devices, n = 0;
    uint64_t *sizes = mem_alloc(assignment->n + n_devices, sizeof(*sizes));
    uint64_t *rooms = sizes + assignment->n;
    uint32_t *pieces = mem_alloc(assignment->n, 2 * sizeof(*pieces));
    uint32_t *device_of = pieces + assignment->n;
    enum bins_answer answer = BINS_PACKED;

    memcpy(rooms, space->room_bytes, n_devices * sizeof(*rooms));
    for (uint32_t i = 0; i < assignment->n; i++) {
        const struct change *piece = &assignment->pieces[i];
        const struct piece_type *type = &space->types[piece->type];
        const struct unit *unit = &space->units[type->unit];
        uint64_t bytes = type->bytes;

        if (only_rigid && unit->kinds != SHARD_TABLE && !unit->first->group)
            continue;
        if (space_can_move(space, piece->type)) {
            sizes[n] = bytes;
            pieces[n++] = i;
        } else if (bytes <= rooms[piece->device]) {
            rooms[piece->device] -= bytes;
        } else {
            answer = BINS_NONE;
        }
    }
    if (answer == BINS_PACKED)
        answer = bins_pack(device_of, sizes, n, rooms, n_devices, max_work);
    for (uint32_t k = 0; answer == BINS_PACKED && k < n; k++)
        assignment->pieces[pieces[k]].device = device_of[k];
    mem_free(sizes);
    mem_free(pieces);
    return answer;
}

static bool are_alike(const struct snapshot *a, const struct snapshot *b)
{
    for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
        if (a->pieces[i].type != b->pieces[i].type)
            return false;
    return a->n == b->n;
}

/* Returns the first of n assignments that can be made to fit the memory. All
 * assignments are first packed exactly. If none can be packed, they are
 * annealed. Returns NULL if neither helps. Each annealing that falls short sets
 * failure->lacking_bytes to the least excess seen so far. */
static const struct snapshot *make_fit(struct snapshot *assignments, unsigned n,
                                       const struct search_space *space,
                                       unsigned patience,
                                       struct fit_failure *failure)
{
    for (unsigned i = 0; i < n; i++)
        if (pack(&assignments[i], space, false, patience * PACK_WORK) ==
            BINS_PACKED)
            return &assignments[i];
    for (unsigned i = 0; i < n; i++) {
        uint64_t lacking = temper_repair(&assignments[i], space, patience);

        failure->lacking_bytes = min_u64(failure->lacking_bytes, lacking);
        if (!lacking)
            return &assignments[i];
    }
    return NULL;
}

/*
 * Tries several assignments. Large pieces take the least memory in all, but
 * small pieces fill the devices better. So one assignment has pieces as large
 * as possible, and the others have smaller pieces.
 *
 * Each assignment is packed exactly and then annealed. Exact packing may find a
 * packing or rule one out at once, or it may take for ever. Annealing finds
 * many plans but proves nothing. Both are run with little work first and with
 * more work at the end.
 */
static bool try_hard(struct snapshot *out, const struct search_space *space,
                     struct fit_failure *failure)
{
    struct snapshot assignments[N_SIZES] = {{0}};
    const struct snapshot *found = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < N_SIZES; i++)
        if (starts_by_memory(&assignments[n], space,
                             space->most_room_bytes >> i, true))
            n += !n || !are_alike(&assignments[n], &assignments[n - 1]);
    *failure = (struct fit_failure){
        .is_proven =
            n && pack(&assignments[0], space, true, PACK_WORK) == BINS_NONE,
        .lacking_bytes = UINT64_MAX};
    if (!failure->is_proven)
        found = make_fit(assignments, n, space, 1, failure);
    if (!failure->is_proven && !found)
        found = make_fit(assignments, n < N_PATIENT ? n : N_PATIENT, space,
                         PATIENCE, failure);
    if (found)
        snapshot_copy(out, found);
    for (unsigned i = 0; i < N_SIZES; i++)
        snapshot_release(&assignments[i]);
    return found;
}

bool fit_by_memory(struct snapshot *out, const struct search_space *space,
                   struct fit_failure *failure)
{
    bool found;

    for (unsigned i = 0; i < N_SIZES; i++)
        if (starts_by_memory(out, space, space->most_room_bytes >> i, false))
            return true;
    if (failure)
        found = try_hard(out, space, failure);
    else
        found = starts_by_memory(out, space, space->most_room_bytes, true) &&
                pack(out, space, false, QUICK_WORK) == BINS_PACKED;
    if (found)
        (void)snapshot_join(out, space);
    return found;
}
