/* SPDX-License-Identifier: MIT */
#include "search/starts.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece that does not fit goes first in the next try, so often. */
#define MAX_TRIES 32
/* Pieces of a starting point, unless memory alone decides: more make long
 * plans. 5,000 tables cut over 1,024 devices were 40 million. */
#define MAX_PIECES (1u << 18)
/* Work of one that is built (struct builder); and of all, once something was
 * found: about a second of one core. */
#define MAX_WORK 20000000
/* Pieces of the starting points are at most this share of the mean load. */
static const double peak_fracs[] = {INFINITY, 1,   0.8,  0.65, 0.5, 0.4,
                                    0.3,      0.2, 0.15, 0.1,  0.05};
/* And memory is this dear: the mean load for so many times the least that all
 * tables take; what there is does not matter while it is enough. */
static const double memory_fracs[] = {0,   0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,   1,     10};

/* And replicas count so much of what they take alone; where the first share
 * finds no room at any price, the others are not asked. */
static const double replica_fracs[] = {1, 0.5, 0.2};

#define N_REPLICA_FRACS (sizeof replica_fracs / sizeof *replica_fracs)
#define N_PEAKS (sizeof peak_fracs / sizeof *peak_fracs)
#define N_PRICES (sizeof memory_fracs / sizeof *memory_fracs)

/* Where its pieces go is no choice: more urgent than what was ever stuck. */
#define STANDS_FAST (1U << 31)
/* What is barred is worse than any that is too large. */
#define BARRED 1e30

/* --- a form for each unit --- */

/* Of each unit the form with the least load_ms + bytes x ms_per_byte whose
 * pieces take at most peak_ms and peak_bytes, or else come nearest to it. */
struct view {
    double peak_ms, ms_per_byte;
    double all_ms;       /* that all take at least */
    double replica_frac; /* the load of replicas counts this much: alone, each
                            looks dearer than it is beside others */
    uint64_t peak_bytes;
    unsigned barred; /* forms, a mask of 1 << form_kind, that only a unit
                        without others gets */
    bool by_memory;  /* the load is bytes; the oracle is not asked */
    bool may_exceed; /* a device may be given more than it has room for */
};

/* forms [n_units]: which of the unit's it is. Of those that exceed what pieces
 * may take by as much, or do not, the price decides, so a table that nothing
 * cuts small enough is still cut as small as it can be. What is built is
 * settled by these: views that choose alike build alike. */
static void choose_forms(uint32_t *forms, const struct parts *parts,
                         const struct view *view)
{
    for (uint32_t u = 0; u < parts->n_units; u++) {
        const struct unit *of = &parts->of[u];
        double least = INFINITY, least_bad = INFINITY;

        for (uint32_t i = 0; i < of->n_forms; i++) {
            const struct form *form = &of->forms[i];
            const double frac =
                form->kind == FORM_REPLICA ? view->replica_frac : 1;
            double ms = form->peak_ms / view->peak_ms;
            double bytes =
                (double)form->peak_bytes / ((double)view->peak_bytes + 1);
            double bad = fmax(fmax(ms, bytes), 1) +
                         (view->barred & 1U << form->kind ? BARRED : 0);
            double price = form->bytes * view->ms_per_byte +
                           (view->by_memory ? 0 : form->load_ms * frac);

            if (i && (bad > least_bad || (bad == least_bad && price >= least)))
                continue;
            least = price;
            least_bad = bad;
            forms[u] = i;
        }
    }
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

/* --- and its pieces on devices --- */

/*
 * Dearest first, each to the least loaded device that has room (Graham 1969:
 * longest first). A piece that finds no room goes first in the next try
 * (squeaky wheel optimization, Joslin and Clements 1999).
 */

/* A unit, and the form that it is to have. */
struct chosen {
    const struct form *form;
    uint32_t unit, urgency;
    double weight; /* its share in all ms, or a larger one in all room */
};

struct loaded {
    double load; /* ms, or less of the room that is left */
    uint64_t bytes;
    bool is_taken; /* has a piece already that the one in hand must not meet
                      (search/trial.h) */
    const double *tried; /* vector of the part that it was last tried with,
                            since it got one; or NULL */
    double load_then;    /* with it */
};

struct builder {
    const struct parts *parts;
    const struct view *view;
    struct snapshot *out;
    struct arena arena;
    struct chosen *units;   /* [n_units] */
    uint32_t n_pieces;      /* of these forms */
    uint32_t *urgency;      /* [n_units]: tries in which it was stuck */
    struct loaded *devices; /* [R] */
    double *sums;           /* [R][width], unless by memory */
    double *trial_sum;      /* [width] */
    uint64_t work; /* pieces placed, and devices priced for them, so far */
};

/* False where that would be too many pieces. Units weigh by load, so that
 * memory changes nothing where there is enough; once a piece was stuck, by
 * memory too: as the largest of their pieces, or where these fill hosts as all
 * of them. */
static bool weigh_units(struct builder *builder, const uint32_t *forms,
                        bool is_short)
{
    const struct parts *parts = builder->parts;
    const struct view *view = builder->view;

    builder->n_pieces = 0;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        const struct form *form = &parts->of[u].forms[forms[u]];
        const bool is_all = form->fills_host;
        double ms = is_all ? form->load_ms : form->peak_ms, weight = 0;
        double bytes = is_all ? form->bytes : (double)form->peak_bytes;

        builder->n_pieces += form->n_pieces;
        if (builder->n_pieces > MAX_PIECES && !view->by_memory)
            return false;
        if (!view->by_memory && view->all_ms > 0)
            weight = ms / view->all_ms;
        if (view->by_memory || is_short)
            weight = fmax(weight, bytes / (parts->all_room_bytes + 1));
        builder->units[u] =
            (struct chosen){form, u, builder->urgency[u], weight};
        if (forms_piece(parts, form, 0).device != NO_PIECE)
            builder->units[u].urgency += STANDS_FAST;
    }
    return true;
}

