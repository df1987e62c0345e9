/* SPDX-License-Identifier: MIT */
#include "search/starts.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "search/builder.h"

#include <math.h>
#include <string.h>

/* Pieces of a starting point beyond one a unit, unless memory alone decides:
 * more make long plans. 5,000 tables cut over 1,024 devices were 40 million. */
#define MOST_MORE (1u << 15)
/* Prices of a piece that are tried to keep them so few, each four times the one
 * before. */
#define N_BRACKETS 12
/* Pieces of the starting points are at most this share of the mean load. */
static const double peak_fracs[] = {INFINITY, 1,   0.8,  0.65, 0.5, 0.4,
                                    0.3,      0.2, 0.15, 0.1,  0.05};
/* And memory is this dear: the mean load for so many times the least that all
 * tables take; what there is does not matter while it is enough. */
static const double memory_fracs[] = {0,   0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,   1,     10};

/* And replicas count so much of what they take alone; where the first share
 * finds no room at any price, the others are not asked. */
static const double replica_fracs[] = {1, 0.5, LEAST_REPLICA_FRAC};

#define N_REPLICA_FRACS (sizeof replica_fracs / sizeof *replica_fracs)
#define N_PEAKS (sizeof peak_fracs / sizeof *peak_fracs)
#define N_PRICES (sizeof memory_fracs / sizeof *memory_fracs)

/* What is barred is worse than any that is too large. */
#define BARRED 1e30

/* --- a form for each unit --- */

/*
 * Each unit gets the form with the least load_ms + bytes x ms_per_byte + pieces
 * x ms_per_piece whose pieces take at most peak_ms and peak_bytes, or else the
 * one that comes nearest to that.
 */

/* By how much pieces exceed what they may take; 1: they do not. */
static double badness(const struct form *form, const struct view *view)
{
    const double ms = form->peak_ms / view->peak_ms;
    const double bytes =
        (double)form->peak_bytes / ((double)view->peak_bytes + 1);
    double bad = ms > bytes ? ms : bytes;

    bad = bad > 1 ? bad : 1;
    return view->barred & 1U << form->kind ? bad + BARRED : bad;
}

static double price_of(const struct form *form, const struct view *view)
{
    const double frac = form->kind == FORM_REPLICA ? view->replica_frac : 1;

    return form->bytes * view->ms_per_byte +
           form->n_pieces * view->ms_per_piece +
           (view->by_memory ? 0 : form->load_ms * frac);
}

/* Sets forms[n_units], which count from the unit's first, and returns how many
 * pieces they have. Of forms that exceed what pieces may take by as much, or do
 * not, the price decides, so a table that nothing cuts small enough is still
 * cut as small as it can be. */
static uint64_t choose_at_price(uint32_t *forms, const struct parts *parts,
                                const struct view *view)
{
    uint64_t n_pieces = 0;

    for (uint32_t u = 0; u < parts->n_units; u++) {
        const struct unit *of = &parts->of[u];
        double least = INFINITY, least_bad = INFINITY;

        for (uint32_t i = 0; i < of->n_forms; i++) {
            const struct form *form = &of->forms[i];
            const double bad = badness(form, view);
            const double price = price_of(form, view);

            if (i && (bad > least_bad || (bad == least_bad && price >= least)))
                continue;
            least = price;
            least_bad = bad;
            forms[u] = i;
        }
        n_pieces += of->forms[forms[u]].n_pieces;
    }
    return n_pieces;
}

/* Units get the forms of more pieces again that a lower price of a piece gives
 * them, those that save the most a piece first, while there may be more. */
