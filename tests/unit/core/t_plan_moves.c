/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "core/plan_moves.h"

#include "base/rng.h"
#include "core/plan_check.h"
#include "tests/tap.h"

#define GIB (UINT64_C(1) << 30)
#define MAX_TABLES 6u

static void make_problem(struct problem *problem, uint32_t n_devices, size_t n,
                         struct arena *arena)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, n),
        .n_tables = n,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = n_devices,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)},
        .batch = 8,
        .kinds = SHARD_ALL_KINDS,
    };
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] = 64 * GIB;
    for (size_t t = 0; t < n; t++) {
        table_init(&problem->tables[t]);
        problem->tables[t].name = arena_printf(arena, "t%zu", t);
        problem->tables[t].num_embeddings = 100;
        problem->tables[t].dim = 16;
        problem->tables[t].pooling_factor = 1;
    }
}

/* A piece of the plan's only table: rows, columns and device. */
struct cells {
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end, device;
};

static struct plan make_plan(uint32_t n_devices, const struct cells *cells,
                             size_t n, struct arena *arena)
{
    struct plan plan = {.total_ms = NAN, .bound_ms = NAN};

    make_problem(&plan.problem, n_devices, 1, arena);
    plan.shards = ARENA_NEW(arena, struct shard, n);
    plan.n_shards = n;
    for (size_t i = 0; i < n; i++)
        plan.shards[i] = (struct shard){.row_begin = cells[i].row_begin,
                                        .row_end = cells[i].row_end,
                                        .col_begin = cells[i].col_begin,
                                        .col_end = cells[i].col_end,
                                        .device = cells[i].device};
    plan_derive_kinds(&plan);
    return plan;
}

static struct plan_moves find(const struct plan *before,
                              const struct plan *after, struct arena *arena)
{
    struct plan_moves moves;

    plan_moves_find(&moves, before, after, arena);
    return moves;
}

static const struct cells whole_0[] = {{0, 100, 0, 16, 0}};
static const struct cells whole_1[] = {{0, 100, 0, 16, 1}};
static const struct cells halves[] = {{0, 100, 0, 8, 0}, {0, 100, 8, 16, 1}};
static const struct cells thirds[] = {{0, 100, 0, 12, 1}, {0, 100, 12, 16, 0}};
static const struct cells rows[] = {{0, 60, 0, 16, 0}, {60, 100, 0, 16, 1}};
static const struct cells twice[] = {{0, 100, 0, 16, 0}, {0, 100, 0, 16, 1}};
static const struct cells thrice[] = {
    {0, 100, 0, 16, 0}, {0, 100, 0, 16, 1}, {0, 100, 0, 16, 2}};

/* Bytes moved with row-wise Adagrad: 4 B per weight and 4 B of state per
 * row. */
