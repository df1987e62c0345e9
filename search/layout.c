/* SPDX-License-Identifier: MIT */
#include "search/layout.h"

#include "search/homes.h"
#include "search/layout_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After so many changes of a device its sums are added up afresh, so that
 * rounding does not pile up. */
#define REFRESH 64

static size_t width_of(const struct layout *layout)
{
    return layout->parts->oracle->width;
}

static size_t n_terms_of(const struct layout *layout)
{
    return layout->parts->oracle->n_terms;
}

void layout_init(struct layout *layout, const struct parts *parts)
{
    uint32_t n = parts->problem->cluster.n_devices;

    *layout = (struct layout){
        .parts = parts, .n_devices = n, .move_limit_bytes = NO_MOVE_LIMIT};
    layout->first_of = mem_alloc(parts->n_units, sizeof(uint32_t));
    layout->holdings = mem_alloc(n, sizeof(*layout->holdings));
    layout->n_commits = mem_alloc(n, sizeof(*layout->n_commits));
    layout->sums = mem_alloc(n * width_of(layout), sizeof(double));
    layout->compute_ms = mem_alloc(n, sizeof(double));
    layout->local_ms = mem_alloc(n, sizeof(double));
    layout->load_ms = mem_alloc(n, sizeof(double));
    layout->bytes = mem_alloc(n, sizeof(*layout->bytes));
    if (parts->oracle->ops->terms)
        layout->terms_ms = mem_alloc(n * n_terms_of(layout), sizeof(double));
    layout->tops = mem_alloc(n_terms_of(layout), sizeof(*layout->tops));
    if (parts->homes)
        layout->moved_bytes = mem_alloc(parts->n_units, sizeof(uint64_t));
    layout_clear(layout);
}

void layout_release(struct layout *layout)
{
    for (uint32_t r = 0; layout->holdings && r < layout->n_devices; r++)
        mem_free(layout->holdings[r].pieces);
    mem_free(layout->pieces);
    mem_free(layout->first_of);
    mem_free(layout->holdings);
    mem_free(layout->n_commits);
    mem_free(layout->sums);
    mem_free(layout->compute_ms);
    mem_free(layout->local_ms);
    mem_free(layout->load_ms);
    mem_free(layout->bytes);
    mem_free(layout->terms_ms);
    mem_free(layout->tops);
    mem_free(layout->moved_bytes);
    *layout = (struct layout){0};
}

void layout_clear(struct layout *layout)
{
    layout->n_pieces = layout->n_live = 0;
    layout->first_free = NO_PIECE;
    for (uint32_t u = 0; u < layout->parts->n_units; u++)
        layout->first_of[u] = NO_PIECE;
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        layout->holdings[r].n = 0;
        layout->bytes[r] = 0;
        layout->n_commits[r] = 0;
    }
    memset(layout->sums, 0,
           layout->n_devices * width_of(layout) * sizeof(double));
}

static void hold(struct layout *layout, uint32_t piece)
{
    struct holding *holding = &layout->holdings[layout->pieces[piece].device];

    if (holding->n == holding->capacity) {
        holding->capacity = 2 * holding->capacity + 8;
        holding->pieces = mem_grow(holding->pieces, holding->capacity,
                                   sizeof(*holding->pieces));
    }
    layout->pieces[piece].slot = holding->n;
    holding->pieces[holding->n++] = piece;
}

static void let_go(struct layout *layout, uint32_t piece)
{
    struct holding *holding = &layout->holdings[layout->pieces[piece].device];
    uint32_t slot = layout->pieces[piece].slot;
    uint32_t last = holding->pieces[--holding->n];

    holding->pieces[slot] = last;
    layout->pieces[last].slot = slot;
}

