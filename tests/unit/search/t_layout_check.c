/* SPDX-License-Identifier: MIT */
#include "search/state_check.h"

#include "search/moves.h"
#include "search/trial.h"
#include "tests/unit/search/scene.h"

#define N_STEPS 400

/* What an update may forget, or do twice. A fault that a layout cannot have is
 * not made: false. */
typedef bool spoil_fn(struct layout *layout, uint32_t piece);

/* --- lists --- */

static bool spoil_first(struct layout *layout, uint32_t piece)
{
    uint32_t unit = layout->parts->parts[layout->pieces[piece].part].unit;

    layout->first_of[unit] = NO_PIECE;
    return true;
}

static bool spoil_next(struct layout *layout, uint32_t piece)
{
    if (layout->pieces[piece].next == NO_PIECE)
        return false;
    layout->pieces[piece].next = NO_PIECE;
    return true;
}

static bool spoil_loop(struct layout *layout, uint32_t piece)
{
    layout->pieces[piece].next = piece;
    return true;
}

static bool spoil_prev(struct layout *layout, uint32_t piece)
{
    uint32_t *prev = &layout->pieces[piece].prev;

    *prev = *prev == NO_PIECE ? 0 : NO_PIECE;
    return true;
}

static bool spoil_slot(struct layout *layout, uint32_t piece)
{
    layout->pieces[piece].slot++;
    return true;
}

static bool spoil_holding(struct layout *layout, uint32_t piece)
{
    layout->holdings[layout->pieces[piece].device].n--;
    return true;
}

static bool spoil_held(struct layout *layout, uint32_t piece)
{
    struct holding *holding = &layout->holdings[layout->pieces[piece].device];

    if (holding->n < 2)
        return false;
    holding->pieces[0] = holding->pieces[1];
    return true;
}

static bool spoil_live(struct layout *layout, uint32_t piece)
{
    (void)piece;
    layout->n_live--;
    return true;
}

static bool spoil_free(struct layout *layout, uint32_t piece)
{
    layout->first_free = piece;
    return true;
}

static bool spoil_leak(struct layout *layout, uint32_t piece)
{
    (void)piece;
    if (layout->first_free == NO_PIECE)
        return false;
    layout->first_free = NO_PIECE;
    return true;
}

/* --- pieces --- */

static bool spoil_unit(struct layout *layout, uint32_t piece)
{
    uint32_t unit = layout->parts->parts[layout->pieces[piece].part].unit;

    layout->pieces[piece].part =
        layout->parts->of[(unit + 1) % layout->parts->n_units].whole;
    return true;
}

static bool spoil_width(struct layout *layout, uint32_t piece)
{
    const struct part *part = &layout->parts->parts[layout->pieces[piece].part];
    const struct part_unit *of = &layout->parts->of[part->unit];

    if (!(part->kind & (SHARD_TABLE | SHARD_COLUMN)) ||
        of->columns == NO_PART || part->width == of->quantum)
        return false;
    layout->pieces[piece].part = of->columns;
    return true;
}

static bool spoil_block(struct layout *layout, uint32_t piece)
{
    if (!parts_cut_of(layout->parts, layout->pieces[piece].part))
        return false;
    layout->pieces[piece].block ^= 1;
    return true;
}

static bool spoil_range(struct layout *layout, uint32_t piece)
{
    if (!parts_cut_of(layout->parts, layout->pieces[piece].part))
        return false;
    layout->pieces[piece].range++;
    return true;
}

static bool spoil_device(struct layout *layout, uint32_t piece)
{
    uint32_t *device = &layout->pieces[piece].device;

    *device = (*device + 1) % layout->n_devices;
    return true;
}

/* --- figures --- */

static bool spoil_bytes(struct layout *layout, uint32_t piece)
{
    layout->bytes[layout->pieces[piece].device]++;
    return true;
}

/* A look-up that stays behind. */
static bool spoil_sums(struct layout *layout, uint32_t piece)
{
    uint32_t width = layout->parts->oracle->width;
    double *sums = layout->sums + layout->pieces[piece].device * width;

    sums[0] +=
        1e-3 * layout->parts->vectors[layout->pieces[piece].part * width];
    return true;
}

static bool spoil_compute(struct layout *layout, uint32_t piece)
{
    layout->compute_ms[layout->pieces[piece].device] += 1e-3 * layout->total_ms;
    return true;
}

