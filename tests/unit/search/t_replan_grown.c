/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "search/search.h"

#include "core/cluster.h"
#include "core/plan_moves.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

/* Random current plans with all kinds of cuts, whose tables grow, shrink, come
 * and go. */

#define EFFORT 4000
#define MAX_TABLES 30 /* the limit of fake_random */
/* With this seed, grids of uneven blocks are on one GPU. Equal blocks would put
 * two of the same row block on one GPU. */
#define ONE_GPU_SEED 2046

struct scene {
    struct arena arena;
    struct rng rng;
    struct problem old, problem;
    struct random_oracle oracle;
    struct plan from;
    /* for tables in equal blocks: the number of ranks */
    uint32_t n_ranks[MAX_TABLES];
    /* `from` with the current rows; row blocks are equal if they must be */
    struct plan grown;
    bool grown_fits; /* true if `grown` fits together with the new tables */
};

static uint32_t draw(struct scene *scene, uint32_t n)
{
    return (uint32_t)rng_below(&scene->rng, n);
}

/* --- a current plan --- */

static void add(struct plan *plan, struct shard shard)
{
    plan->shards[plan->n_shards++] = shard;
}

/* Cuts columns into pieces of any widths. Pieces on one GPU have equal widths
 * or are adjacent. */
static void cut_columns(struct scene *scene, struct shard piece, uint32_t dim)
{
    uint32_t n = scene->old.cluster.n_devices, left = dim;
    uint32_t first = draw(scene, n);

    for (uint32_t i = 0; i < n && left; i++) {
        uint32_t width = 4 * (1 + draw(scene, left / 4));

        piece.col_begin = dim - left;
        piece.col_end = i + 1 == n ? dim : piece.col_begin + width;
        piece.device = (first + i) % n;
        left = dim - piece.col_end;
        if (draw(scene, 3) || piece.col_end - piece.col_begin < 8) {
            add(&scene->from, piece);
            continue;
        }
        piece.col_end -= 4; /* two adjacent pieces */
        add(&scene->from, piece);
        piece.col_begin = piece.col_end;
        piece.col_end += 4;
        add(&scene->from, piece);
    }
}

/* Adds equal blocks in order, on n GPUs starting at GPU `first`. */
static void add_blocks(struct plan *plan, struct shard piece, uint64_t rows,
                       uint32_t first, uint32_t n)
{
    uint64_t block = (rows - 1) / n + 1;

    for (uint64_t at = 0; at < rows; at += block) {
        piece.row_begin = at;
        piece.row_end = at + block < rows ? at + block : rows;
        piece.device = first + (uint32_t)(at / block);
        add(plan, piece);
    }
}

/* Cuts rows over all GPUs, or over those of a host. */
static void cut_ranks(struct scene *scene, struct shard piece)
{
    const struct cluster *cluster = &scene->old.cluster;
    uint32_t n = cluster->n_devices, per_host = cluster->devices_per_host;
    uint32_t dim = piece.col_end, n_ranges = dim % 8 == 0 ? 2 : 1;

    scene->n_ranks[piece.table] = n;
    if (per_host == n || draw(scene, 2)) {
        add_blocks(&scene->from, piece, piece.row_end, 0, n);
        return;
    }
    scene->n_ranks[piece.table] = per_host;
    for (uint32_t i = 0; i < n_ranges; i++) {
        piece.col_begin = i * dim / n_ranges;
        piece.col_end = (i + 1) * dim / n_ranges;
        add_blocks(&scene->from, piece, piece.row_end, i * per_host, per_host);
    }
}

/* Cuts rows into blocks of any heights on any GPUs. */
static void cut_rows(struct scene *scene, struct shard piece)
{
    uint64_t rows = piece.row_end;

    for (piece.row_end = 0; piece.row_end < rows;) {
        piece.row_begin = piece.row_end;
        piece.row_end += 1 + rng_below(&scene->rng, rows);
        if (piece.row_end > rows)
            piece.row_end = rows;
        piece.device = draw(scene, scene->old.cluster.n_devices);
        add(&scene->from, piece);
    }
}

static void cut_table(struct scene *scene, uint32_t t)
{
    const struct table *table = &scene->old.tables[t];
    uint32_t n = scene->old.cluster.n_devices;
    struct shard whole = shard_whole(&scene->old, t, draw(scene, n));
    bool is_any = scene->oracle.base.row_cut == ROW_CUT_ANY;
    uint32_t how = draw(scene, 6);

    if (how < 2 && table->dim % 4 == 0 && table->dim > 4) {
        cut_columns(scene, whole, table->dim);
    } else if (how <= 3 && table->num_embeddings >= 20 * n && !is_any) {
        cut_ranks(scene, whole);
    } else if (how == 2 && is_any) {
        cut_rows(scene, whole);
    } else if (how == 3 && is_any && table->dim % 8 == 0) {
        uint32_t at = 4 * (1 + draw(scene, table->dim / 4 - 1));

        whole.col_end = at;
        cut_rows(scene, whole);
        whole.col_begin = at;
        whole.col_end = table->dim;
        cut_rows(scene, whole);
    } else if (how == 4 && table->num_embeddings < 1000) {
        for (whole.device = 0; whole.device < n; whole.device++)
            add(&scene->from, whole);
    } else {
        add(&scene->from, whole);
    }
}

