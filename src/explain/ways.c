/* SPDX-License-Identifier: MIT */
#include "explain/ways.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "core/plan_price.h"
#include "explain/choices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Number of ways that are listed for moving the whole table, and again for
 * moving a single piece. */
#define N_BEST 3u
/* Number of pieces of a table that are tried on other GPUs. The pieces on the
 * GPUs that finish last are tried. */
#define N_PIECES_TRIED 8u
/* Largest number of GPUs or hosts on which a piece or a table is tried. */
#define N_GPUS_TRIED 256u
#define MAX_COLUMN_PIECES 16u
/* Largest number of GPUs that the name of a way lists. */
#define N_LISTED 4u

/* State of the search for ways to place a table, or all tables of its group.
 * The members `gone` to `now` describe the shards of these tables in the given
 * plan. */
struct way_finder {
    struct ways *ways;
    struct what_if *what_if;
    const struct problem *problem;
    struct arena *arena;
    struct choices choices; /* shardings of the tables */
    bool is_group;          /* there are several tables */
    /* [n_gone]: shards of the tables, as indices into plan->shards */
    size_t *gone;
    size_t n_gone;
    enum shard_kind now; /* kind of the shards in the given plan */
    unsigned tried;      /* mask of the shard kinds that were tried */
};

/* --- pricing a way --- */

/* Returns true if the edit removes and adds the same shards. Both are in the
 * order of shard_compare. */
static bool changes_nothing(const struct way_finder *finder,
                            const struct edit *edit)
{
    bool is_same = edit->n_gone == edit->n_come;

    for (size_t i = 0; is_same && i < edit->n_come; i++) {
        const struct shard *old = &finder->what_if->plan->shards[edit->gone[i]];
        const struct shard *new = &edit->come[i];

        is_same = !shard_compare(old, new) && old->row_end == new->row_end &&
                  old->col_end == new->col_end;
    }
    return is_same;
}

static void add_way(struct way_finder *finder, const char *name,
                    struct edit edit)
{
    struct ways *ways = finder->ways;
    struct way way = {.name = name, .total_ms = NAN, .change_ms = NAN};
    struct err err = {0};
    const struct shortage *lack = &err.shortage;
    char text[TEXT_BYTES_MAX];

    finder->tried |= edit.come->kind;
    if (changes_nothing(finder, &edit))
        return;
    assert(ways->n < MAX_WAYS);
    if (!plan_price_edit(&way.plan, finder->what_if, &edit, finder->arena,
                         &err)) {
        way.total_ms = way.plan.total_ms;
        way.change_ms = way.total_ms - finder->what_if->plan->total_ms;
        way.is_allowed = !plan_check(&way.plan, &err);
    }
    if (err.code == ERR_NO_PLAN)
        way.why_not = arena_printf(
            finder->arena, "GPU %u is %s short, mostly %s", lack->device,
            text_from_bytes(text,
                            (double)(lack->need_bytes - lack->have_bytes)),
            memory_item_names[memory_largest(
                &way.plan.devices[lack->device].memory)]);
    else if (err.code)
        way.why_not = arena_strdup(finder->arena, err.msg);
    ways->ways[ways->n++] = way;
}

/* --- finding the ways --- */

/* A candidate for a way, and its rough price. */
struct way_candidate {
    bool fits;
    double step_ms;
    /* index of a struct mover, of a choice, or of a shard of the plan */
    size_t option;
    uint32_t device;
};

static int compare_candidates(const void *left, const void *right)
{
    const struct way_candidate *a = left, *b = right;
    const double x[] = {!a->fits, a->step_ms, (double)a->option, a->device};
    const double y[] = {!b->fits, b->step_ms, (double)b->option, b->device};

    return ranked_compare_reals(x, y, 4);
}

static bool can_price(const struct way_finder *finder, unsigned kind)
{
    return (finder->what_if->oracle->kinds & kind) != 0;
}

/* Returns the edit that replaces all shards of the table (or of its group) by
 * the shards come[n]. */
static struct edit replace(const struct way_finder *finder, struct shard *come,
                           size_t n)
{
    return (struct edit){finder->gone, finder->n_gone, come, n};
}

/* Assigns the shards in turn to the n_devices devices that begin with device
 * `first`. */
static void set_devices(struct shard *shards, size_t n, uint32_t first,
                        uint32_t n_devices)
{
    for (uint32_t i = 0; i < n; i++)
        shards[i].device = first + i % n_devices;
}

/* Returns an array [R] of the devices in the arena, sorted by the compute time
 * that each device would have with the shards of the edit. Devices without
 * enough memory come last. A single call of what_if_step computes all these
 * compute times: it places the shards on all devices at once. */
