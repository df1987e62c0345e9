/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include "search/choices.h"

#include <math.h>

/* Of a bisection. */
#define N_STEPS 40
/* What is summed up in floating point may be off by so much. */
#define TOLERANCE 1e-12

/* Of what stands on every device: limits shrink and more units have to. */
#define N_ROUNDS 8

/*
 * Notation: unit u placed in way w takes t(u, w) ms and b(u, w) bytes in all,
 * its dearest piece p(u, w) ms, and e(u, w) ms on every single device. A plan
 * of total T on R devices with M bytes in all chooses a way for each unit with
 *
 *     sum of t(u, w) <= R x T            the mean is no more than the maximum
 *     p(u, w) + sum over v != u of e(v) <= T       a piece has company
 *     sum of b(u, w) <= M
 *
 * Weighing the last by a price y >= 0 (Lagrange; Held and Karp 1970) gives for
 * each T and y the bound
 *
 *     ( sum over u of min over w of (t + y b) - y M ) / R
 *
 * over the ways that T leaves open: units apart from each other, so the minimum
 * is each one's own. It rises as T falls; T is at least where the two meet,
 * which bisection finds. Any y proves something, the best one most.
 */

/* What pieces take: time and memory in all, and the dearest of them; and what
 * each device has of them at least, 0 where some may have none. */
struct toll {
    double ms, bytes, peak_ms, everywhere_ms;
};

/* A way to tile a unit's n_steps quanta, from pieces of 1, 2 ... n: tolls[w] is
 * of w + 1. Where a unit is placed in a form as it is there is one step and one
 * toll, of all its pieces. */
struct tiling {
    struct toll *tolls; /* [n], in the arena */
    uint32_t n, n_steps;
};

/* Everything there is for a unit. */
struct choices {
    struct tiling *tilings; /* [n_tilings] */
    uint32_t n_tilings;
    double everywhere_ms; /* find_everywhere */
};

struct proof {
    const struct parts *parts;
    struct arena *arena;
    struct choices *choices;  /* [n_units] */
    double all_everywhere_ms; /* their sum */
    struct toll *room;        /* of tile */
    double room_bytes, n_devices;
};

static struct toll *add_tiling(const struct proof *proof, uint32_t unit,
                               uint32_t n, uint32_t n_steps)
{
    struct choices *choices = &proof->choices[unit];
    struct toll *tolls = ARENA_NEW(proof->arena, struct toll, n);

    choices->tilings[choices->n_tilings++] = (struct tiling){tolls, n, n_steps};
    return tolls;
}

/* Of the pieces of a form, the cheapest. */
static double least_ms(const struct parts *parts, const struct form *form)
{
    double ms = INFINITY;

    for (uint32_t part = form->part; part <= form->last; part++)
        ms = fmin(ms, parts->alone_ms[part]);
    return ms;
}

/* Replicas and blocks of all ranks stand everywhere, of each range one. */
static void collect(const struct proof *proof, uint32_t unit)
{
    const struct parts *parts = proof->parts;
    const struct part_unit *of = &parts->of[unit];
    struct toll *tolls;

    proof->choices[unit].tilings =
        ARENA_NEW(proof->arena, struct tiling, 1 + of->n_forms);
    if (of->columns != NO_PART) {
        tolls = add_tiling(proof, unit, of->n_quanta - 1, of->n_quanta);
        for (uint32_t w = 0; w + 1 < of->n_quanta; w++) {
            const uint32_t part = of->columns + w;
            const double ms = parts->alone_ms[part];

            tolls[w] =
                (struct toll){ms, (double)parts->parts[part].bytes, ms, 0};
        }
    }
    for (uint32_t i = 0; i < of->n_forms; i++) {
        const struct form *form = &of->forms[i];

        if (form->kind == FORM_COLUMNS)
            continue;
        tolls = add_tiling(proof, unit, 1, 1);
        *tolls = (struct toll){form->load_ms, form->bytes, form->peak_ms, 0};
        if (form->kind == FORM_REPLICA ||
            (parts->oracle->row_cut == ROW_CUT_RANKS &&
             form->n_blocks == parts->n_devices && parts->n_devices > 1))
            tolls->everywhere_ms = form->n_ranges * least_ms(parts, form);
    }
}

