/* SPDX-License-Identifier: MIT */
#include "search/starts.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "search/assignment.h"
#include "search/builder.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Maximum number of pieces of a starting point beyond one piece per unit. The
 * limit does not hold if memory alone decides. More pieces make long plans:
 * 5,000 tables cut over 1,024 devices had 40 million pieces. */
#define MOST_MORE (1u << 15)
/* Number of prices per piece that are tried to keep the number of pieces below
 * the limit MOST_MORE. Each price is four times the price before. */
#define N_BRACKETS 12
/* Largest standalone costs of a piece that are tried, as fractions of the mean
 * load. */
static const double peak_fracs[] = {INFINITY, 1,   0.8,  0.65, 0.5, 0.4,
                                    0.3,      0.2, 0.15, 0.1,  0.05};
/* Prices of a byte that are tried, as multiples of (least load of all tables /
 * least bytes of all tables). The memory of the devices is not part of the
 * price, because it does not matter as long as it is sufficient. */
static const double memory_fracs[] = {0,   0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,   1,     10};

/* Fractions of the standalone cost of a replica that count as its cost. The
 * second and third fraction are tried only if the first finds an assignment
 * that fits the memory at some price. */
static const double replica_fracs[] = {1, 0.5, LEAST_REPLICA_FRAC};

#define N_REPLICA_FRACS (sizeof replica_fracs / sizeof *replica_fracs)
#define N_PEAKS (sizeof peak_fracs / sizeof *peak_fracs)
#define N_PRICES (sizeof memory_fracs / sizeof *memory_fracs)

/* Badness of a sharding of a barred kind. It is larger than the badness of any
 * sharding that is too large. */
#define BARRED 1e30

/* --- one sharding per unit --- */

/*
 * Each unit gets the sharding with the least
 *
 *    load_ms + bytes x ms_per_byte + pieces x ms_per_piece
 *
 * among the shardings whose pieces take at most peak_ms and peak_bytes. If no
 * sharding keeps these limits, the unit gets the sharding that exceeds them
 * least.
 */

/* Returns the factor by which the pieces of a sharding exceed their limits.
 * Returns 1 if they keep the limits. */
static double badness(const struct search_space *space,
                      const struct sharding *sharding, const struct view *view)
{
    const enum tier tier = space->types[sharding->type].tier;
    const double ms = sharding->peak_ms / view->peak_ms;
    const double bytes =
        (double)sharding->peak_bytes / ((double)view->peak_bytes + 1);
    double bad = ms > bytes ? ms : bytes;

    bad = bad > 1 ? bad : 1;
    return view->barred & 1U << sharding->kind ||
                   view->barred_tiers & 1U << tier
               ? bad + BARRED
               : bad;
}

static double price_of(const struct sharding *sharding, const struct view *view)
{
    const double frac =
        sharding->kind == SHARDING_REPLICA ? view->replica_frac : 1;

    return sharding->bytes * view->ms_per_byte +
           sharding->n_pieces * view->ms_per_piece +
           (view->by_memory ? 0 : sharding->load_ms * frac);
}

/* Chooses a sharding for each unit at the prices of the view. Sets
 * shardings[n_units], which holds an index into the shardings of each unit.
 * Returns the number of pieces. Shardings are compared by their badness first
 * and by price second. So a table that no sharding cuts small enough is still
 * cut as small as possible. */
static uint64_t choose_at_price(uint32_t *shardings,
                                const struct search_space *space,
                                const struct view *view)
{
    uint64_t n_pieces = 0;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct unit *unit = &space->units[u];
        double least = INFINITY, least_bad = INFINITY;

        for (uint32_t i = 0; i < unit->n_shardings; i++) {
            const struct sharding *sharding = &unit->shardings[i];
            const double bad = badness(space, sharding, view);
            const double price = price_of(sharding, view);

            if (i && (bad > least_bad || (bad == least_bad && price >= least)))
                continue;
            least = price;
            least_bad = bad;
            shardings[u] = i;
        }
        n_pieces += unit->shardings[shardings[u]].n_pieces;
    }
    return n_pieces;
}

