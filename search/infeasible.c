/* SPDX-License-Identifier: MIT */
#include "search/fit.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MAX_DEVICES 65536
/* More GPUs than this many times those there are, nobody buys. */
#define MAX_GROWTH 64
/* Nor a GPU of more than eight pebibytes, up to which doubles tell bytes apart.
 */
#define TOO_LARGE ((uint64_t)1 << 53)

struct question {
    const struct problem *problem; /* not owned */
    struct oracle oracle; /* of the kinds that the search makes; it embeds
                             nothing: memory is all there is */
    struct arena arena;
    uint32_t roomiest;  /* device; further ones are like it */
    struct err nowhere; /* why a table had no place, as last asked */
};

/*
 * --- what sums tell ---
 *
 * Each figure is a lower bound of what any plan needs, so what is too much is a
 * proof: of one piece against the roomiest device, of what is pinned against
 * its device, of all against all. They count no kind that is not allowed, and
 * take the least of those that are, table by table.
 */

/* A unit: the least that it takes in all, and in a piece as small as may be. */
struct unit_need {
    struct memory_items all;
    uint64_t piece_bytes;
    uint64_t room_bytes; /* of its device, or of the largest */
    bool has_room;
};

static const char *size(uint64_t bytes, struct arena *arena)
{
    char buf[TEXT_BYTES_MAX];

    return arena_strdup(arena, text_from_bytes(buf, (double)bytes));
}

/* "9.91 GiB (9.52 GiB weights)": with the largest of its items. */
static const char *need(const struct memory_items *items, struct arena *arena)
{
    unsigned largest = memory_largest(items);

    return arena_printf(arena, "%s (%s %s)", size(items->total, arena),
                        size(items->item[largest], arena),
                        memory_item_names[largest]);
}

/* "67.7 GiB unreserved" where a reserve has been taken off, or of what own
 * samples have been taken off, too, "67.7 GiB left for tables". */
static const char *room(const struct parts *parts, uint64_t bytes,
                        bool for_tables, struct arena *arena)
{
    const struct cluster *cluster = &parts->problem->cluster;
    const char *of = "";

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        of = cluster->reserve_bytes[r] ? " unreserved" : of;
    if (for_tables && sample_memory(parts->problem).total)
        of = " left for tables";
    return arena_printf(arena, "%s%s", size(bytes, arena), of);
}

/* The least that a table takes in all, of one kind of shards: where it is cut
 * twice the smaller half, as more pieces take no less, and without what
 * rounding up to bytes may have added; one row has no halves. And the least of
 * a piece that some device must hold: narrow columns, and rows by the
 * pigeonhole principle. */
static struct memory_items least_of_kind(const struct problem *problem,
                                         uint32_t table, enum shard_kind kind,
                                         uint64_t *piece_bytes)
{
    const uint32_t n_devices = problem->cluster.n_devices;
    struct shard piece = shard_whole(problem, table, 0), half;
    const uint32_t n_rows = shard_cuts_rows(kind) && piece.row_end > 1 ? 2 : 1;
    const uint32_t n_columns = shard_cuts_columns(kind) ? 2 : 1;
    const uint32_t n_cuts = n_rows * n_columns;
    struct memory_items sum = {0};

    assert(n_devices > 0);
    piece.kind = kind;
    half = piece;
    half.row_end /= n_rows;
    half.col_end /= n_columns;
    for (uint32_t i = 0; i < (shard_is_replica(kind) ? n_devices : n_cuts); i++)
        memory_add(&sum, shard_memory(problem, &half));
    if (n_cuts > 1) /* two items of each are rounded */
        sum.total -= min_u64(sum.total, 2 * n_cuts);
    if (n_rows > 1)
        piece.row_end = (piece.row_end - 1) / n_devices + 1;
    if (n_columns > 1 && piece.col_end > TABLE_COLUMN_STEP)
        piece.col_end = TABLE_COLUMN_STEP;
    *piece_bytes = shard_memory(problem, &piece).total;
    return sum;
}

/* The least, whatever the kinds allowed it is cut into: in all over its tables,
 * and of the pieces of any one of them, as each has to stand somewhere. Pins
 * and groups are not cut. A replica has to have room everywhere. */
