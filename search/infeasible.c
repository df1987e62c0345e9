/* SPDX-License-Identifier: MIT */
#include "search/infeasible.h"

#include "base/clock.h"
#include "base/text.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "core/target_rules.h"
#include "search/space_init.h"
#include "search/units.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MAX_DEVICES 65536
/* Largest number of GPUs that is suggested, as a multiple of the present
 * number. Nobody buys more GPUs than that. */
#define MAX_GROWTH 64
/* Largest memory of a GPU that is suggested: eight pebibytes. Doubles represent
 * all numbers of bytes up to this value exactly. */
#define TOO_LARGE ((uint64_t)1 << 53)

struct question {
    const struct problem *problem; /* not owned */
    /* A copy of the oracle that prices only the kinds that the search makes,
     * and without embed, because only memory matters here. */
    struct oracle oracle;
    struct arena arena;
    /* device with most memory; added devices are copies of it */
    uint32_t roomiest;
    /* reason why a table had no place in the last call of fits() */
    struct err nowhere;
    double
        end_ms; /* no further remedy is tried after this time on clock_ms() */
};

/*
 * --- lower bounds from sums ---
 *
 * Each sum is a lower bound on the memory that any plan needs. If a sum exceeds
 * the available memory, this proves that no plan fits. Three comparisons are
 * made:
 *
 *     memory needed                  memory available
 *     one piece of a unit            the device that has the most memory
 *     tables pinned to a device      the memory of that device
 *     all tables                     the memory of all devices
 *
 * Each table counts with the allowed kind of shards that takes the least
 * memory.
 */

/* Least memory that a unit takes: in all, and in one piece that is as small as
 * possible. */
struct unit_need {
    struct memory_items all;
    uint64_t piece_bytes;
    /* usable memory of the unit's device, or of the largest device */
    uint64_t room_bytes;
    bool has_room;
};

static const char *size(uint64_t bytes, struct arena *arena)
{
    char buf[TEXT_BYTES_MAX];

    return arena_strdup(arena, text_from_bytes(buf, (double)bytes));
}

/* Returns a text such as "9.91 GiB (9.52 GiB weights)": the total of the items,
 * and the largest item in brackets. */
static const char *need(const struct memory_items *items, struct arena *arena)
{
    unsigned largest = memory_largest(items);

    return arena_printf(arena, "%s (%s %s)", size(items->total, arena),
                        size(items->item[largest], arena),
                        memory_item_names[largest]);
}

/* Returns a text such as "67.7 GiB unreserved" for memory less a reserve. If
 * the memory of the device's own samples was subtracted, too, the text is "67.7
 * GiB left for tables". */
static const char *room(const struct search_space *space, uint64_t bytes,
                        bool for_tables, struct arena *arena)
{
    const struct cluster *cluster = &space->problem->cluster;
    const char *kind = "";

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        kind = cluster->reserve_bytes[r] ? " unreserved" : kind;
    if (for_tables && sample_memory(space->problem).total)
        kind = " left for tables";
    return arena_printf(arena, "%s%s", size(bytes, arena), kind);
}

/*
 * Returns the least memory that a table takes in shards of one kind, over all
 * devices. Sets *piece_bytes to the least memory that some device must hold in
 * one piece.
 *
 * A table that is cut in two counts as twice its smaller half, because a cut
 * into more pieces does not take less. Bytes that rounding up may have added
 * are subtracted. A table with one row has no halves. The piece has as few
 * columns as allowed. On R devices, some piece has at least 1 / R of the rows,
 * by the pigeonhole principle.
 */
static struct memory_items least_of_kind(const struct problem *problem,
                                         uint32_t table, enum shard_kind kind,
                                         uint64_t *piece_bytes)
{
    const uint32_t n_devices = problem->cluster.n_devices;
    struct shard piece = shard_whole(problem, table, 0), half;
    const uint32_t n_rows = shard_cuts_rows(kind) && piece.row_end > 1 ? 2 : 1;
    const uint32_t n_columns = shard_cuts_columns(kind) ? 2 : 1;
    const uint32_t n_cuts = n_rows * n_columns;
    struct memory_items sum = {0}, one;

    assert(n_devices > 0);
    piece.kind = kind;
    half = piece;
    half.row_end /= n_rows;
    half.col_end /= n_columns;
    one = shard_memory(problem, &half);
    for (uint32_t i = 0; i < (shard_is_replica(kind) ? n_devices : n_cuts); i++)
        memory_add(&sum, one);
    if (n_cuts > 1) /* two items of each piece are rounded up */
        sum.total -= min_u64(sum.total, 2 * n_cuts);
    if (n_rows > 1)
        piece.row_end = (piece.row_end - 1) / n_devices + 1;
    if (n_columns > 1 && piece.col_end > TABLE_COLUMN_STEP)
        piece.col_end = TABLE_COLUMN_STEP;
    *piece_bytes = shard_memory(problem, &piece).total;
    return sum;
}

