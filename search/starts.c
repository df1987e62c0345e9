/* SPDX-License-Identifier: MIT */
#include "search/starts.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "search/bins.h"
#include "search/build.h"
#include "search/temper.h"

#include <math.h>
#include <string.h>

/* Work of all that is built (struct build_outcome), once something was found:
 * about a second of one core. */
#define MAX_WORK 20000000
/* Pieces of the starting points are at most this share of the mean load, or of
 * what is left of it beside the pieces that stand on every device. */
static const double peak_fracs[] = {INFINITY, 1,   0.8,  0.65, 0.5, 0.4,
                                    0.3,      0.2, 0.15, 0.1,  0.05};
static const double left_fracs[] = {1.04, 1.02, 1, 0.98, 0.9, 0.5};
/* And memory is this dear: the mean load for so many times the least that all
 * tables take; what there is does not matter while it is enough. */
static const double memory_fracs[] = {0,   0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,   1,     10};

/* And replicas count so much of what they take alone; where the first share
 * finds no room at any price, the others are not asked. */
static const double replica_fracs[] = {1, 0.5, 0.2};

#define N_REPLICA_FRACS (sizeof replica_fracs / sizeof *replica_fracs)
#define N_FRACS (sizeof peak_fracs / sizeof *peak_fracs)
#define N_LEFT_FRACS (sizeof left_fracs / sizeof *left_fracs)
#define N_PEAKS (N_FRACS + N_LEFT_FRACS)
#define N_PRICES (sizeof memory_fracs / sizeof *memory_fracs)

/*
 * A list may be short of time, of memory or of places for replicas, and what is
 * dear there decides how its tables are cut. So the same builder (longest
 * first, search/build.h) is run under a grid of views: how dear a piece may be,
 * what a byte costs, how much of a replica counts. Each is a fraction of a
 * second; the best few, each total once, are where the chains begin.
 */
struct build_task {
    struct build_options options;
    struct build_outcome outcome;
    struct snapshot snapshot;
    bool is_built;
};

/* Builds of one price of memory and one weight of replicas. */
struct batch {
    const struct parts *parts;
    struct build_task tasks[N_PEAKS];
    unsigned n;
};

/* Whether *snapshot would be kept. */
static bool is_wanted(const struct starts *starts,
                      const struct snapshot *snapshot, uint32_t n_kept)
{
    if (!isfinite(snapshot->total_ms))
        return false;
    for (unsigned i = 0; i < starts->n; i++)
        if (starts->best[i].total_ms == snapshot->total_ms)
            return false;
    return starts->n < n_kept ||
           snapshot->total_ms < starts->best[starts->n - 1].total_ms;
}

/* Keeps what was priced, in its place. */
static void keep(struct starts *starts, const struct parts *parts,
                 struct snapshot *snapshot)
{
    const uint32_t n_kept = parts->tuning->n_starts;
    struct snapshot gone = {0};
    unsigned i;

    starts->n_priced++;
    if (!is_wanted(starts, snapshot, n_kept))
        return;
    if (starts->n == n_kept)
        gone = starts->best[--starts->n];
    for (i = starts->n++;
         i > 0 && starts->best[i - 1].total_ms > snapshot->total_ms; i--)
        starts->best[i] = starts->best[i - 1];
    starts->best[i] = *snapshot;
    *snapshot = gone;
}

void starts_add(struct starts *starts, const struct parts *parts,
                struct snapshot *snapshot)
{
    snapshot_price(snapshot, parts);
    keep(starts, parts, snapshot);
}

static void build_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    struct build_task *task = &batch->tasks[i];

    (void)thread;
    task->is_built =
        build(&task->snapshot, batch->parts, &task->options, &task->outcome);
    if (task->is_built)
        snapshot_price(&task->snapshot, batch->parts);
}

static double peak_ms(const struct build_load *load, size_t i)
{
    if (i < N_FRACS)
        return peak_fracs[i] * load->mean_ms;
    return left_fracs[i - N_FRACS] * (load->mean_ms - load->spread_ms);
}

static void set_tasks(struct batch *batch, const struct build_load *load,
                      const struct build_options *options)
{
    size_t n_peaks = load->spread_ms > 0 ? N_PEAKS : N_FRACS;

    batch->n = 0;
    for (size_t i = 0; i < n_peaks; i++) {
        batch->tasks[batch->n].options = *options;
        batch->tasks[batch->n++].options.peak_ms = peak_ms(load, i);
    }
}

