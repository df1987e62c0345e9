/* SPDX-License-Identifier: MIT */
#include "core/plan.h"

#include "base/rng.h"
#include "core/cluster.h"
#include "core/plan_price.h"
#include "tests/tap.h"

/* A cost model of two lanes: lookups x width, and a floor. */
struct fake {
    struct oracle oracle;
    double floor_ms;
};

static void fake_embed(const struct oracle *oracle, const struct shard *shards,
                       size_t n, double *out)
{
    const struct fake *fake = (const struct fake *)oracle;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = shards[i].col_end - shards[i].col_begin;
        out[2 * i + 1] = fake->floor_ms;
    }
}

/* Not additive: ten fused tables cost less than ten single ones. */
static void fake_compute(const struct oracle *oracle, const double *sums,
                         size_t n, double *ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        ms[i] = fmax(sqrt(sums[2 * i]), sums[2 * i + 1]);
}

static void fake_comm(const struct oracle *oracle, size_t n, const double *sums,
                      const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    uint32_t n_devices = oracle->problem->cluster.n_devices;

    (void)sums;
    for (size_t i = 0; i < n * n_devices; i++) {
        fwd_ms[i] = 2;
        bwd_ms[i] = compute_ms[i] > 0 ? 1 : 0;
    }
}

static void fake_phases(const struct oracle *oracle, const double *sums,
                        const double *compute_ms, double (*phases_ms)[N_PHASES])
{
    (void)sums;
    for (uint32_t r = 0; r < oracle->problem->cluster.n_devices; r++)
        phases_ms[r][PHASE_FORWARD] = compute_ms[r];
}

static const struct oracle_ops fake_ops = {.embed = fake_embed,
                                           .compute = fake_compute,
                                           .comm = fake_comm,
                                           .phases = fake_phases};

static struct table tables[2];
static uint64_t memory_bytes[2] = {1u << 20, 1u << 20},
                reserve_bytes[2] = {7, 0};
static struct shard shards[3];

static void make_plan(struct plan *plan, struct fake *fake)
{
    for (int t = 0; t < 2; t++) {
        table_init(&tables[t]);
        tables[t].name = t ? "second" : "first";
        tables[t].num_embeddings = 10;
        tables[t].dim = 16;
        tables[t].pooling_factor = 1;
    }
    *plan = (struct plan){
        .problem = {.tables = tables,
                    .n_tables = 2,
                    .cluster = {.n_devices = 2,
                                .devices_per_host = 2,
                                .memory_bytes = memory_bytes,
                                .reserve_bytes = reserve_bytes},
                    .batch = 4,
                    .kinds = SHARD_ALL_KINDS},
        .shards = shards,
        .n_shards = 3,
    };
    shards[0] = shard_whole(&plan->problem, 1, 0);
    shards[1] = shard_whole(&plan->problem, 0, 1);
    shards[2] = shards[1];
    shards[1].col_begin = 7;
    shards[2].col_end = 7;
    shards[2].device = 0;
    *fake = (struct fake){
        .oracle = {.ops = &fake_ops,
                   .problem = &plan->problem,
                   .cost.name = "fake",
                   .cost.hash = "00",
                   .cost.comm = "constants",
                   .width = 2,
                   .kinds = SHARD_TABLE | SHARD_COLUMN,
                   .floor_lane = 1},
    };
}

