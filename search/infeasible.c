/* SPDX-License-Identifier: MIT */
#include "search/infeasible.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define MAX_DEVICES 65536
/* More GPUs than this many times those there are, nobody buys. */
#define MAX_GROWTH 64
/* Nor a GPU of an exbibyte. */
#define TOO_LARGE ((uint64_t)1 << 60)
/* Sizes are found to one part in so many, and then as they are printed. */
#define SIZE_STEPS 1024

struct question {
    struct problem problem; /* of the kinds that the search makes */
    const struct oracle *oracle;
    unsigned search_kinds;
    struct arena arena;
    uint32_t roomiest; /* device; further ones are like it */
};

/*
 * --- what sums tell ---
 *
 * Each figure is a lower bound of what any plan needs, so what is too much is a
 * proof: of one piece against the roomiest device, of what is pinned against
 * its device, of all against all. They count no kind that is not allowed, and
 * take the least of those that are, table by table.
 */

enum shortage_kind { NO_SHORTAGE, OF_A_PIECE, OF_A_PIN, OF_ALL };

struct shortage {
    enum shortage_kind kind;
    struct memory_items need; /* of the unit, of the pinned, or of all */
    uint64_t piece_bytes;     /* of the unit, as small as may be */
    uint64_t room_bytes;      /* that there is for it */
    const char *name;         /* of the unit: its table or group */
    bool is_group;
    int64_t device; /* to which it is pinned, or -1 */
};

/* The least that a table takes in all, of one kind of shards: in two where it
 * is cut, as more pieces take no less, and without what rounding up to bytes
 * may have added. */
static struct memory_items least_memory_of_kind(const struct problem *problem,
                                                uint32_t table,
                                                enum shard_kind kind)
{
    const uint32_t n_copies =
        shard_is_replica(kind) ? problem->cluster.n_devices : 1;
    const uint64_t n_rows = shard_cuts_rows(kind) ? 2 : 1;
    const uint32_t n_columns = shard_cuts_columns(kind) ? 2 : 1;
    struct shard whole = shard_whole(problem, table, 0), shard = whole;
    struct memory_items sum = {0};

    shard.kind = kind;
    for (uint64_t i = 0; i < n_rows; i++)
        for (uint32_t j = 0; j < n_columns; j++) {
            struct memory_items more;

            shard.row_begin = i ? whole.row_end / 2 : 0;
            shard.row_end = i + 1 < n_rows ? whole.row_end / 2 : whole.row_end;
            shard.col_begin = j ? whole.col_end / 2 : 0;
            shard.col_end =
                j + 1 < n_columns ? whole.col_end / 2 : whole.col_end;
            more = shard_memory(problem, &shard);
            for (uint32_t k = 0; k < n_copies; k++)
                memory_add(&sum, more);
        }
    if (n_rows * n_columns > 1)
        sum.total -=
            sum.total < n_rows * n_columns ? sum.total : n_rows * n_columns;
    return sum;
}

/* A piece that some device must hold of a table of this kind: narrow columns,
 * and rows by the pigeonhole principle. */
static uint64_t least_piece_of_kind(const struct problem *problem,
                                    uint32_t table, enum shard_kind kind)
{
    struct shard shard = shard_whole(problem, table, 0);

    shard.kind = kind;
    if (shard_cuts_rows(kind))
        shard.row_end = (shard.row_end - 1) / problem->cluster.n_devices + 1;
    if (shard_cuts_columns(kind) && shard.col_end > TABLE_COLUMN_STEP)
        shard.col_end = TABLE_COLUMN_STEP;
    return shard_memory(problem, &shard).total;
}

/* The least of a unit, whatever the kinds allowed it is cut into; how much of
 * it one device must hold; and whether there is such a device. */
