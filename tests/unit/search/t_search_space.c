/* SPDX-License-Identifier: MIT */
/* For any problem, each sharding cuts its unit without gaps and overlaps, and
 * its figures equal those of its pieces. */
#include "core/memory.h"
#include "search/space_init.h"

#include "core/cluster.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define MAX_PIECES 256

struct tally {
    unsigned n_shardings[4], n_stand_open, n_host, n_sorts;
    unsigned n_torn, n_figure, n_bytes, n_cost, n_width, n_device, n_movable;
    unsigned n_now, n_undrawn, n_rare, n_empty, n_odd, n_later, n_short;
};

/* True if the piece type belongs to this sharding. For pieces of columns,
 * space_sharding_of must return the unit's first column sharding. */
static bool is_sharding_of(const struct search_space *space, uint32_t type,
                           const struct sharding *sharding)
{
    const struct sharding *of = space_sharding_of(space, type);

    if (sharding->kind != SHARDING_COLUMNS)
        return of == sharding;
    return of->kind == SHARDING_COLUMNS &&
           (of == space->units[space->types[type].unit].shardings ||
            of[-1].kind != SHARDING_COLUMNS);
}

static bool differ(double a, double b)
{
    return !(fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)));
}

/* Lists the pieces as shards of the unit's first table. Columns follow one
 * another. */
static void list_shards(struct shard *shards, const struct search_space *space,
                        uint32_t unit, const struct sharding *sharding)
{
    uint32_t col_begin = 0;

    for (uint32_t i = 0; i < sharding->n_pieces; i++) {
        const struct change piece = sharding_piece(space, sharding, i);
        const struct piece_type *type = &space->types[piece.type];

        shards[i] = space_shard(space, type, space->units[unit].tables[0]);
        if (sharding->kind == SHARDING_ROWS) {
            type_place_block(&shards[i], type, piece.range, piece.block);
            if (type->is_empty)
                shards[i].row_begin = shards[i].row_end =
                    space->units[unit].first->num_embeddings;
        } else if (sharding->kind == SHARDING_COLUMNS) {
            shards[i].col_begin = col_begin;
            shards[i].col_end = col_begin += type->width;
        }
    }
}

static bool overlap(const struct shard *a, const struct shard *b)
{
    return a->row_begin < b->row_end && b->row_begin < a->row_end &&
           a->col_begin < b->col_end && b->col_begin < a->col_end;
}

/* Returns false if the shards cover each cell of the table exactly once, or if
 * each replica covers all cells. */
static bool is_torn(const struct shard *shards, uint32_t n,
                    const struct table *table)
{
    const double all = (double)table->num_embeddings * table->dim;
    double sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const double cells = (double)(shards[i].row_end - shards[i].row_begin) *
                             (shards[i].col_end - shards[i].col_begin);

        if (shards[i].row_end > table->num_embeddings ||
            shards[i].col_end > table->dim ||
            (shards[i].kind == SHARD_REPLICATE && differ(cells, all)))
            return true;
        sum += shards[i].kind == SHARD_REPLICATE ? cells / n : cells;
        for (uint32_t k = 0; k < i && shards[i].kind != SHARD_REPLICATE; k++)
            if (overlap(&shards[i], &shards[k]))
                return true;
    }
    return differ(sum, all);
}

/* True if the device of the piece is given whenever the sharding leaves no
 * choice. */
static bool is_right_device(const struct search_space *space, uint32_t unit,
                            const struct sharding *sharding, uint32_t i)
{
    const int64_t pin = space->units[unit].pin;
    const struct change piece = sharding_piece(space, sharding, i);
    uint32_t want = NO_PIECE;

    if (sharding->kind == SHARDING_REPLICA)
        want = i;
    else if (sharding->kind == SHARDING_ROWS && !sharding->fills_host &&
             space->oracle->row_cut != ROW_CUT_ANY)
        want = piece.block;
    else if (pin >= 0)
        want = (uint32_t)pin;
    else if (space->n_devices == 1)
        want = 0;
    return piece.device == want;
}

/* If the oracle prices ranks without rows like the others, each such rank has
 * an empty block. A cut over one host that would be read as a cut over all
 * ranks is not offered on the first host. */
