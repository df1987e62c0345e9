/* SPDX-License-Identifier: MIT */
#include "search/builder.h"

#include "base/interrupt.h"
#include "core/cluster.h"
#include "search/candidate.h"
#include "search/load_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of tries to build one assignment. If a piece finds no device
 * in one try, its unit goes first in the next try. */
#define MAX_TRIES 32
/* Maximum number of devices with enough free memory that are tried for one
 * piece if costs are not additive. The least loaded devices are tried first. */
#define MOST_TRIED 16
/* Urgency of units whose pieces have no choice of a device. It is above the
 * urgency of all units that found no device in an earlier try. */
#define STANDS_FAST (1U << 31)
/* Number of units placed between two checks for an interrupt. */
#define ASK_EVERY 4096

/* A unit and the sharding in which it is to be placed. */
struct chosen {
    const struct sharding *sharding;
    uint32_t unit, urgency;
    /* Share of this unit in the load of all units, or in the usable memory of
     * all devices if that share is larger (set by weigh_units). */
    double weight;
};

struct loaded {
    /* Load of the device. It is the cost in ms if the builder places by cost.
     * If the builder places by memory, it is the bytes held less the usable
     * bytes. */
    double load;
    uint64_t bytes;
    uint32_t n_pieces;
    /* Whether the device holds a piece that must not share a device with the
     * piece that is being placed (search/candidate.h). */
    bool is_taken;
    /* Vector of the piece type that was last tried on this device. NULL if no
     * type has been tried since the device got its last piece. */
    const double *tried;
    double load_then; /* load of the device with the piece type of `tried` */
};

struct builder {
    const struct search_space *space;
    const struct view *view;
    struct snapshot *out;
    struct arena arena;
    struct chosen *units; /* [n_units] */
    /* [n_units]: grows with each try in which the unit finds no device */
    uint32_t *urgency;
    struct loaded *devices; /* [R] */
    uint64_t *host_bytes; /* [hosts]: bytes of tables in the memory of hosts */
    struct load_rank *order; /* [R] */
    bool is_sorted;          /* whether `order` has the present loads */
    /* whether a piece adds the same load to any device */
    bool adds_up;
    /* sums of the devices, [R][width]; NULL if loads are additive or are
     * bytes */
    double *sums;
    double *candidate_sum; /* [width]: scratch memory of load_with */
    uint64_t work;         /* pieces placed and devices tried so far */
};

/* --- the order of units --- */

/* Sets the weight and the urgency of each unit. The weight is the share of the
 * load at first, so memory changes nothing if there is enough. Once a piece has
 * found no device (is_short), the share of the memory counts, too. The weight
 * of a unit is that of its largest piece, or that of all its pieces if these
 * fill a host. */
static void weigh_units(struct builder *builder, const uint32_t *shardings,
                        bool is_short)
{
    const struct search_space *space = builder->space;
    const struct view *view = builder->view;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct sharding *sharding =
            &space->units[u].shardings[shardings[u]];
        const bool is_all = sharding->fills_host;
        double ms = is_all ? sharding->load_ms : sharding->peak_ms, weight = 0;
        double bytes = is_all ? sharding->bytes : (double)sharding->peak_bytes;

        if (!view->by_memory && view->all_ms > 0)
            weight = ms / view->all_ms;
        if (view->by_memory || is_short)
            weight = fmax(weight, bytes / (space->all_room_bytes + 1));
        builder->units[u] =
            (struct chosen){sharding, u, builder->urgency[u], weight};
        if (sharding_piece(space, sharding, 0).device != NO_PIECE)
            builder->units[u].urgency += STANDS_FAST;
    }
}

/* Orders units for placing. Units that have no choice of a device come first.
 * Units that found no device in earlier tries come next. All other units
 * follow, the heaviest first. */
static int compare_chosen(const void *left, const void *right)
{
    const struct chosen *a = left, *b = right;

    if (a->urgency != b->urgency)
        return a->urgency > b->urgency ? -1 : 1;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->unit < b->unit ? -1 : 1;
}

/* --- the order of devices --- */

/* Returns the sort key of a device. A load that is NaN counts as infinite, so
 * that all devices can be ordered. */
static struct load_rank rank_of(const struct builder *builder, uint32_t r)
{
    const double load = builder->devices[r].load;