/* Returns two lower bounds on the memory of a unit, over all allowed kinds. The
 * first is its memory in all, as the sum over its tables. The second is the
 * memory of its smallest piece, also over its tables, because each table needs
 * at least one piece somewhere. Pinned units and groups are not cut. A replica
 * must fit on every device. */
static struct unit_need measure_unit(const struct search_space *space,
                                     uint32_t u, uint64_t least_room)
{
    struct problem even = *space->problem;
    const struct unit *unit = &space->units[u];
    struct unit_need wanted = {.piece_bytes = UINT64_MAX,
                               .room_bytes = unit->pin >= 0
                                                 ? space->room_bytes[unit->pin]
                                                 : space->most_room_bytes};

    /* a mean block: some block takes at least as much memory */
    even.hot = NULL;
    for (uint32_t i = 0; i < unit->n_tables; i++) {
        uint32_t t = unit->tables[i];
        unsigned kinds = problem_kinds(&even, t) & space->oracle->kinds;
        struct memory_items least = {.total = kinds ? UINT64_MAX : 0};

        /* if no kind is allowed, space_init fails later */
        wanted.has_room |= !kinds;
        for (; kinds; kinds &= kinds - 1) {
            enum shard_kind kind = (enum shard_kind)(kinds & -kinds);
            uint64_t piece;
            struct memory_items items = least_of_kind(&even, t, kind, &piece);

            if (items.total <= least.total)
                least = items;
            wanted.piece_bytes = min_u64(wanted.piece_bytes, piece);
            wanted.has_room |=
                piece <=
                (shard_is_replica(kind) ? least_room : wanted.room_bytes);
        }
        memory_add(&wanted.all, least);
    }
    if (unit->pin >= 0 || unit->first->group) {
        wanted.piece_bytes = wanted.all.total;
        wanted.has_room = wanted.all.total <= wanted.room_bytes;
    }
    return wanted;
}

/* A lack of memory: the numbers behind the first sentence of a refusal. */
struct lack {
    enum {
        LACK_SAMPLES, /* a device is too small for its own samples */
        LACK_UNIT,    /* a unit, or its smallest piece, is too large for the
                         device of its pin, or for the largest device */
        LACK_PINNED,  /* a device is too small for the tables pinned to it */
        LACK_ALL,     /* all devices together are too small for all tables */
    } what;
    uint32_t index; /* LACK_SAMPLES, LACK_PINNED: device; LACK_UNIT: unit */
    struct memory_items need; /* memory that the samples, the unit or the
                                 tables need */
    uint64_t piece_bytes; /* LACK_UNIT: memory of the unit's smallest piece */
    uint64_t have_bytes;  /* usable memory of the device or of all devices */
};

/* Returns whether memory is too small. The units of the problem must have been
 * collected. Checks in this order: the samples of each device, each unit, the
 * tables pinned to each device, and all tables together. *lack describes the
 * first check that fails. If no check fails, it describes all tables. */
static bool is_short(const struct search_space *space, struct lack *lack,
                     struct arena *arena)
{
    const struct cluster *cluster = &space->problem->cluster;
    const uint32_t n = cluster->n_devices;
    struct memory_items *pinned = ARENA_NEW(arena, struct memory_items, n);
    struct memory_items all = {0}, own = sample_memory(space->problem);
    uint64_t least_room = UINT64_MAX, all_room = 0;