static void add_pieces(uint32_t *forms, const uint32_t *more, uint64_t n_pieces,
                       uint64_t most, const struct parts *parts,
                       const struct view *view)
{
    struct ranked *order = mem_alloc(parts->n_units, sizeof(*order));
    size_t n = 0;

    for (uint32_t u = 0; u < parts->n_units; u++) {
        const struct form *few = &parts->of[u].forms[forms[u]];
        const struct form *many = &parts->of[u].forms[more[u]];

        if (many->n_pieces > few->n_pieces)
            order[n++] =
                (struct ranked){(price_of(many, view) - price_of(few, view)) /
                                    (many->n_pieces - few->n_pieces),
                                u};
    }
    ranked_sort(order, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = order[i].idx;

        n_pieces += parts->of[u].forms[more[u]].n_pieces -
                    parts->of[u].forms[forms[u]].n_pieces;
        if (n_pieces > most)
            break;
        forms[u] = more[u];
    }
    mem_free(order);
}

/* The same for a view that is to have few pieces. If it has too many they get a
 * price, and what saves the most a piece is added again. False if no price
 * helps, as each piece stands where it must. */
static bool choose_forms(uint32_t *forms, const struct parts *parts,
                         struct view *view)
{
    const uint64_t most = (uint64_t)parts->n_units + MOST_MORE;
    uint32_t *more = mem_alloc(parts->n_units, sizeof(*more));
    uint64_t n_pieces = choose_at_price(forms, parts, view);

    view->ms_per_piece = view->all_ms / (double)most;
    for (unsigned i = 0; n_pieces > most && i < N_BRACKETS; i++) {
        memcpy(more, forms, parts->n_units * sizeof(*more));
        n_pieces = choose_at_price(forms, parts, view);
        if (n_pieces <= most)
            add_pieces(forms, more, n_pieces, most, parts, view);
        view->ms_per_piece *= 4;
    }
    mem_free(more);
    return n_pieces <= most;
}

/* The least that all units may come to: ms, and bytes are returned. */
static double find_least(double *all_ms, const struct parts *parts)
{
    double all_bytes = 0;

    *all_ms = 0;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        const struct unit *of = &parts->of[u];
        double ms = INFINITY, bytes = INFINITY;

        for (uint32_t i = 0; i < of->n_forms; i++) {
            ms = fmin(ms, of->forms[i].load_ms);
            bytes = fmin(bytes, of->forms[i].bytes);
        }
        *all_ms += ms;
        all_bytes += bytes;
    }
    return all_bytes;
}

/* --- many views --- */

/* Layouts without some forms, and with less memory than there is. */
struct family {
    unsigned barred; /* struct view */
    double room_frac;
    unsigned slot; /* of the starts, that the best of it may take */
};

/*
 * A list may be short of time, of memory or of places for replicas, and what is
 * dear there decides how its tables are cut. So the builder (search/builder.h)
 * runs under a grid of views: how dear a piece may be, what a byte costs, how
 * much of a replica counts. The best is where the chains begin. Views that
 * choose the same forms are built once, and bytes get no price if there is room
 * for all pieces anyway.
 */
struct batch {
    const struct parts *parts;
    struct view view;         /* but for peak_ms */
    uint32_t *forms[N_PEAKS]; /* of those in hand */
    bool are_few[N_PEAKS];    /* their pieces */
    bool is_short;            /* any of those in hand */
    struct built {
        uint64_t hash;            /* of its forms */
        uint64_t work;            /* that it took to build them, once */
        bool is_short;            /* of room, in one try at least */
        const struct built *like; /* the first of these forms; it is built */
        struct snapshot snapshot; /* empty where none was found, or not built */
    } all[N_REPLICA_FRACS * N_PRICES * N_PEAKS], *in_hand; /* [N_PEAKS] */
};

/* The forms that one view chooses. */
static void choose_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    const struct parts *parts = batch->parts;
    struct view view = batch->view;

    (void)thread;
    view.peak_ms = peak_fracs[i] * view.all_ms / parts->n_devices;
    batch->are_few[i] = choose_forms(batch->forms[i], parts, &view);
    batch->in_hand[i].hash =
        hash_bytes(batch->forms[i], parts->n_units * sizeof(uint32_t), 0);
}

/* A layout is priced as comm prices it, on the thread that built it. Views that
 * choose alike build alike: the first of them is built. */