static bool spoil_term(struct layout *layout, uint32_t piece)
{
    layout->terms_ms[layout->pieces[piece].device * layout->n_terms] *= 1.001;
    return true;
}

static bool spoil_load(struct layout *layout, uint32_t piece)
{
    layout->load_ms[layout->pieces[piece].device] *= 1.001;
    return true;
}

static bool spoil_excess(struct layout *layout, uint32_t piece)
{
    (void)piece;
    layout->excess += LAYOUT_ANY_EXCESS;
    return true;
}

static bool spoil_total(struct layout *layout, uint32_t piece)
{
    (void)piece;
    layout->total_ms *= 1.001;
    return true;
}

static bool spoil_top(struct layout *layout, uint32_t piece)
{
    (void)piece;
    layout->tops[0].device[0] = layout->tops[1].device[0];
    layout->tops[0].ms[0] = layout->tops[1].ms[0];
    return true;
}

static bool spoil_runner_up(struct layout *layout, uint32_t piece)
{
    (void)piece;
    layout->tops[1].ms[0] *= 0.999;
    return true;
}

static const struct {
    const char *name;
    spoil_fn *spoil;
} faults[] = {
    {"the first of a unit", spoil_first},
    {"the next of a unit", spoil_next},
    {"a list that goes round", spoil_loop},
    {"the one before", spoil_prev},
    {"the slot", spoil_slot},
    {"pieces of a device, their number", spoil_holding},
    {"pieces of a device", spoil_held},
    {"live pieces", spoil_live},
    {"a live piece that is free", spoil_free},
    {"free pieces that are lost", spoil_leak},
    {"a part of another unit", spoil_unit},
    {"the width", spoil_width},
    {"the block", spoil_block},
    {"the range", spoil_range},
    {"the device", spoil_device},
    {"bytes", spoil_bytes},
    {"sums", spoil_sums},
    {"compute", spoil_compute},
    {"terms", spoil_term},
    {"load", spoil_load},
    {"excess", spoil_excess},
    {"total", spoil_total},
    {"largest term", spoil_top},
    {"runner-up", spoil_runner_up},
};
#define N_FAULTS (sizeof faults / sizeof *faults)

/* --- the walk --- */

struct tally {
    unsigned n_wrong; /* layouts that are refused */
    unsigned n_made[N_FAULTS], n_caught[N_FAULTS];
};

static void spoil_once(struct tryout *tryout, uint32_t piece, size_t fault,
                       struct tally *tally)
{
    struct layout *layout = &tryout->layout;
    struct snapshot saved = {0};
    struct err err = {0};

    if (layout->pieces[piece].part == NO_PART)
        return;
    snapshot_save(&saved, layout);
    if (faults[fault].spoil(layout, piece)) {
        tally->n_made[fault]++;
        tally->n_caught[fault] += layout_check(layout, &err) != 0;
    }
    snapshot_load(&saved, &tryout->layout);
    snapshot_release(&saved);
}

/* After each step of a random walk the layout is right; spoilt it is not. */
static void walk(enum scene_sort sort, struct tally *tally)
{
    struct scene scene;
    struct tryout tryout;
    struct err err = {0};
    struct rng rng;

    scene_open(&scene, sort);
    tryout_init(&tryout, &scene.parts);
    snapshot_load(&scene.start, &tryout.layout);
    rng_init(&rng, 23, sort);
    for (unsigned i = 0; i < N_STEPS; i++) {
        propose(&tryout.trial, &tryout.layout, &rng);
        if (tryout.trial.n_changes && isfinite(tryout_price(&tryout)))
            layout_commit(&tryout.layout, &tryout.trial);
        tally->n_wrong += layout_check(&tryout.layout, &err) != 0;
        spoil_once(&tryout, rng_draw(&rng, tryout.layout.n_pieces),
                   i % N_FAULTS, tally);
    }
    ok(!tally->n_wrong, "layouts are right, %u times not: %s", tally->n_wrong,
       err.msg);
    tryout_release(&tryout);
    scene_close(&scene);
}

int main(void)
{
    struct tally tally = {0};

    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++)
        walk(sort, &tally);
    for (size_t i = 0; i < N_FAULTS; i++)
        ok(tally.n_made[i] > 0 && tally.n_caught[i] == tally.n_made[i],
           "%s: %u of %u caught", faults[i].name, tally.n_caught[i],
           tally.n_made[i]);
    return tap_done();
}
