/* SPDX-License-Identifier: MIT */
#include "search/build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A piece that does not fit goes first in the next try, so often. */
#define MAX_TRIES 32
/* Devices that are looked at for a piece, the least loaded first. */
#define MAX_SEEN 8

struct to_place {
    struct change piece;
    uint32_t unit;
    uint32_t urgency; /* of its unit */
    uint32_t order;   /* among the pieces of its unit */
    double ms, bytes;
    double weight; /* the larger of its shares in all ms and in all memory */
};

struct builder {
    const struct parts *parts;
    const struct build_options *options;
    uint32_t n_devices;
    struct arena arena;    /* of what does not grow */
    struct to_place *list; /* [n] */
    uint32_t n, capacity;
    uint32_t *urgency; /* [n_units]: tries in which it was stuck */
    double *load;      /* [R]: ms, or less of the room that is left */
    uint64_t *used;    /* [R] */
    double *sums;      /* [R][width], unless by memory */
    double *trial_sum; /* [width] */
    double mean_ms[ORACLE_MAX_TERMS]; /* of a device, by term */
    uint32_t *heap;                   /* [R]: devices, least load first */
    uint32_t *place;                  /* [R]: where in the heap */
    uint32_t *aside;                  /* [R] */
    bool *is_taken; /* [R]: has a piece already that the one in hand must not
                       meet (search/trial.h) */
    uint64_t work;  /* so far */
};

/* --- a form for each unit --- */

static double badness(const struct form *form,
                      const struct build_options *options)
{
    double ms = form->peak_ms / options->peak_ms;
    double bytes = (double)form->peak_bytes / ((double)options->peak_bytes + 1);

    return fmax(fmax(ms, bytes), 1);
}

static struct form choose_form(const struct parts *parts, uint32_t unit,
                               const struct build_options *options,
                               uint32_t n_replicas)
{
    uint32_t n = forms_count(parts, unit), n_left;
    double least = INFINITY, least_bad = INFINITY;
    struct form best = forms_get(parts, unit, 0);

    n_left = options->max_replicas > n_replicas
                 ? options->max_replicas - n_replicas
                 : 0;
    for (uint32_t i = 0; i < n; i++) {
        struct form form = forms_get(parts, unit, i);
        double bad = badness(&form, options);
        double price = form.bytes * options->ms_per_byte;

        if (!options->by_memory)
            price += form.load_ms *
                     (form.kind == FORM_REPLICA ? options->replica_frac : 1);
        if (form.kind == FORM_REPLICA && form.n_pieces > n_left && n > 1)
            continue;
        if (bad > least_bad || (bad == least_bad && price >= least))
            continue;
        least = price;
        least_bad = bad;
        best = form;
    }
    return best;
}

/* Block by block, as pieces of one row block are to be set apart; or where
 * blocks fill a host, host by host. */
static uint32_t order_of(const struct parts *parts, struct form form,
                         const struct change *piece)
{
    const struct cut *cut;

    if (form.kind != FORM_CUT)
        return piece->range;
    cut = &parts->cuts[form.n];
    if (cut->fills_host)
        return piece->range * cut->n_blocks + piece->block;
    return piece->block * cut->n_ranges + piece->range;
}

static void list_pieces(struct builder *builder)
{
    const struct parts *parts = builder->parts;
    uint32_t n_replicas = 0;

    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct form form = choose_form(parts, u, builder->options, n_replicas);

        if (form.kind == FORM_REPLICA)
            n_replicas += form.n_pieces;
        if (builder->capacity < builder->n + form.n_pieces) {
            builder->capacity = 2 * builder->capacity + form.n_pieces + 64;
            builder->list = mem_grow(builder->list, builder->capacity,
                                     sizeof(*builder->list));
        }
        for (uint32_t i = 0; i < form.n_pieces; i++) {
            struct to_place next = {.unit = u};

            next.piece = forms_piece(parts, u, form, i);
            next.ms = parts->alone_ms[next.piece.part];
            next.bytes = (double)parts->parts[next.piece.part].bytes;
            next.order = order_of(parts, form, &next.piece);
            /* Columns follow each other, and so do a host's blocks, the short
             * last one too. */
            if (form.kind == FORM_COLUMNS) {
                next.ms = form.peak_ms;
                next.bytes = (double)form.peak_bytes;
            } else if (forms_fills_host(parts, form)) {
                next.ms = form.load_ms;
                next.bytes = form.bytes;
            }
            builder->list[builder->n++] = next;
        }
    }
}