static struct unit_need measure_unit(const struct parts *parts, uint32_t u,
                                     uint64_t least_room)
{
    struct problem even = *parts->problem;
    const struct unit *unit = &parts->of[u];
    struct unit_need of = {.piece_bytes = UINT64_MAX,
                           .room_bytes = unit->pin >= 0
                                             ? parts->room_bytes[unit->pin]
                                             : parts->most_room_bytes};

    even.hot = NULL; /* the mean block: some have no less */
    for (uint32_t i = 0; i < unit->n_tables; i++) {
        uint32_t t = unit->tables[i];
        unsigned kinds =
            even.tables[t].kinds & even.kinds & parts->oracle->kinds;
        struct memory_items least = {.total = kinds ? UINT64_MAX : 0};

        of.has_room |= !kinds; /* that is another error */
        for (; kinds; kinds &= kinds - 1) {
            enum shard_kind kind = (enum shard_kind)(kinds & -kinds);
            uint64_t piece;
            struct memory_items items = least_of_kind(&even, t, kind, &piece);

            if (items.total <= least.total)
                least = items;
            of.piece_bytes = min_u64(of.piece_bytes, piece);
            of.has_room |=
                piece <= (shard_is_replica(kind) ? least_room : of.room_bytes);
        }
        memory_add(&of.all, least);
    }
    if (unit->pin >= 0 || unit->first->group) {
        of.piece_bytes = of.all.total;
        of.has_room = of.all.total <= of.room_bytes;
    }
    return of;
}

/* "table 't' takes ..., at least ... a piece, the largest device has ...". */
static const char *describe_unit(const struct parts *parts, uint32_t u,
                                 const struct unit_need *of,
                                 struct shortage *shortage, struct arena *arena)
{
    const struct unit *unit = &parts->of[u];
    const struct table *first = unit->first;
    const char *piece = "", *where = "the largest device";
    const char *name = first->group ? first->group : first->name;

    *shortage = (struct shortage){.of = first->group ? "group" : "table",
                                  .need_bytes = of->piece_bytes,
                                  .have_bytes = of->room_bytes};
    snprintf(shortage->name, sizeof(shortage->name), "%s", name);
    if (of->piece_bytes < of->all.total)
        piece = arena_printf(arena, ", at least %s a piece",
                             size(of->piece_bytes, arena));
    if (unit->pin >= 0)
        where = arena_printf(arena, "device %" PRId64, unit->pin);
    return arena_printf(arena, "%s '%s' takes %s%s, %s has %s", shortage->of,
                        name, need(&of->all, arena), piece, where,
                        room(parts, of->room_bytes, true, arena));
}

/* Of a problem whose units were collected: whether something is short, of each
 * of them, of what is pinned to each device, of all; and the text, what they
 * take and what there is, in the arena and as figures. */
static bool is_short(const struct parts *parts, struct arena *arena,
                     const char **text, struct shortage *shortage)
{
    const struct cluster *cluster = &parts->problem->cluster;
    const uint32_t n = cluster->n_devices;
    struct memory_items *pinned = ARENA_NEW(arena, struct memory_items, n);
    struct memory_items all = {0}, own = sample_memory(parts->problem);
    uint64_t least_room = UINT64_MAX, all_room = 0;

    assert(n > 0);
    for (uint32_t r = 0; r < n; r++) {
        const uint64_t memory = cluster->memory_bytes[r];
        const uint64_t reserve = cluster->reserve_bytes[r];
        const uint64_t left = memory > reserve ? memory - reserve : 0;

        if (memory < saturating_add(reserve, own.total)) {
            *text = arena_printf(
                arena, "device %u takes %s for its own samples, it has %s", r,
                need(&own, arena), room(parts, left, false, arena));
            *shortage = (struct shortage){.of = "samples",
                                          .is_of_device = true,
                                          .device = r,
                                          .need_bytes = own.total,
                                          .have_bytes = left};
            return true;
        }
        least_room = min_u64(least_room, parts->room_bytes[r]);
        all_room = saturating_add(all_room, parts->room_bytes[r]);
    }
    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct unit_need of = measure_unit(parts, u, least_room);

        if (!of.has_room) {
            *text = describe_unit(parts, u, &of, shortage, arena);
            return true;
        }
        memory_add(&all, of.all);
        if (parts->of[u].pin >= 0)
            memory_add(&pinned[parts->of[u].pin], of.all);
    }
    for (uint32_t r = 0; r < n; r++)
        if (pinned[r].total > parts->room_bytes[r]) {
            *text = arena_printf(
                arena, "the tables pinned to device %u take %s, it has %s", r,
                need(&pinned[r], arena),
                room(parts, parts->room_bytes[r], true, arena));
            *shortage = (struct shortage){.of = "pinned",
                                          .is_of_device = true,
                                          .device = r,
                                          .need_bytes = pinned[r].total,
                                          .have_bytes = parts->room_bytes[r]};
            return true;
        }
    *text = arena_printf(arena, "the tables take at least %s, %u device%s %s",
                         need(&all, arena), n, n == 1 ? " has" : "s have",
                         room(parts, all_room, true, arena));
    *shortage = (struct shortage){
        .of = "tables", .need_bytes = all.total, .have_bytes = all_room};
    return all.total > all_room;
}

/*
 * --- what would help ---
 *
 * Remedies are tried, not reckoned: whoever types what the sentence says has a
 * plan. Each is the least of its sort that packs quickly, found by doubling
 * and then by halving in between, though a packing may be found with less
 * where none was with more; so the answer is right, and near the least.
 */