/* What stands fast first; then what was stuck, then the heaviest. */
static int compare_chosen(const void *left, const void *right)
{
    const struct chosen *a = left, *b = right;

    if (a->urgency != b->urgency)
        return a->urgency > b->urgency ? -1 : 1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->unit < b->unit ? -1 : 1;
}

/* The load of a device with one part more. Pieces of one cut, and of tables
 * that are alike, follow each other: a device that got none of them is as
 * loaded with the next as it would have been with the last. */
static double load_with(const struct builder *builder, uint32_t r,
                        uint32_t part)
{
    const struct parts *parts = builder->parts;
    const size_t width = parts->oracle->width;
    const double *vector = parts->vectors + part * width;
    struct loaded *device = &builder->devices[r];

    if (builder->view->by_memory)
        return (double)device->bytes + (double)parts->parts[part].bytes -
               (double)parts->room_bytes[r];
    if (device->tried == vector ||
        (device->tried &&
         !memcmp(device->tried, vector, width * sizeof(double))))
        return device->load_then;
    add_lanes(builder->trial_sum, builder->sums + r * width, vector, 1, width);
    device->tried = vector;
    device->load_then = parts_alone_ms(parts->oracle, builder->trial_sum);
    return device->load_then;
}

/* Ties go to the emptier device, then to the lower index: layouts are the same
 * on any machine and at any number of threads. */
static bool goes_before(const struct loaded *a, const struct loaded *b)
{
    return a->load < b->load || (a->load == b->load && a->bytes < b->bytes);
}

/* Whether a piece has room there and meets nothing. Starts that exceed memory
 * are for repair alone; all others never do, so a plan that was built needs no
 * mending. */
static bool fits(const struct builder *builder, uint32_t part, uint32_t r)
{
    uint64_t room = builder->parts->room_bytes[r];

    if (builder->devices[r].is_taken)
        return false;
    return builder->view->may_exceed || builder->parts->parts[part].bytes <=
                                            room - builder->devices[r].bytes;
}

/* Of the places with room for n pieces that go together, the one whose busiest
 * device is least loaded then: its first device, or NO_PIECE. */
static uint32_t find_room(struct builder *builder, const struct change *pieces,
                          uint32_t n)
{
    const struct cluster *cluster = &builder->parts->problem->cluster;
    const uint32_t apart = n > 1 ? cluster_group(cluster) : 1;
    uint32_t found = NO_PIECE;
    struct loaded least = {0};

    for (uint32_t at = builder->parts->parts[pieces->part].first_device;
         at + apart <= cluster->n_devices; at += apart) {
        struct loaded most = {.load = -INFINITY};
        uint32_t i = 0;

        for (; i < n && fits(builder, pieces[i].part, at + i); i++) {
            struct loaded then = {
                .load = load_with(builder, at + i, pieces[i].part),
                .bytes = builder->devices[at + i].bytes};

            if (goes_before(&most, &then))
                most = then;
        }
        builder->work += i == n ? n : 0;
        if (i == n && (found == NO_PIECE || goes_before(&most, &least))) {
            least = most;
            found = at;
        }
    }
    return found;
}

