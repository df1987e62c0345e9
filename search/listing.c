/* SPDX-License-Identifier: MIT */
#include "search/listing.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "core/cache_pools.h"
#include "core/memory.h"
#include "core/target_tiers.h"

#include <math.h>
#include <string.h>

/* --- piece types and their prices --- */

/* Fills the vector of a piece type from the vector of a listed type that
 * differs only in its tier. Returns false if no type does. */
static bool embed_like(const struct listing *listing,
                       const struct piece_type *type, double *vector)
{
    const struct search_space *space = listing->space;
    const struct oracle *oracle = space->oracle;
    const struct unit *unit = &space->units[type->unit];
    struct shard shard;

    if (!oracle->ops->embed_tier || unit->n_tables > 1 ||
        type->tier == TIER_HBM)
        return false;
    for (uint32_t i = listing->first_type; i + 1 < listing->n_types; i++) {
        const struct piece_type *like = &listing->list[i];

        if (like->tier == type->tier || like->kind != type->kind ||
            like->width != type->width || like->row_begin != type->row_begin ||
            like->n_rows != type->n_rows || like->block != type->block ||
            like->first_device != type->first_device ||
            like->is_empty != type->is_empty || like->stands != type->stands)
            continue;
        memcpy(vector, listing->vectors + i * (size_t)oracle->width,
               oracle->width * sizeof(*vector));
        shard = space_shard(space, type, unit->tables[0]);
        oracle->ops->embed_tier(oracle, &shard, vector);
        return true;
    }
    return false;
}

/* Returns the price of all tables of a unit. The vector of a unit is the sum of
 * the vectors of its tables, because the oracle's contract defines no other way
 * to price several tables together. */
double listing_price(const struct listing *listing,
                     const struct piece_type *type, double *vector)
{
    const struct search_space *space = listing->space;
    const struct oracle *oracle = space->oracle;
    const struct unit *unit = &space->units[type->unit];

    if (embed_like(listing, type, vector))
        return space_standalone_ms(oracle, vector);
    memset(vector, 0, oracle->width * sizeof(*vector));
    for (uint32_t k = 0; k < unit->n_tables; k++) {
        const struct shard shard = space_shard(space, type, unit->tables[k]);

        oracle->ops->embed(oracle, &shard, 1, listing->room);
        for (uint32_t w = 0; w < oracle->width; w++)
            vector[w] += listing->room[w];
    }
    return space_standalone_ms(oracle, vector);
}

/* Returns the bytes of one set of slots for a cached shard. */
static uint64_t set_bytes(const struct search_space *space,
                          const struct shard *shard)
{
    const struct pool_key key = shard_pool(space->problem, shard);

    return CACHE_SET_SLOTS *
           (pool_row_bytes(&key, shard->col_end - shard->col_begin) +
            pool_state_bytes(space->problem));
}

/* Sets the bytes of a piece type. If they exceed 64 bits, sets UINT64_MAX,
 * which fits on no device. */
static void weigh(const struct listing *listing, struct piece_type *type)
{
    const struct search_space *space = listing->space;
    const struct unit *unit = &space->units[type->unit];

    for (uint32_t k = 0; k < unit->n_tables && !type->is_empty; k++) {
        struct shard shard = space_shard(space, type, unit->tables[k]);
        struct memory_items memory;

        if (shard_cuts_rows(type->kind))
            type_place_block(&shard, type, 0, type->hottest);
        memory = shard_memory(space->problem, &shard);
        if (type->tier == TIER_CACHED)
            memory.total =
                saturating_add(memory.total, set_bytes(space, &shard));
        type->bytes = saturating_add(type->bytes, memory.total);
        type->host_bytes = saturating_add(type->host_bytes, memory.host);
        type->mean_bytes = saturating_add(
            type->mean_bytes, shard_memory(&listing->even, &shard).total);
    }
}

/* Adds a piece type to the list and returns its index. A piece type is added
 * before the sharding that uses it. */
uint32_t listing_add_type(struct listing *listing, struct piece_type type)
{
    const struct search_space *space = listing->space;
    const size_t width = space->oracle->width;
    const uint32_t n = listing->n_types++;

    type.sharding = listing->n_shardings - listing->first_sharding;
    type.tier = listing->tier;
    if (n == listing->list_capacity)
        listing->list = mem_room(listing->list, n, &listing->list_capacity,
                                 sizeof(*listing->list));
    if (n == listing->standalone_capacity)
        listing->standalone_ms =
            mem_room(listing->standalone_ms, n, &listing->standalone_capacity,
                     sizeof(*listing->standalone_ms));
    if (space->oracle->ops->embed && n == listing->vectors_capacity)
        listing->vectors =
            mem_room(listing->vectors, n, &listing->vectors_capacity,
                     width * sizeof(*listing->vectors));
    weigh(listing, &type);
    listing->list[n] = type;
    listing->standalone_ms[n] =
        space->oracle->ops->embed
            ? listing_price(listing, &type, listing->vectors + n * width)
            : 0;
    return n;
}