static const struct way_candidate *rank_devices(const struct way_finder *finder,
                                                struct edit edit)
{
    const struct cluster *cluster = &finder->problem->cluster;
    const uint32_t n_devices = cluster->n_devices;
    const size_t n = edit.n_come;
    struct way_candidate *found =
        ARENA_NEW(finder->arena, struct way_candidate, n_devices);
    struct shard *come = ARENA_NEW(finder->arena, struct shard, n_devices * n);

    for (uint32_t r = 0; r < n_devices; r++) {
        memcpy(come + r * n, edit.come, n * sizeof(*come));
        set_devices(come + r * n, n, r, 1);
    }
    edit.come = come;
    edit.n_come = n_devices * n;
    what_if_step(finder->what_if, &edit);
    what_if_fits(finder->what_if, &edit);
    for (uint32_t r = 0; r < n_devices; r++)
        found[r] =
            (struct way_candidate){.fits = finder->what_if->edited_bytes[r] <=
                                           cluster->memory_bytes[r],
                                   .step_ms = finder->what_if->compute_ms[r],
                                   .device = r};
    qsort(found, n_devices, sizeof(*found), compare_candidates);
    return found;
}

/* Returns an array of the first devices of all places in the arena, sorted by
 * the compute time that each place would have with the shards of the edit on
 * each of its devices. The compute time of a place is that of its slowest
 * device. */
static const uint32_t *rank_places(const struct way_finder *finder,
                                   struct edit edit, uint32_t place_size)
{
    const uint32_t n_devices = finder->problem->cluster.n_devices;
    const struct way_candidate *order = rank_devices(finder, edit);
    uint32_t *places = ARENA_NEW(finder->arena, uint32_t, n_devices);
    uint32_t *n_ranked = ARENA_NEW(finder->arena, uint32_t, n_devices);

    for (uint32_t i = 0, n = 0; i < n_devices; i++) {
        const uint32_t first = order[i].device / place_size * place_size;

        if (++n_ranked[first] == place_size)
            places[n++] = first;
    }
    return places;
}

/* Shards that may move together from one place to another. A place is a device
 * or a host. The shards are either all tables of a group, each table whole, or
 * one piece, or row blocks. */
struct mover {
    /* edit that moves the shards; the devices in edit.come are not yet set */
    struct edit edit;
    /* first device of the place that is left out, because the shards are on it
     * already or may not be on it; NO_PLACE: no place is left out */
    uint32_t but;
    uint32_t place_size; /* number of devices of each place */
};

static const char *place_name(const struct way_finder *finder,
                              const struct mover *mover, uint32_t device)
{
    const struct shard *shard = mover->edit.come;
    uint64_t rows = finder->problem->tables[shard->table].num_embeddings;

    if (mover->place_size > 1)
        return arena_printf(finder->arena, "rows over GPUs %u-%u", device,
                            device + mover->place_size - 1);
    if (shard->kind == SHARD_TABLE)
        return arena_printf(finder->arena, "whole on GPU %u", device);
    if (shard->row_begin || shard->row_end != rows)
        return arena_printf(finder->arena, "row %llu, column %u on to GPU %u",
                            (unsigned long long)shard->row_begin,
                            shard->col_begin, device);
    return arena_printf(finder->arena, "columns %u-%u to GPU %u",
                        shard->col_begin, shard->col_end, device);
}

/* Adds the n_best ways among all places of the movers. Tries each mover on the
 * places with the least compute time after the move. The compute time of a host
 * is found with the first row block on each device. */
static void find_places(struct way_finder *finder, const struct mover *movers,
                        size_t n_movers, size_t n_best)
{
    const uint32_t n_devices = finder->problem->cluster.n_devices;
    struct way_candidate *found =
        ARENA_NEW(finder->arena, struct way_candidate, n_movers * N_GPUS_TRIED);
    size_t n_found = 0;

    for (size_t m = 0; m < n_movers; m++) {
        const struct mover *mover = &movers[m];
        const struct arena_mark mark = arena_mark(finder->arena);
        const size_t end = n_found + N_GPUS_TRIED;
        const uint32_t n = n_devices / mover->place_size;
        struct edit edit = mover->edit;
        const uint32_t *places;

        if (mover->place_size > 1)
            edit.n_come = 1;
        places = rank_places(finder, edit, mover->place_size);
        for (uint32_t i = 0; i < n && n_found < end; i++) {
            if (places[i] == mover->but)
                continue;
            set_devices(edit.come, mover->edit.n_come, places[i],
                        mover->place_size);
            found[n_found++] = (struct way_candidate){
                what_if_fits(finder->what_if, &mover->edit),
                what_if_step(finder->what_if, &mover->edit), m, places[i]};
        }
        arena_rewind(finder->arena, mark);
    }
    qsort(found, n_found, sizeof(*found), compare_candidates);
    for (size_t i = 0; i < n_found && i < n_best; i++) {
        const struct mover *mover = &movers[found[i].option];

        set_devices(mover->edit.come, mover->edit.n_come, found[i].device,
                    mover->place_size);
        add_way(finder, place_name(finder, mover, found[i].device),
                mover->edit);
    }
}