static void test_price(struct arena *arena)
{
    unsigned n_known = 0;
    struct plan plan;
    struct fake fake;
    struct err err = {0};

    make_plan(&plan, &fake);
    plan_derive_kinds(&plan);
    is_i64(shards[0].table, 0, "shards are sorted by table");
    is_i64(shards[0].col_end, 7, "then by column");
    is_i64(shards[0].kind, SHARD_COLUMN, "pieces of columns are column shards");
    is_i64(shards[2].kind, SHARD_TABLE, "a whole table is a table shard");
    ok(!plan_price(&plan, &fake.oracle, arena, &err), "priced: %s", err.msg);
    is_near(plan.devices[0].compute_ms, sqrt(23), 1e-12,
            "a device's compute is the head of the sum");
    is_near(plan.devices[1].compute_ms, 3, 1e-12, "of each device");
    is_near(plan.devices[0].total_ms, sqrt(23) + 3, 1e-12, "parts add up");
    is_near(plan.total_ms, sqrt(23) + 3, 1e-12, "the slowest device counts");
    is_near(plan.shard_ms[2], 4, 1e-12, "a shard's cost alone");
    is_i64((int64_t)plan.devices[0].memory.reserve, 7, "the reserve counts");
    is_i64((int64_t)plan.devices[0].memory.weights, 10 * 23 * 4, "weights add");
    is_i64(plan.n_floored, 0, "no prediction was below its floor");
    is_str(plan.cost.name, "fake", "the plan says who priced it");
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        n_known += !isnan(plan.exposed_ms[p]) ||
                   !isnan(plan.devices[0].parts_ms[p]) ||
                   !isnan(plan.devices[1].parts_ms[p]);
    is_i64(n_known, 0, "who knows no phases has no parts of the step");

    fake.floor_ms = 3.5;
    plan.bound_ms = 1;
    ok(!plan_price(&plan, &fake.oracle, arena, &err), "priced with a floor");
    is_i64(plan.n_floored, 2, "raised predictions are counted");
    ok(isnan(plan.bound_ms), "a bound on other costs is forgotten");
    ok(!plan_price(&plan, &fake.oracle, arena, &err), "priced again");
    is_i64(plan.n_floored, 2, "and counted again");
}

static void test_sort(void)
{
    struct plan plan;
    struct fake fake;
    double standalone_ms[] = {1, 0.7, NAN};

    make_plan(&plan, &fake);
    plan.shard_ms = standalone_ms;
    plan_sort_shards(&plan);
    ok(shards[0].table == 0 && shards[0].col_end == 7 &&
           isnan(standalone_ms[0]),
       "a shard that is not priced moves as such");
    ok(shards[1].table == 0 && shards[1].col_begin == 7 &&
           standalone_ms[1] == 0.7,
       "costs stay with their shards");
    ok(shards[2].table == 1 && standalone_ms[2] == 1, "the last one's too");
    plan.shard_ms = NULL;
    make_plan(&plan, &fake);
    plan_sort_shards(&plan);
    ok(shards[0].table == 0 && shards[2].table == 1 && !plan.shard_ms,
       "without costs the shards alone are sorted");
}

static bool comes_after(const struct shard *a, const struct shard *b)
{
    if (a->table != b->table)
        return a->table > b->table;
    if (a->col_begin != b->col_begin)
        return a->col_begin > b->col_begin;
    if (a->row_begin != b->row_begin)
        return a->row_begin > b->row_begin;
    return a->device > b->device;
}

/* Sorts shards by table, then column, row and device; each keeps its cost. */
static void test_sort_any(void)
{
    struct shard any[100], before[100];
    double standalone_ms[100];
    struct plan plan = {
        .shards = any, .shard_ms = standalone_ms, .n_shards = 100};
    size_t n_wrong = 0;
    struct rng rng;

    rng_init(&rng, 15, 0);
    for (size_t i = 0; i < 100; i++) {
        any[i] = (struct shard){.table = rng_draw(&rng, 3),
                                .row_begin = rng_below(&rng, 3),
                                .col_begin = rng_draw(&rng, 3),
                                .col_end = (uint32_t)i,
                                .device = rng_draw(&rng, 3)};
        standalone_ms[i] = (double)i;
    }
    memcpy(before, any, sizeof any);
    plan_sort_shards(&plan);
    for (size_t i = 0; i < 100; i++)
        n_wrong += any[i].col_end != standalone_ms[i] ||
                   memcmp(&any[i], &before[any[i].col_end], sizeof *any) ||
                   (i && comes_after(&any[i - 1], &any[i]));
    is_i64((int64_t)n_wrong, 0, "any shards are sorted, with their costs");
}

