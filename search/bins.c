/* SPDX-License-Identifier: MIT */
#include "search/bins.h"

#include "base/ranked.h"
#include "base/rng.h"
#include "core/problem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bin completion (Korf 2003), a depth-first search over bins: of those that are
 * left, the one with the fewest completions - sets of items that fill it as far
 * as it must be, as what all bins together leave empty is known from the start
 * - and these one by one, those of few, large items first: small ones fit
 * anywhere later. Completions are found by meeting in the middle (Horowitz and
 * Sahni 1974): the sets of the smallest items lie sorted, the larger items are
 * tried in or out. Items that are left tell what is left of bins and slack, so
 * what failed once is not tried again.
 *
 * Runs are broken off after Luby's sequence (1993) of lengths, and the next
 * draws which completions it meets first. Most let no bin waste more than
 * WASTE times its share of what is left over, which rules nothing out that is
 * likely; a run that does not, and that nothing cut short, is a proof.
 */

#define MAX_ITEMS 512
#define MAX_BINS 256
#define WORDS (MAX_ITEMS / 64)
#define MAX_TAIL 12       /* bundles of items whose sets lie sorted */
#define MAX_FOUND 64      /* completions of a bin that are looked at */
#define ENUMERATION 65536 /* work to find those of one bin */
#define RUN 200000        /* work of the shortest run */
#define FULL_RUNS 8       /* every so manieth lets a bin waste all there is */
#define WASTE 2.0
#define MEMO_BITS 16
#define SEED 5

struct completion {
    uint64_t sum;
    uint32_t n_items;
    uint64_t items[WORDS];
};

/* Items of one size that go together. */
struct tail_bundle {
    uint32_t begin, n; /* in the level's items */
};

struct subset {
    uint64_t sum;
    uint32_t bundles; /* of the tail, a mask */
};

struct level {
    uint32_t *items, n_items; /* left, the largest first */
    uint32_t *bins, n_bins;   /* left */
    uint32_t bin;             /* that is filled here */
    struct completion *found; /* [n_found], of MAX_FOUND */
    uint32_t n_found, chosen;
};

struct bins {
    uint64_t *sizes; /* the largest first */
    const uint64_t *rooms;
    struct level *levels;
    struct rng rng;
    uint32_t n_runs;
    uint64_t work, run_end;
    bool is_complete; /* whether nothing was left out */
    uint64_t slack;   /* of this level: room that stays empty */
    double room;      /* of its bins in all */
    /* of the enumeration in hand */
    const struct level *at;
    uint64_t *suffix; /* sums of the items from here on */
    struct subset tail[1 << MAX_TAIL], other[1 << MAX_TAIL];
    struct tail_bundle bundles[MAX_TAIL];
    uint32_t n_bundles, n_head;
    uint64_t least, most, end;
    uint64_t chosen[WORDS];
    uint32_t n_chosen;
    struct completion found[MAX_FOUND];
    uint32_t n_found, max_found;
    bool is_cut_short;
    uint64_t memo[1 << MEMO_BITS];
};

/* The smallest items, in bundles; of those of one size 1, 2, 4 ... and the rest
 * go together, which makes all numbers of them. */
static void bundle_tail(struct bins *bins, const struct level *level)
{
    uint32_t max = level->n_items / 2, end = level->n_items, run = 0, n = 1;

    if (max > MAX_TAIL)
        max = MAX_TAIL;
    for (bins->n_bundles = 0; bins->n_bundles < max && end;) {
        uint64_t size = bins->sizes[level->items[end - 1]];

        if (!run) {
            while (run < end &&
                   bins->sizes[level->items[end - 1 - run]] == size)
                run++;
            n = 1;
        }
        n = n < run ? n : run;
        end -= n;
        bins->bundles[bins->n_bundles++] = (struct tail_bundle){end, n};
        run -= n;
        n *= 2;
    }
    bins->n_head = end;
}