/* Makes some of the tables sequences, except those whose rows are cut. */
static void draw_sequences(struct scene *scene, uint64_t seed)
{
    const struct plan *from = &scene->from;
    struct rng rng;

    rng_init(&rng, seed, 12);
    for (uint32_t t = 0; t < scene->old.n_tables; t++)
        if (rng_below(&rng, 4) == 0)
            scene->old.tables[t].output = OUTPUT_SEQUENCE;
    for (size_t i = 0; i < from->n_shards; i++)
        if (from->shards[i].row_end - from->shards[i].row_begin <
            scene->old.tables[from->shards[i].table].num_embeddings)
            scene->old.tables[from->shards[i].table].output = OUTPUT_POOLED;
}

/* --- the new problem --- */

/* Changes the rows and loads of the tables. The first table may be gone, and
 * there are up to two new tables. The GPUs stay the same. */
static void change(struct scene *scene)
{
    struct problem *now = &scene->problem;
    size_t n = scene->old.n_tables, first = n > 1 && draw(scene, 3) == 0;

    *now = scene->old;
    now->tables = ARENA_NEW(&scene->arena, struct table, n + 2);
    now->n_tables = 0;
    for (size_t t = first; t < n; t++) {
        struct table *table = &now->tables[now->n_tables++];

        *table = scene->old.tables[t];
        table->num_embeddings =
            (uint64_t)((double)table->num_embeddings *
                       (0.95 + 0.15 * rng_uniform(&scene->rng)));
        table->num_embeddings += !table->num_embeddings;
        table->pooling_factor *= 0.7 + 0.6 * rng_uniform(&scene->rng);
    }
    for (uint32_t i = draw(scene, 3); i > 0; i--) {
        struct table *table = &now->tables[now->n_tables++];

        *table = scene->old.tables[draw(scene, (uint32_t)n)];
        table->name = arena_printf(&scene->arena, "new%u", i);
    }
    problem_find_hot_rows(now, &scene->arena);
}

/* Makes the current plan with the new numbers of rows, table by table. */
static void grow(struct scene *scene)
{
    const struct problem *old = &scene->old, *now = &scene->problem;
    size_t gone = old->n_tables;
    struct plan *grown = &scene->grown;

    while (gone && strcmp(old->tables[old->n_tables - gone].name,
                          now->tables[0].name) != 0)
        gone--;
    gone = old->n_tables - gone;
    *grown = (struct plan){.problem = *now};
    grown->shards =
        ARENA_NEW(&scene->arena, struct shard, scene->from.n_shards + 2);
    for (size_t i = 0; i < scene->from.n_shards; i++) {
        struct shard shard = scene->from.shards[i];
        uint64_t was = old->tables[shard.table].num_embeddings, rows;
        uint32_t n_ranks;

        if (shard.table < gone)
            continue;
        n_ranks = scene->n_ranks[shard.table];
        shard.table -= (uint32_t)gone;
        rows = now->tables[shard.table].num_embeddings;
        if (n_ranks) {
            if (shard.row_begin == 0) /* once for all blocks of its range */
                add_blocks(grown, shard, rows, shard.device, n_ranks);
            continue;
        }
        if (shard.row_end == was || shard.row_end > rows)
            shard.row_end = rows;
        if (shard.row_begin < shard.row_end)
            add(grown, shard);
    }
}

/* Adds the new tables as whole tables, each on the GPU with the most free
 * memory. */
static void judge_growth(struct scene *scene)
{
    const struct cluster *cluster = &scene->problem.cluster;
    struct plan *grown = &scene->grown;
    uint64_t *held = ARENA_NEW(&scene->arena, uint64_t, cluster->n_devices);
    size_t n_old = scene->problem.n_tables;
    struct memory_items items;
    struct err err = {0};

    for (size_t i = 0; i < grown->n_shards; i++) {
        items = shard_memory(&scene->problem, &grown->shards[i]);
        held[grown->shards[i].device] += items.total;
    }
    while (n_old && !strncmp(scene->problem.tables[n_old - 1].name, "new", 3))
        n_old--;
    for (size_t t = n_old; t < scene->problem.n_tables; t++) {
        struct shard shard = shard_whole(&scene->problem, (uint32_t)t, 0);
        int64_t most = INT64_MIN;

        for (uint32_t r = 0; r < cluster->n_devices; r++) {
            int64_t left = (int64_t)(cluster->memory_bytes[r] - held[r]) -
                           (int64_t)cluster->reserve_bytes[r];

            if (left > most) {
                most = left;
                shard.device = r;
            }
        }
        items = shard_memory(&scene->problem, &shard);
        held[shard.device] += items.total;
        add(grown, shard);
    }
    plan_derive_kinds(grown);
    scene->grown_fits = !plan_check(grown, &err);
}