static double priced(const struct toll *toll, double price)
{
    return toll->ms + price * toll->bytes;
}

/* The cheapest tiling from pieces that are no dearer than the limit, by dynamic
 * programming over the steps: least[i] of i steps. */
static struct toll tile(const struct tiling *tiling, double price,
                        double limit_ms, struct toll *least)
{
    least[0] = (struct toll){0};
    for (uint32_t i = 1; i <= tiling->n_steps; i++) {
        least[i] = (struct toll){.ms = INFINITY};
        for (uint32_t w = 0; w < i && w < tiling->n; w++) {
            const struct toll *toll = &tiling->tolls[w];
            struct toll sum = {
                .ms = least[i - w - 1].ms + toll->ms,
                .bytes = least[i - w - 1].bytes + toll->bytes,
                .peak_ms = fmax(least[i - w - 1].peak_ms, toll->peak_ms)};

            if (toll->peak_ms <= limit_ms &&
                priced(&sum, price) < priced(&least[i], price))
                least[i] = sum;
        }
    }
    return least[tiling->n_steps];
}

/* What a unit takes at least whose pieces are no dearer than the limit; a byte
 * costs the price. */
static struct toll cheapest(const struct proof *proof, uint32_t unit,
                            double price, double limit_ms)
{
    const struct choices *choices = &proof->choices[unit];
    struct toll best = {.ms = INFINITY};

    for (uint32_t i = 0; i < choices->n_tilings; i++) {
        struct toll toll =
            tile(&choices->tilings[i], price, limit_ms, proof->room);

        if (priced(&toll, price) < priced(&best, price))
            best = toll;
    }
    return best;
}

/* What a unit whose pieces are no dearer than that has on each device, however
 * it is cut. */
static double everywhere(const struct choices *choices, double limit_ms)
{
    double least = INFINITY;

    for (uint32_t i = 0; i < choices->n_tilings; i++) {
        const struct tiling *tiling = &choices->tilings[i];
        double of_a_step = INFINITY;

        for (uint32_t w = 0; w < tiling->n; w++)
            if (tiling->tolls[w].peak_ms <= limit_ms)
                of_a_step =
                    fmin(of_a_step, tiling->tolls[w].everywhere_ms / (w + 1));
        least = fmin(least, of_a_step * tiling->n_steps);
    }
    return isfinite(least) ? least : 0; /* no way at all is another matter */
}

/* A piece shares its device with what stands on every one. */
static double limit_of(const struct proof *proof, uint32_t unit,
                       double total_ms)
{
    return total_ms -
           (proof->all_everywhere_ms - proof->choices[unit].everywhere_ms);
}

/* In a plan of that total: pieces that are limited have to be cut, some of them
 * over all devices, which limits the others, at once. */
static void find_everywhere(struct proof *proof, double total_ms)
{
    double *all_ms = &proof->all_everywhere_ms, before_ms = -1;

    *all_ms = 0;
    for (uint32_t u = 0; u < proof->parts->n_units; u++)
        proof->choices[u].everywhere_ms = 0;
    for (unsigned i = 0;
         i < N_ROUNDS && isfinite(total_ms) && *all_ms > before_ms; i++) {
        before_ms = *all_ms;
        for (uint32_t u = 0; u < proof->parts->n_units; u++) {
            struct choices *choices = &proof->choices[u];
            double ms = everywhere(choices, limit_of(proof, u, total_ms));

            *all_ms += ms - choices->everywhere_ms;
            choices->everywhere_ms = ms;
        }
    }
}

/* What all units take in all, cut as cheaply as may be in a plan of that
 * total. */
static struct toll least_toll(struct proof *proof, double price,
                              double total_ms)
{
    struct toll sum = {0};

    find_everywhere(proof, total_ms);
    for (uint32_t u = 0; u < proof->parts->n_units; u++) {
        struct toll toll =
            cheapest(proof, u, price, limit_of(proof, u, total_ms));

        sum.ms += toll.ms;
        sum.bytes += toll.bytes;
    }
    return sum;
}

/* No plan that fits the memory, and of no larger total, takes less of a device
 * on average. */