/* All sets of the bundles, by their sums: each bundle in turn is merged in. */
static void sort_tail(struct bins *bins, const struct level *level)
{
    struct subset *from = bins->tail, *to = bins->other;
    uint32_t size = 1;

    from[0] = (struct subset){0};
    for (uint32_t k = 0; k < bins->n_bundles; k++) {
        const struct tail_bundle *bundle = &bins->bundles[k];
        uint64_t more = bundle->n * bins->sizes[level->items[bundle->begin]];

        for (uint32_t i = 0, j = 0, at = 0; at < 2 * size; at++)
            if (j == size || (i < size && from[i].sum <= from[j].sum + more)) {
                to[at] = from[i++];
            } else {
                to[at].sum = from[j].sum + more;
                to[at].bundles = from[j++].bundles | 1u << k;
            }
        memcpy(from, to, 2 * size * sizeof(*to));
        size *= 2;
    }
    bins->work += size;
    bins->suffix[level->n_items] = 0;
    for (uint32_t i = level->n_items; i-- > 0;)
        bins->suffix[i] = bins->suffix[i + 1] + bins->sizes[level->items[i]];
}

static void note(struct bins *bins, const struct subset *tail, uint64_t sum)
{
    struct completion *found = &bins->found[bins->n_found++];

    found->sum = sum + tail->sum;
    found->n_items = bins->n_chosen;
    memcpy(found->items, bins->chosen, sizeof(found->items));
    for (uint32_t k = 0; k < bins->n_bundles; k++) {
        const struct tail_bundle *bundle = &bins->bundles[k];

        if (!(tail->bundles >> k & 1))
            continue;
        found->n_items += bundle->n;
        for (uint32_t i = 0; i < bundle->n; i++) {
            uint32_t item = bins->at->items[bundle->begin + i];

            found->items[item / 64] |= UINT64_C(1) << item % 64;
        }
    }
}

/* Sets of the tail that complete the bin, the fullest first. */
static void meet(struct bins *bins, uint64_t sum)
{
    uint32_t low = 0, high = 1u << bins->n_bundles;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (bins->tail[middle].sum <= bins->most - sum)
            low = middle;
        else
            high = middle;
    }
    for (uint32_t i = low + 1;
         i-- > 0 && sum + bins->tail[i].sum >= bins->least;) {
        if (bins->n_found == bins->max_found) {
            bins->is_cut_short = true;
            return;
        }
        note(bins, &bins->tail[i], sum);
    }
}

static void enumerate(struct bins *bins, uint32_t i, uint64_t sum)
{
    uint32_t item, next = i + 1;
    bool out_first;

    bins->work++;
    if (bins->work > bins->end)
        bins->is_cut_short = true;
    if (bins->is_cut_short || sum + bins->suffix[i] < bins->least)
        return;
    if (i == bins->n_head) {
        meet(bins, sum);
        return;
    }
    item = bins->at->items[i];
    while (next < bins->n_head &&
           bins->sizes[bins->at->items[next]] == bins->sizes[item])
        next++;
    out_first = bins->n_runs && rng_draw(&bins->rng, 2);
    if (out_first)
        enumerate(bins, next, sum);
    if (bins->sizes[item] <= bins->most - sum) {
        bins->chosen[item / 64] ^= UINT64_C(1) << item % 64;
        bins->n_chosen++;
        enumerate(bins, i + 1, sum + bins->sizes[item]);
        bins->chosen[item / 64] ^= UINT64_C(1) << item % 64;
        bins->n_chosen--;
    }
    if (!out_first)
        enumerate(bins, next, sum);
}

/* What a bin may be left empty of. */
static uint64_t waste_of(const struct bins *bins, uint32_t bin)
{
    double share =
        WASTE * (double)bins->slack * (double)bins->rooms[bin] / bins->room;

    if (bins->n_runs % FULL_RUNS == 0 || share >= (double)bins->slack)
        return bins->slack;
    return (uint64_t)share;
}

