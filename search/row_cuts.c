/* SPDX-License-Identifier: MIT */
#include "base/ranked.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "core/target_rules.h"
#include "core/target_tiers.h"
#include "search/listing.h"

#include <string.h>

/* Maximum number of column ranges of a grid. */
#define MAX_RANGES 16

/* Returns whether a cut of rows into n blocks may pay. The cost of the cut is
 * at least n times the cost of the given block. Its bytes are at least the
 * bytes of two halves of the table. */
static bool cut_may_pay(struct listing *listing, uint32_t u,
                        const struct piece_type *block, uint32_t n)
{
    const struct search_space *space = listing->space;
    const struct unit *unit = &space->units[u];
    const uint32_t n_ranges = unit->first->dim / block->width;
    struct shard half = space_shard(space, block, unit->tables[0]);
    double *vector, half_bytes, load_ms = 0;

    if (!space->is_long)
        return true;
    half.row_begin = 0;
    half.row_end = unit->first->num_embeddings / 2;
    half_bytes = (double)shard_memory(&listing->even, &half).total -
                 LISTING_PIECE_ROUNDING;
    if (space->oracle->ops->embed) {
        vector = mem_alloc(space->oracle->width, sizeof(*vector));
        load_ms = n * listing_price(listing, block, vector);
        mem_free(vector);
    }
    return listing_may_pay(listing, u, block->kind, load_ms,
                           2.0 * n_ranges * half_bytes);
}

/* Lists the piece types of n row blocks of equal size. Blocks with about the
 * same number of lookups share a piece type, so that there are few types. The
 * price of a type is the price of a block with about the mean number of
 * lookups. The bytes of a type are the largest bytes of its blocks. */
static void add_blocks(struct listing *listing, struct piece_type type,
                       uint8_t *types_of_blocks, uint32_t n)
{
    const struct search_space *space = listing->space;
    struct ranked *order = mem_alloc(n, sizeof(*order));
    struct shard shard =
        shard_whole(space->problem, space->units[type.unit].tables[0], 0);
    double share;
    uint8_t sort = 0;

    for (uint32_t b = 0; b < n; b++) {
        type_place_block(&shard, &type, 0, b);
        order[b] = (struct ranked){-shard_lookups(space->problem, &shard), b};
    }
    ranked_sort(order, n);
    share = ranked_share(order, n, space->most_types);
    for (uint32_t begin = 0, end; begin < n; begin = end, sort++) {
        double mean = 0;
        uint32_t typical = begin;

        end = (uint32_t)ranked_run_end(order, n, begin, share);
        for (uint32_t i = begin; i < end; i++) {
            mean += order[i].key / (end - begin);
            types_of_blocks[order[i].idx] = sort;
        }
        while (typical + 1 < end && order[typical].key < mean)
            typical++;
        type.hottest = order[begin].idx;
        type.block = order[typical].idx;
        type.row_begin = type.block * type.n_rows;
        listing_add_type(listing, type);
    }
    mem_free(order);
}

/* Lists one piece type for the next n blocks of a cut. */
static void add_block(struct listing *listing, const struct sharding *cut,
                      struct piece_type type, uint8_t *types_of_blocks,
                      uint64_t n)
{
    if (!n)
        return;
    memset(types_of_blocks, (int)(listing->n_types - cut->type), n);
    listing_add_type(listing, type);
}

/* Copies the piece types for a cut if the unit already has a cut into the same
 * blocks. The two cuts may differ only in their column ranges or their host.
 * Returns false if there is no other cut to copy from. */
static bool add_alike(struct listing *listing, struct sharding *cut,
                      struct piece_type type)
{
    uint32_t i = listing->first_sharding, first, last;

    while (i < listing->n_shardings &&
           (listing->shardings[i].kind != SHARDING_ROWS ||
            listing->shardings[i].n_blocks != cut->n_blocks ||
            listing->list[listing->shardings[i].type].n_rows != type.n_rows))
        i++;
    if (i == listing->n_shardings)
        return false;
    cut->types_of_blocks = listing->shardings[i].types_of_blocks;
    first = listing->shardings[i].type;
    last = listing->shardings[i].last;
    for (uint32_t p = first; p <= last; p++) {
        struct piece_type like = listing->list[p];

        like.kind = type.kind;
        like.width = type.width;
        like.first_device = type.first_device;
        like.bytes = like.mean_bytes = like.host_bytes = 0;
        listing_add_type(listing, like);
    }
    return true;
}

/* Deals the rows to n_ways devices, for a target that deals rows. The blocks
 * are taken for equal: their price is that of a block with fewest rows, and
 * their bytes are those of a block with most. target_deal gives the blocks
 * their rows. */