/* Adds pieces again after a price per piece has reduced their number. more[]
 * holds the shardings at the next lower price. Units change to the shardings in
 * more[], beginning with the units that save the most per added piece. This
 * ends before there are more than `most` pieces. */
static void add_pieces(uint32_t *shardings, const uint32_t *more,
                       uint64_t n_pieces, uint64_t most,
                       const struct search_space *space,
                       const struct view *view)
{
    struct ranked *order = mem_alloc(space->n_units, sizeof(*order));
    size_t n = 0;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct sharding *few = &space->units[u].shardings[shardings[u]];
        const struct sharding *many = &space->units[u].shardings[more[u]];

        if (many->n_pieces > few->n_pieces)
            order[n++] =
                (struct ranked){(price_of(many, view) - price_of(few, view)) /
                                    (many->n_pieces - few->n_pieces),
                                u};
    }
    ranked_sort(order, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = order[i].idx;

        n_pieces += space->units[u].shardings[more[u]].n_pieces -
                    space->units[u].shardings[shardings[u]].n_pieces;
        if (n_pieces > most)
            break;
        shardings[u] = more[u];
    }
    mem_free(order);
}

/* Chooses a sharding for each unit, with a limited number of pieces. If the
 * view leads to too many pieces, each piece gets a price. Then the pieces that
 * save the most are added again. Returns false if no price reduces the number
 * of pieces enough, because every piece is needed. */
static bool choose_shardings(uint32_t *shardings,
                             const struct search_space *space,
                             struct view *view)
{
    const uint64_t most = (uint64_t)space->n_units + MOST_MORE;
    uint32_t *more = mem_alloc(space->n_units, sizeof(*more));
    uint64_t n_pieces = choose_at_price(shardings, space, view);

    view->ms_per_piece = view->all_ms / (double)most;
    for (unsigned i = 0; n_pieces > most && i < N_BRACKETS; i++) {
        memcpy(more, shardings, space->n_units * sizeof(*more));
        n_pieces = choose_at_price(shardings, space, view);
        if (n_pieces <= most)
            add_pieces(shardings, more, n_pieces, most, space, view);
        view->ms_per_piece *= 4;
    }
    mem_free(more);
    return n_pieces <= most;
}

/* Returns the least bytes that all units together may take. Sets *all_ms to the
 * least load that they may cause. */
static double find_least(double *all_ms, const struct search_space *space)
{
    double all_bytes = 0;

    *all_ms = 0;
    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct unit *unit = &space->units[u];
        double ms = INFINITY, bytes = INFINITY;

        for (uint32_t i = 0; i < unit->n_shardings; i++) {
            ms = fmin(ms, unit->shardings[i].load_ms);
            bytes = fmin(bytes, unit->shardings[i].bytes);
        }
        *all_ms += ms;
        all_bytes += bytes;
    }
    return all_bytes;
}

/* --- trying several views --- */

/* Family of starting points. Some kinds of shardings are barred in the whole
 * family, and the memory is reduced. */
struct family {
    unsigned barred, barred_tiers; /* as in struct view */
    double room_frac;
    /* index of the start that the best member of the family may fill */
    unsigned slot;
};
/* Number of families that need tiers: the last ones of starts_find. */
#define N_TIER_FAMILIES 4

/* A batch of views. Different resources may be scarce for a list of tables:
 * time, memory, or memory for replicas. The scarce resource decides how the
 * tables should be cut. So the builder (search/builder.h) is run with a grid of
 * views. The grid has three axes: the largest cost of a piece, the price of a
 * byte, and the fraction of a replica's cost that counts. The chains begin at
 * the best result. If several views choose the same shardings, the assignment
 * is built only once. If all pieces fit the memory anyway, bytes get no
 * price. */