static void test_refusals(struct arena *arena)
{
    struct plan plan;
    struct fake fake;
    struct err err = {0};

    make_plan(&plan, &fake);
    plan_derive_kinds(&plan);
    fake.oracle.kinds = SHARD_TABLE;
    ok(plan_price(&plan, &fake.oracle, arena, &err) == -1,
       "a kind that the model lacks is refused");
    is_str(err.msg,
           "cost model 'fake' cannot price column shards (table 'first')",
           "with a sentence");
    fake.oracle.kinds = SHARD_ALL_KINDS;
    fake.floor_ms = INFINITY;
    ok(plan_price(&plan, &fake.oracle, arena, &err) == -1,
       "an infinite cost is refused");
    is_str(err.msg, "cost model 'fake' gives no finite cost for GPU 0",
           "with a sentence");

    make_plan(&plan, &fake);
    fake.oracle.kinds = SHARD_ALL_KINDS;
    fake.oracle.row_cut = ROW_CUT_RANKS;
    shards[1] = shards[2] = shards[0];
    shards[1].row_end = shards[2].row_begin = 1;
    plan.shards = &shards[1];
    plan.n_shards = 2;
    plan_derive_kinds(&plan);
    ok(plan_price(&plan, &fake.oracle, arena, &err) == -1,
       "so are uneven row blocks");
    is_str(err.msg,
           "cost model 'fake' prices row cuts only in equal blocks over all 2 "
           "GPUs or the 2 of one host (table 'second')",
           "with a sentence");
}

/* With rows cut by ranks, the two halves must be on the two GPUs of one host,
 * in their order. */
static void test_hosts(struct arena *arena)
{
    static uint64_t four_gib[4] = {1ull << 32, 1ull << 32, 1ull << 32,
                                   1ull << 32},
                    none[4];

    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = a + 1; b < 4; b++) {
            const bool is_host = a % 2 == 0 && b == a + 1;
            struct plan plan;
            struct fake fake;
            struct err err = {0};

            make_plan(&plan, &fake);
            plan.problem.cluster = (struct cluster){.n_devices = 4,
                                                    .devices_per_host = 2,
                                                    .memory_bytes = four_gib,
                                                    .reserve_bytes = none};
            fake.oracle.kinds = SHARD_ALL_KINDS;
            fake.oracle.row_cut = ROW_CUT_RANKS;
            shards[0] = shard_whole(&plan.problem, 0, 3);
            shards[1] = shard_whole(&plan.problem, 1, a);
            shards[2] = shard_whole(&plan.problem, 1, b);
            shards[1].row_end = shards[2].row_begin = 5;
            plan_derive_kinds(&plan);
            ok(!plan_price(&plan, &fake.oracle, arena, &err) == is_host,
               "halves on %u and %u: %s", a, b, err.msg);
        }
}

/* Tables that differ in precision, optimizer or the like have different
 * hashes. */
static void test_hash_of_numbers(struct arena *arena)
{
    enum { MANY = 2 * 3 * 3 * 2 };
    const char *hashes[MANY];
    size_t n = 0, n_alike = 0;
    struct plan plan;
    struct fake fake;

    make_plan(&plan, &fake);
    for (unsigned i = 0; i < MANY; i++) {
        tables[0].output = i % 2 ? OUTPUT_SEQUENCE : OUTPUT_POOLED;
        tables[0].precision = i / 2 % 3;
        tables[0].comm_precision = i / 6 % 3;
        tables[0].optimizer =
            i / 18 ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_SGD;
        hashes[n++] = plan_inputs_hash(&plan, arena);
        for (size_t k = 0; k + 1 < n; k++)
            n_alike += !strcmp(hashes[k], hashes[n - 1]);
    }
    is_i64((int64_t)n_alike, 0, "36 tables have 36 hashes");
}