void layout_insert(struct layout *layout, const struct change *change)
{
    uint32_t unit = layout->parts->parts[change->part].unit;
    uint32_t idx = layout->first_free;
    struct piece *piece;

    if (idx != NO_PIECE) {
        layout->first_free = layout->pieces[idx].next;
    } else {
        if (layout->n_pieces == layout->capacity) {
            layout->capacity = 2 * layout->capacity + 64;
            layout->pieces = mem_grow(layout->pieces, layout->capacity,
                                      sizeof(*layout->pieces));
        }
        idx = layout->n_pieces++;
    }
    piece = &layout->pieces[idx];
    *piece = (struct piece){.part = change->part,
                            .device = change->device,
                            .range = change->range,
                            .block = change->block,
                            .prev = NO_PIECE,
                            .next = layout->first_of[unit]};
    if (piece->next != NO_PIECE)
        layout->pieces[piece->next].prev = idx;
    layout->first_of[unit] = idx;
    layout->n_live++;
    hold(layout, idx);
}

static void drop(struct layout *layout, uint32_t idx)
{
    struct piece *piece = &layout->pieces[idx];
    uint32_t unit = layout->parts->parts[piece->part].unit;

    let_go(layout, idx);
    if (piece->prev != NO_PIECE)
        layout->pieces[piece->prev].next = piece->next;
    else
        layout->first_of[unit] = piece->next;
    if (piece->next != NO_PIECE)
        layout->pieces[piece->next].prev = piece->prev;
    piece->part = NO_PART;
    piece->next = layout->first_free;
    layout->first_free = idx;
    layout->n_live--;
}

/* --- trials --- */

void trial_init(struct trial *trial, const struct layout *layout)
{
    *trial = (struct trial){0};
    trial->place = mem_alloc(layout->n_devices, sizeof(*trial->place));
    trial->first_on = mem_alloc(layout->n_devices, sizeof(uint32_t));
    trial->load_ms = mem_alloc(layout->n_devices, sizeof(double));
    trial->load_bytes = mem_alloc(layout->n_devices, sizeof(uint64_t));
    trial->room_quanta = mem_alloc(layout->n_devices, sizeof(uint32_t));
    trial->held_quanta = mem_alloc(layout->n_devices, sizeof(uint32_t));
    for (uint32_t r = 0; r < layout->n_devices; r++)
        trial->place[r] = trial->first_on[r] = NO_PIECE;
}

void trial_release(struct trial *trial)
{
    mem_free(trial->place);
    mem_free(trial->first_on);
    mem_free(trial->load_ms);
    mem_free(trial->load_bytes);
    mem_free(trial->room_quanta);
    mem_free(trial->held_quanta);
    mem_free(trial->changes);
    mem_free(trial->devices);
    mem_free(trial->n_held);
    mem_free(trial->bytes);
    mem_free(trial->sums);
    mem_free(trial->compute_ms);
    mem_free(trial->terms_ms);
    mem_free(trial->moved);
    *trial = (struct trial){0};
}

void trial_clear(struct trial *trial)
{
    for (uint32_t i = 0; i < trial->n_devices; i++)
        trial->place[trial->devices[i]] = NO_PIECE;
    trial->n_devices = trial->n_changes = trial->n_moved = 0;
    trial->is_home = false;
}

static void add_change(struct trial *trial, struct change change)
{
    if (trial->n_changes == trial->changes_capacity) {
        trial->changes_capacity = 2 * trial->changes_capacity + 8;
        trial->changes = mem_grow(trial->changes, trial->changes_capacity,
                                  sizeof(*trial->changes));
    }
    trial->changes[trial->n_changes++] = change;
}

void trial_change(struct trial *trial, const struct layout *layout,
                  uint32_t piece, uint32_t part, uint32_t device)
{
    add_change(trial, (struct change){.piece = piece,
                                      .part = part,
                                      .device = device,
                                      .range = layout->pieces[piece].range,
                                      .block = layout->pieces[piece].block});
}

void trial_move(struct trial *trial, const struct layout *layout,
                uint32_t piece, uint32_t device)
{
    trial_change(trial, layout, piece, layout->pieces[piece].part, device);
}