static void add_dealt_cut(struct listing *listing, uint32_t unit,
                          uint32_t n_ways, uint32_t n_ranges, bool fills_host)
{
    const struct search_space *space = listing->space;
    const struct table *table = space->units[unit].first;
    const uint64_t rows = table->num_embeddings;
    const uint32_t widest = problem_target(space->problem)->most_width;
    struct sharding cut =
        listing_sharding(SHARDING_ROWS, listing->n_types, n_ways * n_ranges);
    struct piece_type type = {.unit = unit,
                              .kind = n_ranges > 1 ? SHARD_GRID : SHARD_ROW,
                              .tier = listing->tier,
                              .width = table->dim / n_ranges,
                              .n_rows = rows / n_ways},
                      most = type;
    uint32_t listed;

    if (rows < (uint64_t)TARGET_LEAST_DEALT * n_ways ||
        (uint64_t)n_ways * n_ranges > space->n_devices ||
        (widest && type.width > widest) ||
        /* such an oracle prices only equal blocks */
        (space->oracle->row_cut == ROW_CUT_RANKS && rows % n_ways) ||
        (space->oracle->prices_even_rows &&
         !cut_may_pay(listing, unit, &type, cut.n_pieces)))
        return;
    cut.n_blocks = cut.n_ways = n_ways;
    cut.n_ranges = n_ranges;
    cut.fills_host = fills_host;
    cut.types_of_blocks = ARENA_NEW(&listing->arena, uint8_t, n_ways);
    most.n_rows += rows % n_ways > 0;
    listed = listing_add_type(listing, most);
    most.bytes = listing->list[listed].bytes;
    listing->n_types--;
    listed = listing_add_type(listing, type);
    listing->list[listed].bytes = most.bytes;
    listing_add_sharding(listing, cut);
}

/* Cuts rows as TorchRec does: into blocks of ceil(rows / ways). The last block
 * is shorter. If there are more ways than blocks, the last blocks are empty.
 * Empty blocks are listed only if the oracle prices them. A cut over the first
 * host may have the same blocks as a cut over all ranks. The oracle and the
 * rules of caches then take it for a cut over all ranks, so such a cut may fill
 * only the other hosts. All column ranges of one block cost the same. */
static void add_cut(struct listing *listing, uint32_t unit, uint32_t n_ways,
                    uint32_t n_ranges, bool fills_host)
{
    const struct search_space *space = listing->space;
    const struct table *table = space->units[unit].first;
    const bool has_empty = space->oracle->prices_empty_blocks;
    const bool is_cached = listing->tier == TIER_CACHED;
    uint64_t rows = table->num_embeddings;
    uint64_t block = (rows - 1) / n_ways + 1;
    uint64_t n_full = (rows - 1) / block + 1;
    uint64_t last = rows - (n_full - 1) * block;
    uint32_t n_blocks = has_empty ? n_ways : (uint32_t)n_full;
    struct sharding cut =
        listing_sharding(SHARDING_ROWS, listing->n_types, n_blocks * n_ranges);
    struct piece_type type = {.unit = unit,
                              .kind = n_ranges > 1 ? SHARD_GRID : SHARD_ROW,
                              .tier = listing->tier,
                              .width = table->dim / n_ranges,
                              .n_rows = block},
                      rest;
    uint8_t *types_of_blocks;

    if (target_rows_of(space->problem, table) == TARGET_ROWS_DEALT) {
        add_dealt_cut(listing, unit, n_ways, n_ranges, fills_host);
        return;
    }
    if (n_full < 2 || (is_cached && !target_caches_blocks(
                                        space->problem->target, table, n_ways)))
        return;
    cut.n_blocks = n_blocks;
    cut.n_ways = n_ways;
    cut.n_ranges = n_ranges;
    cut.fills_host = fills_host;
    if (fills_host && (has_empty || is_cached) && n_ranges == 1 &&
        block == (rows - 1) / space->n_devices + 1)
        type.first_device = n_ways;
    if (space->oracle->prices_even_rows &&
        !cut_may_pay(listing, unit, &type, cut.n_pieces))
        return;
    if (!add_alike(listing, &cut, type)) {
        cut.types_of_blocks = types_of_blocks =
            ARENA_NEW(&listing->arena, uint8_t, n_blocks);
        add_blocks(listing, type, types_of_blocks,
                   (uint32_t)n_full - (last < block));
        rest = type;
        rest.row_begin = rows - last;
        rest.n_rows = last;
        rest.block = rest.hottest = (uint32_t)n_full - 1;
        add_block(listing, &cut, rest, types_of_blocks + rest.block,
                  last < block);
        type.is_empty = true;
        add_block(listing, &cut, type, types_of_blocks + n_full,
                  n_blocks - n_full);
    }
    cut.last = listing->n_types - 1;
    listing_add_sharding(listing, cut);
}

