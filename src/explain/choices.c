/* SPDX-License-Identifier: MIT */
#include "explain/choices.h"

#include "core/cluster.h"
#include "search/space_init.h"
#include "search/to_plan.h"

/* A search space of one unit. */
struct alone {
    struct search_space space;
    struct problem problem; /* tables of the unit only */
    struct oracle oracle;   /* prices nothing */
    uint32_t *tables;       /* [problem.n_tables], indices into the plan */
    struct arena arena;     /* owned; holds the arrays of this struct */
};

/* Returns the tier of a table in the plan. */
static enum tier tier_of(const struct plan *plan, uint32_t table)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].table == table)
            return plan->shards[i].tier;
    return TIER_HBM;
}

/* Makes the problem that has only the tables of the unit, without their
 * constraints, but each in the tier that it has in the plan. A group of one
 * table is cut like a table without a group. */
static void take_tables(struct alone *alone, const struct plan *plan,
                        uint32_t table)
{
    const struct problem *problem = &plan->problem;
    const size_t n = problem->n_tables;
    struct problem *own = &alone->problem;
    struct hot_rows *hot = ARENA_NEW(&alone->arena, struct hot_rows, n);

    *own = *problem;
    own->tables = ARENA_NEW(&alone->arena, struct table, n);
    own->hot = problem->hot ? hot : NULL;
    own->kinds = SHARD_ALL_KINDS;
    own->n_tables = 0;
    alone->tables = ARENA_NEW(&alone->arena, uint32_t, n);
    for (uint32_t t = 0; t < n; t++) {
        struct table *copy = &own->tables[own->n_tables];

        if (!tables_share_group(problem, table, t))
            continue;
        *copy = problem->tables[t];
        copy->kinds = SHARD_ALL_KINDS;
        copy->rows_over = ROWS_OVER_ANY;
        copy->device = -1;
        copy->tiers = 1u << tier_of(plan, t);
        if (problem->hot)
            hot[own->n_tables] = problem->hot[t];
        alone->tables[own->n_tables++] = t;
    }
    if (own->n_tables == 1)
        own->tables[0].group = NULL;
}

/* Fills the search space of the unit. Returns false if the unit has no
 * sharding. */
static bool alone_init(struct alone *alone, const struct plan *plan,
                       const struct oracle *oracle, uint32_t table)
{
    static const struct oracle_ops no_prices = {0};
    struct err err = {0};

    *alone = (struct alone){.oracle = *oracle};
    take_tables(alone, plan, table);
    alone->oracle.ops = &no_prices;
    alone->oracle.problem = &alone->problem;
    alone->oracle.row_cut = plan_row_cut(plan);
    return !space_init(&alone->space, &alone->problem, &alone->oracle, NULL,
                       NULL, &alone->arena, &err);
}

/* Sets the places of a choice: each piece on a given device, each range on any
 * host, or each piece on any device. */
static void set_places(struct choice *choice, const struct alone *alone,
                       const struct sharding *sharding)
{
    const struct cluster *cluster = &alone->problem.cluster;
    const uint32_t n = cluster->n_devices, host = cluster_group(cluster);
    const bool is_row = choice->kind == SHARD_ROW;
    const bool on_host = sharding->fills_host ||
                         (is_row && sharding->n_ways == host && host < n);

    /* if there is only one device, each piece has it, but the whole table is a
     * place like any other */
    choice->is_fixed =
        (is_row && sharding->n_ways == n) ||
        (n > 1 &&
         sharding_piece(&alone->space, sharding, 0).device != NO_PIECE);
    choice->place_size = on_host ? host : 1;
    choice->n_places = on_host ? sharding->n_ranges : sharding->n_pieces;
    if (on_host && alone->space.types[sharding->type].first_device)
        choice->but = 0;
}

/* Returns the pieces of a sharding that have rows, each on its slot. Sets *n to
 * their number. */
static struct change *list_pieces(uint32_t *n, const struct alone *alone,
                                  const struct sharding *sharding,
                                  const struct choice *choice)
{
    struct change *pieces = mem_alloc(sharding->n_pieces, sizeof(*pieces));

    *n = 0;
    for (uint32_t i = 0; i < sharding->n_pieces; i++) {
        struct change piece = sharding_piece(&alone->space, sharding, i);

        if (alone->space.types[piece.type].is_empty)
            continue;
        if (choice->place_size > 1)
            piece.device = piece.range * choice->place_size + piece.block;
        else if (piece.device == NO_PIECE || !choice->is_fixed)
            piece.device = i % alone->space.n_devices;
        pieces[(*n)++] = piece;
    }
    return pieces;
}

static struct choice make_choice(const struct alone *alone,
                                 const struct sharding *sharding,
                                 struct arena *arena)
{
    const size_t n_tables = alone->problem.n_tables;
    struct choice choice = {
        .kind = alone->space.types[sharding->type].kind,
        .n_blocks = sharding->n_blocks,
        .n_ranges = sharding->n_ranges,
        .but = NO_PLACE,
    };
    struct change *pieces;
    uint32_t n;

    set_places(&choice, alone, sharding);
    pieces = list_pieces(&n, alone, sharding, &choice);
    choice.shards = ARENA_NEW(arena, struct shard, n * n_tables);
    for (uint32_t t = 0; t < n_tables; t++) {
        pieces_to_shards(choice.shards + choice.n, &alone->space, t, pieces, n);
        for (uint32_t i = 0; i < n; i++)
            choice.shards[choice.n++].table = alone->tables[t];
    }
    mem_free(pieces);
    return choice;
}

void choices_find(struct choices *choices, const struct plan *plan,
                  const struct oracle *oracle, uint32_t table,
                  struct arena *arena)
{
    struct alone alone;

    *choices = (struct choices){0};
    if (alone_init(&alone, plan, oracle, table)) {
        const struct unit *unit = alone.space.units;

        choices->choices = ARENA_NEW(arena, struct choice, unit->n_shardings);
        for (uint32_t i = 0; i < unit->n_shardings; i++)
            choices->choices[choices->n++] =
                make_choice(&alone, &unit->shardings[i], arena);
    }
    arena_release(&alone.arena);
}
