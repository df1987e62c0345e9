/* SPDX-License-Identifier: MIT */
#include "explain/ways.h"

#include "base/ranked.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "core/plan_price.h"

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
 * The members `whole` to `now` describe these tables and their shards in the
 * given plan. */
struct way_finder {
    struct ways *ways;
    struct what_if *what_if;
    const struct problem *problem;
    struct arena *arena;
    struct shard *whole; /* [n_tables]: each of the tables as one whole piece */
    size_t n_tables;
    /* [n_gone]: shards of the tables in the given plan, as indices into
     * plan->shards */
    size_t *gone;
    size_t n_gone;
    enum shard_kind now; /* kind of the shards in the given plan */
    unsigned tried;      /* mask of the shard kinds that were tried */
};

/* --- pricing a way --- */

static bool is_same_set(const struct plan *a, const struct plan *b)
{
    bool is_same = a->n_shards == b->n_shards;

    for (size_t i = 0; is_same && i < a->n_shards; i++) {
        const struct shard *p = &a->shards[i], *q = &b->shards[i];

        is_same = !shard_compare(p, q) && p->row_end == q->row_end &&
                  p->col_end == q->col_end;
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

    if (ways->n == MAX_WAYS)
        return;
    finder->tried |= edit.come->kind;
    if (!plan_price_edit(&way.plan, finder->what_if, &edit, finder->arena,
                         &err)) {
        if (is_same_set(&way.plan, finder->what_if->plan))
            return;
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
    /* index of a struct mover, or index of a shard of the plan */
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
static struct edit cut(const struct way_finder *finder, struct shard *come,
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

/* Shards that may move together from one place to another. A place is a device
 * or a host. The shards are either all tables of a group, each table whole, or
 * one piece, or row blocks. */
struct mover {
    /* edit that moves the shards; the devices in edit.come are not yet set */
    struct edit edit;
    /* place that is left out, because the shards are on it already; UINT32_MAX:
     * no place */
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
 * is the compute time of its slowest device, with one row block on each
 * device. */
static void find_places(struct way_finder *finder, const struct mover *movers,
                        size_t n_movers, size_t n_best)
{
    uint32_t n_devices = finder->problem->cluster.n_devices;
    struct way_candidate *found =
        ARENA_NEW(finder->arena, struct way_candidate, n_movers * N_GPUS_TRIED);
    size_t n_found = 0;

    for (size_t m = 0; m < n_movers; m++) {
        const struct mover *mover = &movers[m];
        const uint32_t n_of = mover->place_size;
        uint32_t *n_ranked = ARENA_NEW(finder->arena, uint32_t, n_devices);
        struct edit edit = mover->edit;
        const struct way_candidate *order;
        size_t end = n_found + N_GPUS_TRIED;

        if (n_of > 1)
            edit.n_come = 1;
        order = rank_devices(finder, edit);
        for (uint32_t i = 0; i < n_devices && n_found < end; i++) {
            uint32_t first = order[i].device / n_of * n_of;

            if (first == mover->but || ++n_ranked[first] < n_of)
                continue;
            set_devices(edit.come, mover->edit.n_come, first, n_of);
            found[n_found++] = (struct way_candidate){
                what_if_fits(finder->what_if, &mover->edit),
                what_if_step(finder->what_if, &mover->edit), m, first};
        }
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

static void find_whole(struct way_finder *finder)
{
    const struct plan *plan = finder->what_if->plan;
    const struct mover mover = {cut(finder, finder->whole, finder->n_tables),
                                finder->now == SHARD_TABLE
                                    ? plan->shards[finder->gone[0]].device
                                    : UINT32_MAX,
                                1};

    if (can_price(finder, SHARD_TABLE))
        find_places(finder, &mover, 1, N_BEST);
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

/* Finds ways that cut the table into column pieces of equal, allowed width.
 * Places the pieces on the devices with the least compute time after the
 * change. */
static void find_columns(struct way_finder *finder)
{
    const struct table *table = &finder->problem->tables[finder->ways->table];
    uint32_t n_width_steps = table->dim / TABLE_COLUMN_STEP;
    uint32_t n = finder->problem->cluster.n_devices;
    uint32_t min_width = table_min_width(finder->problem, table);
    struct shard piece = finder->whole[0];
    struct shard come[MAX_COLUMN_PIECES];

    if (table->dim % TABLE_COLUMN_STEP || !can_price(finder, SHARD_COLUMN))
        return;
    piece.kind = SHARD_COLUMN;
    for (uint32_t k = 2; k <= MAX_COLUMN_PIECES && k <= n &&
                         n_width_steps / k * TABLE_COLUMN_STEP >= min_width;
         k *= 2) {
        const struct way_candidate *order;
        const char *gpus = "";

        piece.col_begin = 0;
        piece.col_end = TABLE_COLUMN_STEP * ((n_width_steps - 1) / k + 1);
        order = rank_devices(finder, cut(finder, &piece, 1));
        for (uint32_t i = 0; i < k; i++) {
            uint32_t width_steps = n_width_steps / k + (i < n_width_steps % k);

            piece.col_end = piece.col_begin + TABLE_COLUMN_STEP * width_steps;
            piece.device = order[i].device;
            come[i] = piece;
            piece.col_begin = piece.col_end;
            if (i < N_LISTED)
                gpus = arena_printf(finder->arena, "%s %u", gpus, piece.device);
        }
        add_way(finder,
                arena_printf(finder->arena, "%u column pieces on GPUs%s%s", k,
                             gpus, k > N_LISTED ? " ..." : ""),
                cut(finder, come, k));
    }
}

/* Cuts the table into equal row blocks over n devices; the last block may be
 * shorter. If the table has too few rows, makes fewer than n blocks. */
static struct edit cut_rows(const struct way_finder *finder, struct shard *come,
                            uint32_t n)
{
    struct shard whole = finder->whole[0];
    uint64_t rows = whole.row_end, block = (rows - 1) / n + 1;
    uint32_t n_come = 0;

    whole.kind = SHARD_ROW;
    for (; n_come < n && n_come * block < rows; n_come++) {
        come[n_come] = whole;
        come[n_come].row_begin = n_come * block;
        if (rows - n_come * block > block)
            come[n_come].row_end = (n_come + 1) * block;
    }
    set_devices(come, n_come, 0, n);
    return cut(finder, come, n_come);
}

/* Finds three ways: row blocks over all GPUs, row blocks over the best host,
 * and replicas. If the problem has ROW_CUT_RANKS, a sequence table is only cut
 * over all GPUs, as in TorchRec. */
static void find_spread(struct way_finder *finder)
{
    uint32_t n = finder->problem->cluster.n_devices;
    uint32_t per_host = cluster_group(&finder->problem->cluster);
    struct shard whole = finder->whole[0];
    const bool on_host =
        plan_row_cut(finder->what_if->plan) == ROW_CUT_ANY ||
        finder->problem->tables[whole.table].output != OUTPUT_SEQUENCE;
    struct shard *come = ARENA_NEW(finder->arena, struct shard, n);

    if (can_price(finder, SHARD_ROW) && whole.row_end > 1) {
        add_way(finder, arena_printf(finder->arena, "rows over all %u GPUs", n),
                cut_rows(finder, come, n));
        if (on_host && per_host > 1 && per_host < n)
            find_places(finder,
                        &(struct mover){cut_rows(finder, come, per_host),
                                        UINT32_MAX, per_host},
                        1, 1);
    }
    if (!can_price(finder, SHARD_REPLICATE))
        return;
    whole.kind = SHARD_REPLICATE;
    for (whole.device = 0; whole.device < n; whole.device++)
        come[whole.device] = whole;
    add_way(finder, "replicated", cut(finder, come, n));
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
        else if (finder->n_tables > 1 && kinds[k].kind != SHARD_TABLE)
            way.why_not = "the tables of a group stay whole";
        finder->ways->ways[finder->ways->n + finder->ways->n_untried++] = way;
    }
}

void ways_find(struct ways *ways, struct what_if *what_if, uint32_t table,
               struct arena *arena)
{
    const struct plan *plan = what_if->plan;
    const struct problem *problem = &plan->problem;
    struct way_finder finder = {
        .ways = ways,
        .what_if = what_if,
        .problem = problem,
        .arena = arena,
        .whole = ARENA_NEW(arena, struct shard, problem->n_tables),
        .gone = ARENA_NEW(arena, size_t, plan->n_shards)};
    struct edit without;

    *ways = (struct ways){.table = table};
    for (uint32_t t = 0; t < problem->n_tables; t++)
        if (tables_share_group(problem, table, t))
            finder.whole[finder.n_tables++] = shard_whole(problem, t, 0);
    for (size_t i = 0; i < plan->n_shards; i++)
        if (tables_share_group(problem, table, plan->shards[i].table))
            finder.gone[finder.n_gone++] = i;
    finder.now = plan->shards[finder.gone[0]].kind;
    without = cut(&finder, NULL, 0);
    ways->without_ms = what_if_step(what_if, &without);
    find_whole(&finder);
    if (finder.n_tables == 1 && problem->cluster.n_devices > 1) {
        find_moves(&finder);
        find_columns(&finder);
        find_spread(&finder);
    }
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