static void build_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    struct built *built = &batch->in_hand[i];

    (void)thread;
    if (built->like == built && batch->are_few[i])
        built->work = builder_run(&built->snapshot, &built->is_short,
                                  batch->parts, &batch->view, batch->forms[i]);
    if (built->snapshot.n)
        snapshot_price(&built->snapshot, batch->parts);
}

/* Into the place of the dearest of n, an empty one if there is one, where it is
 * cheaper and there is none like it. */
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

/* Builds the views in hand and keeps the n cheapest in best[]. Returns the work
 * that it took. */
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

/* Keeps the n cheapest of a family in best[]. */
static uint64_t find_of_family(struct snapshot *best, unsigned n,
                               const struct parts *parts,
                               const struct family *family, struct pool *pool,
                               uint64_t max_work, double end_ms)
{
    const unsigned barred = family->barred;
    struct batch batch = {
        .parts = parts,
        .view = {.peak_bytes = (uint64_t)(family->room_frac *
                                          (double)parts->most_room_bytes),
                 .room_frac = family->room_frac,
                 .barred = barred}};
    /* The mean is the least total there is, so shares of it are what pieces
     * may take where load is short; bytes cost by what memory is short. */
    const double least_bytes = find_least(&batch.view.all_ms, parts);
    const size_t n_fracs = barred & 1U << FORM_REPLICA ? 1 : N_REPLICA_FRACS;
    uint64_t work = 0, n_priced = 0;
    struct arena arena = {0};

    for (unsigned k = 0; k < N_PEAKS; k++)
        batch.forms[k] = ARENA_NEW(&arena, uint32_t, parts->n_units);
    for (size_t i = 0; i < n_fracs * N_PRICES && i < parts->tuning->n_prices;
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
        if (!batch.is_short) /* then bytes need no price */
            i = (i / N_PRICES + 1) * N_PRICES - 1;
    }
    arena_release(&arena);
    return n_priced;
}

uint64_t starts_find(struct snapshot best[STARTS_KEPT],
                     const struct parts *parts, struct pool *pool,
                     double end_ms)
{
    static const struct family families[] = {
        {0, 1, 0},
        {~(1U << FORM_CUT), 1, 0},
        {0, 0.85, 0},
        {0, 0.7, 0},
        {1U << FORM_REPLICA, 1, 1},
        {1U << FORM_CUT, 1, 2},
        {1U << FORM_REPLICA | 1U << FORM_CUT, 1, 3},
    };
    const unsigned n_starts = parts->tuning->n_starts;
    const bool is_additive = parts->oracle->is_additive;
    uint64_t n_priced = 0;

    for (unsigned f = 0; f < STARTS_KEPT; f++)
        best[f].total_ms = INFINITY;
    for (unsigned i = 0; i < sizeof families / sizeof *families; i++) {
        const unsigned f = is_additive ? 0 : families[i].slot;

        if (families[i].slot >= n_starts || (i && !best[0].n))
            break;
        n_priced += find_of_family(
            &best[f], is_additive ? n_starts : 1, parts, &families[i], pool,
            i ? BUILDER_MAX_WORK / 4 : BUILDER_MAX_WORK, end_ms);
        for (unsigned k = 0; k < f; k++)
            if (best[k].n == best[f].n && best[k].total_ms == best[f].total_ms)
                best[f].n = 0;
    }
    return n_priced;
}

bool starts_by_memory(struct snapshot *out, const struct parts *parts,
                      uint64_t peak_bytes, bool may_exceed)
{
    const struct view view = {.peak_ms = INFINITY,
                              .ms_per_byte = 1,
                              .room_frac = 1,
                              .peak_bytes = peak_bytes,
                              .by_memory = true,
                              .may_exceed = may_exceed};
    uint32_t *forms = mem_alloc(parts->n_units, sizeof(*forms));
    bool is_short;

    (void)choose_at_price(forms, parts, &view);
    (void)builder_run(out, &is_short, parts, &view, forms);
    mem_free(forms);
    return out->n > 0;
}