static bool is_over(const struct starts *starts, uint64_t work, double end_ms)
{
    return starts->n &&
           (work >= MAX_WORK || interrupt_requested() || clock_ms() >= end_ms);
}

void starts_find(struct starts *starts, const struct parts *parts,
                 struct pool *pool, double end_ms)
{
    const struct build_load load = build_least_load(parts);
    const uint32_t n_devices = parts->n_devices;
    struct build_options options = {.peak_bytes = parts->most_room_bytes,
                                    .max_replicas = BUILD_MAX_REPLICAS};
    struct batch batch = {.parts = parts};
    uint64_t work = 0;

    for (size_t i = 0; i < N_REPLICA_FRACS * N_PRICES; i++) {
        if (i == parts->tuning->n_prices || is_over(starts, work, end_ms) ||
            (i == N_PRICES && !starts->n))
            break;
        options.replica_frac = replica_fracs[i / N_PRICES];
        options.ms_per_byte = memory_fracs[i % N_PRICES] * load.mean_ms *
                              n_devices / (load.all_bytes + 1);
        options.max_work = MAX_WORK;
        set_tasks(&batch, &load, &options);
        pool_run(pool, batch.n, build_one, &batch);
        for (unsigned k = 0; k < batch.n; k++) {
            work += batch.tasks[k].outcome.work;
            if (batch.tasks[k].is_built)
                keep(starts, parts, &batch.tasks[k].snapshot);
        }
    }
    for (unsigned k = 0; k < N_PEAKS; k++)
        snapshot_release(&batch.tasks[k].snapshot);
}

void starts_release(struct starts *starts)
{
    for (unsigned i = 0; i < starts->n; i++)
        snapshot_release(&starts->best[i]);
}

/* --- by memory alone --- */

/* The largest piece is at most as large as the largest device, and half and
 * half again of that. */
#define N_SIZES 6
/* Work of the exact packing: 10^6 are some hundredths of a second. */
#define QUICK_WORK 1000000
#define POUR_WORK 2000000
#define PACK_WORK 5000000
#define LONG_WORK 100000000
/* Tables that are cut into columns, each alone, where no other piece fits. */
#define MAX_POURED 8
/* Of the last repair. */
#define PATIENCE 10

static bool build_greedily(struct snapshot *out, const struct parts *parts,
                           uint64_t peak_bytes, bool may_exceed)
{
    struct build_options options = {.peak_ms = INFINITY,
                                    .ms_per_byte = 1,
                                    .peak_bytes = peak_bytes,
                                    .by_memory = true,
                                    .may_exceed = may_exceed,
                                    .max_replicas = UINT32_MAX};
    struct build_outcome outcome;

    return build(out, parts, &options, &outcome);
}

/* A unit that stands whole, or nowhere. */
static bool is_rigid(const struct parts *parts, uint32_t part)
{
    const struct part_unit *of = &parts->of[parts->parts[part].unit];

    return of->kinds == SHARD_TABLE ||
           parts->problem->tables[of->unit->tables[0]].group;
}

/* Puts the layout's pieces where they fit, those that may go anywhere; rigid
 * ones alone, where that is asked for. */