static void check_cells(struct arena *arena)
{
    static const struct {
        const char *what;
        const struct cells *before, *after;
        size_t n_before, n_after;
        uint64_t moved, kept;
        size_t n_moves;
        enum table_fate fate;
    } cases[] = {
        {"stays", whole_0, whole_0, 1, 1, 0, 6800, 0, FATE_KEPT},
        {"moves", whole_0, whole_1, 1, 1, 6800, 0, 1, FATE_MOVED},
        {"is halved", whole_0, halves, 1, 2, 3600, 3600, 1, FATE_MOVED},
        {"is merged", halves, whole_1, 2, 1, 3600, 3600, 1, FATE_MOVED},
        /* columns 0-8 go from 0 to 1, 8-12 stay on 1, 12-16 go from 1 to 0 */
        {"is recut", halves, thirds, 2, 2, 3600 + 2000, 2000, 2, FATE_MOVED},
        /* columns 8-16 of rows 0-60 move, and columns 0-8 of rows 60-100 */
        {"columns become rows", halves, rows, 2, 2, 60 * 36 + 40 * 36,
         60 * 36 + 40 * 36, 2, FATE_MOVED},
        {"is replicated", whole_1, twice, 1, 2, 6800, 6800, 1, FATE_MOVED},
        {"is one again", twice, whole_1, 2, 1, 0, 6800, 0, FATE_MOVED},
        {"is on one more", twice, thrice, 2, 3, 6800, 2 * 6800, 1, FATE_MOVED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan before =
            make_plan(3, cases[i].before, cases[i].n_before, arena);
        struct plan after =
            make_plan(3, cases[i].after, cases[i].n_after, arena);
        struct plan_moves moves;

        /* a table is only replicated if it is on all devices, so use two
         * devices */
        if (cases[i].before != thrice && cases[i].before == twice)
            before.problem.cluster.n_devices = 2;
        moves = find(&before, &after, arena);
        ok(moves.bytes.moved == cases[i].moved &&
               moves.bytes.kept == cases[i].kept &&
               moves.n_moves == cases[i].n_moves && !moves.bytes.added &&
               !moves.bytes.removed && moves.tables[0].fate == cases[i].fate,
           "a table %s: %" PRIu64 " move, %" PRIu64 " stay, %zu moves, %s",
           cases[i].what, moves.bytes.moved, moves.bytes.kept, moves.n_moves,
           table_fate_names[moves.tables[0].fate]);
    }
}

/* The migrated bytes are those that the receiving GPU holds afterwards, as
 * counted by shard_memory without the batch. State migrates only if the same
 * optimizer updates the table before and after. */
static void check_replicas(struct arena *arena)
{
    static const struct {
        enum dense_optimizer before, after;
        /* bytes of a replica's state / bytes of its weights */
        uint64_t n_times;
    } cases[] = {{DENSE_ADAM, DENSE_ADAM, 2},
                 {DENSE_ADAGRAD, DENSE_ADAGRAD, 1},
                 {DENSE_SGD, DENSE_SGD, 0},
                 {DENSE_SGD, DENSE_ADAM, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan one = make_plan(3, whole_1, 1, arena);
        struct plan two = make_plan(3, twice, 2, arena);
        struct plan three = make_plan(3, thrice, 3, arena);
        uint64_t copy = 6400 * (1 + cases[i].n_times);
        struct plan_moves moves;
        struct memory_items items;

        two.problem.cluster.n_devices = 2;
        one.problem.dense_optimizer = cases[i].after;
        two.problem.dense_optimizer = cases[i].before;
        three.problem.dense_optimizer = cases[i].after;
        three.problem.batch = 0;
        items = shard_memory(&three.problem, three.shards);
        moves = find(&two, &three, arena);
        ok(moves.bytes.moved == copy && moves.bytes.kept == 2 * copy &&
               (cases[i].before != cases[i].after ||
                items.weights + items.optimizer == copy),
           "a replica more of %s to %s: %" PRIu64 " B",
           dense_optimizer_names[cases[i].before],
           dense_optimizer_names[cases[i].after], moves.bytes.moved);
        moves = find(&one, &three, arena);
        ok(moves.bytes.moved == 2 * 6400 && moves.bytes.kept == 6400 &&
               !moves.bytes.added,
           "a table with row-wise Adagrad brings its replicas no state");
        if (cases[i].before != cases[i].after)
            continue;
        two.problem.tables[0].name = "gone";
        moves = find(&two, &three, arena);
        is_i64((int64_t)moves.bytes.removed, (int64_t)(2 * copy),
               "both copies go, state and all");
    }
}

static void check_move(struct arena *arena)
{
    struct plan before = make_plan(2, halves, 2, arena);
    struct plan after = make_plan(2, rows, 2, arena);
    struct plan_moves moves = find(&before, &after, arena);
    const struct move *move = &moves.moves[0];

    ok(move->to == 0 && move->from == 1 && move->row_begin == 0 &&
           move->row_end == 60 && move->col_begin == 8 && move->col_end == 16,
       "a move is the rectangle that both pieces have");
    is_i64((int64_t)moves.received_bytes[0], 60 * 36, "GPU 0 receives it");
    is_i64((int64_t)moves.sent_bytes[1], 60 * 36, "GPU 1 sends it");
    is_i64((int64_t)moves.sent_bytes[0], 40 * 36, "and gets the other");
}

static void check_formats(struct arena *arena)
{
    struct plan before = make_plan(2, whole_0, 1, arena);
    struct plan after = make_plan(2, whole_1, 1, arena);
    struct table *old = &before.problem.tables[0];
    struct table *now = &after.problem.tables[0];
    static const struct {
        enum precision precision;
        enum optimizer optimizer;
        uint64_t bytes;
    } cases[] = {
        {PRECISION_FP16, OPTIMIZER_SGD, 3200},
        {PRECISION_FP32, OPTIMIZER_ADAGRAD, 12800},
        {PRECISION_INT8, OPTIMIZER_ADAM, 4800},
        {PRECISION_BF16, OPTIMIZER_ROWWISE_ADAGRAD, 3600},
    };
    struct plan_moves moves;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        old->precision = now->precision = cases[i].precision;
        old->optimizer = now->optimizer = cases[i].optimizer;
        before.problem.memory_model = MEMORY_WEIGHTS;
        is_i64((int64_t)find(&before, &after, arena).bytes.moved,
               (int64_t)cases[i].bytes,
               "weights and state, whatever counts as memory");
    }
    now->optimizer = OPTIMIZER_SGD;
    moves = find(&before, &after, arena);
    is_i64((int64_t)moves.bytes.moved, 3200,
           "another optimizer does not take the state");
    is_i64(moves.tables[0].fate, FATE_CHANGED, "and the table has changed");
    now->num_embeddings = 150;
    after.shards[0].row_end = 150;
    moves = find(&before, &after, arena);
    is_i64((int64_t)moves.bytes.moved, 3200, "old rows move");
    is_i64((int64_t)moves.bytes.added, 50 * 16 * 2, "further ones are new");
}

/* A table of 100 x 16 grows to 150 x 24. However the old table was cut, the
 * same number of bytes is new: 50 rows with their state, and 8 columns of the
 * old rows. A second new piece adds a state per row of its own. */
static void check_growth(struct arena *arena)
{
    static const struct cells quarters[] = {{0, 100, 0, 4, 0},
                                            {0, 100, 4, 8, 1},
                                            {0, 100, 8, 12, 1},
                                            {0, 100, 12, 16, 0}};
    static const struct cells grown[] = {{0, 150, 0, 24, 1}};
    static const struct cells grown_halves[] = {{0, 150, 0, 12, 0},
                                                {0, 150, 12, 24, 1}};
    static const struct {
        const struct cells *cells;
        size_t n;
    } cuts[] = {{whole_0, 1}, {halves, 2}, {thirds, 2},
                {rows, 2},    {twice, 2},  {quarters, 4}};
    const uint64_t weights = 4 * (150 * 24 - 100 * 16), states = 4 * 50;

    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (uint64_t n = 1; n <= 2; n++) {
            struct plan before = make_plan(2, cuts[i].cells, cuts[i].n, arena);
            struct plan after =
                make_plan(2, n == 1 ? grown : grown_halves, n, arena);

            after.problem.tables[0].num_embeddings = 150;
            after.problem.tables[0].dim = 24;
            plan_derive_kinds(&after);
            is_i64((int64_t)find(&before, &after, arena).bytes.added,
                   (int64_t)(weights + n * states),
                   "bytes of new weights and states");
        }
}

/* Column pieces on one GPU merge into one piece. Nothing moves, though the
 * merged rows have their overhead only once. */
static void check_merged(struct arena *arena)
{
    static const struct cells apart[] = {{0, 100, 0, 8, 0}, {0, 100, 8, 16, 0}};
    struct plan before = make_plan(2, apart, 2, arena);
    struct plan after = make_plan(2, whole_0, 1, arena);
    struct plan_moves moves;

    before.problem.layout = after.problem.layout = LAYOUT_FBGEMM;
    before.problem.tables[0].precision = PRECISION_INT8;
    after.problem.tables[0].precision = PRECISION_INT8;
    before.problem.tables[0].row_overhead_bytes = 20;
    after.problem.tables[0].row_overhead_bytes = 20;
    moves = find(&before, &after, arena);
    is_i64(moves.tables[0].fate, FATE_KEPT, "merged pieces are kept");
    is_i64((int64_t)moves.bytes.moved, 0, "and nothing moves");
}

static void check_tables(struct arena *arena)
{
    struct plan before = make_plan(2, whole_0, 1, arena);
    struct plan after = make_plan(4, whole_1, 1, arena);
    struct plan_moves moves;

    after.problem.tables[0].name = "another";
    moves = find(&before, &after, arena);
    is_i64((int64_t)moves.bytes.moved, 0, "other tables do not move");
    is_i64((int64_t)moves.bytes.added, 6800, "one is new");
    is_i64((int64_t)moves.bytes.removed, 6800, "one is no more");
    is_i64(moves.n_devices, 4, "the larger cluster counts");
    ok(moves.n_tables == 2 && moves.n_fates[FATE_ADDED] == 1 &&
           moves.n_fates[FATE_REMOVED] == 1,
       "both are listed");
    is_str(moves.tables[0].name, "another", "the new plan's first");
}

/* Places a table at random: as columns, rows, a grid or a replica, on any
 * devices. */
static void place_at_random(struct plan *plan, uint32_t table, struct rng *rng)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    uint32_t n_columns = 1u << rng_below(rng, 3);
    uint64_t n_rows = 1 + rng_below(rng, 3);
    bool is_replica = !rng_below(rng, 4);

    for (uint32_t r = 0; is_replica && r < n_devices; r++)
        plan->shards[plan->n_shards++] = shard_whole(&plan->problem, table, r);
    for (uint32_t c = 0; !is_replica && c < n_columns; c++)
        for (uint64_t k = 0; k < n_rows; k++)
            plan->shards[plan->n_shards++] = (struct shard){
                .table = table,
                .row_begin = 100 * k / n_rows,
                .row_end = 100 * (k + 1) / n_rows,
                .col_begin = 16 * c / n_columns,
                .col_end = 16 * (c + 1) / n_columns,
                .device = (uint32_t)rng_below(rng, n_devices),
            };
}