/* The question asked again, of a problem that is better off by an amount of
 * memory that no device has less of, or of devices, the new ones like the
 * roomiest, and by kinds that are allowed, also to tables of which the list
 * says otherwise: whether it packs, quickly. Sums first, as they cost next to
 * nothing: most amounts that are tried are too small by far. What it takes of
 * the arena is given back. */
static bool fits(struct question *question, bool of_memory, uint64_t amount,
                 unsigned more_kinds, unsigned more_of_tables)
{
    struct arena *arena = &question->arena;
    struct arena_mark mark = arena_mark(arena);
    struct problem problem = *question->problem;
    struct snapshot packed = {0};
    struct shortage shortage;
    struct err *err = &question->nowhere;
    struct parts parts;
    const char *text;
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
    yes = !parts_collect(&parts, &problem, &question->oracle, arena, err) &&
          !is_short(&parts, arena, &text, &shortage) &&
          !parts_init(&parts, &problem, &question->oracle, NULL, NULL, arena,
                      err) &&
          fit_by_memory(&packed, &parts, NULL);
    snapshot_release(&packed);
    arena_rewind(arena, mark);
    return yes;
}

/* An amount as it is printed: of memory up to the next size that prints in
 * three digits, so that who types what was printed has enough; of devices in
 * whole hosts if there are several. */
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

/* The least memory or number of devices with which all packs; 0 where none
 * does. With `low` it does not, as what is there was refused, with `high` it
 * does; both are amounts that can be printed, so they meet. */
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
        if (high > most)
            return 0;
    } while (!fits(question, of_memory, high, 0, 0));
    while ((next = round_amount(question, of_memory, low + 1)) < high) {
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

/* "it would fit with ...": also the first kind more that helps alone, of those
 * that the search makes and the cost model prices, as an option allows it; or
 * where no option does, the first that the list would have to allow, too. NULL
 * where a table has no place whatever the memory, as question->nowhere says. */
static const char *find_remedies(struct question *question,
                                 struct shortage *shortage)
{
    const bool is_even = cluster_is_even(&question->problem->cluster);
    struct arena *arena = &question->arena;
    const char *text = "";

    shortage->fits_memory_bytes = least_of(question, true);
    shortage->fits_n_gpus = least_of(question, false);
    if (shortage->fits_memory_bytes)
        text = arena_printf(arena, "%s%s a device", is_even ? "" : "at least ",
                            size(shortage->fits_memory_bytes, arena));
    if (shortage->fits_n_gpus)
        text = arena_printf(arena, "%s%s%" PRIu64 " %s", text,
                            *text ? ", or " : "", shortage->fits_n_gpus,
                            is_even ? "such devices"
                                    : "devices, new like the roomiest");
    for (size_t i = 0; i < 2 * N_CUTS; i++) {
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
    return fits(question, true, TOO_LARGE, 0, 0) || !question->nowhere.code
               ? "no remedy was found, neither memory, devices nor cuts"
               : NULL;
}

/* A search that makes some kinds only cannot say that nothing fits, even where
 * it has ruled out all it knows. Whether the search makes all that may be made
 * of each table. */
static bool makes_all(const struct problem *problem,
                      const struct oracle *oracle, unsigned search_kinds)
{
    unsigned kinds = problem->kinds & oracle->kinds & ~search_kinds;

    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].kinds & kinds)
            return false;
    return true;
}

/* What the search came to, in front of what sums tell. */
static const char *describe_failure(const struct fit_failure *failure,
                                    struct arena *arena)
{
    if (failure->is_proven)
        return "no placement of uncut tables does; ";
    if (failure->lacking_bytes == UINT64_MAX)
        return "";
    return arena_printf(arena, "packing and annealing came within %s; ",
                        size(failure->lacking_bytes, arena));
}

int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     struct err *err)
{
    static const struct oracle_ops no_ops = {0};
    struct question question = {.problem = problem, .oracle = *oracle};
    struct arena *arena = &question.arena;
    struct shortage shortage, of_all_kinds;
    const char *text, *text_of_all, *remedies;
    struct parts parts;
    struct err ignored;
    int rc = 0;

    question.oracle.kinds &= search_kinds;
    question.oracle.ops = &no_ops;
    if (parts_collect(&parts, problem, &question.oracle, arena, &ignored))
        goto out; /* the search will say */
    if (!is_short(&parts, arena, &text, &shortage) && !failure)
        goto out;
    while (parts.room_bytes[question.roomiest] < parts.most_room_bytes)
        question.roomiest++;
    parts.oracle = oracle;
    shortage.is_proven =
        failure ? failure->is_proven && makes_all(problem, oracle, search_kinds)
                : is_short(&parts, arena, &text_of_all, &of_all_kinds);
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
