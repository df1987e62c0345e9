/* SPDX-License-Identifier: MIT */
#include "search/rebuild.h"

#include <math.h>

/* Of so many pieces one goes anywhere. */
#define ASTRAY 8

/* The devices, with what is taken off and put on so far. */
struct site {
    struct trial *trial; /* load_ms, load_bytes and load_quanta are its */
    const struct layout *layout;
    const struct parts *parts;
    struct rng *rng;
    const struct part_unit *of; /* the unit in hand, */
    uint32_t unit;
};

static void put_on(struct site *site, uint32_t part, uint32_t device)
{
    site->trial->load_ms[device] += site->parts->alone_ms[part];
    site->trial->load_bytes[device] += site->parts->parts[part].bytes;
}

static void take_off(struct site *site, uint32_t part, uint32_t device)
{
    site->trial->load_ms[device] -= site->parts->alone_ms[part];
    site->trial->load_bytes[device] -= site->parts->parts[part].bytes;
}

static void take_off_unit(struct site *site, uint32_t unit)
{
    const struct layout *layout = site->layout;

    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        take_off(site, layout->pieces[i].part, layout->pieces[i].device);
        trial_remove(site->trial, i);
    }
}

/* The columns of the unit in hand that the device has, as a part. */
static uint32_t held_part(const struct site *site, uint32_t device)
{
    return parts_of_width(site->parts, site->unit,
                          site->trial->load_quanta[device] * site->of->quantum);
}

/* The part that this one and the columns the device has come to: they become
 * one piece. NO_PART where there is none such. */
static uint32_t joined(const struct site *site, uint32_t part, uint32_t device)
{
    uint32_t n_quanta = site->trial->load_quanta[device];

    if (!n_quanta)
        return part;
    return parts_of_width(site->parts, site->unit,
                          site->parts->parts[part].width +
                              n_quanta * site->of->quantum);
}

/* The device that has least to do then; of those with room, if there is one. */
static uint32_t choose_device(struct site *site, uint32_t part)
{
    const struct parts *parts = site->parts;
    double least = INFINITY, least_excess = INFINITY;
    uint32_t n = site->layout->n_devices;
    uint32_t best = (uint32_t)rng_below(site->rng, n);

    if (rng_below(site->rng, ASTRAY) == 0 &&
        joined(site, part, best) != NO_PART)
        return best;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t then = joined(site, part, r), held = held_part(site, r);
        uint64_t bytes = site->trial->load_bytes[r];
        double ms = site->trial->load_ms[r], excess;

        if (then == NO_PART)
            continue;
        ms += parts->alone_ms[then];
        bytes += parts->parts[then].bytes;
        if (held != NO_PART) {
            ms -= parts->alone_ms[held];
            bytes -= parts->parts[held].bytes;
        }
        excess = layout_excess(site->layout, r, bytes);
        if (excess > least_excess || (excess == least_excess && ms >= least))
            continue;
        least_excess = excess;
        least = ms;
        best = r;
    }
    return best;
}

/* The host whose busiest device is least loaded; its first device. */
static uint32_t choose_host(const struct site *site)
{
    uint32_t per_host = site->parts->problem->cluster.devices_per_host;
    uint32_t best = 0;
    double least = INFINITY;

    for (uint32_t host = 0; host + per_host <= site->layout->n_devices;
         host += per_host) {
        double most = -INFINITY;

        for (uint32_t r = host; r < host + per_host; r++)
            most = fmax(most, site->trial->load_ms[r]);
        if (most < least) {
            least = most;
            best = host;
        }
    }
    return best;
}

/* Even pieces, one by one; those that come to the same device become one, so
 * that the widths fill what gaps there are. */
static void put_columns(struct site *site, struct form form)
{
    uint32_t *n_quanta = site->trial->load_quanta;
    uint32_t n_devices = site->layout->n_devices;

    for (uint32_t i = 0; i < form.n; i++) {
        uint32_t part = forms_piece(site->parts, site->unit, form, i).part;
        uint32_t r = choose_device(site, part);

        if (n_quanta[r])
            take_off(site, held_part(site, r), r);
        n_quanta[r] += site->parts->parts[part].width / site->of->quantum;
        put_on(site, held_part(site, r), r);
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        if (n_quanta[r])
            trial_add(site->trial, held_part(site, r), r, r, 0);
        n_quanta[r] = 0;
    }
}

static void put_pieces(struct site *site, struct form form)
{
    uint32_t n = forms_figures(site->parts, site->unit, form).n_pieces;
    bool fills_host = forms_fills_host(site->parts, form);
    uint32_t host = fills_host ? choose_host(site) : 0;

    for (uint32_t i = 0; i < n; i++) {
        struct change piece = forms_piece(site->parts, site->unit, form, i);

        if (fills_host)
            piece.device = host + piece.block;
        else if (piece.device == NO_PIECE)
            piece.device = choose_device(site, piece.part);
        put_on(site, piece.part, piece.device);
        trial_add(site->trial, piece.part, piece.device, piece.range,
                  piece.block);
    }
}

void rebuild(struct trial *trial, const struct layout *layout,
             const struct rebuild_unit *units, uint32_t n_units,
             struct rng *rng)
{
    struct site site = {trial, layout, layout->parts, rng, NULL, 0};

    for (uint32_t r = 0; r < layout->n_devices; r++) {
        trial->load_ms[r] = layout->local_ms[r];
        trial->load_bytes[r] = layout->bytes[r];
        trial->load_quanta[r] = 0;
    }
    for (uint32_t i = 0; i < n_units; i++)
        take_off_unit(&site, units[i].unit);
    for (uint32_t i = 0; i < n_units; i++) {
        site.unit = units[i].unit;
        site.of = &layout->parts->of[site.unit];
        if (units[i].form.kind == FORM_COLUMNS)
            put_columns(&site, units[i].form);
        else
            put_pieces(&site, units[i].form);
    }
}