static void test_hash(struct arena *arena)
{
    struct plan plan;
    struct fake fake;
    struct table swap;
    const char *before, *after;

    make_plan(&plan, &fake);
    tables[0].dim = 32;
    before = plan_inputs_hash(&plan, arena);
    swap = tables[0];
    tables[0] = tables[1];
    tables[1] = swap;
    after = plan_inputs_hash(&plan, arena);
    is_str(after, before, "the order of the tables does not count");
    plan.problem.cluster.inter_gbps = 50;
    before = plan_inputs_hash(&plan, arena);
    ok(strcmp(before, after) != 0, "a bandwidth that is asked for does");
    plan.problem.cluster.intra_gbps = 50;
    plan.problem.cluster.inter_gbps = 0;
    ok(strcmp(plan_inputs_hash(&plan, arena), before) != 0,
       "and on which level");
    plan.problem.cluster.intra_gbps = 0;
    plan.problem.cluster.hosts_per_domain = 2;
    ok(strcmp(plan_inputs_hash(&plan, arena), after) != 0,
       "NVLink domains of two hosts do");
    plan.problem.cluster.hosts_per_domain = 1;
    is_str(plan_inputs_hash(&plan, arena), after, "of one they do not");
    plan.problem.min_width = 4;
    is_str(plan_inputs_hash(&plan, arena), after,
           "none, and the least of widths, are as before there were any");
    plan.problem.min_width = 8;
    ok(strcmp(plan_inputs_hash(&plan, arena), after) != 0,
       "another width does");
    plan.problem.min_width = 4;
    for (unsigned k = 0; dense_optimizer_names[k]; k++)
        for (unsigned j = 0; j < k; j++) {
            plan.problem.dense_optimizer = (enum dense_optimizer)k;
            before = plan_inputs_hash(&plan, arena);
            plan.problem.dense_optimizer = (enum dense_optimizer)j;
            ok(strcmp(plan_inputs_hash(&plan, arena), before) != 0,
               "and so does %s for %s", dense_optimizer_names[j],
               dense_optimizer_names[k]);
        }
}

/* Changing any single input changes the hash, and different changes give
 * different hashes. */