static bool measure_unit(struct shortage *of, const struct units *units,
                         uint32_t u, uint64_t least_room)
{
    const struct problem *problem = units->problem;
    const struct unit *unit = &units->units[u];
    const struct table *first = &problem->tables[unit->tables[0]];
    bool has_room = false;

    *of = (struct shortage){.piece_bytes = UINT64_MAX,
                            .name = first->group ? first->group : first->name,
                            .is_group = first->group,
                            .device = unit->device};
    of->room_bytes = unit->device >= 0 ? units->room_bytes[unit->device]
                                       : units->most_room_bytes;
    for (uint32_t i = 0; i < unit->n_tables; i++) {
        uint32_t t = unit->tables[i];
        unsigned kinds =
            problem->tables[t].kinds & problem->kinds & units->oracle->kinds;
        struct memory_items least = {.total = kinds ? UINT64_MAX : 0};

        has_room |= !kinds; /* that is another error */
        for (unsigned kind = 1; kind & SHARD_ALL_KINDS; kind *= 2) {
            struct memory_items items;
            uint64_t piece;

            if (!(kind & kinds))
                continue;
            items = least_memory_of_kind(problem, t, (enum shard_kind)kind);
            if (items.total <= least.total)
                least = items;
            piece = least_piece_of_kind(problem, t, (enum shard_kind)kind);
            if (piece < of->piece_bytes)
                of->piece_bytes = piece;
            has_room |=
                piece <= (shard_is_replica(kind) ? least_room : of->room_bytes);
        }
        memory_add(&of->need, least);
    }
    if (unit->device >= 0 || first->group) {
        of->piece_bytes = of->need.total;
        has_room = of->need.total <= of->room_bytes;
    }
    return has_room;
}

/* What is short, of a problem whose units were collected, as far as sums tell:
 * a true lower bound of the need. */
static struct shortage find_shortage(const struct units *units,
                                     struct arena *arena)
{
    const uint32_t n_devices = units->problem->cluster.n_devices;
    struct memory_items *pinned =
        ARENA_NEW(arena, struct memory_items, n_devices);
    struct shortage all = {0};
    uint64_t least_room = UINT64_MAX;

    assert(n_devices > 0);
    for (uint32_t r = 0; r < n_devices; r++) {
        uint64_t room = units->room_bytes[r];

        least_room = room < least_room ? room : least_room;
        all.room_bytes = saturating_add(all.room_bytes, room);
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        int64_t device = units->units[u].device;
        struct shortage one;

        if (!measure_unit(&one, units, u, least_room)) {
            one.kind = OF_A_PIECE;
            return one;
        }
        memory_add(&all.need, one.need);
        if (device >= 0)
            memory_add(&pinned[device], one.need);
    }
    for (uint32_t r = 0; r < n_devices; r++)
        if (pinned[r].total > units->room_bytes[r])
            return (struct shortage){.kind = OF_A_PIN,
                                     .need = pinned[r],
                                     .room_bytes = units->room_bytes[r],
                                     .device = r};
    all.kind = all.need.total > all.room_bytes ? OF_ALL : NO_SHORTAGE;
    return all;
}

/*
 * --- what would help ---
 *
 * Remedies are tried, not reckoned: whoever types what the sentence says has a
 * plan. Each is the least of its sort that packs quickly, found by doubling
 * and then by halving in between, though a packing may be found with less
 * where none was with more; so the answer is right, and near the least.
 */

/* Up to the next size that prints in three digits, so that who types what was
 * printed has enough. */
static uint64_t round_up(uint64_t bytes)
{
    double unit = 1, step;

    while ((double)bytes >= 1024 * unit)
        unit *= 1024;
    step = (double)bytes >= 100 * unit  ? unit
           : (double)bytes >= 10 * unit ? unit / 10
                                        : unit / 100;
    return (uint64_t)round(ceil((double)bytes / step) * step);
}

static const char *size(uint64_t bytes, struct arena *arena)
{
    char buf[TEXT_BYTES_MAX];

    return arena_strdup(arena, text_from_bytes(buf, (double)bytes));
}

/* As many devices as asked for, none of less memory. */
static void change_cluster(struct problem *problem, uint64_t least_memory,
                           uint32_t n_devices, struct question *question)
{
    const struct cluster *given = &question->problem.cluster;
    struct cluster *cluster = &problem->cluster;

    cluster->n_devices = n_devices;
    if (given->host_size)
        cluster->devices_per_host =
            cluster_assumed_host(n_devices, given->host_size);
    else if (given->devices_per_host >= given->n_devices)
        cluster->devices_per_host = n_devices; /* one host holds all */
    cluster->memory_bytes = ARENA_NEW(&question->arena, uint64_t, n_devices);
    cluster->reserve_bytes = ARENA_NEW(&question->arena, uint64_t, n_devices);
    for (uint32_t r = 0; r < n_devices; r++) {
        uint32_t like = r < given->n_devices ? r : question->roomiest;

        cluster->memory_bytes[r] = given->memory_bytes[like];
        cluster->reserve_bytes[r] = given->reserve_bytes[like];
        cluster_raise_memory(cluster, r, least_memory);
    }
}

/* The question asked again, of a problem that is better off. Sums first, as
 * they cost next to nothing. Whether it packs with devices of at least so much
 * memory, so many of them, and these kinds allowed to all tables besides their
 * own. */