static enum bins_answer pack(struct snapshot *layout, const struct parts *parts,
                             bool only_rigid, uint64_t max_work)
{
    uint32_t n_devices = parts->n_devices, n = 0;
    uint64_t *sizes = mem_alloc(layout->n + n_devices, sizeof(*sizes));
    uint64_t *rooms = sizes + layout->n;
    uint32_t *pieces = mem_alloc(layout->n, 2 * sizeof(*pieces));
    uint32_t *device_of = pieces + layout->n;
    enum bins_answer answer = BINS_PACKED;

    memcpy(rooms, parts->room_bytes, n_devices * sizeof(*rooms));
    for (uint32_t i = 0; i < layout->n; i++) {
        const struct change *piece = &layout->pieces[i];
        uint64_t bytes = parts->parts[piece->part].bytes;

        if (only_rigid && !is_rigid(parts, piece->part))
            continue;
        if (parts_can_move(parts, piece->part)) {
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
        layout->pieces[pieces[k]].device = device_of[k];
    mem_free(sizes);
    mem_free(pieces);
    return answer;
}

/* Packs a layout whose unit, which stands whole there, is cut into pieces of so
 * many quanta. */
static bool pour_unit(struct snapshot *out, const struct snapshot *layout,
                      const struct parts *parts, uint32_t unit, uint32_t quanta)
{
    const struct part_unit *of = &parts->of[unit];

    out->n = 0;
    for (uint32_t i = 0; i < layout->n; i++)
        if (parts->parts[layout->pieces[i].part].unit != unit)
            snapshot_add(out, layout->pieces[i]);
    for (uint32_t k = 0; k < of->n_quanta / quanta; k++)
        snapshot_add(
            out, (struct change){.piece = NO_PIECE,
                                 .part = parts_of_quanta(parts, unit, quanta),
                                 .range = k});
    return pack(out, parts, false, POUR_WORK) == BINS_PACKED;
}

/* The finest pieces fill best, but each takes memory of its own. */
static bool pour_any(struct snapshot *out, const struct snapshot *layout,
                     const struct parts *parts)
{
    unsigned n_tried = 0;

    for (uint32_t u = 0; u < parts->n_units && n_tried < MAX_POURED; u++) {
        const struct part_unit *of = &parts->of[u];

        if (of->whole == NO_PART || of->columns == NO_PART ||
            of->unit->device >= 0)
            continue;
        n_tried++;
        for (uint32_t quanta = 1; quanta < of->n_quanta; quanta *= 2)
            if (of->n_quanta % quanta == 0 &&
                pour_unit(out, layout, parts, u, quanta))
                return true;
    }
    return false;
}

static bool are_alike(const struct snapshot *a, const struct snapshot *b)
{
    for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
        if (a->pieces[i].part != b->pieces[i].part)
            return false;
    return a->n == b->n;
}

/* Large pieces take the least memory in all, small ones fill the devices
 * better. Layouts of pieces as large as may be, and of smaller ones; returns
 * how many. */
static unsigned list_layouts(struct snapshot *layouts,
                             const struct parts *parts)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_SIZES; i++)
        if (build_greedily(&layouts[n], parts, parts->most_room_bytes >> i,
                           true))
            n += !n || !are_alike(&layouts[n], &layouts[n - 1]);
    return n;
}

static bool repair_any(struct snapshot *layouts, unsigned n,
                       const struct parts *parts, unsigned patience,
                       unsigned *which, struct fit_failure *failure)
{
    for (*which = 0; *which < n; ++*which) {
        uint64_t lacking = temper_repair(&layouts[*which], parts, patience);

        if (lacking < failure->lacking_bytes)
            failure->lacking_bytes = lacking;
        if (!lacking)
            return true;
    }
    return false;
}

static bool pack_any(struct snapshot *layouts, unsigned n,
                     const struct parts *parts, uint64_t max_work,
                     unsigned *which)
{
    for (*which = 0; *which < n; ++*which)
        if (pack(&layouts[*which], parts, false, max_work) == BINS_PACKED)
            return true;
    return false;
}

/* An exact packing may be found or ruled out at once, or take for ever; an
 * annealing finds much, and proves nothing. So both, one after the other, each
 * with little work first and with more in the end; *which is the layout that
 * fits. */
static bool try_hard(struct snapshot *layouts, unsigned n,
                     const struct parts *parts, unsigned *which,
                     struct fit_failure *failure)
{
    if (pack_any(layouts, n, parts, PACK_WORK, which))
        return true;
    failure->is_proven = pack(&layouts[0], parts, true, PACK_WORK) == BINS_NONE;
    if (failure->is_proven)
        return false;
    if (repair_any(layouts, n, parts, 1, which, failure))
        return true;
    *which = n;
    if (pour_any(&layouts[n], &layouts[0], parts))
        return true;
    return pack_any(layouts, 1, parts, LONG_WORK, which) ||
           repair_any(layouts, n < 2 ? n : 2, parts, PATIENCE, which, failure);
}

bool fit_by_memory(struct snapshot *out, const struct parts *parts,
                   enum fit_effort effort, struct fit_failure *failure)
{
    struct snapshot layouts[N_SIZES + 1] = {{0}};
    bool is_found = false;
    unsigned n, which = 0;

    *failure = (struct fit_failure){.lacking_bytes = UINT64_MAX};
    for (unsigned i = 0; i < N_SIZES; i++)
        if (build_greedily(out, parts, parts->most_room_bytes >> i, false))
            return true;
    n = list_layouts(layouts, parts);
    if (n && effort == FIT_QUICK)
        is_found = pack_any(layouts, 1, parts, QUICK_WORK, &which);
    else if (n)
        is_found = try_hard(layouts, n, parts, &which, failure);
    if (is_found) {
        snapshot_copy(out, &layouts[which]);
        (void)snapshot_join(out, parts);
    }
    for (unsigned i = 0; i <= N_SIZES; i++)
        snapshot_release(&layouts[i]);
    return is_found;
}