static void test_each_input(struct arena *arena)
{
    static struct table other;
    struct plan plan;
    struct cluster *cluster = &plan.problem.cluster;
    struct job *job = &plan.problem.job;
    struct table *table = &tables[1];
    struct fake fake;
    const struct {
        void *at;
        const void *other; /* value to replace it with */
        size_t size;
    } inputs[] = {
#define OF_TABLE(member) {&table->member, &other.member, sizeof(other.member)}
        OF_TABLE(name),
        OF_TABLE(num_embeddings),
        OF_TABLE(dim),
        OF_TABLE(pooling_factor),
        OF_TABLE(num_outputs),
        OF_TABLE(output),
        OF_TABLE(precision),
        OF_TABLE(comm_precision),
        OF_TABLE(optimizer),
        OF_TABLE(kinds),
        OF_TABLE(device),
        OF_TABLE(group),
        OF_TABLE(zipf_alpha),
        OF_TABLE(has_bins),
        OF_TABLE(row_order),
        OF_TABLE(dedup),
        OF_TABLE(rows_over),
#undef OF_TABLE
        {&tables[0].bins[0], &(double){0.5}, sizeof(double)},
        {&tables[0].bins[REUSE_BINS - 1], &(double){0.5}, sizeof(double)},
        {&plan.problem.n_tables, &(size_t){1}, sizeof(size_t)},
        {&plan.problem.batch, &(uint64_t){7}, sizeof(uint64_t)},
        {&plan.problem.memory_model, &(enum memory_model){MEMORY_WEIGHTS},
         sizeof(enum memory_model)},
        {&plan.problem.dense_optimizer, &(enum dense_optimizer){DENSE_SGD},
         sizeof(enum dense_optimizer)},
        {&plan.problem.layout, &(enum table_layout){LAYOUT_FBGEMM},
         sizeof(enum table_layout)},
        {&plan.problem.buffers, &(enum buffer_rule){BUFFERS_TRACED},
         sizeof(enum buffer_rule)},
        {&tables[0].row_overhead_bytes, &(double){8}, sizeof(double)},
        {&tables[0].forward_factor, &(double){8}, sizeof(double)},
        {&tables[0].backward_factor, &(double){8}, sizeof(double)},
        {&tables[0].min_width, &(uint32_t){8}, sizeof(uint32_t)},
        {&plan.problem.kinds, &(unsigned){SHARD_TABLE}, sizeof(unsigned)},
        {&plan.problem.min_width, &(uint32_t){8}, sizeof(uint32_t)},
        {&job->pipeline, &(enum pipeline){PIPELINE_NONE},
         sizeof(enum pipeline)},
        {&job->n_chunks, &(uint32_t){2}, sizeof(uint32_t)},
        {&job->dense_ms[0], &(double){3}, sizeof(double)},
        {&job->dense_ms[1], &(double){3}, sizeof(double)},
        {&job->asks_host, &(bool){true}, sizeof(bool)},
        {&job->dedup, &(enum dedup){DEDUP_IDS}, sizeof(enum dedup)},
        {&job->dedup, &(enum dedup){DEDUP_SESSIONS}, sizeof(enum dedup)},
        {&cluster->n_devices, &(uint32_t){1}, sizeof(uint32_t)},
        {&cluster->hosts_per_domain, &(uint32_t){2}, sizeof(uint32_t)},
        {&cluster->intra_gbps, &(double){5}, sizeof(double)},
        {&cluster->inter_gbps, &(double){5}, sizeof(double)},
        {&cluster->devices_per_host, &(uint32_t){1}, sizeof(uint32_t)},
        {&memory_bytes[1], &(uint64_t){9}, sizeof(uint64_t)},
        {&reserve_bytes[0], &(uint64_t){9}, sizeof(uint64_t)},
        {&plan.cost.hash, &(const char *){"another"}, sizeof(const char *)},
    };
    enum { N = sizeof(inputs) / sizeof(*inputs) };
    const char *hashes[N + 1];
    size_t n_equal = 0;

    make_plan(&plan, &fake);
    /* changes the order of tables, as no other input does */
    tables[1].num_embeddings *= 2;
    other = tables[1];
    other.name = "third";
    other.num_embeddings++;
    other.dim += 4;
    other.pooling_factor = other.num_outputs = 3;
    other.output = OUTPUT_SEQUENCE;
    other.precision = other.comm_precision = PRECISION_FP16;
    other.optimizer = OPTIMIZER_ADAM;
    other.kinds = SHARD_TABLE;
    other.device = 1;
    other.group = "g";
    other.zipf_alpha = 0.5;
    other.has_bins = true;
    other.row_order = ROW_ORDER_FREQUENCY;
    other.dedup = 0.5;
    other.rows_over = ROWS_OVER_HOST;
    tables[0].has_bins = true;
    /* without this, a default job is not hashed */
    job->dense_ms[0] = job->dense_ms[1] = 1;
    hashes[N] = plan_inputs_hash(&plan, arena);
    for (size_t i = 0; i < N; i++) {
        char was[16];

        memcpy(was, inputs[i].at, inputs[i].size);
        memcpy(inputs[i].at, inputs[i].other, inputs[i].size);
        hashes[i] = plan_inputs_hash(&plan, arena);
        memcpy(inputs[i].at, was, inputs[i].size);
    }
    for (size_t i = 0; i <= N; i++)
        for (size_t k = 0; k < i; k++) {
            n_equal += !strcmp(hashes[i], hashes[k]);
            if (!strcmp(hashes[i], hashes[k]))
                printf("# inputs %zu and %zu\n", i, k);
        }
    is_i64((int64_t)n_equal, 0, "each input counts");
}

/* Cuts four of ten rows, from row_begin on, into two uneven column pieces on
 * one device. They merge into one piece if rows may be cut, and otherwise
 * become two even pieces. */
static void check_block_join(uint64_t row_begin, unsigned kinds, size_t n_want,
                             struct arena *arena)
{
    struct plan plan;
    struct fake fake;

    make_plan(&plan, &fake);
    plan.problem.kinds = kinds;
    plan.n_shards = 2;
    for (unsigned i = 0; i < 2; i++) {
        shards[i] = shard_whole(&plan.problem, 0, 0);
        shards[i].row_begin = row_begin;
        shards[i].row_end = row_begin + 4;
        shards[i].col_begin = i ? 12 : 0;
        shards[i].col_end = i ? 16 : 12;
    }
    (void)plan_join_columns(&plan, false, arena);
    is_i64((int64_t)plan.n_shards, (int64_t)n_want, "columns of a block");
}