/* Finds completions of the bin; whether these are all, and at most `max`. */
static bool complete(struct bins *bins, const struct level *level, uint32_t bin,
                     uint32_t max)
{
    uint64_t waste = waste_of(bins, bin);

    bins->at = level;
    bins->most = bins->rooms[bin];
    bins->least = bins->most > waste ? bins->most - waste : 0;
    bins->end = bins->work + ENUMERATION;
    bins->n_found = 0;
    bins->max_found = max;
    bins->is_cut_short = false;
    enumerate(bins, 0, 0);
    return !bins->is_cut_short;
}

static int compare_completions(const void *left, const void *right)
{
    const struct completion *a = left, *b = right;

    if (a->n_items != b->n_items)
        return a->n_items < b->n_items ? -1 : 1;
    if (a->sum != b->sum)
        return a->sum > b->sum ? -1 : 1;
    return memcmp(a->items, b->items, sizeof(a->items));
}

/* Chooses the bin with the fewest completions. */
static void choose_bin(struct bins *bins, struct level *level)
{
    bool is_known = false;

    level->n_found = 0;
    for (uint32_t b = 0; b < level->n_bins; b++) {
        uint32_t bin = level->bins[b];
        bool is_all;

        if (b && bins->rooms[bin] == bins->rooms[level->bins[b - 1]])
            continue;
        is_all =
            complete(bins, level, bin, is_known ? level->n_found : MAX_FOUND);
        if (is_all ? !is_known || bins->n_found < level->n_found
                   : !is_known && bins->n_found > level->n_found) {
            is_known = is_all;
            level->bin = bin;
            level->n_found = bins->n_found;
            memcpy(level->found, bins->found,
                   bins->n_found * sizeof(*level->found));
        }
        if (is_known && !level->n_found)
            break;
    }
    if (!is_known || waste_of(bins, level->bin) < bins->slack)
        bins->is_complete = false;
    qsort(level->found, level->n_found, sizeof(*level->found),
          compare_completions);
}

static void descend(const struct level *level, struct level *next,
                    const struct completion *chosen)
{
    next->n_items = next->n_bins = 0;
    for (uint32_t i = 0; i < level->n_items; i++)
        if (!(chosen->items[level->items[i] / 64] >> level->items[i] % 64 & 1))
            next->items[next->n_items++] = level->items[i];
    for (uint32_t b = 0; b < level->n_bins; b++)
        if (level->bins[b] != level->bin)
            next->bins[next->n_bins++] = level->bins[b];
}

/* By sizes and rooms, and another each run: what failed for want of completions
 * may do in the next. */
static uint64_t state_hash(const struct bins *bins, const struct level *level)
{
    uint64_t hash = mix64(bins->n_runs);

    for (uint32_t i = 0; i < level->n_items; i++)
        hash = mix64(hash ^ bins->sizes[level->items[i]]);
    hash = mix64(hash + level->n_bins);
    for (uint32_t b = 0; b < level->n_bins; b++)
        hash = mix64(hash ^ bins->rooms[level->bins[b]]);
    return hash ? hash : 1;
}

static uint64_t largest_room(const struct bins *bins, const struct level *level)
{
    uint64_t largest = 0;

    for (uint32_t b = 0; b < level->n_bins; b++)
        if (bins->rooms[level->bins[b]] > largest)
            largest = bins->rooms[level->bins[b]];
    return largest;
}

/* What the bins of this level must leave empty together. */
static void measure(struct bins *bins, const struct level *level)
{
    uint64_t room = 0, size = 0;

    for (uint32_t b = 0; b < level->n_bins; b++)
        room += bins->rooms[level->bins[b]];
    for (uint32_t i = 0; i < level->n_items; i++)
        size += bins->sizes[level->items[i]];
    bins->room = (double)room;
    bins->slack = room - size;
}

/* Fills the bins of this level and of those below. */
static bool fill(struct bins *bins, struct level *level)
{
    uint64_t hash = state_hash(bins, level);
    uint64_t *failed = &bins->memo[hash % (1 << MEMO_BITS)];

    if (!level->n_items)
        return true;
    if (bins->work > bins->run_end) {
        bins->is_complete = false;
        return false;
    }
    if (*failed == hash ||
        bins->sizes[level->items[0]] > largest_room(bins, level))
        return false;
    measure(bins, level);
    bundle_tail(bins, level);
    sort_tail(bins, level);
    choose_bin(bins, level);
    for (level->chosen = 0; level->chosen < level->n_found; level->chosen++) {
        descend(level, level + 1, &level->found[level->chosen]);
        if (fill(bins, level + 1))
            return true;
    }
    if (bins->work <= bins->run_end)
        *failed = hash;
    return false;
}