static void open_scene(struct scene *scene, uint64_t seed)
{
    struct cluster *cluster = &scene->old.cluster;
    double slack = 1, most = 0;

    *scene = (struct scene){0};
    rng_init(&scene->rng, seed, 11);
    fake_random(&scene->old, &scene->rng, 3, &scene->arena);
    random_oracle_init(&scene->oracle, &scene->old, &scene->rng);
    if (cluster->n_devices % 2 == 0 && draw(scene, 2))
        cluster->devices_per_host = cluster->n_devices / 2;
    if (draw(scene, 2))
        scene->oracle.base.row_cut = ROW_CUT_RANKS;
    scene->from.problem = scene->old;
    scene->from.shards =
        ARENA_NEW(&scene->arena, struct shard, 1000 * scene->old.n_tables);
    for (uint32_t t = 0; t < scene->old.n_tables; t++)
        cut_table(scene, t);
    draw_sequences(scene, seed);
    plan_derive_kinds(&scene->from);
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        double held = 0;

        for (size_t i = 0; i < scene->from.n_shards; i++) {
            struct memory_items items;

            items = shard_memory(&scene->old, &scene->from.shards[i]);
            held += scene->from.shards[i].device == r ? (double)items.total : 0;
        }
        most = fmax(most, held);
    }
    slack += 0.4 * rng_uniform(&scene->rng);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->memory_bytes[r] = (uint64_t)(slack * most) + 100;
    change(scene);
    grow(scene);
    judge_growth(scene);
    if (draw(scene, 4) == 0) { /* other GPUs, perhaps other columns */
        scene->grown_fits = false;
        if (draw(scene, 2))
            scene->problem.tables[0].dim = 4 * (1 + draw(scene, 40));
        fake_cluster(&scene->problem, 1 + draw(scene, 7),
                     (uint64_t)(3 * slack * most) + 100, &scene->arena);
    }
    scene->oracle.base.problem = &scene->problem;
}

/* --- plans --- */

static int replan(struct plan *plan, struct scene *scene, uint64_t limit_bytes,
                  struct replan_report *report, struct err *err)
{
    struct search_options options;

    search_options_init(&options);
    options.effort = EFFORT;
    *err = (struct err){0};
    *plan = (struct plan){.problem = scene->problem};
    if (search_replan(plan, &scene->from, limit_bytes, &scene->oracle.base,
                      &options, report, &scene->arena, err))
        return -1;
    return judge_plan(plan, &scene->oracle.base, &scene->arena, err);
}

/* Returns 1024 for the message "... that will do is 1.00 KiB, 1024 B". */
static uint64_t least_of(const struct err *err)
{
    const char *at = strstr(err->msg, "will do is ");
    uint64_t bytes = 0;

    if (at && (at = strstr(at, ", ")))
        bytes = strtoull(at + 2, NULL, 10);
    return bytes;
}

struct tally {
    size_t n_fit, n_shift, n_lost, n_wrong, n_dearer, n_over, n_torn, n_refused;
};

static uint64_t moved_by(struct scene *scene, const struct plan *plan)
{
    struct plan_moves moves;

    plan_moves_find(&moves, &scene->from, plan, &scene->arena);
    return moves.bytes.moved;
}

/* Returns true if the plan is a point of the Pareto front with this migration,
 * and each point of the front moves more bytes than the one before it for a
 * sufficient gain. */
static bool is_of_front(const struct replan_report *report,
                        const struct plan *plan, uint64_t moved)
{
    const struct replan_point *front = report->front;
    bool is_found = false;

    for (size_t i = 0; i < report->n_front; i++) {
        if (i && (front[i].moved_bytes <= front[i - 1].moved_bytes ||
                  front[i].total_ms >= front[i - 1].total_ms * (1 - 1e-4)))
            return false;
        is_found |=
            front[i].moved_bytes == moved &&
            fabs(front[i].total_ms - plan->total_ms) <= 1e-9 * plan->total_ms;
    }
    return is_found;
}