static void check_ranks(const struct search_space *space,
                        const struct unit *unit,
                        const struct sharding *sharding, struct tally *tally)
{
    const struct cluster *cluster = &space->problem->cluster;
    const bool is_full = sharding->n_blocks == cluster->n_devices ||
                         sharding->n_blocks == cluster->devices_per_host;

    if (sharding->kind != SHARDING_ROWS ||
        space->oracle->row_cut == ROW_CUT_ANY)
        return;
    if (!space->oracle->prices_empty_blocks) {
        tally->n_short += !is_full;
        return;
    }
    tally->n_odd += !is_full;
    for (uint32_t p = sharding->type; p <= sharding->last; p++)
        tally->n_empty += space->types[p].is_empty;
    if (sharding->fills_host && sharding->n_ranges == 1) {
        const struct piece_type *type = &space->types[sharding->type];
        struct shard first = space_shard(space, type, unit->tables[0]);
        const uint32_t n = sharding->n_blocks;

        type_place_block(&first, type, 0, 0);
        first.device = space->types[sharding->type].first_device;
        tally->n_odd += shard_row_ranks(space->problem, &first) != n;
        first.device = 0;
        tally->n_odd += (shard_row_ranks(space->problem, &first) == n) !=
                        (space->types[sharding->type].first_device == 0);
        tally->n_later += space->types[sharding->type].first_device > 0;
    }
}

/* True if the bytes of a sharding do not match those of its pieces. A row cut
 * may have up to three bytes per piece and a millionth less, but never more. */
static bool is_off(double bytes, const struct sharding *sharding)
{
    if (sharding->kind != SHARDING_ROWS)
        return differ(bytes, sharding->bytes);
    return sharding->bytes > bytes ||
           sharding->bytes < bytes * (1 - 2e-6) - 6.0 * sharding->n_pieces;
}

static void check_sharding(const struct search_space *space, uint32_t unit,
                           const struct sharding *sharding, struct tally *tally)
{
    const struct unit *entry = &space->units[unit];
    struct shard shards[MAX_PIECES];
    double ms = 0, bytes = 0, peak_ms = 0;
    uint64_t peak_bytes = 0;

    list_shards(shards, space, unit, sharding);
    tally->n_shardings[sharding->kind]++;
    tally->n_torn += is_torn(shards, sharding->n_pieces, entry->first);
    for (uint32_t i = 0; i < sharding->n_pieces; i++) {
        const uint32_t p = sharding_piece(space, sharding, i).type;
        const struct piece_type *type = &space->types[p];
        const uint64_t all_bytes =
            type->is_empty ? 0 : shard_memory(space->problem, &shards[i]).total;

        ms += space->standalone_ms[p];
        bytes += entry->n_tables == 1 && sharding->kind == SHARDING_ROWS
                     ? (double)all_bytes
                     : (double)type->bytes;
        peak_ms = fmax(peak_ms, space->standalone_ms[p]);
        peak_bytes = type->bytes > peak_bytes ? type->bytes : peak_bytes;
        /* a piece type of blocks counts the bytes of its hottest block */
        tally->n_bytes +=
            entry->n_tables == 1 &&
            (shard_cuts_rows(type->kind) ? type->bytes < all_bytes
                                         : type->bytes != all_bytes);
        tally->n_device += !is_right_device(space, unit, sharding, i);
        tally->n_movable +=
            space_can_move(space, p) !=
            (sharding->kind != SHARDING_REPLICA && entry->pin < 0 &&
             (sharding->kind != SHARDING_ROWS ||
              space->oracle->row_cut == ROW_CUT_ANY));
        tally->n_figure += !(type->kind & entry->kinds) || type->unit != unit ||
                           !is_sharding_of(space, p, sharding) ||
                           shards[i].kind != type->kind;
    }
    tally->n_figure +=
        differ(ms, sharding->load_ms) || is_off(bytes, sharding) ||
        differ(peak_ms, sharding->peak_ms) ||
        peak_bytes != sharding->peak_bytes ||
        (sharding->kind == SHARDING_ROWS &&
         sharding->n_pieces != sharding->n_blocks * sharding->n_ranges);
    check_ranks(space, entry, sharding, tally);
    tally->n_host += sharding->fills_host;
    tally->n_sorts += sharding->last - sharding->type > 1;
}

/* Cost and bytes of a piece type must equal those of its tables. */
static void check_part(const struct search_space *space,
                       const struct piece_type *type, struct tally *tally)
{
    const struct unit *unit = &space->units[type->unit];
    const double *vector =
        space->vectors + (type - space->types) * RANDOM_WIDTH;
    double sum[RANDOM_WIDTH] = {0}, room[RANDOM_WIDTH];
    uint64_t least = 0;

    for (uint32_t t = 0; t < unit->n_tables; t++) {
        const struct shard shard = space_shard(space, type, unit->tables[t]);

        space->oracle->ops->embed(space->oracle, &shard, 1, room);
        tally->n_device += shard.device >= space->n_devices;
        least +=
            type->is_empty ? 0 : shard_memory(space->problem, &shard).total;
        for (unsigned w = 0; w < RANDOM_WIDTH; w++)
            sum[w] += room[w];
    }
    for (unsigned w = 0; w < RANDOM_WIDTH; w++)
        tally->n_cost += differ(sum[w], vector[w]);
    tally->n_cost += space->standalone_ms[type - space->types] !=
                     space_standalone_ms(space->oracle, vector);
    tally->n_bytes += !shard_cuts_rows(type->kind) || type->is_empty
                          ? type->bytes != least
                          : type->bytes < least;
}