/* --- shardings and their prices --- */

/* Relative error of the shares of lookups. The shares are sums of floats, so
 * the sum of all shares may be less than 1 by this error. */
#define SHARE_ROUNDING 1e-6

static void add_up(struct sharding *sharding, const struct listing *listing,
                   uint32_t type, uint32_t n)
{
    const double ms = listing->standalone_ms[type];
    const struct piece_type *p = &listing->list[type];
    double bytes = (double)p->bytes;

    /* All n blocks together have as many lookups as n blocks with the mean
     * number of lookups. */
    if (shard_cuts_rows(p->kind) && listing->space->problem->hot)
        bytes = fmax((double)p->mean_bytes * (1 - SHARE_ROUNDING) -
                         LISTING_PIECE_ROUNDING,
                     0);
    sharding->load_ms += ms * n;
    sharding->bytes += bytes * n;
    sharding->peak_ms = fmax(sharding->peak_ms, ms);
    sharding->least_ms = fmin(sharding->least_ms, ms);
    sharding->peak_bytes = max_u64(sharding->peak_bytes, p->bytes);
}

/* Prices a sharding by its piece types and adds it to the list. Its piece types
 * must have been added before. */
void listing_add_sharding(struct listing *listing, struct sharding sharding)
{
    if (listing->n_shardings == listing->shardings_capacity)
        listing->shardings =
            mem_room(listing->shardings, listing->n_shardings,
                     &listing->shardings_capacity, sizeof(*listing->shardings));
    sharding.least_ms = INFINITY;
    for (uint32_t b = 0; b < sharding.n_blocks; b++)
        add_up(&sharding, listing, sharding_type_of_block(&sharding, b),
               sharding.n_pieces / sharding.n_blocks - sharding.n_last);
    if (sharding.n_last)
        add_up(&sharding, listing, sharding.last, sharding.n_last);
    listing->shardings[listing->n_shardings++] = sharding;
}

/* Returns a sharding of n pieces of one piece type. */
struct sharding listing_sharding(enum sharding_kind kind, uint32_t type,
                                 uint32_t n)
{
    return (struct sharding){.kind = kind,
                             .n_blocks = 1,
                             .n_ranges = 1,
                             .n_pieces = n,
                             .type = type,
                             .last = type};
}

/* --- leaving out shardings that cannot pay --- */

/*
 * In a long list each table is a small part of the work of a GPU. Cutting a
 * table over many GPUs then does not even out their loads. A cut is worth only
 * the cost that its pieces save together. So a replica or a row cut is left out
 * if the unit has another sharding that
 *
 *     costs no more, or hardly more,
 *     takes no more bytes, and
 *     has pieces that are small compared with the load and the memory of a GPU.
 *
 * Without this rule 10,000 tables on 1,024 GPUs have 1.2 million possible
 * pieces that bring no gain.
 */
#define SMALL_LOAD 0.25    /* share of the mean load of a GPU */
#define SMALL_BYTES 0.0625 /* share of the smallest GPU's usable memory */
/* Maximum cost that all shardings left out may save together, as a share of the
 * load of all GPUs. */
#define LEFT_OUT 0.002

/* Returns whether the plan to be replaced has the table of the unit in pieces
 * of this kind. If it has, shardings of this kind are not left out, because the
 * table must be able to stay as it is. */
static bool stands_so(const struct search_space *space, const struct unit *unit,
                      enum shard_kind kind)
{
    const struct table_pieces *old =
        space->current ? &space->current->standing[unit->tables[0]] : NULL;

    return old && old->n && old->pieces[0].kind == kind;
}

/* Returns whether a sharding that has at least this load and these bytes may
 * pay. If the sharding cannot pay, the cost that it might have saved is noted
 * in the unit. */