/* Finds ways that move one piece of a cut table to another GPU. Begins with the
 * pieces on the GPUs that finish last. */
static void find_moves(struct way_finder *finder)
{
    const struct plan *plan = finder->what_if->plan;
    struct way_candidate *chosen =
        ARENA_NEW(finder->arena, struct way_candidate, finder->n_gone);
    struct shard pieces[N_PIECES_TRIED];
    struct mover movers[N_PIECES_TRIED];
    bool is_tied = true;
    size_t n = 0;

    for (size_t i = 0; i < finder->n_gone; i++) {
        const struct shard *shard = &plan->shards[finder->gone[i]];
        const uint32_t r = shard->device;

        is_tied &= shard_cuts_rows(shard->kind) &&
                   shard_row_ranks(finder->problem, shard);
        chosen[i] =
            (struct way_candidate){.option = finder->gone[i],
                                   .step_ms = -plan->devices[r].compute_ms -
                                              plan->devices[r].bwd_comm_ms};
    }
    /* If rows are cut over all ranks or over the ranks of a host, a single row
     * block cannot move to another device. */
    if (is_tied ||
        !(shard_cuts_rows(finder->now) || shard_cuts_columns(finder->now)))
        return;
    qsort(chosen, finder->n_gone, sizeof(*chosen), compare_candidates);
    for (; n < N_PIECES_TRIED && n < finder->n_gone; n++) {
        pieces[n] = plan->shards[chosen[n].option];
        movers[n] = (struct mover){
            {&chosen[n].option, 1, &pieces[n], 1}, pieces[n].device, 1};
    }
    find_places(finder, movers, n, N_BEST);
}

/* --- the shardings of the search --- */

/* Finds ways for a choice whose shards are all on one place: whole tables on
 * the best GPUs, or row blocks over the best host. */
static void find_one_place(struct way_finder *finder,
                           const struct choice *choice)
{
    const bool is_whole = choice->kind == SHARD_TABLE;
    const bool is_now = is_whole && finder->now == SHARD_TABLE;
    const struct mover mover = {
        replace(finder, choice->shards, choice->n),
        is_now ? finder->what_if->plan->shards[finder->gone[0]].device
               : choice->but,
        choice->place_size};

    find_places(finder, &mover, 1, is_whole ? N_BEST : 1);
}

/* Returns the edit that gives the choice to the table. Puts places that may be
 * anywhere on those with the least compute time after the change. The result
 * lives in the arena. */
static struct edit place_choice(const struct way_finder *finder,
                                const struct choice *choice)
{
    struct shard *come = ARENA_NEW(finder->arena, struct shard, choice->n);
    const struct arena_mark mark = arena_mark(finder->arena);
    const uint32_t size = choice->place_size;
    const uint32_t *places;

    memcpy(come, choice->shards, choice->n * sizeof(*come));
    if (choice->is_fixed)
        return replace(finder, come, choice->n);
    places = rank_places(finder, replace(finder, come, 1), size);
    for (size_t i = 0; i < choice->n; i++) {
        const uint32_t slot = choice->shards[i].device;

        come[i].device = places[slot / size] + slot % size;
    }
    arena_rewind(finder->arena, mark);
    return replace(finder, come, choice->n);
}

static const char *choice_name(const struct way_finder *finder,
                               const struct choice *choice,
                               const struct edit *edit)
{
    const size_t n = edit->n_come;
    const char *gpus = n > N_LISTED ? " ..." : "";

    if (choice->kind == SHARD_REPLICATE)
        return "replicated";
    if (choice->kind == SHARD_ROW && choice->is_fixed)
        return arena_printf(finder->arena, "rows over all %u GPUs",
                            finder->problem->cluster.n_devices);
    for (size_t i = min_u64(n, N_LISTED); i-- > 0;)
        gpus = arena_printf(finder->arena, " %u%s", edit->come[i].device, gpus);
    if (choice->kind == SHARD_GRID)
        return arena_printf(finder->arena, "%u x %u grid on GPUs%s",
                            choice->n_blocks, choice->n_ranges, gpus);
    return arena_printf(
        finder->arena, "%zu %s on GPUs%s", n,
        choice->kind == SHARD_ROW ? "row blocks" : "column pieces", gpus);
}

