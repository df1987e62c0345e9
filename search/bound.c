/* SPDX-License-Identifier: MIT */
#include "search/bound.h"

#include "search/contender.h"
#include "search/space_init.h"

#include <math.h>
#include <string.h>

/* Number of steps of each bisection. */
#define N_STEPS 40
/* Relative error that rounding may cause in a sum of floating-point numbers. */
#define TOLERANCE 1e-12

/* Maximum number of rounds of find_everywhere. Pieces that stand on every
 * device lower the limits of all other pieces. So in the next round more units
 * may need pieces on every device. */
#define N_ROUNDS 8

/*
 * The lower bound is a Lagrangian relaxation (Lagrange; Held and Karp 1970).
 *
 * Notation: for a unit u that is placed in way w,
 *
 *     t(u, w)   is the cost of all its pieces, in ms
 *     b(u, w)   is the size of all its pieces, in bytes
 *     p(u, w)   is the cost of its dearest piece, in ms
 *     e(u, w)   is the cost that it adds to every single device, in ms
 *
 * and e(v) is the least e(v, w) over the ways of unit v. Device r takes f(r) ms
 * for tables that are not placed; f is the least f(r). A plan of total T on R
 * devices with M bytes in all chooses a way for each unit such that
 *
 *     sum of t(u, w) + sum of f(r) <= R x T  the mean is no more than the
 * maximum p(u, w) + sum over v != u of e(v) + f <= T   a piece shares its
 * device sum of b(u, w) <= M                all pieces fit the memory
 *
 * The relaxation drops the third constraint. Instead it adds a price y >= 0 per
 * byte to the costs. For each T and y this gives the lower bound
 *
 *     ( sum over u of min over w of (t + y b) + sum of f(r) - y M ) / R
 *
 * The minimum is over the ways that T leaves open: the ways that satisfy the
 * second constraint. No constraint links the units any more, so the minimum of
 * each unit can be found separately. The bound rises as T falls. Every plan has
 * a T that is at least its bound, so T is at least the value at which T and the
 * bound are equal. Bisection finds this value. The bound holds for any y. The
 * best y gives the largest bound.
 */

/* Total cost and memory of a set of pieces. */
struct unit_cost {
    double ms, bytes;
};

struct relaxation {
    const struct search_space *space;
    double *everywhere_ms; /* [n_units]: cost of each unit on every device, from
                              find_everywhere */
    double all_everywhere_ms; /* sum of everywhere_ms */
    /* time that devices take for tables that are not placed: of all devices, of
     * the least busy one and of the busiest one */
    double all_busy_ms, least_busy_ms, most_busy_ms;
    struct unit_cost *tiled; /* scratch memory of cheapest() */
};

static double priced(struct unit_cost cost, double price)
{
    return cost.ms + price * cost.bytes;
}

/* Returns the cost and memory of a unit in its cheapest way, if a byte costs
 * `price` ms and each piece may cost at most limit_ms. A cost of INFINITY means
 * that no way keeps this limit. A way is either a tiling of the columns or any
 * other sharding. Tilings use pieces narrower than the unit and are found by
 * dynamic programming: tiled[i] is the cheapest tiling that is i width steps
 * wide. */
static struct unit_cost cheapest(const struct relaxation *relaxation,
                                 uint32_t unit, double price, double limit_ms)
{
    const struct search_space *space = relaxation->space;
    const struct unit *entry = &space->units[unit];
    const uint32_t n_width_steps =
        entry->columns[TIER_HBM] == NO_TYPE ? 0 : entry->n_width_steps;
    struct unit_cost *tiled = relaxation->tiled, best = {.ms = INFINITY};

    tiled[0] = (struct unit_cost){0};
    for (uint32_t i = 1; i <= n_width_steps; i++) {
        tiled[i] = (struct unit_cost){.ms = INFINITY};
        for (uint32_t n = 1; n <= i && n < n_width_steps; n++) {
            const uint32_t type = entry->columns[TIER_HBM] + n - 1;
            const double ms = space->standalone_ms[type];
            struct unit_cost sum = tiled[i - n];

            sum.ms += ms;
            sum.bytes += (double)space->types[type].bytes;
            if (ms <= limit_ms && priced(sum, price) < priced(tiled[i], price))
                tiled[i] = sum;
        }
        best = tiled[i];
    }
    for (uint32_t i = 0; i < entry->n_shardings; i++) {
        const struct sharding *sharding = &entry->shardings[i];
        const struct unit_cost cost = {sharding->load_ms, sharding->bytes};

        if (sharding->kind != SHARDING_COLUMNS &&
            sharding->peak_ms <= limit_ms &&
            priced(cost, price) < priced(best, price))
            best = cost;
    }
    return best;
}