    return (struct load_rank){isnan(load) ? INFINITY : load,
                              builder->devices[r].bytes, r};
}

/* Sorts the devices by load, unless they are already sorted. It is called only
 * when a piece has a choice of devices. Many pieces without a choice may be
 * placed before, and they need no sorted devices. */
static void sort_devices(struct builder *builder)
{
    const uint32_t n = builder->space->n_devices;

    if (builder->is_sorted)
        return;
    for (uint32_t r = 0; r < n; r++)
        builder->order[r] = rank_of(builder, r);
    load_order_sort(builder->order, n);
    builder->is_sorted = true;
}

/* Moves a device that has just got a piece to its new position in the order of
 * loads. */
static void move_device(struct builder *builder, const struct load_rank *before)
{
    const uint32_t n = builder->space->n_devices;
    uint32_t pos;

    if (!builder->is_sorted)
        return;
    pos = load_order_find(builder->order, n, before);
    builder->order[pos] = rank_of(builder, before->device);
    load_order_restore(builder->order, n, pos);
}

/* --- finding a device for a piece --- */

/* Returns the load of a device with one more piece of the given type. The
 * result for the last type tried is kept with the device. Pieces of one
 * sharding are placed one after the other, and so are the pieces of tables that
 * are alike. So a device that did not get the last piece is often asked for the
 * same type again, and the kept result is still right. */
static double load_with(const struct builder *builder, uint32_t r,
                        uint32_t type)
{
    const struct search_space *space = builder->space;
    const size_t width = space->oracle->width;
    struct loaded *device = &builder->devices[r];
    const double *vector;

    if (builder->view->by_memory)
        return device->load + (double)space->types[type].bytes;
    if (builder->adds_up)
        return device->load + space->standalone_ms[type];
    vector = space->vectors + type * width;
    if (device->tried == vector ||
        (device->tried &&
         !memcmp(device->tried, vector, width * sizeof(double))))
        return device->load_then;
    add_lanes(builder->candidate_sum, builder->sums + r * width, vector, 1,
              width);
    device->tried = vector;
    device->load_then =
        space_standalone_ms(space->oracle, builder->candidate_sum);
    return device->load_then;
}

static bool goes_before(const struct loaded *a, const struct loaded *b)
{
    return a->load < b->load || (a->load == b->load && a->bytes < b->bytes);
}

/* Returns whether the device has memory for a piece of this type and holds no
 * piece that must not share a device with it. Only starting points meant for
 * repair may exceed the memory (may_exceed). All other starting points keep the
 * memory limit, so their plans need no repair. */
static bool fits(const struct builder *builder, uint32_t type, uint32_t r)
{
    const struct search_space *space = builder->space;
    const struct view *view = builder->view;
    const struct loaded *device = &builder->devices[r];
    uint64_t room = space->room_bytes[r];

    if (space->has_tiers && !view->may_exceed &&
        saturating_add(builder->host_bytes[space_host_of(space, r)],
                       space->types[type].host_bytes) >
            space->problem->cluster.host_bytes)
        return false;
    if (view->room_frac < 1)
        room = (uint64_t)(view->room_frac * (double)room);
    return !device->is_taken &&
           (view->may_exceed ||
            (device->bytes <= room &&
             space->types[type].bytes <= room - device->bytes));
}

/* Returns the device that is least loaded with the piece among those with
 * enough free memory, or NO_PIECE. If costs are additive, it is the least
 * loaded device with enough memory. If costs are not additive, only the first
 * few devices in the order of loads are tried. Only one of the empty devices is
 * tried, because they are alike, unless they are busy with other tables. A
 * piece never lowers the load of a device. So devices that are already more
 * loaded than the best result so far are not tried. */