void trial_split(struct trial *trial, const struct layout *layout,
                 uint32_t piece, uint32_t n_quanta, uint32_t device)
{
    const struct parts *parts = layout->parts;
    uint32_t part = layout->pieces[piece].part, unit = parts->parts[part].unit;
    uint32_t n_left = parts_quanta(parts, part) - n_quanta;

    trial_change(trial, layout, piece, parts_of_quanta(parts, unit, n_left),
                 layout->pieces[piece].device);
    trial_add(trial,
              (struct change){.part = parts_of_quanta(parts, unit, n_quanta),
                              .device = device});
}

void trial_remove(struct trial *trial, uint32_t piece)
{
    add_change(trial, (struct change){.piece = piece, .part = NO_PART});
}

void trial_remove_unit(struct trial *trial, const struct layout *layout,
                       uint32_t unit)
{
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next)
        trial_remove(trial, i);
}

void trial_add(struct trial *trial, struct change piece)
{
    piece.piece = NO_PIECE;
    add_change(trial, piece);
}

const struct change *trial_find(const struct trial *trial, uint32_t piece,
                                uint32_t *next)
{
    for (uint32_t i = 0; i < trial->n_changes; i++, ++*next) {
        *next = *next < trial->n_changes ? *next : 0;
        if (trial->changes[*next].piece == piece)
            return &trial->changes[*next];
    }
    return NULL;
}

static void grow_devices(struct trial *trial, const struct layout *layout)
{
    uint32_t n = 2 * trial->devices_capacity + 4;

    trial->devices_capacity = n;
    trial->devices = mem_grow(trial->devices, n, sizeof(*trial->devices));
    trial->n_held = mem_grow(trial->n_held, n, sizeof(*trial->n_held));
    trial->bytes = mem_grow(trial->bytes, n, sizeof(*trial->bytes));
    trial->sums =
        mem_grow(trial->sums, n * width_of(layout), sizeof(*trial->sums));
    trial->compute_ms =
        mem_grow(trial->compute_ms, n, sizeof(*trial->compute_ms));
    trial->terms_ms = mem_grow(trial->terms_ms, n * (n_terms_of(layout) + 1),
                               sizeof(*trial->terms_ms));
}

static uint32_t touch(struct trial *trial, const struct layout *layout,
                      uint32_t device)
{
    const size_t width = width_of(layout);
    uint32_t i = trial->place[device];

    if (i != NO_PIECE)
        return i;
    if (trial->n_devices == trial->devices_capacity)
        grow_devices(trial, layout);
    i = trial->n_devices++;
    trial->place[device] = i;
    trial->devices[i] = device;
    trial->n_held[i] = layout->holdings[device].n;
    trial->bytes[i] = layout->bytes[device];
    memcpy(trial->sums + i * width, layout->sums + device * width,
           width * sizeof(double));
    return i;
}

static void take_away(struct trial *trial, const struct layout *layout,
                      uint32_t idx)
{
    const size_t width = width_of(layout);
    const struct piece *piece = &layout->pieces[idx];
    const double *vector = layout->parts->vectors + piece->part * width;
    uint32_t i = touch(trial, layout, piece->device);
    double *sum = trial->sums + i * width;

    trial->n_held[i]--;
    trial->bytes[i] -= layout->parts->parts[piece->part].bytes;
    if (!trial->n_held[i])
        memset(sum, 0, width * sizeof(*sum));
    else
        for (size_t w = 0; w < width; w++)
            sum[w] -= vector[w];
}

static void put_on(struct trial *trial, const struct layout *layout,
                   const struct change *change)
{
    const size_t width = width_of(layout);
    const double *vector = layout->parts->vectors + change->part * width;
    uint32_t i = touch(trial, layout, change->device);
    double *sum = trial->sums + i * width;

    trial->n_held[i]++;
    trial->bytes[i] = saturating_add(trial->bytes[i],
                                     layout->parts->parts[change->part].bytes);
    for (size_t w = 0; w < width; w++)
        sum[w] += vector[w];
}