/* Returns the least cost in ms that a unit adds to every device, over all
 * shardings whose pieces cost at most limit_ms. Only replicas and row blocks
 * over all ranks put pieces on every device: one replica, or one block for each
 * column range. So the result is above 0 only if all shardings within the limit
 * are replicas or row blocks over all ranks. */
static double everywhere(const struct search_space *space,
                         const struct unit *unit, double limit_ms)
{
    const bool fills_ranks =
        space->oracle->row_cut == ROW_CUT_RANKS && space->n_devices > 1;
    double least = INFINITY;

    for (uint32_t i = 0; i < unit->n_shardings; i++) {
        const struct sharding *sharding = &unit->shardings[i];
        const bool is_everywhere =
            sharding->kind == SHARDING_REPLICA ||
            (fills_ranks && sharding->n_blocks == space->n_devices);

        if (sharding->peak_ms <= limit_ms)
            least = fmin(least, is_everywhere
                                    ? sharding->n_ranges * sharding->least_ms
                                    : 0);
    }
    for (uint32_t n = 1;
         unit->columns[TIER_HBM] != NO_TYPE && n < unit->n_width_steps; n++)
        if (space->standalone_ms[unit->columns[TIER_HBM] + n - 1] <= limit_ms)
            return 0;
    /* If no sharding is cheap enough, cheapest() reports this. */
    return isfinite(least) ? least : 0;
}

/*
 * Returns the maximum cost in ms that a piece of the unit may have in a plan of
 * total total_ms. This limit is total_ms less the time for tables that are not
 * placed and the cost of the pieces of other units that stand on every device.
 *
 * The limit is INFINITY for two kinds of units, because they may have cheaper
 * pieces than the listed shardings show. The first kind is a wide sequence
 * table, which other planners cut into pieces narrower than halves. The second
 * kind is a unit of which some shardings were left out of the list
 * (leaves_out).
 */
static double limit_of(const struct relaxation *relaxation, uint32_t unit,
                       double total_ms)
{
    const struct unit *entry = &relaxation->space->units[unit];

    if (entry->leaves_out || (entry->first->output == OUTPUT_SEQUENCE &&
                              entry->columns[TIER_HBM] != NO_TYPE &&
                              entry->width_step > TORCHREC_MIN_COLUMNS))
        return INFINITY;
    return total_ms - relaxation->least_busy_ms -
           (relaxation->all_everywhere_ms - relaxation->everywhere_ms[unit]);
}

/* Sets everywhere_ms for a plan of total total_ms. Limits on the cost of a
 * piece force some units to be cut over all devices. The pieces of these units
 * lower the limits of all other units. So the computation is repeated until
 * nothing changes, up to N_ROUNDS times. */
static void find_everywhere(struct relaxation *relaxation, double total_ms)
{
    const struct search_space *space = relaxation->space;
    double *all_ms = &relaxation->all_everywhere_ms, before_ms = -1;

    *all_ms = 0;
    memset(relaxation->everywhere_ms, 0, space->n_units * sizeof(double));
    for (unsigned i = 0;
         i < N_ROUNDS && isfinite(total_ms) && *all_ms > before_ms; i++) {
        before_ms = *all_ms;
        for (uint32_t u = 0; u < space->n_units; u++) {
            double ms = everywhere(space, &space->units[u],
                                   limit_of(relaxation, u, total_ms));

            *all_ms += ms - relaxation->everywhere_ms[u];
            relaxation->everywhere_ms[u] = ms;
        }
    }
}

/* Returns the cost and memory of all units together. Each unit is placed in the
 * cheapest way that a plan of total total_ms allows. A byte costs `price`
 * ms. */
static struct unit_cost least_cost(struct relaxation *relaxation, double price,
                                   double total_ms)
{
    struct unit_cost sum = {0};

    find_everywhere(relaxation, total_ms);
    for (uint32_t u = 0; u < relaxation->space->n_units; u++) {
        struct unit_cost cost =
            cheapest(relaxation, u, price, limit_of(relaxation, u, total_ms));

        sum.ms += cost.ms - relaxation->space->units[u].left_out_ms;
        sum.bytes += cost.bytes;
    }
    return sum;
}

/* Returns a lower bound in ms on the mean cost of a device. The bound holds for
 * all plans that fit the memory and cost at most total_ms. */
static double proven_ms(struct relaxation *relaxation, double price,
                        double total_ms)
{
    struct unit_cost cost = least_cost(relaxation, price, total_ms);

    return (cost.ms + relaxation->all_busy_ms +
            price * (cost.bytes - relaxation->space->all_room_bytes)) /
           relaxation->space->n_devices;
}

