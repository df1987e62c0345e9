/* SPDX-License-Identifier: MIT */
/* Compares the ways to place a table with all possible places, on random
 * plans. */
#include "explain/ways.h"

#include "base/text.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "core/plan_price.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 5u
#define N_GPUS 6u
#define PER_HOST 2u
#define N_BEST 3u
#define N_MOVED 8u

struct scene {
    struct arena arena;
    struct rng rng;
    struct problem problem;
    struct random_oracle oracle;
    struct plan plan;
    struct what_if what_if;
};

static struct shard *add(struct plan *plan, uint32_t table,
                         enum shard_kind kind, uint32_t device)
{
    struct shard *shard = &plan->shards[plan->n_shards++];

    *shard = shard_whole(&plan->problem, table, device);
    shard->kind = kind;
    return shard;
}

/* Places a table at random: whole, as two or more column pieces, as three row
 * blocks on any GPUs, or replicated. */
static void place(struct scene *scene, uint32_t t)
{
    struct plan *plan = &scene->plan;
    uint32_t dim = scene->problem.tables[t].dim, n;
    uint64_t rows = scene->problem.tables[t].num_embeddings;

    switch (rng_below(&scene->rng, 5)) {
    case 0:
        n = 2 + (uint32_t)rng_below(&scene->rng, dim / 16);
        for (uint32_t i = 0; i < n; i++) {
            struct shard *shard = add(plan, t, SHARD_COLUMN,
                                      (uint32_t)rng_below(&scene->rng, N_GPUS));

            shard->col_begin = dim / 4 * i / n * 4;
            shard->col_end = dim / 4 * (i + 1) / n * 4;
        }
        break;
    case 1:
        for (uint32_t i = 0; i < 3; i++) {
            struct shard *shard = add(plan, t, SHARD_ROW,
                                      (uint32_t)rng_below(&scene->rng, N_GPUS));

            shard->row_begin = rows * i / 3;
            shard->row_end = rows * (i + 1) / 3;
        }
        break;
    case 2:
        for (uint32_t r = 0; r < N_GPUS; r++)
            add(plan, t, SHARD_REPLICATE, r);
        break;
    default:
        add(plan, t, SHARD_TABLE, (uint32_t)rng_below(&scene->rng, N_GPUS));
    }
}

/* Places a table of a group on the group's GPU: whole, or in two pieces. */
static void place_grouped(struct scene *scene, uint32_t t, uint32_t device,
                          bool is_cut)
{
    struct shard *shard = add(&scene->plan, t, SHARD_TABLE, device);

    if (!is_cut)
        return;
    shard[0].col_end /= 2;
    add(&scene->plan, t, SHARD_COLUMN, device)->col_begin = shard[0].col_end;
}

/* Makes a random plan. Returns false if the plan exceeds the memory, because
 * all its ways would exceed it too. */
static bool scene_open(struct scene *scene, uint64_t seed)
{
    const uint32_t dims[N_TABLES] = {16, 32, 64, 128, 32};
    uint64_t rows[N_TABLES], need = 0;
    struct err err = {0};

    *scene = (struct scene){0};
    rng_init(&scene->rng, 41, seed);
    for (uint32_t t = 0; t < N_TABLES; t++) {
        rows[t] = 10 + rng_below(&scene->rng, 2000);
        need += rows[t] * dims[t] * 4;
    }
    fake_problem(&scene->problem, rows, dims, N_TABLES, N_GPUS, need * 3 / 4,
                 &scene->arena);
    scene->problem.cluster.devices_per_host = PER_HOST;
    if (seed % 4 == 0)
        scene->problem.tables[3].group = scene->problem.tables[4].group = "two";
    for (uint32_t t = 0; t < N_TABLES; t++)
        scene->problem.tables[t].pooling_factor =
            floor(rng_uniform(&scene->rng) * 50);
    scene->plan = (struct plan){.problem = scene->problem};
    scene->plan.shards =
        ARENA_NEW(&scene->arena, struct shard, N_TABLES * N_GPUS);
    /* fills the memory behind the shards with invalid ones */
    memset(scene->plan.shards, 0xff,
           N_TABLES * N_GPUS * sizeof(*scene->plan.shards));
    for (uint32_t t = 0; t < N_TABLES; t++)
        if (scene->problem.tables[t].group)
            place_grouped(scene, t, (uint32_t)seed / 4 % N_GPUS,
                          (seed + t) / 4 % 2);
        else
            place(scene, t);
    plan_derive_kinds(&scene->plan);
    random_oracle_init(&scene->oracle, &scene->plan.problem, &scene->rng);
    scene->oracle.base.kinds = (unsigned)rng_below(&scene->rng, 256);
    for (size_t i = 0; i < scene->plan.n_shards; i++)
        scene->oracle.base.kinds |= (unsigned)scene->plan.shards[i].kind;
    scene->oracle.base.kinds &= SHARD_ALL_KINDS;
    if (plan_price(&scene->plan, &scene->oracle.base, &scene->arena, &err))
        ok(0, "priced: %s", err.msg);
    what_if_init(&scene->what_if, &scene->plan, &scene->oracle.base);
    return !plan_check(&scene->plan, &err);
}

