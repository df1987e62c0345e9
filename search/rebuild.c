/* SPDX-License-Identifier: MIT */
#include "search/rebuild.h"

#include "search/trial.h"

#include <math.h>

/* What is left of a table when all devices are full goes in shares: this part
 * of what there still is. */
#define LEFT_SHARE 4

/* The devices, with what is taken off and put on so far. */
struct site {
    struct trial *trial; /* its room for estimates is used */
    const struct layout *layout;
    const struct parts *parts;
    struct rng *rng;
    double target_ms;           /* devices are full there */
    const struct part_unit *of; /* the unit in hand, */
    uint32_t unit;
};

static void put_on(struct site *site, uint32_t part, uint32_t device)
{
    site->trial->load_ms[device] += site->parts->marginal_ms[part];
    site->trial->load_bytes[device] += site->parts->parts[part].bytes;
}

static void take_off(struct site *site, uint32_t part, uint32_t device)
{
    site->trial->load_ms[device] -= site->parts->marginal_ms[part];
    site->trial->load_bytes[device] -= site->parts->parts[part].bytes;
}

static void take_off_unit(struct site *site, uint32_t unit)
{
    const struct layout *layout = site->layout;

    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next)
        take_off(site, layout->pieces[i].part, layout->pieces[i].device);
    trial_remove_unit(site->trial, layout, unit);
}

/* Of n quanta of the unit in hand; NO_PART where there is none such. */
static uint32_t part_of(const struct site *site, uint32_t n_quanta)
{
    return parts_of_quanta(site->parts, site->unit, n_quanta);
}

/* The unit's quanta on this device become n. */
static void hold(struct site *site, uint32_t device, uint32_t n)
{
    uint32_t *held = &site->trial->held_quanta[device];

    if (*held)
        take_off(site, part_of(site, *held), device);
    *held = n;
    put_on(site, part_of(site, n), device);
}

/* The best device so far: the one that exceeds its memory least, then the one
 * that has least to do. */
struct best {
    uint32_t device; /* or NO_PIECE */
    double excess, ms;
};

static void consider(struct best *best, const struct layout *layout,
                     uint32_t device, double ms, uint64_t bytes)
{
    double excess = layout_excess(layout, device, bytes);

    if (best->device != NO_PIECE &&
        (excess > best->excess || (excess == best->excess && ms >= best->ms)))
        return;
    *best = (struct best){device, excess, ms};
}

static uint32_t device_for(struct site *site, uint32_t part)
{
    const struct trial *trial = site->trial;
    uint32_t n_devices = site->layout->n_devices;
    struct best best = {.device = NO_PIECE};

    if (tuning_draw(site->rng, site->parts->tuning->strays)) {
        uint32_t any = rng_draw(site->rng, n_devices);

        if (trial->first_on[any] == NO_PIECE)
            return any;
    }
    for (uint32_t r = 0; r < n_devices; r++)
        if (trial->first_on[r] == NO_PIECE)
            consider(&best, site->layout, r, trial->load_ms[r],
                     trial->load_bytes[r] + site->parts->parts[part].bytes);
    return best.device;
}

/* The most quanta that the device takes before it is full, by load or by
 * memory. */