/* Makes a random plan of six tables. Tables of both plans are the same table if
 * they have the same name. */
static struct plan random_plan(struct rng *rng, struct arena *arena)
{
    struct plan plan = {.total_ms = NAN, .bound_ms = NAN};

    make_problem(&plan.problem, 1 + (uint32_t)rng_below(rng, 4), MAX_TABLES,
                 arena);
    plan.shards = ARENA_NEW(arena, struct shard, MAX_TABLES * 16);
    for (uint32_t t = 0; t < MAX_TABLES; t++) {
        plan.problem.tables[t].optimizer = OPTIMIZER_SGD;
        if (rng_below(rng, 3) == 0)
            plan.problem.tables[t].name =
                arena_printf(arena, "t%u of %u", t, rng_draw(rng, 2));
        place_at_random(&plan, t, rng);
    }
    plan_derive_kinds(&plan);
    return plan;
}

static uint64_t held_bytes(const struct plan *plan)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        sum += 4 * (plan->shards[i].row_end - plan->shards[i].row_begin) *
               (plan->shards[i].col_end - plan->shards[i].col_begin);
    return sum;
}

/* Returns true if each cell of the new plan either stays or arrives, and is
 * counted once. */
static bool tiles(const struct plan_moves *moves, const struct plan *after)
{
    uint64_t sent = 0, received = 0, moved = 0;

    for (uint32_t r = 0; r < moves->n_devices; r++) {
        sent += moves->sent_bytes[r];
        received += moves->received_bytes[r];
    }
    for (size_t i = 0; i < moves->n_moves; i++) {
        const struct move *move = &moves->moves[i];

        if (move->from == move->to)
            return false;
        moved += move->bytes;
    }
    return sent == moves->bytes.moved && received == sent && moved == sent &&
           moves->bytes.moved + moves->bytes.kept + moves->bytes.added ==
               held_bytes(after);
}