static void scene_close(struct scene *scene)
{
    what_if_release(&scene->what_if);
    arena_release(&scene->arena);
}

/* One possible place of the table, priced by brute force. */
struct spot {
    bool fits;
    double total_ms;
    size_t order;
};

static int compare_spots(const void *left, const void *right)
{
    const struct spot *a = left, *b = right;

    if (a->fits != b->fits)
        return a->fits ? -1 : 1;
    if (a->total_ms != b->total_ms)
        return a->total_ms < b->total_ms ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static struct spot try_out(struct scene *scene, const struct edit *edit)
{
    struct spot spot = {0};
    struct plan plan;
    struct err err = {0};

    if (plan_price_edit(&plan, &scene->what_if, edit, &scene->arena, &err))
        ok(0, "tried out: %s", err.msg);
    spot.total_ms = plan.total_ms;
    spot.fits = !plan_check(&plan, &err);
    return spot;
}

struct tally {
    size_t n, n_wrong, n_places, n_refused;
};

static size_t count(const struct ways *ways, const char *begin)
{
    size_t n = 0;

    for (size_t i = 0; i < ways->n; i++)
        n += !strncmp(ways->ways[i].name, begin, strlen(begin));
    return n;
}

static size_t count_grids(const struct ways *ways)
{
    size_t n = 0;

    for (size_t i = 0; i < ways->n; i++)
        n += strstr(ways->ways[i].name, " grid on ") != NULL;
    return n;
}

/* The n_best cheapest spots must be listed as ways whose names begin with
 * `begin`, at the same price. Spots of equal price may replace each other. */
static void check_best(const struct ways *ways, struct spot *spots, size_t n,
                       const char *begin, size_t n_best, struct tally *tally)
{
    size_t n_listed = n < n_best ? n : n_best, next = 0;

    qsort(spots, n, sizeof(*spots), compare_spots);
    for (size_t i = 0; i < ways->n; i++) {
        const struct way *way = &ways->ways[i];

        if (strncmp(way->name, begin, strlen(begin)))
            continue;
        tally->n_places++;
        tally->n_wrong +=
            next >= n_listed || !(fabs(way->total_ms - spots[next].total_ms) <=
                                  1e-9 * way->total_ms);
        next++;
    }
    tally->n_wrong += next != n_listed;
}

/* Stores the indices of all shards of the table and its group in gone[];
 * returns their number. */
static size_t shards_of(const struct scene *scene, uint32_t table, size_t *gone)
{
    size_t n = 0;

    for (size_t i = 0; i < scene->plan.n_shards; i++)
        if (tables_share_group(&scene->problem, table,
                               scene->plan.shards[i].table))
            gone[n++] = i;
    return n;
}

static void check_whole(struct scene *scene, const struct ways *ways,
                        uint32_t table, struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0},
                           n_gone = shards_of(scene, table, gone);
    struct spot spots[N_GPUS];
    size_t n = 0;

    for (uint32_t r = 0; r < N_GPUS; r++) {
        const struct shard *now = &scene->plan.shards[gone[0]];
        struct shard come[N_TABLES];
        size_t n_come = 0;

        if (now->kind == SHARD_TABLE && now->device == r)
            continue;
        for (uint32_t t = 0; t < N_TABLES; t++)
            if (tables_share_group(&scene->problem, table, t))
                come[n_come++] = shard_whole(&scene->problem, t, r);
        spots[n] = try_out(scene, &(struct edit){gone, n_gone, come, n_come});
        spots[n++].order = r;
    }
    check_best(ways, spots, n, "whole on GPU ", N_BEST, tally);
}

