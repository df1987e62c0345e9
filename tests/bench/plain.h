/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_BENCH_PLAIN_H
#define NEUROSHARD_TESTS_BENCH_PLAIN_H

#include <math.h>

#include "base/rng.h"
#include "core/cluster.h"
#include "search/assignment.h"

/*
 * The plain rival: the search that a programmer would write in an afternoon.
 * Each table starts in equal columns that cost no more than a device's mean
 * load. The longest go first, each to the least loaded device (Graham 1969).
 * Then one annealing chain runs over all shardings with three moves: a piece to
 * another device, two pieces swapped, a table in another sharding. The chain
 * does not favour expensive tables or slow devices. A search that loses to it
 * has a defect. Needs an oracle with terms, and no pins. Include it in one file
 * only.
 */

#define PLAIN_HOT_FRAC 0.02
#define PLAIN_COLD_FRAC 1e-5
#define PLAIN_MAX_PIECES 64 /* most pieces of one table */

struct plain_unit {
    struct change pieces[PLAIN_MAX_PIECES];
    uint32_t n;
};

struct plain {
    const struct search_space *space;
    struct plain_unit *units;          /* [n_units] */
    double *sums, *compute_ms, *terms; /* [R][width], [R], [R][n_terms] */
    double *bytes;                     /* [R] */
};

/* Adds the unit's pieces to their devices (sign 1) or removes them (sign
 * -1). */
static void plain_add(struct plain *plain, uint32_t u, double sign)
{
    const struct search_space *space = plain->space;
    size_t width = space->oracle->width;

    for (uint32_t i = 0; i < plain->units[u].n; i++) {
        const struct change *piece = &plain->units[u].pieces[i];

        plain->bytes[piece->device] +=
            sign * (double)space->types[piece->type].bytes;
        for (size_t w = 0; w < width; w++)
            plain->sums[piece->device * width + w] +=
                sign * space->vectors[piece->type * width + w];
    }
}

/* Total cost, with a penalty for exceeded memory. */
static double plain_energy(const struct plain *plain)
{
    const struct oracle *oracle = plain->space->oracle;
    uint32_t n_devices = plain->space->n_devices;
    double total = 0, excess = 0;

    oracle->ops->terms(oracle, plain->sums, n_devices, plain->compute_ms,
                       plain->terms);
    for (uint32_t k = 0; k < oracle->n_terms; k++) {
        double most = 0;

        for (uint32_t r = 0; r < n_devices; r++)
            most = fmax(most, plain->terms[r * oracle->n_terms + k]);
        total += most;
    }
    for (uint32_t r = 0; r < n_devices; r++)
        excess +=
            fmax(0, plain->bytes[r] / (double)plain->space->room_bytes[r] - 1);
    return total * (1 + 2 * excess);
}

/* Device of a piece of a sharding that may go anywhere. Pieces go to
 * consecutive devices in a ring from `at` on, or to hosts. Pieces of one row
 * block are placed apart. */
static uint32_t plain_ring_device(const struct search_space *space,
                                  const struct sharding *sharding,
                                  const struct change *piece, uint32_t at)
{
    const struct cluster *cluster = &space->problem->cluster;
    uint32_t n = cluster->n_devices, per_host = cluster_group(cluster);
    uint32_t apart = sharding->n_pieces <= n ? sharding->n_blocks : 1;

    if (sharding->fills_host)
        return (at / per_host + piece->range) % (n / per_host) * per_host +
               piece->block;
    return (at + piece->block + piece->range * apart) % n;
}

static void plain_set_sharding(struct plain *plain, uint32_t u,
                               const struct sharding *sharding, uint32_t at)
{
    struct plain_unit *unit = &plain->units[u];
    uint32_t n = sharding->n_pieces;

    for (uint32_t i = 0; n <= PLAIN_MAX_PIECES && i < n; i++) {
        struct change *piece = &unit->pieces[i];

        *piece = sharding_piece(plain->space, sharding, i);
        if (piece->device == NO_PIECE)
            piece->device =
                plain_ring_device(plain->space, sharding, piece, at);
        unit->n = n;
    }
}

/* Moves piece i to device `to`, if the piece may move and no other piece of its
 * row block is there. */
static void plain_move(struct plain *plain, uint32_t u, uint32_t i, uint32_t to)
{
    struct plain_unit *unit = &plain->units[u];

    if (!space_can_move(plain->space, unit->pieces[i].type))
        return;
    for (uint32_t k = 0; k < unit->n; k++)
        if (unit->pieces[k].device == to &&
            unit->pieces[k].block == unit->pieces[i].block)
            return;
    unit->pieces[i].device = to;
}

/* Equal columns: the fewest whose pieces cost at most peak_ms. */
static const struct sharding *plain_even_sharding(const struct plain *plain,
                                                  uint32_t u, double peak_ms)
{
    const struct sharding *sharding = &plain->space->units[u].shardings[0];

    for (uint32_t k = 1; k < plain->space->units[u].n_shardings; k++)
        if (sharding->peak_ms > peak_ms &&
            plain->space->units[u].shardings[k].kind == SHARDING_COLUMNS)
            sharding = &plain->space->units[u].shardings[k];
    return sharding;
}