static double proven_ms(struct proof *proof, double price, double total_ms)
{
    struct toll toll = least_toll(proof, price, total_ms);

    return (toll.ms + price * (toll.bytes - proof->room_bytes)) /
           proof->n_devices;
}

/* The best price of a byte lies where the cheapest cuts begin to fit: it is
 * doubled till they do, then halved in between. 0 where they fit anyway. */
static double best_price(struct proof *proof)
{
    struct toll toll = least_toll(proof, 0, INFINITY);
    double low = 0, high = toll.ms / (proof->room_bytes + 1);
    bool fits = false;

    if (toll.bytes <= proof->room_bytes)
        return 0;
    for (unsigned i = 0; i < N_STEPS; i++) {
        double price = fits ? (low + high) / 2 : high;

        toll = least_toll(proof, price, INFINITY);
        if (toll.bytes <= proof->room_bytes) {
            high = price;
            fits = true;
        } else {
            low = price;
            high = fits ? high : 2 * price;
        }
    }
    return low;
}

/* In a plan of total t no device takes more by itself, a piece and what stands
 * everywhere least of all, so t >= proven_ms(.., t): the bound is where the two
 * meet. The right side falls as t grows. */
static double meet(struct proof *proof, double price, double low)
{
    double high = low;

    if (!(low > 0) || proven_ms(proof, price, low) <= low)
        return low;
    do {
        low = high;
        high *= 2;
    } while (proven_ms(proof, price, high) > high);
    for (unsigned i = 0; i < N_STEPS; i++) {
        double middle = (low + high) / 2;

        if (proven_ms(proof, price, middle) > middle)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static const char by_piece[] = "largest piece";

static void raise_bound(struct proven *proven, const char *term, double ms)
{
    if (ms > proven->ms * (1 + TOLERANCE))
        *proven = (struct proven){ms, term, NULL};
}

/* The table that the limit makes dearest: its whole would be the largest
 * piece. */
static const char *limited_table(struct proof *proof, double total_ms)
{
    const struct parts *parts = proof->parts;
    const char *name = NULL;
    double most = -INFINITY;

    find_everywhere(proof, total_ms);
    for (uint32_t u = 0; u < parts->n_units; u++) {
        double ms = cheapest(proof, u, 0, limit_of(proof, u, total_ms)).ms -
                    cheapest(proof, u, 0, INFINITY).ms;

        if (ms > most) {
            most = ms;
            name = parts->of[u].unit->first->name;
        }
    }
    return name;
}

static void prove(struct proven *proven, struct proof *proof)
{
    double price = best_price(proof);

    *proven = (struct proven){proven_ms(proof, 0, INFINITY), "mean load", NULL};
    raise_bound(proven, "memory", proven_ms(proof, price, INFINITY));
    raise_bound(proven, by_piece, meet(proof, price, proven->ms));
    if (price > 0)
        raise_bound(proven, by_piece, meet(proof, 0, proven->ms));
    if (proven->term == by_piece)
        proven->table = limited_table(proof, proven->ms);
    proven->ms *= 1 - TOLERANCE;
}

void bound_find(struct proven *proven, const struct parts *parts)
{
    struct arena arena;
    struct proof proof = {
        .parts = parts, .arena = &arena, .n_devices = parts->n_devices};
    uint32_t widest = 0;

    *proven = (struct proven){.ms = NAN};
    if (!parts->oracle->is_additive || !parts->oracle->ops->terms)
        return;
    arena_init(&arena);
    proof.choices = ARENA_NEW(&arena, struct choices, parts->n_units);
    for (uint32_t u = 0; u < parts->n_units; u++) {
        const uint32_t n_quanta = parts->of[u].n_quanta;

        collect(&proof, u);
        widest = n_quanta > widest ? n_quanta : widest;
    }
    for (uint32_t r = 0; r < parts->n_devices; r++)
        proof.room_bytes += (double)parts->room_bytes[r];
    proof.room = ARENA_NEW(&arena, struct toll, widest + 1);
    prove(proven, &proof);
    arena_release(&arena);
}

void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena)
{
    struct parts parts;
    struct err ignored = {0};

    *proven = (struct proven){.ms = NAN};
    if (!parts_init(&parts, problem, oracle, NULL, NULL, arena, &ignored))
        bound_find(proven, &parts);
}