static uint32_t find_device(struct builder *builder, const struct change *piece)
{
    const struct search_space *space = builder->space;
    const uint32_t first = space->types[piece->type].first_device;
    const unsigned most =
        builder->adds_up || builder->view->by_memory ? 1 : MOST_TRIED;
    const bool are_alike = !space->oracle->busy_sums;
    uint32_t found = NO_PIECE;
    bool tried_empty = false;
    struct loaded least = {0};
    unsigned n_tried = 0;

    sort_devices(builder);
    for (uint32_t i = 0; i < space->n_devices && n_tried < most; i++) {
        const uint32_t r = builder->order[i].device;
        const struct loaded *device = &builder->devices[r];
        struct loaded then = {.bytes = device->bytes};

        if (found != NO_PIECE && device->load > least.load)
            break;
        if (r < first || (tried_empty && !device->n_pieces && are_alike) ||
            !fits(builder, piece->type, r))
            continue;
        tried_empty |= !device->n_pieces;
        then.load = load_with(builder, r, piece->type);
        n_tried++;
        if (found == NO_PIECE || goes_before(&then, &least)) {
            least = then;
            found = r;
        }
    }
    builder->work += n_tried;
    return found;
}

/* Returns the first device of a host with memory for the n blocks that fill it,
 * or NO_PIECE if no host has enough memory. If several hosts have enough, the
 * function chooses the host whose busiest device has the least load with the
 * blocks. */
static uint32_t find_host(struct builder *builder, const struct change *pieces,
                          uint32_t n)
{
    const struct cluster *cluster = &builder->space->problem->cluster;
    const uint32_t apart = cluster_group(cluster);
    uint32_t found = NO_PIECE;
    struct loaded least = {0};

    for (uint32_t pos = builder->space->types[pieces->type].first_device;
         pos + apart <= cluster->n_devices; pos += apart) {
        struct loaded most = {.load = -INFINITY};
        uint32_t i = 0;

        for (; i < n && fits(builder, pieces[i].type, pos + i); i++) {
            struct loaded then = {
                .load = load_with(builder, pos + i, pieces[i].type),
                .bytes = builder->devices[pos + i].bytes};

            if (goes_before(&most, &then))
                most = then;
        }
        builder->work += i == n ? n : 0;
        if (i == n && (found == NO_PIECE || goes_before(&most, &least))) {
            least = most;
            found = pos;
        }
    }
    return found;
}

/* Returns the device for one piece, or the first device for n blocks that fill
 * a host. Returns NO_PIECE if no device is possible. The pieces from `before`
 * up to this piece belong to the same unit and have their devices already. A
 * piece must not share a device with pieces of its own row block. Blocks that
 * fill a host must not share a device with any piece of their unit. */
static uint32_t find_room(struct builder *builder, const struct change *pieces,
                          uint32_t n, const struct change *before)
{
    const struct search_space *space = builder->space;
    const bool is_apart =
        space->units[space->types[pieces->type].unit].keeps_apart;
    uint32_t pos = pieces->device;

    if (pos != NO_PIECE)
        return fits(builder, pieces->type, pos) ? pos : NO_PIECE;
    for (const struct change *it = before; it < pieces; it++)
        builder->devices[it->device].is_taken |=
            n > 1 || it->block == pieces->block || is_apart;
    pos = n > 1 ? find_host(builder, pieces, n) : find_device(builder, pieces);
    for (const struct change *it = before; it < pieces; it++)
        builder->devices[it->device].is_taken = false;
    return pos;
}

static void put(struct builder *builder, struct change *piece, uint32_t r)
{
    const struct search_space *space = builder->space;
    const size_t width = space->oracle->width;
    const struct load_rank before = rank_of(builder, r);
    struct loaded *device = &builder->devices[r];

    builder->is_sorted = builder->is_sorted && piece->device == NO_PIECE;
    piece->device = r;
    device->load = load_with(builder, r, piece->type);
    device->tried = NULL;
    device->bytes += space->types[piece->type].bytes;
    if (space->has_tiers)
        builder->host_bytes[space_host_of(space, r)] +=
            space->types[piece->type].host_bytes;
    device->n_pieces++;
    for (size_t w = 0; builder->sums && w < width; w++)
        builder->sums[r * width + w] += space->vectors[piece->type * width + w];
    move_device(builder, &before);
}

/* --- placing all units --- */

/* Places all pieces of a unit. Returns false if a piece finds no device or the
 * work budget is used up. Blocks that may stand anywhere are placed block by
 * block, because pieces of one row block need different devices. */