static uint32_t room_on(const struct site *site, uint32_t device)
{
    const struct parts *parts = site->parts;
    double ms = site->trial->load_ms[device];
    uint64_t bytes = site->trial->load_bytes[device];
    uint32_t least = 0, most = site->of->n_quanta;

    if (site->of->whole == NO_PART)
        most--;
    if (ms + parts->marginal_ms[site->of->columns] > site->target_ms)
        return 0;
    while (least < most) {
        uint32_t n = least + (most - least + 1) / 2;
        uint32_t part = part_of(site, n);

        if (ms + parts->marginal_ms[part] > site->target_ms ||
            layout_excess(site->layout, device,
                          bytes + parts->parts[part].bytes) > 0)
            most = n - 1;
        else
            least = n;
    }
    return least;
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Where the widest piece of n quanta or fewer goes: the fullest of the devices
 * that take as much; now and then any that takes some. NO_PIECE where all are
 * full. */
static uint32_t device_to_fill(struct site *site, uint32_t n)
{
    const struct trial *trial = site->trial;
    uint32_t n_devices = site->layout->n_devices;
    uint32_t best = NO_PIECE, most = 0, any = rng_draw(site->rng, n_devices);

    if (tuning_draw(site->rng, site->parts->tuning->strays) &&
        trial->room_quanta[any])
        return any;
    for (uint32_t r = 0; r < n_devices; r++) {
        uint32_t room = least_of(trial->room_quanta[r], n);

        if (!room || room < most ||
            (room == most && trial->load_ms[r] <= trial->load_ms[best]))
            continue;
        most = room;
        best = r;
    }
    return best;
}

/* The device that has least to do with n quanta more. */
static uint32_t device_to_overfill(struct site *site, uint32_t n)
{
    const struct parts *parts = site->parts;
    const struct trial *trial = site->trial;
    uint32_t n_devices = site->layout->n_devices;
    uint32_t any = rng_draw(site->rng, n_devices);
    struct best best = {.device = NO_PIECE};

    if (tuning_draw(site->rng, site->parts->tuning->strays) &&
        part_of(site, trial->held_quanta[any] + n) != NO_PART)
        return any;
    for (uint32_t r = 0; r < n_devices; r++) {
        uint32_t held = trial->held_quanta[r], then = part_of(site, held + n);
        double ms = trial->load_ms[r];
        uint64_t bytes = trial->load_bytes[r];

        if (then == NO_PART)
            continue;
        if (held) {
            ms -= parts->marginal_ms[part_of(site, held)];
            bytes -= parts->parts[part_of(site, held)].bytes;
        }
        consider(&best, site->layout, r, ms + parts->marginal_ms[then],
                 bytes + parts->parts[then].bytes);
    }
    return best.device;
}

/* All of the unit in hand, by columns. */
static void pour(struct site *site)
{
    struct trial *trial = site->trial;
    uint32_t n_devices = site->layout->n_devices;
    uint32_t left = site->of->n_quanta, n, r;

    for (r = 0; r < n_devices; r++) {
        trial->room_quanta[r] = room_on(site, r);
        trial->held_quanta[r] = 0;
    }
    while (left && (r = device_to_fill(site, left)) != NO_PIECE) {
        n = least_of(trial->room_quanta[r], left);
        trial->room_quanta[r] = 0;
        hold(site, r, n);
        left -= n;
    }
    for (; left; left -= n) {
        n = (left + LEFT_SHARE - 1) / LEFT_SHARE;
        r = device_to_overfill(site, n);
        hold(site, r, trial->held_quanta[r] + n);
    }
    for (r = 0; r < n_devices; r++)
        if (trial->held_quanta[r])
            trial_add(trial, (struct change){
                                 .part = part_of(site, trial->held_quanta[r]),
                                 .device = r,
                                 .range = r});
}

/* Of the hosts that are not taken, the one whose busiest device is least
 * loaded; its first device. */
static uint32_t choose_host(const struct site *site)
{
    uint32_t per_host = cluster_group(&site->parts->problem->cluster);
    uint32_t best = 0;
    double least = INFINITY;

    for (uint32_t host = 0; host + per_host <= site->layout->n_devices;
         host += per_host) {
        double most = -INFINITY;

        if (site->trial->first_on[host] != NO_PIECE)
            continue;
        for (uint32_t r = host; r < host + per_host; r++)
            most = fmax(most, site->trial->load_ms[r]);
        if (most < least) {
            least = most;
            best = host;
        }
    }
    return best;
}

/* The devices of the pieces of block b in the n ranges that were put first are
 * taken (0), or free again (NO_PIECE). */
static void take_devices(struct site *site, uint32_t first_change,
                         uint32_t n_blocks, uint32_t n, uint32_t b,
                         uint32_t mark)
{
    const struct change *changes = site->trial->changes + first_change;

    for (uint32_t range = 0; range < n; range++)
        site->trial->first_on[changes[range * n_blocks + b].device] = mark;
}

static void put_pieces(struct site *site, struct form form)
{
    bool fills_host = forms_fills_host(site->parts, form);
    uint32_t n_blocks = form.kind == FORM_CUT
                            ? site->parts->cuts[form.n].n_blocks
                            : form.n_pieces;
    uint32_t first = site->trial->n_changes, host = 0;

    for (uint32_t i = 0; i < form.n_pieces; i++) {
        struct change piece = forms_piece(site->parts, site->unit, form, i);
        uint32_t range = i / n_blocks, b = i % n_blocks;

        take_devices(site, first, n_blocks, range, b, 0);
        if (fills_host && !b)
            host = choose_host(site);
        if (fills_host)
            piece.device = host + b;
        else if (piece.device == NO_PIECE)
            piece.device = device_for(site, piece.part);
        take_devices(site, first, n_blocks, range, b, NO_PIECE);
        put_on(site, piece.part, piece.device);
        trial_add(site->trial, piece);
    }
}

static double draw_target(const struct layout *layout, struct rng *rng)
{
    double mean = 0, most = 0;

    for (uint32_t r = 0; r < layout->n_devices; r++) {
        mean += layout->load_ms[r] / layout->n_devices;
        most = fmax(most, layout->load_ms[r]);
    }
    return mean + rng_uniform(rng) * (most - mean);
}

void rebuild(struct trial *trial, const struct layout *layout,
             const struct rebuild_unit *units, uint32_t n_units,
             struct rng *rng)
{
    struct site site = {.trial = trial,
                        .layout = layout,
                        .parts = layout->parts,
                        .rng = rng,
                        .target_ms = draw_target(layout, rng)};

    for (uint32_t r = 0; r < layout->n_devices; r++) {
        trial->load_ms[r] = layout->load_ms[r];
        trial->load_bytes[r] = layout->bytes[r];
    }
    for (uint32_t i = 0; i < n_units; i++)
        take_off_unit(&site, units[i].unit);
    for (uint32_t i = 0; i < n_units; i++) {
        enum form_kind kind = units[i].form.kind;

        site.unit = units[i].unit;
        site.of = &layout->parts->of[site.unit];
        if (site.of->columns != NO_PART && layout->parts->tuning->pours &&
            (kind == FORM_WHOLE || kind == FORM_COLUMNS))
            pour(&site);
        else
            put_pieces(&site, units[i].form);
    }
}