/* For each width there is the piece type of that width, or none. */
static void check_widths(const struct search_space *space, uint32_t unit,
                         struct tally *tally)
{
    const struct unit *entry = &space->units[unit];
    const uint32_t dim = entry->first->dim;

    for (uint32_t width = 1; width <= dim; width++) {
        const uint32_t p = space_type_of_width(space, unit, width, TIER_HBM);
        const bool is_cut = entry->columns[TIER_HBM] != NO_TYPE &&
                            width < dim && width % entry->width_step == 0;

        tally->n_width +=
            (p != NO_TYPE) !=
            (is_cut || (width == dim && entry->whole[TIER_HBM] != NO_TYPE));
        if (p == NO_TYPE)
            continue;
        tally->n_width +=
            space->types[p].width != width || space->types[p].unit != unit ||
            space->types[p].kind != (is_cut ? SHARD_COLUMN : SHARD_TABLE);
        tally->n_width +=
            is_cut &&
            (space_joined_type(space, p, p) !=
                 space_type_of_width(space, unit, 2 * width, TIER_HBM) ||
             width < problem_min_width(space->problem) ||
             space_width_steps(space, p) != width / entry->width_step);
    }
}

/* Each piece belongs to the sharding it was made for. All shardings are drawn;
 * whole and replica have a probability of at least a quarter each. */
static void check_shardings(const struct search_space *space, uint32_t unit,
                            struct rng *rng, struct tally *tally)
{
    const struct unit *entry = &space->units[unit];
    const uint32_t n = 40 * entry->n_shardings;
    /* even column cuts: 2, 3, ... up to the number of devices */
    uint32_t n_even = 0;
    unsigned *n_drawn = mem_alloc(entry->n_shardings, sizeof(*n_drawn));

    for (uint32_t f = 0; f < entry->n_shardings; f++) {
        n_drawn[f] = 0;
        for (uint32_t i = 0; i < entry->shardings[f].n_pieces; i++)
            tally->n_now += !is_sharding_of(
                space, sharding_piece(space, &entry->shardings[f], i).type,
                &entry->shardings[f]);
    }
    for (uint32_t i = 0; i < n; i++)
        n_drawn[sharding_draw(space, unit, rng) - entry->shardings]++;
    for (uint32_t f = 0; f < entry->n_shardings; f++) {
        n_even += entry->shardings[f].kind == SHARDING_COLUMNS;
        tally->n_undrawn += !n_drawn[f];
        tally->n_rare += (entry->shardings[f].kind == SHARDING_WHOLE ||
                          entry->shardings[f].kind == SHARDING_REPLICA) &&
                         n_drawn[f] < n / 6;
    }
    if (entry->columns[TIER_HBM] != NO_TYPE && entry->device == NO_PIECE)
        tally->n_undrawn +=
            n_even + 1 != (entry->n_width_steps < space->n_devices
                               ? entry->n_width_steps
                               : space->n_devices);
    mem_free(n_drawn);
}

/* Turns tables into tables of five rows, to be cut over up to six ranks, with
 * and without other ways to place them. */
static void add_few_rows(struct problem *problem)
{
    static const unsigned kinds[] = {SHARD_ROW, SHARD_ROW | SHARD_COLUMN,
                                     SHARD_ROW | SHARD_REPLICATE};

    for (size_t t = 1; t <= 3 && problem->n_tables > 5; t++) {
        struct table *table = &problem->tables[problem->n_tables - t];

        table->num_embeddings = 5;
        table->dim = 16;
        table->kinds = kinds[t - 1];
    }
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 81, seed);
    fake_random(&problem, &rng, 2, &arena);
    problem.min_width = seed % 5 == 0 ? 16 : 0;
    if (problem.cluster.n_devices % 2 == 0)
        problem.cluster.devices_per_host = 2;
    problem.tables[0].device = seed % 3 ? -1 : 0;
    if (seed % 4 == 0 && problem.n_tables > 2)
        problem.tables[1].group = problem.tables[2].group = "pair";
    if (problem.cluster.n_devices > 1)
        add_few_rows(&problem);
    random_oracle_init(&oracle, &problem, &rng);
    oracle.base.row_cut = seed % 2 ? ROW_CUT_RANKS : ROW_CUT_ANY;
    oracle.base.prices_empty_blocks = seed % 4 == 1;
    oracle.base.prices_even_rows = seed % 7 == 0;
    if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err))
        ok(0, "parts: %s", err.msg);
    for (uint32_t u = 0; u < space.n_units; u++) {
        for (uint32_t f = 0; f < space.units[u].n_shardings; f++)
            check_sharding(&space, u, &space.units[u].shardings[f], tally);
        check_widths(&space, u, tally);
        check_shardings(&space, u, &rng, tally);
    }
    for (uint32_t p = 0; p < space.n_types; p++)
        check_part(&space, &space.types[p], tally);
    arena_release(&arena);
}