/* --- from outside --- */

/* Indices, the largest size first. */
static void rank(uint32_t *order, const uint64_t *sizes, uint32_t n)
{
    struct ranked *ranked = mem_alloc(n, sizeof(*ranked));

    for (uint32_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){-(double)sizes[i], i};
    ranked_sort(ranked, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = ranked[i].idx;
    mem_free(ranked);
}

static void read_out(uint32_t *bin_of, const struct level *levels,
                     const uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (const struct level *level = levels; level->n_items; level++)
            if (level->found[level->chosen].items[i / 64] >> i % 64 & 1)
                bin_of[order[i]] = level->bin;
}

/* The sum, or UINT64_MAX. */
static uint64_t add_up(const uint64_t *sizes, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum = saturating_add(sum, sizes[i]);
    return sum;
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: i from 1 on. */
static uint64_t luby(uint64_t i)
{
    uint64_t k = 1;

    while (2 * k - 1 < i)
        k *= 2;
    return i == 2 * k - 1 ? k : luby(i - (k - 1));
}

static enum bins_answer search(struct bins *bins, uint64_t max_work)
{
    for (bins->n_runs = 0; bins->work < max_work; bins->n_runs++) {
        bins->is_complete = true;
        bins->run_end = bins->work + RUN * luby(bins->n_runs + 1);
        if (fill(bins, bins->levels))
            return BINS_PACKED;
        if (bins->is_complete)
            return BINS_NONE;
    }
    return BINS_GAVE_UP;
}

enum bins_answer bins_pack(uint32_t *bin_of, const uint64_t *sizes, uint32_t n,
                           const uint64_t *rooms, uint32_t n_bins,
                           uint64_t max_work)
{
    uint64_t all = add_up(sizes, n), *room;
    enum bins_answer answer;
    struct arena arena;
    struct bins *bins;
    uint32_t *order;

    if (all > add_up(rooms, n_bins))
        return BINS_NONE;
    if (n > MAX_ITEMS || n_bins > MAX_BINS || all > UINT64_MAX / MAX_BINS)
        return BINS_GAVE_UP;
    arena_init(&arena);
    bins = ARENA_NEW(&arena, struct bins, 1);
    bins->sizes = ARENA_NEW(&arena, uint64_t, n);
    bins->suffix = ARENA_NEW(&arena, uint64_t, n + 1);
    bins->rooms = room = ARENA_NEW(&arena, uint64_t, n_bins);
    bins->levels = ARENA_NEW(&arena, struct level, n_bins + 1);
    order = ARENA_NEW(&arena, uint32_t, n + n_bins);
    for (uint32_t b = 0; b <= n_bins; b++) {
        bins->levels[b].items = ARENA_NEW(&arena, uint32_t, n);
        bins->levels[b].bins = ARENA_NEW(&arena, uint32_t, n_bins);
        bins->levels[b].found = ARENA_NEW(&arena, struct completion, MAX_FOUND);
    }
    rank(order, sizes, n);
    for (uint32_t i = 0; i < n; i++) {
        bins->sizes[i] = sizes[order[i]];
        bins->levels[0].items[bins->levels[0].n_items++] = i;
    }
    for (uint32_t b = 0; b < n_bins; b++)
        room[b] = rooms[b] < all ? rooms[b] : all;
    rank(bins->levels[0].bins, room, n_bins);
    bins->levels[0].n_bins = n_bins;
    rng_init(&bins->rng, SEED, n);
    answer = search(bins, max_work);
    if (answer == BINS_PACKED)
        read_out(bin_of, bins->levels, order, n);
    arena_release(&arena);
    return answer;
}