/* Lists the row blocks of the current plan. Each block has its own piece type,
 * because the blocks may all be different. These blocks can stay without
 * migration. If the table has grown, a cut into equal blocks cannot stay
 * without migration. */
static void add_standing_cut(struct listing *listing, uint32_t unit)
{
    const struct search_space *space = listing->space;
    const struct unit *entry = &space->units[unit];
    const struct table_pieces *old =
        &space->current->standing[entry->tables[0]];
    struct sharding cut =
        listing_sharding(SHARDING_ROWS, listing->n_types, (uint32_t)old->n);

    if (!old->n || !(old->pieces[0].kind & entry->kinds) ||
        !shard_cuts_rows(old->pieces[0].kind))
        return;
    cut.n_blocks = cut.n_pieces;
    for (size_t i = 0; i < old->n; i++) {
        const struct shard *shard = &old->pieces[i];

        cut.last = listing_add_type(
            listing,
            (struct piece_type){.unit = unit,
                                .kind = shard->kind,
                                .width = shard->col_end - shard->col_begin,
                                .row_begin = shard->row_begin,
                                .n_rows = shard->row_end - shard->row_begin,
                                .col_begin = shard->col_begin,
                                .stands = true});
    }
    listing_add_sharding(listing, cut);
}

/* Returns whether any cut of rows into this number of column ranges may pay.
 * The test is made only for an oracle that knows hot rows (prices_even_rows is
 * false). It uses one block with all rows, because this block costs no more
 * than all blocks of a cut together. */
static bool rows_may_pay(struct listing *listing, uint32_t unit,
                         uint32_t n_ranges)
{
    const struct table *table = listing->space->units[unit].first;
    const struct piece_type all = {.unit = unit,
                                   .kind =
                                       n_ranges > 1 ? SHARD_GRID : SHARD_ROW,
                                   .tier = listing->tier,
                                   .width = table->dim / n_ranges,
                                   .n_rows = table->num_embeddings};

    return listing->space->oracle->prices_even_rows ||
           cut_may_pay(listing, unit, &all, n_ranges);
}

/* Lists cuts of rows over all devices, over the devices of one host, and over 2
 * to 8, 12, 16 ... devices. The number of column ranges of a grid is at most
 * the number of devices that the pieces of one block may use. A grid over the
 * ranks of a single host is listed only for tables that must be cut as a
 * grid. */
static void add_cuts(struct listing *listing, uint32_t unit, uint32_t n_ranges)
{
    const struct search_space *space = listing->space;
    const struct cluster *cluster = &space->problem->cluster;
    uint32_t n = cluster->n_devices, host = cluster_group(cluster);
    bool any = space->oracle->row_cut == ROW_CUT_ANY;
    bool is_sequence = space->units[unit].first->output == OUTPUT_SEQUENCE;
    bool over_all = target_rows_of(space->problem, space->units[unit].first) ==
                    TARGET_ROWS_ALL;
    bool is_forced = space->units[unit].kinds == SHARD_GRID;
    enum rows_over over =
        n_ranges == 1 ? space->units[unit].first->rows_over : ROWS_OVER_ANY;

    if (n < 2 || (!any && is_sequence && n_ranges > 1) ||
        !rows_may_pay(listing, unit, n_ranges))
        return;
    if ((any || n_ranges == 1 || (host >= n && is_forced)) &&
        (over != ROWS_OVER_HOST || host >= n))
        add_cut(listing, unit, n, n_ranges, false);
    if (host > 1 && host < n && (any || !is_sequence) && !over_all &&
        over != ROWS_OVER_ALL && n_ranges <= (any ? n : n / host))
        add_cut(listing, unit, host, n_ranges, !any);
    for (uint32_t ways = 2; any && over == ROWS_OVER_ANY && ways < n;
         ways += ways < 8 ? 1 : ways / (ways % 3 ? 2 : 3))
        if (ways != host)
            add_cut(listing, unit, ways, n_ranges, false);
}

void listing_add_row_cuts(struct listing *listing, uint32_t u)
{
    const struct search_space *space = listing->space;
    const struct unit *unit = &space->units[u];
    const uint32_t min_width = table_min_width(space->problem, unit->first);

    if (listing->kinds & SHARD_ROW)
        add_cuts(listing, u, 1);
    for (uint32_t n = 2; (listing->kinds & SHARD_GRID) && n <= MAX_RANGES &&
                         n <= space->n_devices &&
                         unit->first->dim % (n * TABLE_COLUMN_STEP) == 0 &&
                         unit->first->dim / n >= min_width;
         n *= 2)
        add_cuts(listing, u, n);
    if (space->current && space->oracle->row_cut == ROW_CUT_ANY)
        add_standing_cut(listing, u);
}