    assert(n > 0);
    for (uint32_t r = 0; r < n; r++) {
        const uint64_t memory = cluster->memory_bytes[r];
        const uint64_t reserve = cluster->reserve_bytes[r];

        if (memory < saturating_add(reserve, own.total)) {
            *lack = (struct lack){.what = LACK_SAMPLES,
                                  .index = r,
                                  .need = own,
                                  .have_bytes =
                                      memory > reserve ? memory - reserve : 0};
            return true;
        }
        least_room = min_u64(least_room, space->room_bytes[r]);
        all_room = saturating_add(all_room, space->room_bytes[r]);
    }
    for (uint32_t u = 0; u < space->n_units; u++) {
        struct unit_need wanted = measure_unit(space, u, least_room);

        if (!wanted.has_room) {
            *lack = (struct lack){LACK_UNIT, u, wanted.all, wanted.piece_bytes,
                                  wanted.room_bytes};
            return true;
        }
        memory_add(&all, wanted.all);
        if (space->units[u].pin >= 0)
            memory_add(&pinned[space->units[u].pin], wanted.all);
    }
    for (uint32_t r = 0; r < n; r++)
        if (pinned[r].total > space->room_bytes[r]) {
            *lack = (struct lack){LACK_PINNED, r, pinned[r], 0,
                                  space->room_bytes[r]};
            return true;
        }
    *lack = (struct lack){LACK_ALL, 0, all, 0, all_room};
    return all.total > all_room;
}

/* Returns a text such as "table 't' needs 9.91 GiB (9.52 GiB weights), at least
 * 5 GiB a piece, but the largest GPU has 4 GiB". Sets the name in *shortage. */
static const char *describe_unit(const struct search_space *space,
                                 const struct lack *lack,
                                 struct shortage *shortage, struct arena *arena)
{
    const struct unit *unit = &space->units[lack->index];
    const struct table *first = unit->first;
    const char *piece = "", *where = "the largest GPU";
    const char *name = first->group ? first->group : first->name;

    shortage->subject = first->group ? "group" : "table";
    snprintf(shortage->name, sizeof(shortage->name), "%s", name);
    if (lack->piece_bytes < lack->need.total)
        piece = arena_printf(arena, ", at least %s a piece",
                             size(lack->piece_bytes, arena));
    if (unit->pin >= 0)
        where = arena_printf(arena, "GPU %" PRId64, unit->pin);
    return arena_printf(arena, "%s '%s' needs %s%s, but %s has %s",
                        shortage->subject, name, need(&lack->need, arena),
                        piece, where,
                        room(space, lack->have_bytes, true, arena));
}

/* Returns a text that states the memory needed and the memory available, and
 * fills *shortage with the same numbers. */
static const char *describe(const struct search_space *space,
                            const struct lack *lack, struct shortage *shortage,
                            struct arena *arena)
{
    const uint32_t n = space->problem->cluster.n_devices;
    const bool for_tables = lack->what != LACK_SAMPLES;
    const char *needs = need(&lack->need, arena);
    const char *has = room(space, lack->have_bytes, for_tables, arena);

    *shortage = (struct shortage){.need_bytes = lack->what == LACK_UNIT
                                                    ? lack->piece_bytes
                                                    : lack->need.total,
                                  .have_bytes = lack->have_bytes,
                                  .is_of_device = lack->what == LACK_SAMPLES ||
                                                  lack->what == LACK_PINNED};
    if (shortage->is_of_device)
        shortage->device = lack->index;
    switch (lack->what) {
    case LACK_SAMPLES:
        shortage->subject = "samples";
        return arena_printf(arena,
                            "GPU %u needs %s for its own samples, but has %s",
                            lack->index, needs, has);
    case LACK_UNIT:
        return describe_unit(space, lack, shortage, arena);
    case LACK_PINNED:
        shortage->subject = "pinned";
        return arena_printf(arena,
                            "the tables pinned to GPU %u need %s, but it has "
                            "%s",
                            lack->index, needs, has);
    case LACK_ALL:
        break;
    }
    shortage->subject = "tables";
    return arena_printf(arena, "the tables need at least %s, but %u GPU%s %s",
                        needs, n, n == 1 ? " has" : "s have", has);
}

/*
 * --- remedies ---
 *
 * A remedy is tried before it is suggested, so a user who follows the
 * suggestion gets a plan. The amount of a remedy is doubled until the quick
 * packing succeeds, and then reduced by bisection. The packing is not monotone:
 * it may fail with one amount of memory and succeed with a smaller one. So a
 * remedy always suffices and is near the least amount, but may not be the
 * least.
 */

/*
 * Returns whether the quick packing succeeds after these changes:
 *
 *     of_memory       devices with less than `amount` bytes get that much
 *     !of_memory      there are `amount` devices; new devices are like the one
 *                     with the most memory
 *     more_kinds      shard kinds that the options allow in addition
 *     more_of_tables  shard kinds that the list of tables allows in addition
 *
 * Sums are checked first. They take almost no time, and most amounts that are
 * tried are far too small. All memory taken from the arena is given back.
 */