/* A piece, or the blocks that fill a host, of a unit whose pieces before have
 * their places: those of the same row block, or where blocks fill hosts all,
 * are not to be met. What stands fast has room or has none; all else goes where
 * there is most left. */
static bool place(struct builder *builder, struct change *pieces, uint32_t n,
                  const struct change *before)
{
    const struct parts *parts = builder->parts;
    const size_t width = parts->oracle->width;
    uint32_t at = pieces->device;

    if (at == NO_PIECE) {
        for (const struct change *it = before; it < pieces; it++)
            builder->devices[it->device].is_taken |=
                n > 1 || it->block == pieces->block;
        at = find_room(builder, pieces, n);
        for (const struct change *it = before; it < pieces; it++)
            builder->devices[it->device].is_taken = false;
    } else if (!fits(builder, pieces->part, at)) {
        at = NO_PIECE;
    }
    for (uint32_t i = 0; i < n && at != NO_PIECE; i++) {
        const uint32_t part = pieces[i].part, r = at + i;
        struct loaded *device = &builder->devices[r];

        pieces[i].device = r;
        device->load = load_with(builder, r, part);
        device->tried = NULL;
        device->bytes += parts->parts[part].bytes;
        for (size_t w = 0; builder->sums && w < width; w++)
            builder->sums[r * width + w] += parts->vectors[part * width + w];
    }
    return at != NO_PIECE;
}

/* Blocks that may stand anywhere go block by block, as pieces of one row block
 * are to be set apart. */
static bool place_unit(struct builder *builder, const struct form *form)
{
    const uint32_t n = form->fills_host ? form->n_blocks : 1;
    const uint32_t n_blocks = form->fills_host ? 1 : form->n_blocks;
    const uint32_t n_ranges = form->n_pieces / n_blocks;
    const uint32_t first = builder->out->n;

    for (uint32_t i = 0; i < form->n_pieces; i++)
        *snapshot_next(builder->out) = forms_piece(
            builder->parts, form, i % n_ranges * n_blocks + i / n_ranges);
    for (uint32_t i = 0; i < form->n_pieces; i += n) {
        struct change *pieces = &builder->out->pieces[first];

        if (!place(builder, pieces + i, n, pieces) || builder->work > MAX_WORK)
            return false;
    }
    return true;
}

/* One try; the unit that found no room, or NO_PIECE. By memory a device is as
 * loaded as it lacks room, so that uneven devices fill up alike. */
static uint32_t place_all(struct builder *builder)
{
    const struct parts *parts = builder->parts;
    const size_t n = parts->n_units, n_devices = parts->n_devices;

    builder->out->n = 0;
    memset(builder->devices, 0, n_devices * sizeof(*builder->devices));
    if (builder->sums)
        memset(builder->sums, 0,
               n_devices * parts->oracle->width * sizeof(double));
    for (size_t r = 0; builder->view->by_memory && r < n_devices; r++)
        builder->devices[r].load = -(double)parts->room_bytes[r];
    builder->work += builder->n_pieces;
    qsort(builder->units, n, sizeof(*builder->units), compare_chosen);
    for (uint32_t u = 0; u < n; u++)
        if (!place_unit(builder, builder->units[u].form))
            return builder->units[u].unit;
    return NO_PIECE;
}

/* Fills *out (its total_ms stays what it was); empty where not all pieces found
 * room, or not within MAX_WORK, or are too many. Returns the work that it took.
 */
static uint64_t build(struct snapshot *out, const struct parts *parts,
                      const struct view *view, const uint32_t *forms)
{
    struct builder builder = {.parts = parts, .view = view, .out = out};
    const size_t n = parts->n_devices, width = parts->oracle->width;
    uint32_t stuck = 0;

    builder.units = ARENA_NEW(&builder.arena, struct chosen, parts->n_units);
    builder.urgency = ARENA_NEW(&builder.arena, uint32_t, parts->n_units);
    builder.devices = ARENA_NEW(&builder.arena, struct loaded, n);
    if (!view->by_memory) {
        builder.sums = ARENA_NEW(&builder.arena, double, n *width);
        builder.trial_sum = ARENA_NEW(&builder.arena, double, width);
    }
    for (unsigned try = 0; try < MAX_TRIES; try++) {
        if (!weigh_units(&builder, forms, try > 0))
            break;
        stuck = place_all(&builder);
        if (stuck == NO_PIECE || builder.work > MAX_WORK)
            break;
        builder.urgency[stuck] += MAX_TRIES - try;
    }
    if (stuck != NO_PIECE)
        out->n = 0;
    arena_release(&builder.arena);
    return builder.work;
}