bool listing_may_pay(struct listing *listing, uint32_t u, enum shard_kind kind,
                     double load_ms, double bytes)
{
    const struct search_space *space = listing->space;
    const double all_ms = space->mean_ms * space->n_devices;
    const double little_ms = LEFT_OUT * all_ms / space->n_units;
    const double room = SMALL_BYTES * (double)space->least_room_bytes;
    struct unit *unit = &space->units[u];

    if (!space->is_long || stands_so(space, unit, kind))
        return true;
    for (uint32_t i = listing->first_sharding; i < listing->n_shardings; i++) {
        const struct sharding *sharding = &listing->shardings[i];
        const double lost_ms = sharding->load_ms - load_ms;

        if ((sharding->kind != SHARDING_WHOLE &&
             sharding->kind != SHARDING_COLUMNS) ||
            sharding->bytes > bytes || (double)sharding->peak_bytes > room ||
            sharding->peak_ms > SMALL_LOAD * space->mean_ms ||
            lost_ms > little_ms)
            continue;
        unit->left_out_ms = fmax(unit->left_out_ms, lost_ms);
        unit->leaves_out = true;
        return false;
    }
    return true;
}

/* --- columns --- */

/*
 * Returns the width step of a unit: the number of columns that all widths of
 * its pieces are multiples of. With a common step, columns that are cut off one
 * piece can be added to another. The step is the smallest multiple of four with
 * these properties:
 *
 *     it divides dim,
 *     it is at least the minimum width of a piece, and
 *     it gives at most most_width_steps widths.
 *
 * If every step gives more widths than that, the coarsest step is returned. If
 * columns cannot be cut, the step is dim. If a plan is to be replaced, the step
 * also divides all widths in that plan, unless the step would then be below the
 * minimum width of a piece.
 */
static uint32_t choose_width_step(const struct search_space *space,
                                  const struct unit *unit)
{
    const struct table_pieces *old =
        space->current ? &space->current->standing[unit->tables[0]] : NULL;
    const uint32_t dim = unit->first->dim;
    uint32_t coarse = dim, width_step;

    for (uint32_t step = table_min_width(space->problem, unit->first);
         step <= dim / 2; step += TABLE_COLUMN_STEP) {
        if (dim % step)
            continue;
        coarse = step;
        if (dim / step <= space->most_width_steps)
            break;
    }
    width_step = coarse;
    for (size_t i = 0; old && i < old->n; i++) {
        uint32_t rest = old->pieces[i].col_end - old->pieces[i].col_begin;

        while (rest) { /* Euclid's algorithm */
            uint32_t next = width_step % rest;

            width_step = rest;
            rest = next;
        }
    }
    return width_step < table_least_width(space->problem, unit->first)
               ? coarse
               : width_step;
}

/* Lists the shardings into column ranges, for each number of ranges from two to
 * the number of devices. The ranges are as even as the width step allows. A
 * unit that has only one device is cut by columns only if it may not be whole.
 * It is then cut into the fewest equal pieces. */
static void add_column_shardings(struct listing *listing, uint32_t unit)
{
    const struct unit *entry = &listing->space->units[unit];
    const uint32_t limit = problem_target(listing->space->problem)->most_width;
    const uint32_t widest = limit ? limit : entry->first->dim;
    uint32_t least = 2, most = listing->space->n_devices;

    if (entry->device != NO_PIECE && entry->keeps_apart)
        return;
    if (entry->device != NO_PIECE) {
        while (entry->n_width_steps % least)
            least++;
        most = entry->whole[listing->tier] == NO_TYPE ? least : 0;
    }
    for (uint32_t n = least; n <= most && n <= entry->n_width_steps; n++) {
        struct sharding sharding = listing_sharding(
            SHARDING_COLUMNS,
            entry->columns[listing->tier] + entry->n_width_steps / n - 1, n);

        if (listing->list[sharding.type].width > widest ||
            (entry->widths_alike && entry->n_width_steps % n))
            continue;
        sharding.n_ranges = n;
        sharding.last++;
        sharding.n_last = entry->n_width_steps % n;
        listing_add_sharding(listing, sharding);
    }
}

/* --- units --- */

static void add_replica(struct listing *listing, uint32_t u)
{
    const struct search_space *space = listing->space;
    const uint32_t n = space->n_devices;
    struct unit *unit = &space->units[u];
    struct piece_type all = {.unit = u,
                             .kind = SHARD_REPLICATE,
                             .width = unit->first->dim,
                             .n_rows = unit->first->num_embeddings};
    uint32_t type = listing_add_type(listing, all);
    const double frac = space->oracle->is_additive ? 1 : LEAST_REPLICA_FRAC;

    if (!listing_may_pay(listing, u, all.kind,
                         frac * n * listing->standalone_ms[type],
                         (double)n * (double)listing->list[type].bytes)) {
        listing->n_types--;
        return;
    }
    unit->replica = type;
    listing_add_sharding(listing, listing_sharding(SHARDING_REPLICA, type, n));
}