void trial_sum(struct trial *trial, const struct layout *layout)
{
    for (uint32_t c = 0; c < trial->n_changes; c++)
        if (trial->changes[c].piece != NO_PIECE)
            take_away(trial, layout, trial->changes[c].piece);
    for (uint32_t c = 0; c < trial->n_changes; c++)
        if (trial->changes[c].part != NO_PART)
            put_on(trial, layout, &trial->changes[c]);
    trial->excess = layout->excess;
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        uint32_t r = trial->devices[i];

        trial->excess += layout_excess(layout, r, trial->bytes[i]) -
                         layout_excess(layout, r, layout->bytes[r]);
    }
    if (layout_counts_moves(layout))
        homes_count_trial(trial, layout);
}

/* The largest of term k over the devices that the trial leaves alone. */
static double untouched_top(const struct trial *trial,
                            const struct layout *layout, size_t k)
{
    const struct top *top = &layout->tops[k];
    double most = 0;

    for (uint32_t i = 0; i < top->n; i++)
        if (trial->place[top->device[i]] == NO_PIECE)
            return top->ms[i];
    if (top->n == layout->n_devices)
        return 0;
    for (uint32_t r = 0; r < layout->n_devices; r++)
        if (trial->place[r] == NO_PIECE)
            most = fmax(most, layout->terms_ms[r * n_terms_of(layout) + k]);
    return most;
}

void trial_price_terms(struct trial *trial, const struct layout *layout)
{
    const struct oracle *oracle = layout->parts->oracle;
    const size_t n_terms = oracle->n_terms;

    oracle->ops->terms(oracle, trial->sums, trial->compute_ms, trial->n_devices,
                       trial->terms_ms);
    trial->total_ms = 0;
    for (size_t k = 0; k < n_terms; k++) {
        double most = untouched_top(trial, layout, k);

        for (uint32_t i = 0; i < trial->n_devices; i++)
            if (trial->terms_ms[i * n_terms + k] > most)
                most = trial->terms_ms[i * n_terms + k];
        trial->total_ms += most;
    }
}

/* --- what follows from the sums --- */

static void find_top(struct layout *layout, size_t k)
{
    const size_t n_terms = n_terms_of(layout);
    struct top *top = &layout->tops[k];

    top->n = 0;
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        double ms = layout->terms_ms[r * n_terms + k];
        uint32_t i = top->n;

        if (i == TOP_DEVICES && ms <= top->ms[i - 1])
            continue;
        i = i == TOP_DEVICES ? i - 1 : i;
        for (; i > 0 && top->ms[i - 1] < ms; i--) {
            top->ms[i] = top->ms[i - 1];
            top->device[i] = top->device[i - 1];
        }
        top->ms[i] = ms;
        top->device[i] = r;
        if (top->n < TOP_DEVICES)
            top->n++;
    }
}

static void find_extremes(struct layout *layout)
{
    layout->slowest = layout->fastest = 0;
    for (uint32_t r = 1; r < layout->n_devices; r++) {
        if (layout->local_ms[r] > layout->local_ms[layout->slowest])
            layout->slowest = r;
        if (layout->local_ms[r] < layout->local_ms[layout->fastest])
            layout->fastest = r;
    }
    for (size_t k = 0; layout->terms_ms && k < n_terms_of(layout); k++)
        find_top(layout, k);
}

static void set_local(struct layout *layout, uint32_t r)
{
    const size_t n_terms = n_terms_of(layout);

    layout->local_ms[r] = layout->terms_ms ? 0 : layout->compute_ms[r];
    for (size_t k = 0; layout->terms_ms && k < n_terms; k++)
        layout->local_ms[r] += layout->terms_ms[r * n_terms + k];
    if (layout->terms_ms)
        layout->load_ms[r] = layout->local_ms[r];
}

static void add_up(struct layout *layout, uint32_t r)
{
    const size_t width = width_of(layout);
    const struct holding *holding = &layout->holdings[r];
    double *sum = layout->sums + r * width;

    memset(sum, 0, width * sizeof(*sum));
    layout->load_ms[r] = 0;
    layout->bytes[r] = 0;
    layout->n_commits[r] = 0;
    for (uint32_t i = 0; i < holding->n; i++) {
        uint32_t part = layout->pieces[holding->pieces[i]].part;
        const double *vector = layout->parts->vectors + part * width;

        layout->load_ms[r] += layout->parts->marginal_ms[part];
        layout->bytes[r] =
            saturating_add(layout->bytes[r], layout->parts->parts[part].bytes);
        for (size_t w = 0; w < width; w++)
            sum[w] += vector[w];
    }
}