static bool place_unit(struct builder *builder, const struct sharding *sharding)
{
    const uint32_t n = sharding->fills_host ? sharding->n_blocks : 1;
    const uint32_t n_blocks = sharding->fills_host ? 1 : sharding->n_blocks;
    const uint32_t n_ranges = sharding->n_pieces / n_blocks;
    const uint32_t first = builder->out->n;

    for (uint32_t i = 0; i < sharding->n_pieces; i++)
        *snapshot_next(builder->out) = sharding_piece(
            builder->space, sharding, i % n_ranges * n_blocks + i / n_ranges);
    for (uint32_t i = 0; i < sharding->n_pieces; i += n) {
        struct change *pieces = &builder->out->pieces[first];
        const uint32_t pos = find_room(builder, pieces + i, n, pieces);

        if (pos == NO_PIECE || builder->work > BUILDER_MAX_WORK)
            return false;
        for (uint32_t k = 0; k < n; k++)
            put(builder, &pieces[i + k], pos + k);
    }
    builder->work += sharding->n_pieces;
    return true;
}

/* Returns the load of a device that holds no pieces. */
static double empty_load(const struct builder *builder, uint32_t r)
{
    const struct search_space *space = builder->space;
    const struct oracle *oracle = space->oracle;

    if (builder->view->by_memory)
        return -(double)space->room_bytes[r];
    return oracle->busy_sums
               ? space_standalone_ms(oracle,
                                     oracle->busy_sums + r * oracle->width)
               : 0;
}

/* Runs one try to place all units. Returns NO_PIECE if all were placed.
 * Otherwise returns the unit at which the try stopped, because the unit found
 * no device or an interrupt came. If the builder places by memory, the load of
 * a device begins at minus its usable memory, so that devices with different
 * memories fill up evenly. */
static uint32_t place_all(struct builder *builder)
{
    const struct search_space *space = builder->space;
    const size_t n = space->n_units, n_devices = space->n_devices;

    builder->out->n = 0;
    builder->is_sorted = false;
    memset(builder->devices, 0, n_devices * sizeof(*builder->devices));
    for (uint32_t h = 0; h < space_n_hosts(space); h++)
        builder->host_bytes[h] = 0;
    if (builder->sums)
        oracle_empty_sums(space->oracle, builder->sums);
    for (uint32_t r = 0; r < n_devices; r++)
        builder->devices[r].load = empty_load(builder, r);
    qsort(builder->units, n, sizeof(*builder->units), compare_chosen);
    for (uint32_t u = 0; u < n; u++) {
        if (!place_unit(builder, builder->units[u].sharding))
            return builder->units[u].unit;
        if (space->is_long && u % ASK_EVERY == 0 && interrupt_requested())
            return builder->units[u].unit;
    }
    return NO_PIECE;
}

uint64_t builder_run(struct snapshot *out, bool *is_short,
                     const struct search_space *space, const struct view *view,
                     const uint32_t *shardings)
{
    struct builder builder = {.space = space,
                              .view = view,
                              .out = out,
                              .adds_up = space->oracle->is_additive};
    const size_t n = space->n_devices, width = space->oracle->width;
    uint32_t stuck = 0;

    builder.units = ARENA_NEW(&builder.arena, struct chosen, space->n_units);
    builder.urgency = ARENA_NEW(&builder.arena, uint32_t, space->n_units);
    builder.devices = ARENA_NEW(&builder.arena, struct loaded, n);
    builder.order = ARENA_NEW(&builder.arena, struct load_rank, n);
    builder.host_bytes =
        ARENA_NEW(&builder.arena, uint64_t, space_n_hosts(space));
    if (!view->by_memory && !builder.adds_up) {
        builder.sums = ARENA_NEW(&builder.arena, double, n *width);
        builder.candidate_sum = ARENA_NEW(&builder.arena, double, width);
    }
    for (unsigned try = 0; try < MAX_TRIES; try++) {
        weigh_units(&builder, shardings, try > 0);
        stuck = place_all(&builder);
        if (stuck == NO_PIECE || builder.work > BUILDER_MAX_WORK ||
            (space->is_long && interrupt_requested()))
            break;
        builder.urgency[stuck] += MAX_TRIES - try;
    }
    *is_short = false;
    for (uint32_t u = 0; u < space->n_units; u++)
        *is_short |= builder.urgency[u] > 0;
    if (stuck != NO_PIECE)
        out->n = 0;
    arena_release(&builder.arena);
    return builder.work;
}