static bool has_table(const struct plan *plan, const char *name)
{
    for (size_t t = 0; t < plan->problem.n_tables; t++)
        if (!strcmp(plan->problem.tables[t].name, name))
            return true;
    return false;
}

/* Returns true if the moves list the tables of the new plan, then the removed
 * ones, and their bytes add up to the total. */
static bool lists_all(const struct plan_moves *moves, const struct plan *before,
                      const struct plan *after)
{
    const struct plan *plans[] = {after, before};
    struct moved_bytes sum = {0};
    size_t n = 0;

    for (size_t i = 0; i < 2 * MAX_TABLES; i++) {
        const struct plan *plan = plans[i / MAX_TABLES];
        const char *name = plan->problem.tables[i % MAX_TABLES].name;
        const struct table_moves *table = &moves->tables[n];
        bool is_shared = has_table(plans[1 - i / MAX_TABLES], name);

        if (plan == before && is_shared)
            continue;
        if (n++ == moves->n_tables || strcmp(table->name, name) ||
            is_shared != (table->fate < FATE_ADDED))
            return false;
        sum.moved += table->bytes.moved;
        sum.kept += table->bytes.kept;
        sum.added += table->bytes.added;
        sum.removed += table->bytes.removed;
    }
    return n == moves->n_tables && !memcmp(&sum, &moves->bytes, sizeof(sum));
}