static bool fits(struct question *question, uint64_t least_memory,
                 uint32_t n_devices, unsigned more_kinds)
{
    struct arena *arena = &question->arena;
    struct arena_mark mark = arena_mark(arena);
    struct problem problem = question->problem;
    struct fit_failure failure;
    struct snapshot packed = {0};
    struct units units;
    struct parts parts;
    struct err ignored;
    bool yes;

    change_cluster(&problem, least_memory, n_devices, question);
    problem.kinds |= more_kinds;
    problem.tables = ARENA_NEW(arena, struct table, problem.n_tables);
    for (size_t i = 0; i < problem.n_tables; i++) {
        problem.tables[i] = question->problem.tables[i];
        problem.tables[i].kinds |= more_kinds;
    }
    yes = !units_collect(&units, &problem, question->oracle, arena, &ignored) &&
          find_shortage(&units, arena).kind == NO_SHORTAGE &&
          !parts_init_unpriced(&parts, &problem, question->oracle, arena,
                               &ignored) &&
          fit_by_memory(&packed, &parts, FIT_QUICK, &failure);
    snapshot_release(&packed);
    arena_rewind(arena, mark);
    return yes;
}

/* The least memory with which all packs where no device has less, as it is
 * printed: a packing with less room may be found where one with more is not.
 * 0 where none does. */
static uint64_t least_memory(struct question *question)
{
    const struct cluster *cluster = &question->problem.cluster;
    uint32_t n = cluster->n_devices;
    uint64_t low = cluster->memory_bytes[0], high;

    for (uint32_t r = 1; r < n; r++)
        if (cluster->memory_bytes[r] < low)
            low = cluster->memory_bytes[r];
    high = low;
    do {
        if (high >= TOO_LARGE)
            return 0;
        low = high;
        high = 2 * high + 1;
    } while (!fits(question, high, n, 0));
    while (high - low > high / SIZE_STEPS + 1) {
        uint64_t middle = low + (high - low) / 2;

        if (fits(question, middle, n, 0))
            high = middle;
        else
            low = middle;
    }
    for (high = round_up(low); !fits(question, high, n, 0);)
        high = round_up(high + 1);
    return high;
}

/* The least number of such devices, in whole hosts if there are several; 0
 * where none helps. */
static uint32_t least_devices(struct question *question)
{
    const struct cluster *cluster = &question->problem.cluster;
    uint32_t n = cluster->n_devices;
    uint32_t step = cluster_group(cluster) < n && !cluster->host_size
                        ? cluster_group(cluster)
                        : 1;
    uint32_t low, high = n / step;

    do {
        low = high;
        high *= 2;
        if (high * step > MAX_DEVICES || high * step > n * MAX_GROWTH)
            return 0;
    } while (!fits(question, 0, high * step, 0));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (fits(question, 0, middle * step, 0))
            high = middle;
        else
            low = middle;
    }
    high = cluster_whole_hosts(cluster, high * step);
    while (!fits(question, 0, high, 0))
        high = cluster_whole_hosts(cluster, high + 1);
    return high;
}

