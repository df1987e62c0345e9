/* SPDX-License-Identifier: MIT */
/*
 * The baselines that the published work compares with. The four greedy ones
 * take tables by one figure, largest first, each to the device where the sum
 * of that figure is least and its memory allows it. They look at no cost
 * model.
 */
#include "search/search.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "search/choices.h"

#include <math.h>
#include <stdlib.h>

static double figure_dim(const struct table *table)
{
    return table->dim;
}

static double figure_lookup(const struct table *table)
{
    return table->dim * table->pooling_factor;
}

static double figure_size(const struct table *table)
{
    return (double)table->num_embeddings * table->dim *
           precision_bytes(table->precision);
}

static double figure_size_lookup(const struct table *table)
{
    return figure_lookup(table) * log10((double)table->num_embeddings);
}

/* What is placed as one, whole. */
struct entry {
    const struct unit *unit;
    double figure;
    uint64_t bytes;
};

struct device {
    double sum; /* of figures */
    uint64_t used_bytes;
};

struct placing {
    const struct parts *parts;
    struct entry *entries;  /* [n_units], in the order of placing */
    struct device *devices; /* [R] */
    uint32_t *roomy;        /* [R]: devices */
    struct rng rng;
};

/* Largest figure, then largest size, then last in the input. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    uint32_t first_a = a->unit->tables[0], first_b = b->unit->tables[0];

    if (a->figure != b->figure)
        return a->figure > b->figure ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (first_a < first_b) - (first_a > first_b);
}

static int list_entries(struct placing *placing, const struct contender *by,
                        struct err *err)
{
    const struct problem *problem = placing->parts->problem;
    unsigned kinds = problem->kinds & placing->parts->oracle->kinds;

    for (uint32_t u = 0; u < placing->parts->n_units; u++) {
        struct entry *entry = &placing->entries[u];

        entry->unit = placing->parts->of[u].unit;
        for (uint32_t k = 0; k < entry->unit->n_tables; k++) {
            uint32_t t = entry->unit->tables[k];
            const struct table *table = &problem->tables[t];
            struct shard whole = shard_whole(problem, t, 0);

            if (!(table->kinds & kinds & SHARD_TABLE))
                return err_set(
                    err, ERR_NO_PLAN,
                    "table '%s' may not be placed whole, and the baselines cut "
                    "nothing",
                    table->name);
            entry->bytes = saturating_add(entry->bytes,
                                          shard_memory(problem, &whole).total);
            entry->figure += by->figure ? by->figure(table) : 0;
        }
    }
    if (by->figure)
        qsort(placing->entries, placing->parts->n_units,
              sizeof(*placing->entries), compare_entries);
    return 0;
}

static uint64_t left_bytes(const struct placing *placing, uint32_t r)
{
    return placing->parts->room_bytes[r] - placing->devices[r].used_bytes;
}

static int no_room(const struct placing *placing, const struct entry *entry,
                   struct err *err)
{
    const struct problem *problem = placing->parts->problem;
    char need[TEXT_BYTES_MAX], most[TEXT_BYTES_MAX];
    uint64_t left = 0;

    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        if (left_bytes(placing, r) > left)
            left = left_bytes(placing, r);
    return err_set(
        err, ERR_NO_PLAN,
        "no plan was found: table '%s' takes %s and no device that it may "
        "stand on has that left (the emptiest has %s)",
        entry->unit->first->name, text_from_bytes(need, (double)entry->bytes),
        text_from_bytes(most, (double)left));
}

/* Whether a is to be taken before b, which comes first: less in sum, then less
 * memory. */
static bool goes_before(const struct device *a, const struct device *b)
{
    return a->sum < b->sum ||
           (a->sum == b->sum && a->used_bytes < b->used_bytes);
}

/* Where it goes: of the devices with room the first, or at random any, all
 * alike (published without memory); or -1. */
static int64_t choose(struct placing *placing, const struct entry *entry,
                      bool is_random)
{
    const struct device *devices = placing->devices;
    uint32_t n = 0, best = 0;

    for (uint32_t r = 0; r < placing->parts->problem->cluster.n_devices; r++)
        if ((entry->unit->device < 0 || entry->unit->device == r) &&
            entry->bytes <= left_bytes(placing, r)) {
            if (n && goes_before(&devices[r], &devices[placing->roomy[best]]))
                best = n;
            placing->roomy[n++] = r;
        }
    if (n && is_random)
        best = (uint32_t)rng_below(&placing->rng, n);
    return n ? (int64_t)placing->roomy[best] : -1;
}