struct batch {
    const struct search_space *space;
    struct view view; /* view without peak_ms */
    /* [n_units] each: shardings of the views that are being built */
    uint32_t *shardings[N_PEAKS];
    /* Whether each view that is being built chooses few enough pieces. */
    bool are_few[N_PEAKS];
    bool is_short; /* whether a view that is being built is short of memory */
    double
        end_ms; /* time on clock_ms() after which no further start is built */
    atomic_bool has_start; /* whether an assignment was built */
    struct built {
        uint64_t hash; /* hash of the shardings */
        uint64_t work; /* work of building the assignment, counted once */
        /* Whether the memory was too small in at least one attempt. */
        bool is_short;
        /* first entry with the same shardings; only that entry is built */
        const struct built *like;
        /* empty if no assignment was found or none was built */
        struct snapshot snapshot;
        /* [N_PEAKS]: entries that are being built */
    } all[N_REPLICA_FRACS * N_PRICES * N_PEAKS], *in_hand;
};

/* Chooses the shardings of one view. */
static void choose_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    const struct search_space *space = batch->space;
    struct view view = batch->view;

    (void)thread;
    view.peak_ms = peak_fracs[i] * view.all_ms / space->n_devices;
    batch->are_few[i] = choose_shardings(batch->shardings[i], space, &view);
    batch->in_hand[i].hash =
        hash_bytes(batch->shardings[i], space->n_units * sizeof(uint32_t), 0);
}

/* Builds the assignment of one view and prices it as comm does, on the same
 * thread. Views that choose the same shardings would build the same assignment.
 * So only the first of these views is built. */
static void build_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    struct built *built = &batch->in_hand[i];

    (void)thread;
    if (atomic_load(&batch->has_start) &&
        (interrupt_requested() || clock_ms() >= batch->end_ms))
        return;
    if (built->like == built && batch->are_few[i])
        built->work =
            builder_run(&built->snapshot, &built->is_short, batch->space,
                        &batch->view, batch->shardings[i]);
    if (!built->snapshot.n)
        return;
    snapshot_price(&built->snapshot, batch->space);
    atomic_store(&batch->has_start, true);
}

/* Keeps a snapshot among the best n snapshots. It replaces the most expensive
 * snapshot or an empty one. It is not kept if it is not cheaper than the most
 * expensive snapshot, or if another snapshot has the same total. */
static void keep(struct snapshot *best, unsigned n, const struct snapshot *next)
{
    unsigned place = 0;

    for (unsigned i = 0; i < n; i++) {
        if (best[i].total_ms == next->total_ms)
            return;
        if (best[i].total_ms > best[place].total_ms)
            place = i;
    }
    if (next->total_ms < best[place].total_ms)
        snapshot_copy(&best[place], next);
}

/* Builds the views that differ only in the largest cost of a piece (in_hand).
 * Keeps the n cheapest results in best[]. Returns the work spent on
 * building. */
static uint64_t build_batch(struct batch *batch, struct pool *pool,
                            struct snapshot *best, unsigned n,
                            uint64_t *n_priced)
{
    uint64_t work = 0;

    batch->is_short = false;
    pool_run(pool, N_PEAKS, choose_one, batch);
    for (unsigned k = 0; k < N_PEAKS; k++) {
        struct built *built = &batch->in_hand[k];

        built->like = batch->all;
        while (built->like->hash != built->hash)
            built->like++;
    }
    pool_run(pool, N_PEAKS, build_one, batch);
    for (unsigned k = 0; k < N_PEAKS; k++) {
        struct built *built = &batch->in_hand[k];

        work += built->work;
        batch->is_short |= built->like->is_short;
        *n_priced += built->snapshot.n > 0;
        if (built->snapshot.n)
            keep(best, n, &built->snapshot);
        snapshot_release(&built->snapshot);
    }
    return work;
}

/* Builds all views of a family and keeps the n cheapest results in best[].
 * Returns the number of assignments priced. */