/* Sorts pieces on GPUs that are ready later first. */
static int compare_pieces(const void *left, const void *right)
{
    const struct spot *a = left, *b = right;

    if (a->total_ms != b->total_ms)
        return a->total_ms > b->total_ms ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* Ways that move one piece to another GPU. If there are more than N_MOVED
 * pieces, only those on the GPUs that are ready last are moved. */
static void check_moves(struct scene *scene, const struct ways *ways,
                        uint32_t table, enum shard_kind kind, const char *begin,
                        struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0},
                           n_gone = shards_of(scene, table, gone);
    struct spot pieces[N_TABLES * N_GPUS];
    struct spot spots[N_MOVED * N_GPUS];
    size_t n = 0;

    if (scene->problem.tables[table].group)
        n_gone = 0; /* a group stays on one GPU */
    for (size_t i = 0; i < n_gone; i++) {
        const struct device_cost *cost =
            &scene->plan.devices[scene->plan.shards[gone[i]].device];

        pieces[i] = (struct spot){
            .total_ms = cost->compute_ms + cost->bwd_comm_ms, .order = gone[i]};
    }
    qsort(pieces, n_gone, sizeof(*pieces), compare_pieces);
    for (size_t i = 0; i < n_gone && i < N_MOVED; i++)
        for (uint32_t r = 0; r < N_GPUS; r++) {
            size_t idx = pieces[i].order;
            struct shard come = scene->plan.shards[idx];

            if (come.device == r || come.kind != kind)
                continue;
            come.device = r;
            spots[n] = try_out(scene, &(struct edit){&idx, 1, &come, 1});
            spots[n].order = n;
            n++;
        }
    check_best(ways, spots, n, begin, N_BEST, tally);
}

/* Column pieces must go to the GPUs that would have the least compute time with
 * the first of these pieces. */
static void check_columns(struct scene *scene, const struct ways *ways,
                          uint32_t table, struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0},
                           n_gone = shards_of(scene, table, gone);

    for (size_t i = 0; i < ways->n; i++) {
        const struct plan *plan = &ways->ways[i].plan;
        struct spot in = {.fits = true, .total_ms = 0},
                    out = {.fits = false, .total_ms = INFINITY};
        struct shard first = {0};

        if (!strstr(ways->ways[i].name, "column pieces"))
            continue;
        for (size_t k = plan->n_shards; k-- > 0;)
            if (plan->shards[k].table == table)
                first = plan->shards[k];
        for (uint32_t r = 0; r < N_GPUS; r++) {
            struct edit edit = {gone, n_gone, &first, 1};
            struct spot spot = {0};
            bool is_in = false;

            first.device = r;
            spot.fits = what_if_fits(&scene->what_if, &edit);
            what_if_step(&scene->what_if, &edit);
            spot.total_ms = scene->what_if.compute_ms[r];
            for (size_t k = 0; k < plan->n_shards; k++)
                is_in |= plan->shards[k].table == table &&
                         plan->shards[k].device == r;
            if (is_in && compare_spots(&spot, &in) > 0)
                in = spot;
            if (!is_in && compare_spots(&spot, &out) < 0)
                out = spot;
        }
        tally->n_wrong += compare_spots(&in, &out) > 0;
    }
}

/* The row blocks over one host's GPUs: only the cheapest host that fits is
 * listed. */
static void check_hosts(struct scene *scene, const struct ways *ways,
                        uint32_t table, struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0},
                           n_gone = shards_of(scene, table, gone);
    uint64_t rows = scene->problem.tables[table].num_embeddings;
    struct spot spots[N_GPUS / PER_HOST];

    if (scene->problem.tables[table].group)
        return;
    for (uint32_t h = 0; h < N_GPUS / PER_HOST; h++) {
        struct shard come[PER_HOST];

        for (uint32_t b = 0; b < PER_HOST; b++) {
            come[b] = shard_whole(&scene->problem, table, h * PER_HOST + b);
            come[b].kind = SHARD_ROW;
            come[b].row_begin = b * ((rows + 1) / 2);
            come[b].row_end = b ? rows : (rows + 1) / 2;
        }
        spots[h] = try_out(scene, &(struct edit){gone, n_gone, come, PER_HOST});
        spots[h].order = h;
    }
    check_best(ways, spots, N_GPUS / PER_HOST, "rows over GPUs ", 1, tally);
}