/* By load, so that memory changes nothing where there is enough; once a piece
 * was stuck, by memory too. */
static void weigh(struct builder *builder, bool is_short)
{
    const struct parts *parts = builder->parts;
    double all_ms = 0, room = 0;

    for (uint32_t r = 0; r < builder->n_devices; r++)
        room += (double)parts->room_bytes[r];
    for (uint32_t i = 0; i < builder->n; i++)
        all_ms += builder->list[i].ms;
    for (uint32_t i = 0; i < builder->n; i++) {
        struct to_place *piece = &builder->list[i];

        piece->weight = 0;
        if (!builder->options->by_memory && all_ms > 0)
            piece->weight = piece->ms / all_ms;
        if (builder->options->by_memory || is_short)
            piece->weight = fmax(piece->weight, piece->bytes / (room + 1));
    }
}

/* What stands fast, then what was stuck, then the heaviest; pieces of one cut
 * in their order. */
static int compare_to_place(const void *left, const void *right)
{
    const struct to_place *a = left, *b = right;
    bool a_fast = a->piece.device != NO_PIECE;
    bool b_fast = b->piece.device != NO_PIECE;

    if (a_fast != b_fast)
        return a_fast ? -1 : 1;
    if (a->urgency != b->urgency)
        return a->urgency > b->urgency ? -1 : 1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    if (a->unit != b->unit)
        return a->unit < b->unit ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* --- devices in a heap, by load, then memory, then index --- */

static bool goes_before(const struct builder *builder, uint32_t a, uint32_t b)
{
    if (builder->load[a] != builder->load[b])
        return builder->load[a] < builder->load[b];
    if (builder->used[a] != builder->used[b])
        return builder->used[a] < builder->used[b];
    return a < b;
}

static void heap_set(struct builder *builder, uint32_t at, uint32_t device)
{
    builder->heap[at] = device;
    builder->place[device] = at;
}

static void heap_fix(struct builder *builder, uint32_t device, uint32_t n)
{
    uint32_t i = builder->place[device];

    for (; i && goes_before(builder, device, builder->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        heap_set(builder, i, builder->heap[(i - 1) / 2]);
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && goes_before(builder, builder->heap[child + 1],
                                         builder->heap[child]))
            child++;
        if (!goes_before(builder, builder->heap[child], device))
            break;
        heap_set(builder, i, builder->heap[child]);
    }
    heap_set(builder, i, device);
}

/* Terms that are above their mean weigh more, as each of them has a slowest
 * device of its own. */
static double load_of(const struct builder *builder, const double *sum)
{
    const struct oracle *oracle = builder->parts->oracle;
    double compute_ms, terms[ORACLE_MAX_TERMS], load = 0;

    oracle->ops->compute(oracle, sum, 1, &compute_ms);
    if (!oracle->ops->terms)
        return compute_ms;
    oracle->ops->terms(oracle, sum, &compute_ms, 1, terms);
    for (uint32_t k = 0; k < oracle->n_terms; k++) {
        double x = builder->mean_ms[k] > 0 ? terms[k] / builder->mean_ms[k] : 0;

        load += oracle->n_terms > 1 ? x * x * x * x * builder->mean_ms[k]
                                    : terms[k];
    }
    return load;
}

/* The load of a device with one part more. */
static double load_with(const struct builder *builder, uint32_t r,
                        uint32_t part)
{
    const struct parts *parts = builder->parts;
    const size_t width = parts->oracle->width;

    if (builder->options->by_memory)
        return -(double)(parts->room_bytes[r] - builder->used[r] -
                         parts->parts[part].bytes);
    for (size_t w = 0; w < width; w++)
        builder->trial_sum[w] =
            builder->sums[r * width + w] + parts->vectors[part * width + w];
    return load_of(builder, builder->trial_sum);
}

static bool fits(const struct builder *builder, uint32_t part, uint32_t r)
{
    uint64_t room = builder->parts->room_bytes[r];

    if (builder->is_taken[r])
        return false;
    return builder->options->may_exceed ||
           (builder->used[r] <= room &&
            builder->parts->parts[part].bytes <= room - builder->used[r]);
}

/* Of the least loaded devices with room, the one that is least loaded then; or
 * NO_PIECE. */
static uint32_t find_room(struct builder *builder, uint32_t part)
{
    uint32_t n = builder->n_devices, n_aside = 0, n_seen = 0;
    uint32_t found = NO_PIECE;
    double least = INFINITY;

    while (n && n_seen < MAX_SEEN) {
        uint32_t device = builder->heap[0];

        if (fits(builder, part, device)) {
            double load = load_with(builder, device, part);

            n_seen++;
            if (load < least) {
                least = load;
                found = device;
            }
        }
        builder->aside[n_aside++] = device;
        heap_set(builder, 0, builder->heap[--n]);
        if (n)
            heap_fix(builder, builder->heap[0], n);
    }
    builder->work += n_aside;
    while (n_aside) {
        uint32_t device = builder->aside[--n_aside];

        heap_set(builder, n++, device);
        heap_fix(builder, device, n);
    }
    return found;
}

static void load_device(struct builder *builder, uint32_t part, uint32_t r)
{
    const struct parts *parts = builder->parts;
    const size_t width = parts->oracle->width;

    builder->load[r] = load_with(builder, r, part);
    builder->used[r] += parts->parts[part].bytes;
    for (size_t w = 0; builder->sums && w < width; w++)
        builder->sums[r * width + w] += parts->vectors[part * width + w];
    heap_fix(builder, r, builder->n_devices);
}

/* Means of the terms, from the parts alone. */
static void find_means(struct builder *builder)
{
    const struct parts *parts = builder->parts;
    const struct oracle *oracle = parts->oracle;
    double terms[ORACLE_MAX_TERMS];

    memset(builder->mean_ms, 0, sizeof(builder->mean_ms));
    for (uint32_t i = 0; builder->sums && oracle->ops->terms && i < builder->n;
         i++) {
        uint32_t part = builder->list[i].piece.part;
        const double *vector = parts->vectors + part * (size_t)oracle->width;
        double compute_ms;

        oracle->ops->compute(oracle, vector, 1, &compute_ms);
        oracle->ops->terms(oracle, vector, &compute_ms, 1, terms);
        for (uint32_t k = 0; k < oracle->n_terms; k++)
            builder->mean_ms[k] += terms[k] / builder->n_devices;
    }
}

/* The devices of the pieces before this one that it must not meet: of its unit
 * and its row block, or where blocks fill hosts, of its unit. */
static void take_devices(struct builder *builder, const struct to_place *piece,
                         bool any_block, bool is_taken)
{
    for (const struct to_place *at = piece;
         at-- > builder->list && at->unit == piece->unit &&
         (any_block || at->piece.block == piece->piece.block);)
        builder->is_taken[at->piece.device] = is_taken;
}

/* The n blocks of a cut that fills a host: the host whose busiest device is
 * least loaded. */
static bool place_on_host(struct builder *builder, struct to_place *blocks,
                          uint32_t n)
{
    uint32_t per_host = cluster_group(&builder->parts->problem->cluster);
    uint32_t best = NO_PIECE;
    double least = INFINITY;

    take_devices(builder, blocks, true, true);
    for (uint32_t host = 0; host + per_host <= builder->n_devices;
         host += per_host) {
        double most = -INFINITY;
        bool all_fit = true;

        for (uint32_t b = 0; b < n && all_fit; b++) {
            uint32_t r = host + blocks[b].piece.block;

            all_fit = fits(builder, blocks[b].piece.part, r);
            most = fmax(most, builder->load[r]);
        }
        if (all_fit && most < least) {
            least = most;
            best = host;
        }
    }
    take_devices(builder, blocks, true, false);
    builder->work += builder->n_devices;
    if (best == NO_PIECE)
        return false;
    for (uint32_t b = 0; b < n; b++) {
        blocks[b].piece.device = best + blocks[b].piece.block;
        load_device(builder, blocks[b].piece.part, blocks[b].piece.device);
    }
    return true;
}

static bool place_piece(struct builder *builder, struct to_place *piece)
{
    uint32_t part = piece->piece.part;

    if (piece->piece.device == NO_PIECE) {
        take_devices(builder, piece, false, true);
        piece->piece.device = find_room(builder, part);
        take_devices(builder, piece, false, false);
    } else if (!fits(builder, part, piece->piece.device)) {
        piece->piece.device = NO_PIECE;
    }
    if (piece->piece.device == NO_PIECE)
        return false;
    load_device(builder, part, piece->piece.device);
    return true;
}

static void clear(struct builder *builder)
{
    const struct parts *parts = builder->parts;

    memset(builder->used, 0, builder->n_devices * sizeof(*builder->used));
    memset(builder->load, 0, builder->n_devices * sizeof(*builder->load));
    if (builder->sums)
        memset(builder->sums, 0,
               builder->n_devices * parts->oracle->width * sizeof(double));
    for (uint32_t r = 0; r < builder->n_devices; r++) {
        if (builder->options->by_memory)
            builder->load[r] = -(double)parts->room_bytes[r];
        heap_set(builder, r, r);
        heap_fix(builder, r, r + 1);
    }
}

/* One try; the unit that found no room, or NO_PIECE. */
static uint32_t place_all(struct builder *builder)
{
    const uint64_t max_work = builder->options->max_work;

    clear(builder);
    builder->work += builder->n;
    if (builder->n)
        qsort(builder->list, builder->n, sizeof(*builder->list),
              compare_to_place);
    for (uint32_t i = 0; i < builder->n;) {
        struct to_place *piece = &builder->list[i];
        const struct cut *cut = parts_cut_of(builder->parts, piece->piece.part);
        uint32_t n = cut && cut->fills_host ? cut->n_blocks : 0;

        if (n ? !place_on_host(builder, piece, n)
              : !place_piece(builder, piece))
            return piece->unit;
        if (max_work && builder->work > max_work)
            return piece->unit;
        i += n ? n : 1;
    }
    return NO_PIECE;
}

static void builder_init(struct builder *builder, const struct parts *parts,
                         const struct build_options *options)
{
    uint32_t n = parts->n_devices;
    struct arena *arena = &builder->arena;

    *builder =
        (struct builder){.parts = parts, .options = options, .n_devices = n};
    builder->urgency = ARENA_NEW(arena, uint32_t, parts->n_units);
    builder->load = ARENA_NEW(arena, double, n);
    builder->used = ARENA_NEW(arena, uint64_t, n);
    builder->heap = ARENA_NEW(arena, uint32_t, n);
    builder->place = ARENA_NEW(arena, uint32_t, n);
    builder->aside = ARENA_NEW(arena, uint32_t, n);
    builder->is_taken = ARENA_NEW(arena, bool, n);
    if (options->by_memory)
        return;
    builder->sums = ARENA_NEW(arena, double, n *(size_t)parts->oracle->width);
    builder->trial_sum = ARENA_NEW(arena, double, parts->oracle->width);
}

bool build(struct snapshot *out, const struct parts *parts,
           const struct build_options *options, struct build_outcome *outcome)
{
    struct builder builder;
    uint32_t stuck = NO_PIECE;

    builder_init(&builder, parts, options);
    for (unsigned try = 0; try < MAX_TRIES; try++) {
        builder.n = 0;
        list_pieces(&builder);
        weigh(&builder, try > 0);
        for (uint32_t i = 0; i < builder.n; i++)
            builder.list[i].urgency = builder.urgency[builder.list[i].unit];
        find_means(&builder);
        stuck = place_all(&builder);
        if (stuck == NO_PIECE ||
            (options->max_work && builder.work > options->max_work))
            break;
        builder.urgency[stuck] += MAX_TRIES - try;
    }
    out->n = 0;
    for (uint32_t i = 0; stuck == NO_PIECE && i < builder.n; i++)
        snapshot_add(out, builder.list[i].piece);
    *outcome = (struct build_outcome){stuck, builder.work};
    mem_free(builder.list);
    arena_release(&builder.arena);
    return stuck == NO_PIECE;
}

struct build_load build_least_load(const struct parts *parts)
{
    struct build_options options = {.peak_ms = INFINITY,
                                    .replica_frac = 1,
                                    .peak_bytes = UINT64_MAX,
                                    .max_replicas = UINT32_MAX};
    double n_devices = parts->n_devices;
    struct build_load load = {0};

    for (uint32_t u = 0; u < parts->n_units; u++) {
        load.mean_ms += choose_form(parts, u, &options, 0).load_ms / n_devices;
    }
    options.peak_ms = load.mean_ms;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct form form = choose_form(parts, u, &options, 0);

        if (parts->of[u].unit->device < 0 &&
            forms_piece(parts, u, form, 0).device != NO_PIECE)
            load.spread_ms += form.load_ms / n_devices;
    }
    options.by_memory = true;
    options.ms_per_byte = 1;
    options.peak_ms = INFINITY;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        load.all_bytes += choose_form(parts, u, &options, 0).bytes;
    }
    return load;
}