static void add_choice(struct way_finder *finder, const struct choice *choice)
{
    const struct edit edit = place_choice(finder, choice);

    add_way(finder, choice_name(finder, choice, &edit), edit);
}

/* Returns true if the choice is listed whatever it costs: 2, 4, 8 or 16 column
 * pieces, rows over all GPUs, or replicas. */
static bool is_usual(const struct choice *choice)
{
    const size_t n = choice->n;

    if (choice->kind == SHARD_COLUMN)
        return n <= MAX_COLUMN_PIECES && !(n & (n - 1));
    return choice->is_fixed && choice->kind != SHARD_GRID;
}

/* Finds ways with shards of this kind: all usual choices, and the cheapest of
 * the others. */
static void find_kind(struct way_finder *finder, enum shard_kind kind)
{
    const struct choices *choices = &finder->choices;
    struct way_candidate best = {.option = SIZE_MAX, .step_ms = INFINITY};

    for (size_t i = 0; i < choices->n; i++) {
        const struct choice *choice = &choices->choices[i];
        const struct arena_mark mark = arena_mark(finder->arena);
        struct way_candidate candidate = {.option = i};
        struct edit edit;

        if (choice->kind != kind)
            continue;
        if (choice->n_places == 1 && !choice->is_fixed) {
            find_one_place(finder, choice);
        } else if (is_usual(choice)) {
            add_choice(finder, choice);
        } else {
            edit = place_choice(finder, choice);
            candidate.fits = what_if_fits(finder->what_if, &edit);
            candidate.step_ms = what_if_step(finder->what_if, &edit);
            if (!changes_nothing(finder, &edit) &&
                compare_candidates(&candidate, &best) < 0)
                best = candidate;
            arena_rewind(finder->arena, mark);
        }
    }
    if (best.option != SIZE_MAX)
        add_choice(finder, &choices->choices[best.option]);
}

/* Adds an entry such as "not in rows" for each shard kind without a way, with
 * the reason why there is no way. */
static void tell_untried(struct way_finder *finder)
{
    static const struct {
        enum shard_kind kind;
        const char *name, *why_not;
    } kinds[] = {
        {SHARD_TABLE, "not whole", "there is no other GPU"},
        {SHARD_COLUMN, "not in columns", "no piece may be as narrow"},
        {SHARD_ROW, "not in rows", "there are not two rows and two GPUs"},
        {SHARD_GRID, "not in a grid", "the search has no grid for it"},
        {SHARD_REPLICATE, "not replicated", "there is no other GPU"},
    };

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct way way = {.name = kinds[k].name,
                          .total_ms = NAN,
                          .change_ms = NAN,
                          .why_not = kinds[k].why_not};

        if (kinds[k].kind == finder->now || (finder->tried & kinds[k].kind))
            continue;
        if (!can_price(finder, kinds[k].kind))
            way.why_not = "the cost model has no price for it";
        else if (finder->is_group && kinds[k].kind != SHARD_TABLE)
            way.why_not = "the tables of a group stay whole";
        finder->ways->ways[finder->ways->n + finder->ways->n_untried++] = way;
    }
}

void ways_find(struct ways *ways, struct what_if *what_if, uint32_t table,
               struct arena *arena)
{
    const struct plan *plan = what_if->plan;
    const struct problem *problem = &plan->problem;
    struct way_finder finder = {.ways = ways,
                                .what_if = what_if,
                                .problem = problem,
                                .arena = arena,
                                .gone =
                                    ARENA_NEW(arena, size_t, plan->n_shards)};
    struct edit without;

    *ways = (struct ways){.table = table};
    for (uint32_t t = 0; t < problem->n_tables; t++)
        finder.is_group |= t != table && tables_share_group(problem, table, t);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (tables_share_group(problem, table, plan->shards[i].table))
            finder.gone[finder.n_gone++] = i;
    finder.now = plan->shards[finder.gone[0]].kind;
    choices_find(&finder.choices, plan, what_if->oracle, table, arena);
    without = replace(&finder, NULL, 0);
    ways->without_ms = what_if_step(what_if, &without);
    find_kind(&finder, SHARD_TABLE);
    if (!finder.is_group)
        find_moves(&finder);
    find_kind(&finder, SHARD_COLUMN);
    find_kind(&finder, SHARD_ROW);
    find_kind(&finder, SHARD_GRID);
    find_kind(&finder, SHARD_REPLICATE);
    tell_untried(&finder);
}

const struct way *ways_best(const struct ways *ways)
{
    const struct way *best = NULL;

    for (size_t i = 0; i < ways->n; i++)
        if (ways->ways[i].is_allowed &&
            (!best || ways->ways[i].total_ms < best->total_ms))
            best = &ways->ways[i];
    return best;
}