/* Returns true if the column pieces have equal widths, or differ by one width
 * step, and are on different GPUs. */
static bool are_even(const struct way *way, uint32_t table)
{
    uint32_t used = 0, least = UINT32_MAX, most = 0;

    for (size_t i = 0; i < way->plan.n_shards; i++) {
        const struct shard *shard = &way->plan.shards[i];
        uint32_t width = shard->col_end - shard->col_begin;

        if (shard->table != table)
            continue;
        if (shard->kind != SHARD_COLUMN || used >> shard->device & 1)
            return false;
        used |= 1u << shard->device;
        least = width < least ? width : least;
        most = width > most ? width : most;
    }
    return most - least <= TABLE_COLUMN_STEP;
}

static bool is_same(const struct plan *a, const struct plan *b)
{
    bool same = a->n_shards == b->n_shards;

    for (size_t i = 0; same && i < a->n_shards; i++) {
        const struct shard *p = &a->shards[i], *q = &b->shards[i];

        same = p->table == q->table && p->device == q->device &&
               p->row_begin == q->row_begin && p->col_begin == q->col_begin &&
               p->row_end == q->row_end && p->col_end == q->col_end;
    }
    return same;
}

/* Returns true if a shard of the table begins at this row and column on this
 * GPU. */
static bool has(const struct way *way, uint32_t table, uint64_t row,
                uint32_t col, uint32_t device)
{
    for (size_t i = 0; i < way->plan.n_shards; i++) {
        const struct shard *shard = &way->plan.shards[i];

        if (shard->table == table && shard->row_begin == row &&
            shard->col_begin == col && shard->device == device)
            return true;
    }
    return false;
}

/* Returns true if the table is placed as the way's name claims. */
static bool is_well_named(const struct way *way, uint32_t table)
{
    unsigned a, b, c, n_there = 0;
    const char *name = way->name;

    for (size_t i = 0; i < way->plan.n_shards; i++)
        n_there += way->plan.shards[i].table == table;
    if (!strcmp(name, "replicated"))
        return n_there == N_GPUS && has(way, table, 0, 0, N_GPUS - 1);
    if (!strcmp(name, "rows over all 6 GPUs"))
        return n_there > 1 && has(way, table, 0, 0, 0);
    if (sscanf(name, "whole on GPU %u", &a) == 1)
        return n_there == 1 && has(way, table, 0, 0, a);
    if (sscanf(name, "rows over GPUs %u-%u", &a, &b) == 2)
        return n_there == b - a + 1 && has(way, table, 0, 0, a);
    if (sscanf(name, "%u column pieces on GPUs %u", &a, &b) == 2 ||
        sscanf(name, "%u row blocks on GPUs %u", &a, &b) == 2)
        return n_there == a && has(way, table, 0, 0, b);
    if (sscanf(name, "%u x %u grid on GPUs %u", &a, &b, &c) == 3)
        return n_there == a * b && has(way, table, 0, 0, c);
    if (sscanf(name, "columns %u-%u to GPU %u", &a, &b, &c) == 3)
        return a < b && has(way, table, 0, a, c);
    return sscanf(name, "row %u, column %u on to GPU %u", &a, &b, &c) == 3 &&
           has(way, table, a, b, c);
}

/* Returns true if the message names the first GPU that is short of memory. */
static bool says_shortage(const struct way *way, struct arena *arena)
{
    const struct cluster *cluster = &way->plan.problem.cluster;
    char text[TEXT_BYTES_MAX];
    uint32_t r = 0;

    while (way->plan.devices[r].memory.total <= cluster->memory_bytes[r])
        r++;
    text_from_bytes(text, (double)(way->plan.devices[r].memory.total -
                                   cluster->memory_bytes[r]));
    return way->why_not &&
           !strcmp(way->why_not,
                   arena_printf(arena, "GPU %u is %s short, mostly weights", r,
                                text));
}