static bool fits(struct question *question, bool of_memory, uint64_t amount,
                 unsigned more_kinds, unsigned more_of_tables)
{
    struct arena *arena = &question->arena;
    struct arena_mark mark = arena_mark(arena);
    struct problem problem = *question->problem;
    struct snapshot packed = {0};
    struct err *err = &question->nowhere;
    struct search_space space;
    struct lack lack;
    bool yes;

    *err = (struct err){0};
    cluster_grow(&problem.cluster,
                 of_memory ? problem.cluster.n_devices : (uint32_t)amount,
                 question->roomiest, arena);
    for (uint32_t r = 0; of_memory && r < problem.cluster.n_devices; r++)
        cluster_raise_memory(&problem.cluster, r, amount);
    problem.kinds |= more_kinds;
    problem.tables = ARENA_NEW(arena, struct table, problem.n_tables);
    for (size_t i = 0; i < problem.n_tables; i++) {
        problem.tables[i] = question->problem->tables[i];
        problem.tables[i].kinds |= more_of_tables;
    }
    if (problem.device_batch) {
        problem.batch = problem.device_batch * problem.cluster.n_devices;
        problem_find_hot_rows(&problem, arena);
    }
    yes = !space_collect(&space, &problem, &question->oracle, arena, err) &&
          !is_short(&space, &lack, arena) &&
          !space_init(&space, &problem, &question->oracle, NULL, NULL, arena,
                      err) &&
          fit_by_memory(&packed, &space, NULL);
    snapshot_release(&packed);
    arena_rewind(arena, mark);
    return yes;
}

/* Rounds an amount up to a value that is printed exactly, so that a user who
 * types the printed value has enough. Memory is rounded up to three digits. The
 * number of devices is rounded up to whole hosts if there are several hosts. */
static uint64_t round_amount(const struct question *question, bool of_memory,
                             uint64_t amount)
{
    double unit = 1, step, bytes = (double)amount;

    if (!of_memory)
        return cluster_whole_hosts(&question->problem->cluster,
                                   (uint32_t)amount);
    while (bytes >= 1024 * unit)
        unit *= 1024;
    step = bytes >= 100 * unit  ? unit
           : bytes >= 10 * unit ? unit / 10
                                : unit / 100;
    return (uint64_t)round(ceil(bytes / step) * step);
}

static bool is_late(const struct question *question)
{
    return clock_ms() >= question->end_ms;
}

/* Returns the least memory of a device, or the least number of devices, with
 * which all tables can be packed. Returns 0 if no amount is enough, or if none
 * was found in time. If the time is over, the amount is enough, but perhaps not
 * the least. The tables
 * cannot be packed with `low`, which begins as the present amount, and they can
 * be packed with `high`. Both are amounts that can be printed exactly, so the
 * bisection ends when no such amount is between them. */