/* Number of units up to which all units list their column shardings. */
#define MOST_WITH_COLUMNS 50000

/* Returns whether cuts of the columns may pay. In a very long list they are
 * left out as replicas and row cuts are in a long one: by the price of the two
 * halves, which costs less than to price all widths. 200,000 tables on 64 GPUs
 * then take half the memory. */
static bool columns_may_pay(struct listing *listing, uint32_t u)
{
    const struct search_space *space = listing->space;
    const struct unit *unit = &space->units[u];
    const uint32_t n_steps = unit->first->dim / unit->width_step;
    const uint32_t before = listing->n_types;
    double load_ms = 0, bytes = 0;

    if (space->n_units <= MOST_WITH_COLUMNS)
        return true;
    for (uint32_t i = 0; i < 2; i++) {
        /* both halves are alike if the number of width steps is even */
        const uint32_t n_alike = n_steps % 2 ? 1 : 2 - 2 * i;
        const struct piece_type half = {.unit = u,
                                        .kind = SHARD_COLUMN,
                                        .tier = listing->tier,
                                        .width = unit->width_step *
                                                 ((n_steps + i) / 2),
                                        .n_rows = unit->first->num_embeddings};
        uint32_t type;

        if (!n_alike)
            continue;
        type = listing_add_type(listing, half);
        load_ms += n_alike * listing->standalone_ms[type];
        bytes += n_alike * (double)listing->list[type].bytes;
    }
    listing->n_types = before;
    return listing_may_pay(listing, u, SHARD_COLUMN, load_ms, bytes);
}

/* Smallest share of a device's memory that a unit takes if it is cut although
 * time is short. A smaller unit that stands whole hardly makes devices
 * uneven. */
#define SMALL_FRAC (1.0 / 64)

/* Returns whether a unit gets no sharding but the whole one for lack of time:
 * the list is long and the unit is small. */
static bool stays_whole(const struct listing *listing, const struct unit *unit)
{
    return listing->space->is_long && unit->whole[listing->tier] != NO_TYPE &&
           (double)listing->list[unit->whole[listing->tier]].bytes <
               SMALL_FRAC * (double)listing->space->least_room_bytes &&
           clock_ms() >= listing->end_ms;
}

/* Chooses the width step of a unit and the number of steps. */
static void choose_width_steps(struct listing *listing, uint32_t u)
{
    struct unit *unit = &listing->space->units[u];
    const uint32_t dim = unit->first->dim;

    unit->n_width_steps = 1;
    unit->width_step = dim;
    if (unit->first->group)
        return;
    if (unit->kinds & SHARD_COLUMN)
        unit->width_step = choose_width_step(listing->space, unit);
    if (unit->width_step < dim && !columns_may_pay(listing, u))
        unit->width_step = dim;
    unit->n_width_steps = dim / unit->width_step;
}

/* Lists the piece types and shardings of a unit in one tier. The order of the
 * types is: whole; columns of 1, 2 ... n - 1 width steps; replica; row blocks;
 * grids. unit_type_of_steps relies on the order of the column types. Groups are
 * not cut. Pinned tables are cut only by columns, because all pieces of a row
 * cut would stand on one device. */
static void add_tier(struct listing *listing, uint32_t u, enum tier tier)
{
    const struct search_space *space = listing->space;
    struct unit *unit = &space->units[u];
    const struct table *table = unit->first;
    struct piece_type all = {.unit = u,
                             .kind = SHARD_TABLE,
                             .width = table->dim,
                             .n_rows = table->num_embeddings};

    listing->tier = tier;
    listing->kinds = tier_kinds(table, tier, unit->kinds);
    if (listing->kinds & SHARD_TABLE) {
        unit->whole[tier] = listing_add_type(listing, all);
        listing_add_sharding(
            listing, listing_sharding(SHARDING_WHOLE, unit->whole[tier], 1));
    }
    if (table->group || stays_whole(listing, unit))
        return;
    if (!listing->has_width_step)
        choose_width_steps(listing, u);
    if (unit->width_step < table->dim) {
        unit->columns[tier] = listing->n_types;
        all.kind = SHARD_COLUMN;
        for (all.width = unit->width_step; all.width < table->dim;
             all.width += unit->width_step)
            listing_add_type(listing, all);
        add_column_shardings(listing, u);
    }
    if (unit->pin >= 0 || (listing->n_shardings > listing->first_sharding &&
                           clock_ms() >= listing->end_ms))
        return;
    if ((listing->kinds & SHARD_REPLICATE) && space->n_devices > 1)
        add_replica(listing, u);
    listing_add_row_cuts(listing, u);
}

