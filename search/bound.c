/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include "search/choices.h"

#include <math.h>
#include <string.h>

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

/* What pieces take in all. */
struct toll {
    double ms, bytes;
};

struct proof {
    const struct parts *parts;
    double *everywhere_ms;    /* [n_units]: find_everywhere */
    double all_everywhere_ms; /* their sum */
    struct toll *tiled;       /* of cheapest */
};

static double priced(struct toll toll, double price)
{
    return toll.ms + price * toll.bytes;
}

/* What a unit takes at least whose pieces are no dearer than the limit, where a
 * byte costs the price: columns tiled from pieces of fewer quanta than there
 * are by dynamic programming, tiled[i] being the cheapest i quanta, or any
 * other form. */
static struct toll cheapest(const struct proof *proof, uint32_t unit,
                            double price, double limit_ms)
{
    const struct parts *parts = proof->parts;
    const struct unit *of = &parts->of[unit];
    const uint32_t n_quanta = of->columns == NO_PART ? 0 : of->n_quanta;
    struct toll *tiled = proof->tiled, best = {.ms = INFINITY};

    tiled[0] = (struct toll){0};
    for (uint32_t i = 1; i <= n_quanta; i++) {
        tiled[i] = (struct toll){.ms = INFINITY};
        for (uint32_t n = 1; n <= i && n < n_quanta; n++) {
            const uint32_t part = of->columns + n - 1;
            const double ms = parts->alone_ms[part];
            struct toll sum = tiled[i - n];

            sum.ms += ms;
            sum.bytes += (double)parts->parts[part].bytes;
            if (ms <= limit_ms && priced(sum, price) < priced(tiled[i], price))
                tiled[i] = sum;
        }
        best = tiled[i];
    }
    for (uint32_t i = 0; i < of->n_forms; i++) {
        const struct form *form = &of->forms[i];
        const struct toll toll = {form->load_ms, form->bytes};

        if (form->kind != FORM_COLUMNS && form->peak_ms <= limit_ms &&
            priced(toll, price) < priced(best, price))
            best = toll;
    }
    return best;
}

/* What a unit whose pieces are no dearer than that has on each device, however
 * it is cut: of replicas and of blocks of all ranks, of each range one. */
static double everywhere(const struct parts *parts, const struct unit *of,
                         double limit_ms)
{
    const bool fills_ranks =
        parts->oracle->row_cut == ROW_CUT_RANKS && parts->n_devices > 1;
    double least = INFINITY;

    for (uint32_t i = 0; i < of->n_forms; i++) {
        const struct form *form = &of->forms[i];
        const bool is_everywhere =
            form->kind == FORM_REPLICA ||
            (fills_ranks && form->n_blocks == parts->n_devices);

        if (form->peak_ms <= limit_ms)
            least = fmin(least,
                         is_everywhere ? form->n_ranges * form->least_ms : 0);
    }
    for (uint32_t n = 1; of->columns != NO_PART && n < of->n_quanta; n++)
        if (parts->alone_ms[of->columns + n - 1] <= limit_ms)
            return 0;
    return isfinite(least) ? least : 0; /* no way at all is another matter */
}

/* A piece shares its device with what stands on every one. Other planners cut
 * a wide sequence into narrower pieces than halves, and a unit that leaves out
 * forms into those: neither has to be cut otherwise to be less dear. */
static double limit_of(const struct proof *proof, uint32_t unit,
                       double total_ms)
{
    const struct unit *of = &proof->parts->of[unit];

    if (of->leaves_out ||
        (of->first->output == OUTPUT_SEQUENCE && of->columns != NO_PART &&
         of->quantum > TORCHREC_MIN_COLUMNS))
        return INFINITY;
    return total_ms - (proof->all_everywhere_ms - proof->everywhere_ms[unit]);
}

/* In a plan of that total: pieces that are limited have to be cut, some of them
 * over all devices, which limits the others, at once. */
static void find_everywhere(struct proof *proof, double total_ms)
{
    const struct parts *parts = proof->parts;
    double *all_ms = &proof->all_everywhere_ms, before_ms = -1;

    *all_ms = 0;
    memset(proof->everywhere_ms, 0, parts->n_units * sizeof(double));
    for (unsigned i = 0;
         i < N_ROUNDS && isfinite(total_ms) && *all_ms > before_ms; i++) {
        before_ms = *all_ms;
        for (uint32_t u = 0; u < parts->n_units; u++) {
            double ms =
                everywhere(parts, &parts->of[u], limit_of(proof, u, total_ms));

            *all_ms += ms - proof->everywhere_ms[u];
            proof->everywhere_ms[u] = ms;
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

        sum.ms += toll.ms - proof->parts->of[u].left_out_ms;
        sum.bytes += toll.bytes;
    }
    return sum;
}

/* No plan that fits the memory, and of no larger total, takes less of a device
 * on average. */
static double proven_ms(struct proof *proof, double price, double total_ms)
{
    struct toll toll = least_toll(proof, price, total_ms);

    return (toll.ms + price * (toll.bytes - proof->parts->all_room_bytes)) /
           proof->parts->n_devices;
}

/* The best price of a byte lies where the cheapest cuts begin to fit: it is
 * doubled till they do, then halved in between. 0 where they fit anyway. */
static double best_price(struct proof *proof)
{
    const double room_bytes = proof->parts->all_room_bytes;
    struct toll toll = least_toll(proof, 0, INFINITY);
    double low = 0, high = toll.ms / (room_bytes + 1);
    bool fits = false;

    if (toll.bytes <= room_bytes)
        return 0;
    for (unsigned i = 0; i < N_STEPS; i++) {
        double price = fits ? (low + high) / 2 : high;

        toll = least_toll(proof, price, INFINITY);
        if (toll.bytes <= room_bytes) {
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
            name = parts->of[u].first->name;
        }
    }
    return name;
}

void bound_find(struct proven *proven, const struct parts *parts)
{
    struct arena arena = {0};
    struct proof proof = {.parts = parts};
    uint64_t widest = 0;
    double price;

    *proven = (struct proven){.ms = NAN};
    if (!parts->oracle->is_additive)
        return;
    for (uint32_t u = 0; u < parts->n_units; u++)
        widest = max_u64(widest, parts->of[u].n_quanta);
    proof.everywhere_ms = ARENA_NEW(&arena, double, parts->n_units);
    proof.tiled = ARENA_NEW(&arena, struct toll, widest + 1);
    price = best_price(&proof);
    *proven =
        (struct proven){proven_ms(&proof, 0, INFINITY), "mean load", NULL};
    raise_bound(proven, "memory", proven_ms(&proof, price, INFINITY));
    raise_bound(proven, by_piece, meet(&proof, price, proven->ms));
    if (price > 0)
        raise_bound(proven, by_piece, meet(&proof, 0, proven->ms));
    if (proven->term == by_piece)
        proven->table = limited_table(&proof, proven->ms);
    proven->ms *= 1 - TOLERANCE;
    arena_release(&arena);
}

void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena)
{
    struct parts parts;
    struct err ignored = {0};

    *proven = (struct proven){.ms = NAN};
    if (oracle->is_additive &&
        !parts_init(&parts, problem, oracle, NULL, NULL, arena, &ignored))
        bound_find(proven, &parts);
}