static uint64_t least_of(struct question *question, bool of_memory)
{
    const struct cluster *cluster = &question->problem->cluster;
    uint64_t low = cluster->n_devices, high, next;
    uint64_t most =
        of_memory ? TOO_LARGE : min_u64(low * MAX_GROWTH, MAX_DEVICES);

    for (uint32_t r = 0; r < cluster->n_devices && of_memory; r++)
        if (!r || cluster->memory_bytes[r] < low)
            low = cluster->memory_bytes[r];
    high = low;
    do {
        low = high;
        high = round_amount(question, of_memory, high ? 2 * high : 1);
        if (high > most || is_late(question))
            return 0;
    } while (!fits(question, of_memory, high, 0, 0));
    while (!is_late(question) &&
           (next = round_amount(question, of_memory, low + 1)) < high) {
        uint64_t middle = round_amount(question, of_memory, (low + high) / 2);

        middle = middle < high ? middle : next;
        if (fits(question, of_memory, middle, 0, 0))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static const struct {
    enum shard_kind kind;
    const char *name;
} cuts[] = {{SHARD_COLUMN, "column cuts"},
            {SHARD_ROW, "row cuts"},
            {SHARD_TABLE, "whole tables"}};
#define N_CUTS (sizeof cuts / sizeof *cuts)

/* Returns a text such as "it would fit with ..." and sets the remedies of
 * *shortage: memory, devices, and the first additional shard kind that helps by
 * itself. A shard kind is tried only if the search makes it and the cost model
 * prices it. Kinds that an option can allow are tried first. Kinds that the
 * list of tables would have to allow as well come last. Returns NULL if a table
 * has no place with any amount of memory; question->nowhere then has the
 * reason. */
static const char *find_remedies(struct question *question,
                                 struct shortage *shortage)
{
    const bool is_even = cluster_is_even(&question->problem->cluster);
    struct arena *arena = &question->arena;
    const char *text = "";

    shortage->fits_memory_bytes = least_of(question, true);
    shortage->fits_n_gpus = least_of(question, false);
    if (shortage->fits_memory_bytes)
        text = arena_printf(arena, "%s%s per GPU", is_even ? "" : "at least ",
                            size(shortage->fits_memory_bytes, arena));
    if (shortage->fits_n_gpus)
        text = arena_printf(arena, "%s%s%" PRIu64 " %s", text,
                            *text ? ", or " : "", shortage->fits_n_gpus,
                            is_even ? "such GPUs"
                                    : "GPUs, new ones like the roomiest");
    for (size_t i = 0; i < 2 * N_CUTS && !is_late(question); i++) {
        const enum shard_kind kind = cuts[i % N_CUTS].kind;
        const bool to_all = i >= N_CUTS;

        if (!(question->oracle.kinds & kind) ||
            !fits(question, true, 0, kind, to_all ? kind : 0))
            continue;
        text =
            arena_printf(arena, "%s%s%s allowed%s", text, *text ? ", or " : "",
                         cuts[i % N_CUTS].name, to_all ? " to all tables" : "");
        shortage->fits_cuts = to_all ? NULL : shard_kind_name(kind);
        break;
    }
    if (*text)
        return arena_printf(arena, "it would fit with %s", text);
    if (is_late(question))
        return "the time limit ended the search for a remedy";
    return fits(question, true, TOO_LARGE, 0, 0) || !question->nowhere.code
               ? "no remedy was found, neither memory, GPUs nor cuts"
               : NULL;
}

/* Returns whether the search makes all kinds that are allowed for any table. A
 * search that makes only some of the allowed kinds cannot claim that no plan
 * fits, even if it has ruled out all plans of its own kinds. */
static bool makes_all(const struct problem *problem,
                      const struct oracle *oracle, unsigned search_kinds)
{
    unsigned kinds = problem->kinds & oracle->kinds & ~search_kinds;

    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].kinds & kinds)
            return false;
    return true;
}

/* Returns a text that says how far the search got. This text is printed before
 * the text about the sums. */
static const char *describe_failure(const struct fit_failure *failure,
                                    struct arena *arena)
{
    if (failure->is_proven)
        return "no placement of uncut tables fits; ";
    if (failure->lacking_bytes == UINT64_MAX)
        return "";
    return arena_printf(arena, "packing and annealing came within %s; ",
                        size(failure->lacking_bytes, arena));
}

int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     double end_ms, struct err *err)
{
    static const struct oracle_ops no_ops = {0};
    struct question question = {
        .problem = problem, .oracle = *oracle, .end_ms = end_ms};
    struct arena *arena = &question.arena;
    struct lack lack, of_all_kinds;
    const char *text, *remedies;
    struct shortage shortage;
    struct search_space space;
    struct err ignored;
    int rc = 0;

    question.oracle.kinds &= search_kinds;
    question.oracle.ops = &no_ops;
    if (space_collect(&space, problem, &question.oracle, arena, &ignored))
        goto out; /* the search reports this error */
    if (!is_short(&space, &lack, arena) && !failure)
        goto out;
    text = describe(&space, &lack, &shortage, arena);
    while (space.room_bytes[question.roomiest] < space.most_room_bytes)
        question.roomiest++;
    space.oracle = oracle;
    shortage.is_proven =
        failure ? failure->is_proven && makes_all(problem, oracle, search_kinds)
                : is_short(&space, &of_all_kinds, arena);
    remedies = find_remedies(&question, &shortage);
    rc = err_set(err, ERR_NO_PLAN, "no plan %s: %s%s; %s",
                 shortage.is_proven ? "fits" : "was found",
                 failure ? describe_failure(failure, arena) : "", text,
                 remedies ? remedies : "");
    err->shortage = shortage;
    if (!remedies)
        *err = question.nowhere;
out:
    arena_release(arena);
    return rc;
}