static int baseline(struct plan *plan, const struct contender *by,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct arena *scratch, struct err *err)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    struct placing placing = {0};
    struct parts parts;

    if (parts_collect(&parts, &plan->problem, inputs->oracle, scratch, err))
        return -1;
    placing.parts = &parts;
    placing.entries = ARENA_NEW(scratch, struct entry, parts.n_units);
    placing.devices = ARENA_NEW(scratch, struct device, n_devices);
    placing.roomy = ARENA_NEW(scratch, uint32_t, n_devices);
    rng_init(&placing.rng, inputs->seed, 0);
    plan->seed = inputs->seed;
    plan->shards = ARENA_NEW(arena, struct shard, plan->problem.n_tables);
    if (list_entries(&placing, by, err))
        return -1;
    for (uint32_t u = 0; u < parts.n_units; u++) {
        const struct entry *entry = &placing.entries[u];
        int64_t r = choose(&placing, entry, !by->figure);

        if (r < 0)
            return no_room(&placing, entry, err);
        placing.devices[r].sum += entry->figure;
        placing.devices[r].used_bytes += entry->bytes;
        for (uint32_t k = 0; k < entry->unit->n_tables; k++)
            plan->shards[plan->n_shards++] = shard_whole(
                &plan->problem, entry->unit->tables[k], (uint32_t)r);
    }
    return 0;
}

/* --- all planners --- */

struct shard rival_piece(const struct problem *problem, uint32_t table,
                         enum shard_kind kind, uint32_t i, uint32_t n,
                         uint32_t device)
{
    struct shard shard = shard_whole(problem, table, device);
    uint64_t rows = (shard.row_end - 1) / n + 1;
    uint32_t columns = shard.col_end / n;

    shard.kind = kind;
    if (kind == SHARD_ROW) {
        shard.row_begin = i * rows < shard.row_end ? i * rows : shard.row_end;
        if (shard.row_end - shard.row_begin > rows)
            shard.row_end = shard.row_begin + rows;
    } else if (kind == SHARD_COLUMN) {
        shard.col_begin = i * columns;
        shard.col_end = shard.col_begin + columns;
    }
    return shard;
}

/* ERR_NO_PLAN where a table is pinned or in a group. */
static int check_constraints(const struct problem *problem, const char *author,
                             struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        if (table->device >= 0 || table->group)
            return err_set(
                err, ERR_NO_PLAN,
                "no plan was found: table '%s' is %s, which %s's planner "
                "does not know",
                table->name, table->group ? "in a group" : "pinned to a device",
                author);
    }
    return 0;
}

int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err)
{
    double start_ms = clock_ms();
    struct arena scratch;
    int rc = -1;

    if (self->search)
        return self->search(plan, inputs->oracle, inputs->search, arena, err);
    arena_init(&scratch);
    if (self->author && check_constraints(&plan->problem, self->author, err))
        goto out;
    plan->search = arena_printf(
        arena, "%s:%s", self->author ? "rival" : "baseline", self->name);
    plan->stopped = "done";
    plan->seed = plan->n_evaluations = plan->n_shards = 0;
    if (self->rule ? self->rule(plan, inputs, arena, &scratch, err)
                   : baseline(plan, self, inputs, arena, &scratch, err))
        goto out;
    rc = search_finish(plan, inputs->oracle, start_ms, arena, err);
out:
    arena_release(&scratch);
    return rc;
}

#define RIVAL_ENTRY(id, who) {#id, .author = (who), .rule = rival_##id},
const struct contender *search_contenders(void)
{
    static const struct contender contenders[] = {
        {"random", .figure = NULL},
        {"dim", .figure = figure_dim},
        {"lookup", .figure = figure_lookup},
        {"size", .figure = figure_size},
        {"size-lookup", .figure = figure_size_lookup},
        RIVALS(RIVAL_ENTRY)
        /* our own */
        {"reference", .search = search_reference},
        {"neuroshard", .search = search_full},
        {0},
    };

    return contenders;
}