/* The one kind more with which it fits; 0 where none helps alone. */
static unsigned missing_kind(struct question *question)
{
    static const unsigned kinds[] = {SHARD_COLUMN, SHARD_ROW, SHARD_TABLE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((question->oracle->kinds & question->search_kinds & kinds[i]) &&
            fits(question, 0, question->problem.cluster.n_devices, kinds[i]))
            return kinds[i];
    return 0;
}

static const char *find_remedies(struct question *question)
{
    const struct cluster *cluster = &question->problem.cluster;
    const bool is_even = cluster_is_even(cluster);
    struct arena *arena = &question->arena;
    uint64_t memory = least_memory(question);
    uint32_t n_devices = least_devices(question);
    unsigned kind = missing_kind(question);
    const char *text = "";

    if (memory)
        text = arena_printf(arena, "%s%s a device", is_even ? "" : "at least ",
                            size(memory, arena));
    if (n_devices)
        text = arena_printf(
            arena, "%s%s%u %s", text, *text ? ", or " : "", n_devices,
            is_even ? "such devices" : "devices, new like the roomiest");
    if (kind)
        text = arena_printf(arena, "%s%s%s allowed", text, *text ? ", or " : "",
                            kind == SHARD_TABLE ? "whole tables"
                            : kind == SHARD_ROW ? "row cuts"
                                                : "column cuts");
    return text;
}

/* --- the sentence --- */

/* "9.91 GiB (9.52 GiB weights)": with the largest of its items. */
static const char *need(const struct memory_items *items, struct arena *arena)
{
    uint64_t most = items->weights;
    const char *name = "weights";

    if (items->optimizer > most) {
        most = items->optimizer;
        name = "optimizer";
    }
    if (items->io > most) {
        most = items->io;
        name = "io";
    }
    return arena_printf(arena, "%s (%s %s)", size(items->total, arena),
                        size(most, arena), name);
}

/* "67.7 GiB unreserved" where one has been taken off. */
static const char *room_of(const struct shortage *shortage,
                           const struct cluster *cluster, struct arena *arena)
{
    bool is_reserved = false;

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        is_reserved |= cluster->reserve_bytes[r] > 0;
    return arena_printf(arena, "%s%s", size(shortage->room_bytes, arena),
                        is_reserved ? " unreserved" : "");
}

static const char *describe(const struct shortage *shortage,
                            const struct cluster *cluster, struct arena *arena)
{
    const char *much = need(&shortage->need, arena), *piece = "";
    const char *room = room_of(shortage, cluster, arena);
    const char *where = "the largest device";
    uint32_t n_devices = cluster->n_devices;

    if (shortage->device >= 0)
        where = arena_printf(arena, "device %" PRId64, shortage->device);
    if (shortage->piece_bytes < shortage->need.total)
        piece = arena_printf(arena, ", at least %s a piece",
                             size(shortage->piece_bytes, arena));
    if (shortage->kind == OF_A_PIECE)
        return arena_printf(arena, "%s '%s' takes %s%s, %s has %s",
                            shortage->is_group ? "group" : "table",
                            shortage->name, much, piece, where, room);
    if (shortage->kind == OF_A_PIN)
        return arena_printf(arena, "the tables pinned to %s take %s, it has %s",
                            where, much, room);
    return arena_printf(arena, "the tables take at least %s, %u device%s %s",
                        much, n_devices, n_devices == 1 ? " has" : "s have",
                        room);
}

static int complain(struct question *question, bool is_proven,
                    const char *detail, struct err *err)
{
    const char *remedies = find_remedies(question);

    return err_set(err, ERR_NO_PLAN, "no plan %s: %s; %s%s",
                   is_proven ? "fits" : "was found", detail,
                   *remedies ? "it would fit with "
                             : "no remedy was found, neither memory, devices "
                               "nor cuts",
                   remedies);
}

/* Asks about the problem as the search sees it; false where its units are in
 * error, which the search will say. */
static bool question_open(struct question *question, struct units *units,
                          const struct problem *problem,
                          const struct oracle *oracle, unsigned search_kinds)
{
    struct err ignored;

    *question = (struct question){
        .problem = *problem, .oracle = oracle, .search_kinds = search_kinds};
    question->problem.kinds &= search_kinds;
    arena_init(&question->arena);
    if (units_collect(units, &question->problem, oracle, &question->arena,
                      &ignored))
        return false;
    while (units->room_bytes[question->roomiest] < units->most_room_bytes)
        question->roomiest++;
    return true;
}

int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, struct err *err)
{
    struct question question;
    struct shortage shortage = {.kind = NO_SHORTAGE};
    struct units units;

    if (question_open(&question, &units, problem, oracle, search_kinds))
        shortage = find_shortage(&units, &question.arena);
    if (shortage.kind != NO_SHORTAGE) {
        bool is_proven;

        units.problem = problem;
        is_proven = find_shortage(&units, &question.arena).kind != NO_SHORTAGE;
        complain(&question, is_proven,
                 describe(&shortage, &problem->cluster, &question.arena), err);
    }
    arena_release(&question.arena);
    return shortage.kind != NO_SHORTAGE ? -1 : 0;
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

int infeasible_report(const struct problem *problem,
                      const struct oracle *oracle, unsigned search_kinds,
                      const struct fit_failure *failure, struct err *err)
{
    struct question question;
    struct shortage sums;
    struct units units;
    const char *what = "";

    question_open(&question, &units, problem, oracle, search_kinds);
    sums = find_shortage(&units, &question.arena);
    if (failure->is_proven)
        what = "no placement of uncut tables does; ";
    else if (failure->lacking_bytes != UINT64_MAX)
        what = arena_printf(&question.arena,
                            "packing and annealing came within %s; ",
                            size(failure->lacking_bytes, &question.arena));
    complain(&question,
             failure->is_proven && makes_all(problem, oracle, search_kinds),
             arena_printf(&question.arena, "%s%s", what,
                          describe(&sums, &problem->cluster, &question.arena)),
             err);
    arena_release(&question.arena);
    return -1;
}