/* Each way is a plan that is priced and checked like any other. Shards of other
 * tables are unchanged. */
static void check_each(struct scene *scene, const struct ways *ways,
                       uint32_t table, struct tally *tally)
{
    const struct way *best = ways_best(ways);

    for (size_t i = 0; i < ways->n; i++) {
        const struct way *way = &ways->ways[i];
        struct plan plan = way->plan;
        struct err err = {0};
        size_t n_others = 0;

        tally->n++;
        plan.total_ms = NAN;
        tally->n_wrong +=
            plan_price(&plan, &scene->oracle.base, &scene->arena, &err) ||
            plan.total_ms != way->total_ms;
        tally->n_wrong += way->is_allowed == (plan_check(&plan, &err) != 0);
        tally->n_wrong += way->is_allowed != !way->why_not;
        tally->n_refused += !way->is_allowed;
        tally->n_wrong +=
            way->is_allowed &&
            !(best && best->total_ms <= way->total_ms && best->is_allowed);
        tally->n_wrong +=
            err.code == ERR_NO_PLAN && !says_shortage(way, &scene->arena);
        tally->n_wrong +=
            strstr(way->name, "column pieces") && !are_even(way, table);
        tally->n_wrong += !is_well_named(way, table);
        tally->n_wrong += is_same(&plan, &scene->plan);
        for (size_t k = 0; k < plan.n_shards; k++)
            n_others += !tables_share_group(&scene->problem, table,
                                            plan.shards[k].table);
        for (size_t k = 0; k < scene->plan.n_shards; k++)
            n_others -= !tables_share_group(&scene->problem, table,
                                            scene->plan.shards[k].table);
        tally->n_wrong += n_others != 0;
    }
}

/* Only shard kinds that the cost model can price are tried. */
static void check_kinds(struct scene *scene, const struct ways *ways,
                        uint32_t table, struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0};
    unsigned kinds = scene->oracle.base.kinds;
    bool is_one = !scene->problem.tables[table].group;
    enum shard_kind now;

    shards_of(scene, table, gone);
    now = scene->plan.shards[gone[0]].kind;
    tally->n_wrong +=
        (count(ways, "whole on ") > 0) != ((kinds & SHARD_TABLE) != 0);
    tally->n_wrong +=
        (count(ways, "replicated") > 0) !=
        (is_one && (kinds & SHARD_REPLICATE) && now != SHARD_REPLICATE);
    tally->n_wrong +=
        (count(ways, "rows over all ") > 0) != (is_one && (kinds & SHARD_ROW));
    tally->n_wrong += (count(ways, "2 column pieces ") > 0) >
                      (is_one && (kinds & SHARD_COLUMN));
    tally->n_wrong += count_grids(ways) > (is_one && (kinds & SHARD_GRID));
}

/* Each shard kind is either the table's current one, or is among the ways, or
 * is listed as not tried with the reason. The reasons "no price" and "group"
 * take precedence over all others. */
static void check_untried(struct scene *scene, const struct ways *ways,
                          uint32_t table, struct tally *tally)
{
    static const struct {
        enum shard_kind kind;
        const char *name;
    } kinds[] = {{SHARD_TABLE, "not whole"},
                 {SHARD_COLUMN, "not in columns"},
                 {SHARD_ROW, "not in rows"},
                 {SHARD_GRID, "not in a grid"},
                 {SHARD_REPLICATE, "not replicated"}};
    size_t gone[N_TABLES * N_GPUS] = {0};
    unsigned there = 0;

    shards_of(scene, table, gone);
    there = (unsigned)scene->plan.shards[gone[0]].kind;
    for (size_t i = 0; i < ways->n; i++)
        for (size_t k = 0; k < ways->ways[i].plan.n_shards; k++)
            if (ways->ways[i].plan.shards[k].table == table)
                there |= (unsigned)ways->ways[i].plan.shards[k].kind;
    for (size_t k = 0; k < N_SHARD_KINDS; k++) {
        const bool has_price = scene->oracle.base.kinds & kinds[k].kind;
        const char *why_not = NULL, *want = NULL;

        for (size_t i = 0; i < ways->n_untried; i++)
            if (!strcmp(ways->ways[ways->n + i].name, kinds[k].name))
                why_not = ways->ways[ways->n + i].why_not;
        tally->n_wrong += !why_not != ((there & kinds[k].kind) != 0);
        if (!has_price)
            want = "the cost model has no price for it";
        else if (scene->problem.tables[table].group)
            want = "the tables of a group stay whole";
        tally->n_wrong += why_not && want && strcmp(why_not, want) != 0;
    }
}