static uint64_t find_of_family(struct snapshot *best, unsigned n,
                               const struct search_space *space,
                               const struct family *family, struct pool *pool,
                               uint64_t max_work, double end_ms)
{
    const unsigned barred = family->barred;
    struct batch batch = {
        .space = space,
        .end_ms = end_ms,
        .has_start = best->n > 0,
        .view = {.peak_bytes = (uint64_t)(family->room_frac *
                                          (double)space->most_room_bytes),
                 .room_frac = family->room_frac,
                 .barred = barred,
                 .barred_tiers = family->barred_tiers}};
    /* The least possible total is the mean of the least loads. So the largest
     * load of a piece is given as a fraction of this mean. The price of a byte
     * is relative to the least bytes. */
    const double least_bytes = find_least(&batch.view.all_ms, space);
    const size_t n_fracs =
        barred & 1U << SHARDING_REPLICA ? 1 : N_REPLICA_FRACS;
    uint64_t work = 0, n_priced = 0;
    struct arena arena = {0};

    for (unsigned k = 0; k < N_PEAKS; k++)
        batch.shardings[k] = ARENA_NEW(&arena, uint32_t, space->n_units);
    for (size_t i = 0; i < n_fracs * N_PRICES && i < space->tuning->n_prices;
         i++) {
        if ((i == N_PRICES && !best->n) ||
            (best->n && (work >= max_work || interrupt_requested() ||
                         clock_ms() >= end_ms)))
            break;
        batch.view.replica_frac = replica_fracs[i / N_PRICES];
        batch.view.ms_per_byte =
            memory_fracs[i % N_PRICES] * batch.view.all_ms / (least_bytes + 1);
        batch.in_hand = &batch.all[i * N_PEAKS];
        work += build_batch(&batch, pool, best, n, &n_priced);
        /* If memory is not short, bytes need no price. But tables in host
         * memory leave more memory to caches. */
        if (!batch.is_short && !space->has_tiers)
            i = (i / N_PRICES + 1) * N_PRICES - 1;
    }
    arena_release(&arena);
    return n_priced;
}

uint64_t starts_find(struct snapshot best[STARTS_KEPT],
                     const struct search_space *space, struct pool *pool,
                     double end_ms)
{
    static const struct family families[] = {
        {0, 0, 1, 0},
        {~(1U << SHARDING_ROWS), 0, 1, 0},
        {0, 0, 0.85, 0},
        {0, 0, 0.7, 0},
        {1U << SHARDING_REPLICA, 0, 1, 1},
        {1U << SHARDING_ROWS, 0, 1, 2},
        {1U << SHARDING_REPLICA | 1U << SHARDING_ROWS, 0, 1, 3},
        /* only with tiers: no table uncached in host memory, all tables cached,
         * all tables cached by rows, none cached */
        {0, 1U << TIER_HOST, 0.7, 0},
        {0, ~(1U << TIER_CACHED), 1, 0},
        {~(1U << SHARDING_ROWS), ~(1U << TIER_CACHED), 1, 0},
        {0, 1U << TIER_CACHED, 1, 0},
    };
    const size_t n_families = sizeof families / sizeof *families -
                              (space->has_tiers ? 0 : N_TIER_FAMILIES);
    const unsigned n_starts = space->tuning->n_starts;
    const bool is_additive = space->oracle->is_additive;
    uint64_t n_priced = 0;

    for (unsigned f = 0; f < STARTS_KEPT; f++)
        best[f].total_ms = INFINITY;
    for (unsigned i = 0; i < n_families; i++) {
        const unsigned f = is_additive ? 0 : families[i].slot;

        if (families[i].slot >= n_starts || (i && !best[0].n))
            break;
        n_priced += find_of_family(
            &best[f], is_additive ? n_starts : 1, space, &families[i], pool,
            i ? BUILDER_MAX_WORK / 4 : BUILDER_MAX_WORK, end_ms);
        for (unsigned k = 0; k < f; k++)
            if (best[k].n == best[f].n && best[k].total_ms == best[f].total_ms)
                best[f].n = 0;
    }
    return n_priced;
}

bool starts_by_memory(struct snapshot *out, const struct search_space *space,
                      uint64_t peak_bytes, bool may_exceed)
{
    const struct view view = {.peak_ms = INFINITY,
                              .ms_per_byte = 1,
                              .room_frac = 1,
                              .peak_bytes = peak_bytes,
                              .by_memory = true,
                              .may_exceed = may_exceed};
    uint32_t *shardings = mem_alloc(space->n_units, sizeof(*shardings));
    bool is_short;

    (void)choose_at_price(shardings, space, &view);
    (void)builder_run(out, &is_short, space, &view, shardings);
    mem_free(shardings);
    return out->n > 0;
}