/* The width step is four columns. For a wide table it is the smallest step that
 * leaves at most 64 widths. */
static void check_width_steps(void)
{
    const uint64_t rows[] = {10, 10, 10, 10, 10};
    const uint32_t dims[] = {8, 256, 1024, 1032, 4096};
    const uint32_t want[] = {4, 4, 16, 24, 64};
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 82, 0);
    fake_problem(&problem, rows, dims, 5, 2, UINT64_C(1) << 30, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    ok(!space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err),
       "wide tables: %s", err.msg);
    for (uint32_t u = 0; u < space.n_units; u++)
        is_i64(space.units[u].width_step, want[space.units[u].tables[0]],
               "columns that a width is a multiple of");
    arena_release(&arena);
}

/* Makes the search space of n small tables and a large one. Returns the number
 * of units with columns. Sets *is_large if the large one is among them. */
static uint32_t with_columns(uint32_t n, bool *is_large, uint32_t *n_types)
{
    uint64_t *rows = mem_alloc(n + 1, sizeof(*rows));
    uint32_t *dims = mem_alloc(n + 1, sizeof(*dims)), n_found = 0;
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    for (uint32_t t = 0; t <= n; t++) {
        rows[t] = t < n ? 10 : 100000000;
        dims[t] = t % 2 ? 8 : 12;
    }
    rng_init(&rng, 83, 0);
    fake_problem(&problem, rows, dims, n + 1, 2, UINT64_C(1) << 34, &arena);
    problem.kinds = SHARD_TABLE | SHARD_COLUMN;
    random_oracle_init(&oracle, &problem, &rng);
    ok(!space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err),
       "%u tables: %s", n + 1, err.msg);
    *n_types = space.n_types;
    *is_large = false;
    for (uint32_t u = 0; u < space.n_units; u++) {
        const bool has = space.units[u].columns[TIER_HBM] != NO_TYPE;

        n_found += has;
        *is_large |= has && space.units[u].tables[0] == n;
    }
    arena_release(&arena);
    mem_free(rows);
    mem_free(dims);
    return n_found;
}

/* Small tables of a list above 50,000 units keep their columns together, so
 * that each has one piece type. Large ones may be cut. */
static void check_very_long(void)
{
    uint32_t n_types;
    bool is_large;

    is_i64(with_columns(49999, &is_large, &n_types), 50000,
           "50,000 tables may be cut by columns");
    ok(n_types > 2 * 50000, "%u piece types", n_types);
    is_i64(with_columns(50000, &is_large, &n_types), 1, "of 50,001 only one");
    ok(is_large, "the large one");
    ok(n_types < 50001 * 1.01, "%u piece types", n_types);
}

int main(void)
{
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < 20 + tap_size(20, 1000); seed++)
        try_problem(seed, &tally);
    ok(tally.n_shardings[SHARDING_WHOLE] &&
           tally.n_shardings[SHARDING_COLUMNS] &&
           tally.n_shardings[SHARDING_REPLICA] &&
           tally.n_shardings[SHARDING_ROWS] && tally.n_host && tally.n_sorts,
       "shardings: %u whole, %u columns, %u replicas, %u cuts; %u fill a host, "
       "%u have several piece types",
       tally.n_shardings[SHARDING_WHOLE], tally.n_shardings[SHARDING_COLUMNS],
       tally.n_shardings[SHARDING_REPLICA], tally.n_shardings[SHARDING_ROWS],
       tally.n_host, tally.n_sorts);
    is_i64(tally.n_torn, 0, "pieces cover their table and do not overlap");
    is_i64(tally.n_figure, 0,
           "the figures of a sharding equal those of its pieces");
    is_i64(tally.n_bytes, 0, "bytes of pieces match the memory model");
    is_i64(tally.n_cost, 0, "costs of pieces match the oracle");
    is_i64(tally.n_device, 0, "devices are given if there is no choice");
    is_i64(tally.n_movable, 0, "and such pieces do not move");
    ok(tally.n_empty && tally.n_short && tally.n_later,
       "%u blocks have no rows; %u cuts have none for some ranks, %u none on "
       "the first host",
       tally.n_empty, tally.n_short, tally.n_later);
    is_i64(tally.n_odd, 0, "the oracle sees the same number of blocks");
    is_i64(tally.n_width, 0, "each width has its piece type, or none");
    is_i64(tally.n_now, 0, "a piece is of the form that it was put in");
    is_i64(tally.n_undrawn, 0, "each form is drawn");
    is_i64(tally.n_rare, 0, "whole and replica often");
    check_width_steps();
    check_very_long();
    return tap_done();
}