static void add_unit(struct listing *listing, uint32_t u)
{
    struct unit *unit = &listing->space->units[u];

    listing->first_sharding = listing->n_shardings;
    listing->first_type = listing->n_types;
    unit->replica = NO_TYPE;
    unit->n_width_steps = 1;
    unit->width_step = unit->first->dim;
    for (unsigned tier = 0; tier < N_TIERS; tier++)
        unit->whole[tier] = unit->columns[tier] = NO_TYPE;
    for (unsigned tier = 0, n = 0; tier < N_TIERS; tier++) {
        if (!(unit->tiers & 1u << tier))
            continue;
        listing->has_width_step = n++ > 0;
        add_tier(listing, u, (enum tier)tier);
    }
}

void listing_fill(struct listing *listing)
{
    const struct search_space *space = listing->space;

    listing->even = *space->problem;
    listing->even.hot = NULL;
    listing->room = mem_alloc(space->oracle->width, sizeof(*listing->room));
    for (uint32_t u = listing->begin; u < listing->end; u++) {
        if (space->is_long && interrupt_requested())
            break;
        add_unit(listing, u);
        space->units[u].n_shardings =
            listing->n_shardings - listing->first_sharding;
    }
    mem_free(listing->room);
}

/* --- putting all runs together --- */

static void shift(uint32_t *type, uint32_t by)
{
    if (*type != NO_TYPE)
        *type += by;
}

void listing_append(struct listing *listing, struct search_space *space)
{
    const size_t width = space->oracle->width;
    const uint32_t by = space->n_types;
    struct sharding *shardings = space->shardings + space->n_shardings;

    for (uint32_t i = 0; i < listing->n_shardings; i++) {
        shardings[i] = listing->shardings[i];
        shardings[i].type += by;
        shardings[i].last += by;
    }
    for (uint32_t u = listing->begin; u < listing->end; u++) {
        struct unit *unit = &space->units[u];

        for (unsigned tier = 0; tier < N_TIERS; tier++) {
            shift(&unit->whole[tier], by);
            shift(&unit->columns[tier], by);
        }
        shift(&unit->replica, by);
        unit->shardings = shardings;
        shardings += unit->n_shardings;
    }
    if (listing->n_types) {
        memcpy(space->types + by, listing->list,
               listing->n_types * sizeof(*space->types));
        memcpy(space->standalone_ms + by, listing->standalone_ms,
               listing->n_types * sizeof(*space->standalone_ms));
    }
    if (listing->n_types && space->vectors)
        memcpy(space->vectors + by * width, listing->vectors,
               listing->n_types * width * sizeof(*space->vectors));
    space->n_types += listing->n_types;
    space->n_shardings += listing->n_shardings;
    arena_adopt(space->arena, &listing->arena);
    mem_free(listing->list);
    mem_free(listing->standalone_ms);
    mem_free(listing->vectors);
    mem_free(listing->shardings);
}

struct wholes {
    const struct search_space *space;
    double *standalone_ms; /* [n_units] */
};

static void price_wholes(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct wholes *wholes = ctx;
    const struct search_space *space = wholes->space;
    const struct oracle *oracle = space->oracle;
    double *vector = mem_alloc(oracle->width, sizeof(*vector));

    (void)thread;
    for (uint64_t u = begin; u < end && !interrupt_requested(); u++)
        for (uint32_t k = 0; k < space->units[u].n_tables; k++) {
            const struct shard whole =
                shard_whole(space->problem, space->units[u].tables[k], 0);

            oracle->ops->embed(oracle, &whole, 1, vector);
            wholes->standalone_ms[u] += space_standalone_ms(oracle, vector);
        }
    mem_free(vector);
}

/* Number of units whose whole pieces are priced by one task. */
#define WHOLES_A_TASK 256

double listing_mean_ms(const struct search_space *space, struct pool *pool)
{
    struct wholes wholes = {space, NULL};
    double sum_ms = 0;

    if (!space->is_long || !space->oracle->ops->embed)
        return 0;
    wholes.standalone_ms = mem_alloc(space->n_units, sizeof(double));
    pool_run_range(pool, space->n_units, WHOLES_A_TASK, price_wholes, &wholes);
    for (uint32_t u = 0; u < space->n_units; u++)
        sum_ms += wholes.standalone_ms[u];
    mem_free(wholes.standalone_ms);
    return isfinite(sum_ms) ? sum_ms / space->n_devices : 0;
}