/* Returns true if the device already holds these columns. */
static bool stands(const struct scene *scene, const struct shard *piece)
{
    const struct shard *then = scene->grown.shards;

    for (size_t i = 0; i < scene->grown.n_shards; i++)
        if (then[i].table == piece->table &&
            then[i].col_begin < piece->col_end &&
            then[i].col_end > piece->col_begin &&
            then[i].device != piece->device)
            return false;
    return true;
}

/* Returns true if column pieces of a sequence have different widths and are not
 * all where they were. */
static bool has_torn_sequence(const struct scene *scene,
                              const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *a = &plan->shards[i];

        if (scene->problem.tables[a->table].output != OUTPUT_SEQUENCE ||
            a->kind != SHARD_COLUMN || stands(scene, a))
            continue;
        for (size_t j = 0; j < plan->n_shards; j++) {
            const struct shard *b = &plan->shards[j];

            if (b->table == a->table &&
                b->col_end - b->col_begin != a->col_end - a->col_begin)
                return true;
        }
    }
    return false;
}

static void try_limits(struct scene *scene, uint64_t seed, struct tally *tally)
{
    static const double fracs[] = {0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 9};
    double last_ms = INFINITY, held = 0;

    for (size_t i = 0; i < scene->from.n_shards; i++) {
        struct memory_items items;

        items = shard_memory(&scene->old, &scene->from.shards[i]);
        held += (double)(items.weights + items.optimizer);
    }
    for (size_t i = 0; i < sizeof fracs / sizeof *fracs; i++) {
        uint64_t limit = (uint64_t)(fracs[i] * held), moved;
        struct replan_report report;
        struct plan plan;
        struct err err;

        if (replan(&plan, scene, limit, &report, &err)) {
            tally->n_wrong += err.code != ERR_NO_PLAN;
            tally->n_lost += isfinite(last_ms) != 0;
            if (isfinite(last_ms) || err.code != ERR_NO_PLAN)
                printf("# seed %" PRIu64 ", limit %" PRIu64 ": %s\n", seed,
                       limit, err.msg);
            continue;
        }
        moved = moved_by(scene, &plan);
        tally->n_over += moved > limit;
        tally->n_torn += has_torn_sequence(scene, &plan);
        tally->n_wrong += !is_of_front(&report, &plan, moved);
        tally->n_dearer += plan.total_ms > last_ms;
        if (moved > limit || plan.total_ms > last_ms ||
            !is_of_front(&report, &plan, moved))
            printf("# seed %" PRIu64 ", limit %" PRIu64 ": moves %" PRIu64
                   ", %.9g ms after %.9g\n",
                   seed, limit, moved, plan.total_ms, last_ms);
        last_ms = plan.total_ms;
    }
}

/* If the tables fit where they grew, nothing must move except rows that equal
 * blocks shift. A limit of the least migration that a message names is
 * enough. */
static void try_in_place(struct scene *scene, uint64_t seed,
                         struct tally *tally)
{
    uint64_t needed = moved_by(scene, &scene->grown);
    struct plan plan;
    struct err err;

    tally->n_fit += scene->grown_fits;
    tally->n_shift += scene->grown_fits && needed;
    if (scene->grown_fits && replan(&plan, scene, needed, NULL, &err)) {
        tally->n_refused++;
        printf("# seed %" PRIu64 ": %" PRIu64 " B would do, but %s\n", seed,
               needed, err.msg);
    }
    if (!replan(&plan, scene, 0, NULL, &err) || !least_of(&err))
        return;
    if (replan(&plan, scene, least_of(&err), NULL, &err)) {
        tally->n_refused++;
        printf("# seed %" PRIu64 ": the least, but %s\n", seed, err.msg);
    }
}

int main(void)
{
    size_t n = tap_size(25, 500);
    struct tally tally = {0};

    for (uint64_t i = 0; i <= n; i++) {
        uint64_t seed = i < n ? i : ONE_GPU_SEED;
        struct scene scene;

        open_scene(&scene, seed);
        try_in_place(&scene, seed, &tally);
        try_limits(&scene, seed, &tally);
        arena_release(&scene.arena);
    }
    ok(tally.n_fit >= n / 4 && tally.n_shift >= n / 20,
       "%zu of %zu fit as they grew, %zu with row blocks that shift",
       tally.n_fit, n, tally.n_shift);
    is_i64((int64_t)tally.n_refused, 0,
           "tables that fit as grown stay, or move the printed bytes");
    is_i64((int64_t)tally.n_wrong, 0,
           "each answer is a plan of the front, or 'no plan'");
    is_i64((int64_t)tally.n_over, 0, "no plan exceeds its limit");
    is_i64((int64_t)tally.n_torn, 0, "new cuts of a sequence have one width");
    is_i64((int64_t)tally.n_lost, 0, "a higher limit finds a plan as well");
    is_i64((int64_t)tally.n_dearer, 0, "and none that costs more");
    return tap_done();
}