/* --- many views --- */

/*
 * A list may be short of time, of memory or of places for replicas, and what is
 * dear there decides how its tables are cut. So the same builder (longest
 * first, above) is run under a grid of views: how dear a piece may be,
 * what a byte costs, how much of a replica counts. Each is a fraction of a
 * second; the best is where the chains begin. Most views choose as one before
 * (235 of 242 for 1,935 tables on 96 devices), and are not built again.
 */
struct batch {
    const struct parts *parts;
    struct view view;         /* but for peak_ms */
    uint32_t *forms[N_PEAKS]; /* of those in hand */
    struct built {
        uint64_t hash;            /* of its forms */
        uint64_t work;            /* that it took to build them */
        const struct built *like; /* the first of these forms; it is built */
        struct snapshot snapshot; /* empty where none was found, or not built */
    } all[N_REPLICA_FRACS * N_PRICES * N_PEAKS], *in_hand; /* [N_PEAKS] */
};

/* What the view comes to, and whether it did before. */
static void look_back(struct batch *batch, size_t i)
{
    const struct parts *parts = batch->parts;
    struct built *built = &batch->in_hand[i];
    struct view view = batch->view;

    view.peak_ms = peak_fracs[i] * view.all_ms / parts->n_devices;
    choose_forms(batch->forms[i], parts, &view);
    built->hash =
        hash_bytes(batch->forms[i], parts->n_units * sizeof(uint32_t), 0);
    built->like = batch->all;
    while (built->like->hash != built->hash)
        built->like++;
}

/* A layout is priced as comm prices it, on the thread that built it. */
static void build_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    struct built *built = &batch->in_hand[i];

    (void)thread;
    if (built->like == built)
        built->work = build(&built->snapshot, batch->parts, &batch->view,
                            batch->forms[i]);
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

/* The n cheapest without what is barred, into best[]. Work counts as if each
 * was built. */
static uint64_t find_of_family(struct snapshot *best, unsigned n,
                               const struct parts *parts, unsigned barred,
                               struct pool *pool, uint64_t max_work,
                               double end_ms)
{
    struct batch batch = {
        .parts = parts,
        .view = {.peak_bytes = parts->most_room_bytes, .barred = barred}};
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
        for (unsigned k = 0; k < N_PEAKS; k++)
            look_back(&batch, k);
        pool_run(pool, N_PEAKS, build_one, &batch);
        for (unsigned k = 0; k < N_PEAKS; k++) {
            struct built *built = &batch.in_hand[k];

            work += built->like->work;
            n_priced += built->snapshot.n > 0;
            if (built->snapshot.n)
                keep(best, n, &built->snapshot);
            snapshot_release(&built->snapshot);
        }
    }
    arena_release(&arena);
    return n_priced;
}

uint64_t starts_find(struct snapshot best[STARTS_KEPT],
                     const struct parts *parts, struct pool *pool,
                     double end_ms)
{
    static const unsigned barred[STARTS_KEPT + 1] = {
        0, ~(1U << FORM_CUT), 1U << FORM_REPLICA, 1U << FORM_CUT,
        1U << FORM_REPLICA | 1U << FORM_CUT};
    const unsigned n_starts = parts->tuning->n_starts;
    uint64_t n_priced = 0;

    for (unsigned f = 0; f < STARTS_KEPT; f++)
        best[f].total_ms = INFINITY;
    if (parts->oracle->is_additive) /* nothing is paid once */
        return find_of_family(best, n_starts, parts, 0, pool, MAX_WORK, end_ms);
    for (unsigned i = 0; i <= n_starts && (!i || best[0].n); i++) {
        const unsigned f = i ? i - 1 : 0; /* the first is of two */

        n_priced += find_of_family(&best[f], 1, parts, barred[i], pool,
                                   i ? MAX_WORK / 4 : MAX_WORK, end_ms);
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
                              .peak_bytes = peak_bytes,
                              .by_memory = true,
                              .may_exceed = may_exceed};
    uint32_t *forms = mem_alloc(parts->n_units, sizeof(*forms));

    choose_forms(forms, parts, &view);
    (void)build(out, parts, &view, forms);
    mem_free(forms);
    return out->n > 0;
}