/* Column pieces that cannot merge stay two, but get equal widths. */
static void test_join(struct arena *arena)
{
    struct plan plan;
    struct fake fake;

    make_plan(&plan, &fake);
    plan.problem.kinds = SHARD_COLUMN;
    plan.n_shards = 2;
    shards[0] = shards[1] = shard_whole(&plan.problem, 0, 0);
    shards[0].col_end = shards[1].col_begin = 12;
    ok(plan_join_columns(&plan, false, arena), "uneven pieces change");
    ok(plan.n_shards == 2 && plan.shards[0].col_end == 8 &&
           plan.shards[1].col_begin == 8 && plan.shards[1].col_end == 16 &&
           plan.shards[0].kind == SHARD_COLUMN,
       "into two of one width");
    ok(!plan_join_columns(&plan, false, arena), "which stay");
    for (uint64_t row_begin = 0; row_begin < 7; row_begin += 3) {
        check_block_join(row_begin, SHARD_ROW, 1, arena);
        check_block_join(row_begin, SHARD_TABLE, 2, arena);
    }
}

/* Returns true if two pieces on one device differ in width. */
static bool is_uneven(const struct shard *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (pieces[i].device == pieces[k].device &&
                pieces[i].col_end - pieces[i].col_begin !=
                    pieces[k].col_end - pieces[k].col_begin)
                return true;
    return false;
}

/* Places column pieces on random devices. Adjacent pieces on one device merge.
 * If a device then holds pieces of different widths, each device gets a single
 * piece; otherwise nothing else changes. Each device keeps its number of
 * columns. */
static void test_random_join(struct arena *arena)
{
    size_t n_wrong = 0, n_uneven = 0, n_kept = 0;
    struct shard pieces[8], joined[8];
    struct plan plan;
    struct fake fake;
    struct rng rng;

    rng_init(&rng, 71, 0);
    make_plan(&plan, &fake);
    for (int round = 0; round < 1000; round++) {
        size_t n = 1 + rng_below(&rng, 8), n_want = 0;
        uint32_t width[3] = {0}, n_held = 0, n_columns = 0;
        bool uneven;

        plan.shards = pieces;
        plan.n_shards = n;
        for (size_t i = 0; i < n; i++) {
            struct shard *piece = &pieces[i];

            *piece = shard_whole(&plan.problem, 0, 0);
            piece->kind = SHARD_COLUMN;
            piece->device = (uint32_t)rng_below(&rng, 3);
            piece->col_begin = n_columns;
            n_columns += 4 * (1 + (uint32_t)rng_below(&rng, 2));
            piece->col_end = n_columns;
            n_held += !width[piece->device];
            width[piece->device] += piece->col_end - piece->col_begin;
        }
        tables[0].dim = n_columns;
        for (size_t i = 0; i < n; i++) {
            if (!i || pieces[i].device != joined[n_want - 1].device)
                joined[n_want++] = pieces[i];
            joined[n_want - 1].col_end = pieces[i].col_end;
        }
        uneven = is_uneven(joined, n_want);
        (void)plan_join_columns(&plan, false, arena);
        n_wrong += plan.n_shards != (uneven ? n_held : n_want);
        n_wrong += is_uneven(plan.shards, plan.n_shards);
        n_uneven += uneven;
        n_kept += n_want > n_held && !uneven;
        for (size_t i = 0; i < plan.n_shards; i++) {
            const struct shard *piece = &plan.shards[i];

            n_wrong += piece->col_begin != (i ? piece[-1].col_end : 0);
            width[piece->device] -= piece->col_end - piece->col_begin;
        }
        n_wrong += width[0] || width[1] || width[2];
        n_wrong += plan_join_columns(&plan, false, arena);
    }
    is_i64((int64_t)n_wrong, 0, "random columns are joined where they must");
    ok(n_uneven > 100 && n_kept > 50, "%zu given out anew, %zu left in parts",
       n_uneven, n_kept);
}

int main(void)
{
    struct arena arena = {0};

    test_price(&arena);
    test_sort();
    test_sort_any();
    test_refusals(&arena);
    test_hosts(&arena);
    test_hash(&arena);
    test_hash_of_numbers(&arena);
    test_each_input(&arena);
    test_join(&arena);
    test_random_join(&arena);
    arena_release(&arena);
    return tap_done();
}