/* Afresh, so that 0 is 0. */
static void add_excess(struct layout *layout)
{
    layout->excess = 0;
    for (uint32_t r = 0; r < layout->n_devices; r++)
        layout->excess += layout_excess(layout, r, layout->bytes[r]);
    if (layout_counts_moves(layout))
        layout->excess += homes_excess(layout, layout->all_moved_bytes);
}

/* A layout that is wrong ends the program, not in a plan. */
static void check_now_and_then(struct layout *layout)
{
#ifdef LAYOUT_CHECK_EVERY
    struct err err = {0};

    if (++layout->n_unchecked < LAYOUT_CHECK_EVERY)
        return;
    layout->n_unchecked = 0;
    if (layout_check(layout, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
#else
    (void)layout;
#endif
}

void layout_commit(struct layout *layout, const struct trial *trial)
{
    const size_t width = width_of(layout), n_terms = n_terms_of(layout);
    const double *marginal_ms = layout->parts->marginal_ms;

    for (uint32_t c = 0; c < trial->n_changes; c++) {
        const struct change *change = &trial->changes[c];

        if (change->piece != NO_PIECE)
            layout->load_ms[layout->pieces[change->piece].device] -=
                marginal_ms[layout->pieces[change->piece].part];
        if (change->part != NO_PART)
            layout->load_ms[change->device] += marginal_ms[change->part];
        if (change->part == NO_PART) {
            drop(layout, change->piece);
        } else if (change->piece == NO_PIECE) {
            layout_insert(layout, change);
        } else {
            let_go(layout, change->piece);
            layout->pieces[change->piece].part = change->part;
            layout->pieces[change->piece].device = change->device;
            hold(layout, change->piece);
        }
    }
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        uint32_t r = trial->devices[i];

        layout->compute_ms[r] = trial->compute_ms[i];
        layout->bytes[r] = trial->bytes[i];
        memcpy(layout->sums + r * width, trial->sums + i * width,
               width * sizeof(double));
        if (layout->terms_ms)
            memcpy(layout->terms_ms + r * n_terms,
                   trial->terms_ms + i * n_terms, n_terms * sizeof(double));
        if (++layout->n_commits[r] >= REFRESH)
            add_up(layout, r);
        set_local(layout, r);
    }
    layout->total_ms = trial->total_ms;
    for (uint32_t i = 0; i < trial->n_moved; i++)
        layout->moved_bytes[trial->moved[i].unit] = trial->moved[i].bytes;
    if (layout_counts_moves(layout))
        layout->all_moved_bytes = trial->all_moved_bytes;
    find_extremes(layout);
    add_excess(layout);
    check_now_and_then(layout);
}

double layout_true_total(const struct layout *layout)
{
    return oracle_comm_total_ms(layout->parts->oracle, layout->sums,
                                layout->compute_ms);
}

void layout_price(struct layout *layout)
{
    const struct oracle *oracle = layout->parts->oracle;

    for (uint32_t r = 0; r < layout->n_devices; r++)
        add_up(layout, r);
    oracle->ops->compute(oracle, layout->sums, layout->n_devices,
                         layout->compute_ms);
    if (layout->terms_ms)
        oracle->ops->terms(oracle, layout->sums, layout->compute_ms,
                           layout->n_devices, layout->terms_ms);
    for (uint32_t r = 0; r < layout->n_devices; r++)
        set_local(layout, r);
    find_extremes(layout);
    if (layout->moved_bytes)
        homes_count_layout(layout);
    add_excess(layout);
    layout->total_ms = layout->terms_ms ? 0 : layout_true_total(layout);
    for (size_t k = 0; layout->terms_ms && k < n_terms_of(layout); k++)
        layout->total_ms += layout->tops[k].ms[0];
}