static void check_random(void)
{
    size_t n_bad = 0, n_same = 0, n_back = 0, n_unlisted = 0;
    size_t n_lost = 0, n_new = 0;

    for (uint64_t seed = 0; seed < 500; seed++) {
        struct arena arena = {0};
        struct plan a, b;
        struct plan_moves there, back, same;
        struct err err = {0};
        struct rng rng;
        bool has_replica = false;

        rng_init(&rng, seed, 1);
        a = random_plan(&rng, &arena);
        b = random_plan(&rng, &arena);
        n_bad += plan_check(&a, &err) || plan_check(&b, &err);
        there = find(&a, &b, &arena);
        back = find(&b, &a, &arena);
        same = find(&a, &a, &arena);
        n_bad += !tiles(&there, &b) || !tiles(&back, &a);
        n_unlisted += !lists_all(&there, &a, &b);
        n_lost += there.bytes.added != back.bytes.removed;
        n_new += there.bytes.added > 0;
        n_same += !same.n_moves && same.n_fates[FATE_KEPT] == MAX_TABLES;
        for (size_t i = 0; i < a.n_shards; i++)
            has_replica |= a.shards[i].kind == SHARD_REPLICATE;
        for (size_t i = 0; i < b.n_shards; i++)
            has_replica |= b.shards[i].kind == SHARD_REPLICATE;
        n_back += has_replica || there.bytes.moved == back.bytes.moved;
        arena_release(&arena);
    }
    is_i64((int64_t)n_bad, 0,
           "bytes that stay and that move tile the new plan");
    ok(n_new > 300 && !n_lost,
       "the reverse change sends the received bytes, %zu times", n_new);
    is_i64((int64_t)n_unlisted, 0, "all tables are listed with their bytes");
    is_i64((int64_t)n_same, 500, "a plan is itself");
    is_i64((int64_t)n_back, 500, "without replicas the way back is as long");
}

int main(void)
{
    struct arena arena = {0};

    check_cells(&arena);
    check_replicas(&arena);
    check_move(&arena);
    check_formats(&arena);
    check_growth(&arena);
    check_merged(&arena);
    check_tables(&arena);
    check_random();
    arena_release(&arena);
    return tap_done();
}