static void plain_longest_first(struct plain *plain, double peak_ms)
{
    const struct search_space *space = plain->space;
    uint32_t n_devices = space->n_devices;
    double *piece_ms = mem_alloc(space->n_units + n_devices, sizeof(double));
    double *load_ms = piece_ms + space->n_units;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct sharding *sharding =
            plain_even_sharding(plain, u, peak_ms);

        plain_set_sharding(plain, u, sharding, 0);
        piece_ms[u] = sharding->peak_ms;
    }
    for (uint32_t done = 0; done < space->n_units; done++) {
        uint32_t u = 0;

        for (uint32_t other = 1; other < space->n_units; other++)
            if (piece_ms[other] > piece_ms[u])
                u = other;
        for (uint32_t i = 0; i < plain->units[u].n; i++) {
            struct change *piece = &plain->units[u].pieces[i];

            for (uint32_t r = 0; r < n_devices; r++)
                if (load_ms[r] < load_ms[piece->device])
                    plain_move(plain, u, i, r);
            load_ms[piece->device] += space->standalone_ms[piece->type];
        }
        piece_ms[u] = -1;
        plain_add(plain, u, 1);
    }
    mem_free(piece_ms);
}

/* Proposes a change of one unit, or a swap of pieces of two units. */
static void plain_propose(struct plain *plain, const uint32_t *units,
                          struct rng *rng)
{
    const struct search_space *space = plain->space;
    uint32_t n_devices = space->n_devices;
    struct plain_unit *a = &plain->units[units[0]];
    struct plain_unit *b = &plain->units[units[1]];
    uint32_t i = rng_draw(rng, a->n), k = rng_draw(rng, b->n);
    uint32_t from = a->pieces[i].device, to = b->pieces[k].device;
    uint32_t any = rng_draw(rng, n_devices);

    switch (rng_draw(rng, 3)) {
    case 0:
        plain_move(plain, units[0], i, any);
        break;
    case 1:
        plain_move(plain, units[0], i, to);
        plain_move(plain, units[1], k, from);
        break;
    default:
        plain_set_sharding(
            plain, units[0],
            &space->units[units[0]]
                 .shardings[rng_draw(rng, space->units[units[0]].n_shardings)],
            any);
    }
}

static void plain_save(const struct plain *plain, struct snapshot *best)
{
    best->n = 0;
    for (uint32_t u = 0; u < plain->space->n_units; u++)
        for (uint32_t i = 0; i < plain->units[u].n; i++)
            *snapshot_next(best) = plain->units[u].pieces[i];
}

/* Tries one change; keeps it or undoes it. Returns the cost after it. */
static double plain_step(struct plain *plain, double now, double temperature_ms,
                         struct rng *rng)
{
    uint32_t n_units = plain->space->n_units;
    uint32_t units[2] = {rng_draw(rng, n_units), rng_draw(rng, n_units)};
    uint32_t n = units[0] == units[1] ? 1 : 2;
    struct plain_unit old[2];
    double then;

    for (uint32_t i = 0; i < n; i++) {
        old[i] = plain->units[units[i]];
        plain_add(plain, units[i], -1);
    }
    plain_propose(plain, units, rng);
    for (uint32_t i = 0; i < n; i++)
        plain_add(plain, units[i], 1);
    then = plain_energy(plain);
    if (then <= now || rng_uniform(rng) < exp((now - then) / temperature_ms))
        return then;
    for (uint32_t i = 0; i < n; i++) {
        plain_add(plain, units[i], -1);
        plain->units[units[i]] = old[i];
        plain_add(plain, units[i], 1);
    }
    return now;
}

/* Finds the best assignment in n_steps steps and prices it. `parts` must be
 * priced. Returns the memory in excess (snapshot_price). */
static double plain_solve(struct snapshot *best,
                          const struct search_space *space, uint64_t n_steps,
                          uint64_t seed, struct arena *arena)
{
    const uint32_t n_devices = space->n_devices;
    struct plain plain = {.space = space};
    double now, least, mean_ms = 0;
    struct rng rng;

    plain.units = ARENA_NEW(arena, struct plain_unit, space->n_units);
    plain.sums = ARENA_NEW(arena, double, n_devices * space->oracle->width);
    plain.compute_ms = ARENA_NEW(arena, double, n_devices);
    plain.terms = ARENA_NEW(arena, double, n_devices *ORACLE_MAX_TERMS);
    plain.bytes = ARENA_NEW(arena, double, n_devices);
    for (uint32_t u = 0; u < space->n_units; u++)
        mean_ms += space->units[u].shardings[0].load_ms / n_devices;
    plain_longest_first(&plain, mean_ms);
    now = least = plain_energy(&plain);
    plain_save(&plain, best);
    rng_init(&rng, seed, 0);
    for (uint64_t step = 0; step < n_steps; step++) {
        double done = (double)step / (double)n_steps;

        now = plain_step(&plain, now,
                         least * PLAIN_HOT_FRAC *
                             pow(PLAIN_COLD_FRAC / PLAIN_HOT_FRAC, done),
                         &rng);
        if (now < least) {
            least = now;
            plain_save(&plain, best);
        }
    }
    snapshot_price(best, space);
    return best->excess;
}

#endif