/* The time of the step without the table equals that of a plan in which the
 * table is never looked up. */
static void check_without(struct scene *scene, const struct ways *ways,
                          uint32_t table, struct tally *tally)
{
    size_t gone[N_TABLES * N_GPUS] = {0},
                           n_gone = shards_of(scene, table, gone);
    struct edit edit = {gone, n_gone, NULL, 0};
    double want_ms = what_if_step(&scene->what_if, &edit);

    tally->n_wrong += !(fabs(ways->without_ms - want_ms) <= 1e-9 * want_ms);
}

/* A third piece on a GPU has no price: all ways that place one there must
 * report this. */
static void check_unpriced(void)
{
    const uint32_t device_of[] = {0, 1, 1};
    struct problem problem;
    struct oracle oracle;
    struct what_if what_if;
    struct plan plan;
    struct ways ways;
    struct arena arena = {0};
    struct err err = {0};
    size_t n_unpriced = 0;

    fake_equal_problem(&problem, 3, 2, &arena);
    plan = fake_whole_plan(&problem, device_of, 3, &arena);
    oracle = fake_nan_oracle(&plan.problem);
    ok(!plan_price(&plan, &oracle, &arena, &err), "two are priced: %s",
       err.msg);
    what_if_init(&what_if, &plan, &oracle);
    ways_find(&ways, &what_if, 0, &arena);
    for (size_t i = 0; i < ways.n; i++)
        n_unpriced += isnan(ways.ways[i].total_ms) &&
                      !ways.ways[i].is_allowed && ways.ways[i].why_not &&
                      strstr(ways.ways[i].why_not, "no finite cost");
    ok(ways.n > 1 && n_unpriced == ways.n, "of %zu ways, %zu have no price",
       ways.n, n_unpriced);
    what_if_release(&what_if);
    arena_release(&arena);
}

int main(void)
{
    struct tally tally = {0};
    size_t n_all_rows = 0, n_copies = 0, n = tap_size(200, 5000);

    for (uint64_t seed = 0; seed < n; seed++) {
        uint32_t table = (uint32_t)(seed % N_TABLES);
        struct scene scene;
        struct ways ways;

        if (!scene_open(&scene, seed)) {
            scene_close(&scene);
            continue;
        }
        ways_find(&ways, &scene.what_if, table, &scene.arena);
        check_each(&scene, &ways, table, &tally);
        if (scene.oracle.base.kinds & SHARD_TABLE)
            check_whole(&scene, &ways, table, &tally);
        check_moves(&scene, &ways, table, SHARD_COLUMN, "columns ", &tally);
        check_moves(&scene, &ways, table, SHARD_ROW, "row ", &tally);
        check_columns(&scene, &ways, table, &tally);
        if (scene.oracle.base.kinds & SHARD_ROW)
            check_hosts(&scene, &ways, table, &tally);
        check_without(&scene, &ways, table, &tally);
        check_kinds(&scene, &ways, table, &tally);
        check_untried(&scene, &ways, table, &tally);
        n_all_rows += count(&ways, "rows over all 6 GPUs");
        n_copies += count(&ways, "replicated");
        scene_close(&scene);
    }
    is_i64((int64_t)tally.n_wrong, 0,
           "ways match their names and are the cheapest");
    ok(tally.n > 4 * n && tally.n_refused > n / 4 && tally.n_places > 2 * n,
       "of %zu ways %zu are refused, %zu are places", tally.n, tally.n_refused,
       tally.n_places);
    ok(n_all_rows > n / 2 && n_copies > n / 4,
       "%zu over all rows, %zu replicated", n_all_rows, n_copies);
    check_unpriced();
    return tap_done();
}