/* Returns the price of a byte, in ms, that gives the largest bound. This is the
 * price at which the cheapest shardings begin to fit the memory. The price is
 * doubled until they fit, and then found by bisection. Returns 0 if they fit at
 * a price of 0. */
static double best_price(struct relaxation *relaxation)
{
    const double room_bytes = relaxation->space->all_room_bytes;
    struct unit_cost cost = least_cost(relaxation, 0, INFINITY);
    double low = 0, high = cost.ms / (room_bytes + 1);
    bool fits = false;

    if (cost.bytes <= room_bytes)
        return 0;
    for (unsigned i = 0; i < N_STEPS; i++) {
        double price = fits ? (low + high) / 2 : high;

        cost = least_cost(relaxation, price, INFINITY);
        if (cost.bytes <= room_bytes) {
            high = price;
            fits = true;
        } else {
            low = price;
            high = fits ? high : 2 * price;
        }
    }
    return low;
}

/* Returns the least total t >= low for which t >= proven_ms(.., t). This t is a
 * lower bound for the following reason. In a plan of total t no device costs
 * more than t. So the cost of a piece and of the pieces that stand on every
 * device is at most t. proven_ms(.., t) falls as t grows, so bisection finds
 * the t at which the two are equal. */
static double meet(struct relaxation *relaxation, double price, double low)
{
    double high = low;

    if (!(low > 0) || proven_ms(relaxation, price, low) <= low)
        return low;
    do {
        low = high;
        high *= 2;
    } while (proven_ms(relaxation, price, high) > high);
    for (unsigned i = 0; i < N_STEPS; i++) {
        double middle = (low + high) / 2;

        if (proven_ms(relaxation, price, middle) > middle)
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

/* Returns the name of the table that sets the bound "largest piece". The limits
 * of a plan of total total_ms raise the cost of this table most. If the table
 * were left whole, it would be the largest piece. */
static const char *limited_table(struct relaxation *relaxation, double total_ms)
{
    const struct search_space *space = relaxation->space;
    const char *name = NULL;
    double most = -INFINITY;

    find_everywhere(relaxation, total_ms);
    for (uint32_t u = 0; u < space->n_units; u++) {
        double ms =
            cheapest(relaxation, u, 0, limit_of(relaxation, u, total_ms)).ms -
            cheapest(relaxation, u, 0, INFINITY).ms;

        if (ms > most) {
            most = ms;
            name = space->units[u].first->name;
        }
    }
    return name;
}

static void find_busy(struct relaxation *relaxation)
{
    const struct oracle *oracle = relaxation->space->oracle;

    if (!oracle->busy_sums)
        return;
    relaxation->least_busy_ms = INFINITY;
    for (uint32_t r = 0; r < relaxation->space->n_devices; r++) {
        const double ms =
            space_standalone_ms(oracle, oracle->busy_sums + r * oracle->width);

        relaxation->all_busy_ms += ms;
        relaxation->least_busy_ms = fmin(relaxation->least_busy_ms, ms);
        relaxation->most_busy_ms = fmax(relaxation->most_busy_ms, ms);
    }
}

void bound_find(struct proven *proven, const struct search_space *space)
{
    struct arena arena = {0};
    struct relaxation relaxation = {.space = space};
    uint64_t widest = 0;
    double price;

    *proven = (struct proven){.ms = NAN};
    if (!space->oracle->is_additive)
        return;
    for (uint32_t u = 0; u < space->n_units; u++)
        widest = max_u64(widest, space->units[u].n_width_steps);
    relaxation.everywhere_ms = ARENA_NEW(&arena, double, space->n_units);
    relaxation.tiled = ARENA_NEW(&arena, struct unit_cost, widest + 1);
    find_busy(&relaxation);
    price = best_price(&relaxation);
    *proven =
        (struct proven){proven_ms(&relaxation, 0, INFINITY), "mean load", NULL};
    raise_bound(proven, "busy GPU", relaxation.most_busy_ms);
    raise_bound(proven, "memory", proven_ms(&relaxation, price, INFINITY));
    raise_bound(proven, by_piece, meet(&relaxation, price, proven->ms));
    if (price > 0)
        raise_bound(proven, by_piece, meet(&relaxation, 0, proven->ms));
    if (proven->term == by_piece)
        proven->table = limited_table(&relaxation, proven->ms);
    proven->ms *= 1 - TOLERANCE;
    arena_release(&arena);
}

void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena)
{
    struct search_space space;
    struct err ignored = {0};

    *proven = (struct proven){.ms = NAN};
    if (oracle->is_additive &&
        !space_init(&space, problem, oracle, NULL, NULL, arena, &ignored))
        bound_find(proven, &space);
}
