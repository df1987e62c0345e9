/* SPDX-License-Identifier: MIT */
#include "search/fit.h"

#include <math.h>
#include <string.h>

#include "search/bins.h"
#include "search/build.h"
#include "search/temper.h"
#include "search/trial.h"

/* The largest piece is at most as large as the largest device, and half and
 * half again of that. */
#define N_PEAKS 6
/* Work of the exact packing: 10^6 are some hundredths of a second. */
#define QUICK_WORK 1000000
#define POUR_WORK 2000000
#define WORK 5000000
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
    uint32_t n_devices = parts->problem->cluster.n_devices, n = 0;
    uint64_t *sizes = mem_alloc(layout->n + n_devices, sizeof(*sizes));
    uint64_t *rooms = sizes + layout->n;
    uint32_t *pieces = mem_alloc(layout->n, 2 * sizeof(*pieces));
    uint32_t *device_of = pieces + layout->n;
    enum bins_answer answer = BINS_PACKED;

    memcpy(rooms, parts->units->room_bytes, n_devices * sizeof(*rooms));
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

/* --- with one table in columns --- */

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

/* --- all together --- */

static bool are_alike(const struct snapshot *a, const struct snapshot *b)
{
    for (uint32_t i = 0; i < a->n && a->n == b->n; i++)
        if (a->pieces[i].part != b->pieces[i].part)
            return false;
    return a->n == b->n;
}

/* Layouts of pieces as large as may be, and of smaller ones; returns how
 * many. */
static unsigned list_layouts(struct snapshot *layouts,
                             const struct parts *parts)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N_PEAKS; i++)
        if (build_greedily(&layouts[n], parts,
                           parts->units->most_room_bytes >> i, true))
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

/* One after the other, the cheapest first; *which is the layout that fits. */
static bool try_hard(struct snapshot *layouts, unsigned n,
                     const struct parts *parts, unsigned *which,
                     struct fit_failure *failure)
{
    if (pack_any(layouts, n, parts, WORK, which))
        return true;
    failure->is_proven = pack(&layouts[0], parts, true, WORK) == BINS_NONE;
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
    struct snapshot layouts[N_PEAKS + 1] = {{0}};
    bool is_found = false;
    unsigned n, which = 0;

    *failure = (struct fit_failure){.lacking_bytes = UINT64_MAX};
    for (unsigned i = 0; i < N_PEAKS; i++)
        if (build_greedily(out, parts, parts->units->most_room_bytes >> i,
                           false))
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
    for (unsigned i = 0; i <= N_PEAKS; i++)
        snapshot_release(&layouts[i]);
    return is_found;
}
