/* SPDX-License-Identifier: MIT */
#include "costmodel/models/oracle_open.h"

#include "core/plan.h"
#include "core/plan_price.h"
#include "tests/tap.h"

/* Batch size of 2^20 samples, so that a byte per sample makes one MiB. */
#define BATCH (UINT64_C(1) << 20)
#define ROWS (UINT64_C(1) << 20)
#define MAX_RANKS 32

/* Volumes computed by hand from the formulas, in MiB: through the HBM, over the
 * links inside a host, and over those across hosts. */
struct volumes {
    double compute_hbm;
    double fwd_intra, fwd_inter;
    double bwd_intra, bwd_inter, bwd_hbm;
};

struct shard_case {
    const char *name;
    uint32_t n_ranks, n_local;
    uint32_t pod_size; /* hosts; 0: no pods */
    /* only members that differ from a float table with one output */
    struct table table;
    enum shard_kind kind;
    /* the shard is the first of row_parts x col_parts */
    uint32_t row_parts, col_parts;
    struct volumes want;   /* with outputs=new */
    struct volumes legacy; /* with outputs=legacy, if different */
};

static const struct shard_case cases[] = {
    {"table-wise, 128 columns, one host", 8, 8,
     .table = {.dim = 128, .pooling_factor = 2}, .kind = SHARD_TABLE,
     .want = {3 * (16 + 1024 + 512), .fwd_intra = 512, .bwd_intra = 512}},
    {"64 columns: half a block", 8, 8,
     .table = {.dim = 64, .pooling_factor = 2}, .kind = SHARD_TABLE,
     .want = {3 * 1.15 * (16 + 512 + 256), .fwd_intra = 256, .bwd_intra = 256}},
    {"60 columns: a quarter", 8, 8, .table = {.dim = 60, .pooling_factor = 2},
     .kind = SHARD_TABLE,
     .want = {3 * 1.75 * (16 + 480 + 240), .fwd_intra = 240, .bwd_intra = 240}},
    {"16 columns are looked up as 32", 8, 8,
     .table = {.dim = 16, .pooling_factor = 2}, .kind = SHARD_TABLE,
     .want = {3 * 1.75 * (16 + 256 + 64), .fwd_intra = 64, .bwd_intra = 64}},
    {"two hosts, fp16 rows, int8 on the wire", 16, 8,
     .table = {.dim = 128,
               .pooling_factor = 2,
               .precision = PRECISION_FP16,
               .comm_precision = PRECISION_INT8},
     .kind = SHARD_TABLE,
     .want = {3 * (16 + 512 + 128), .fwd_inter = 128, .bwd_inter = 128}},
    {"fewer look-ups than outputs", 8, 8,
     .table = {.dim = 128, .pooling_factor = 0.5, .num_outputs = 2},
     .kind = SHARD_TABLE,
     .want = {3 * (4 + 256 + 256), .fwd_intra = 256, .bwd_intra = 256},
     .legacy = {3 * (4 + 256 + 1024), .fwd_intra = 1024, .bwd_intra = 1024}},
    {"a sequence: one output a look-up", 8, 8,
     .table = {.dim = 128, .pooling_factor = 3, .output = OUTPUT_SEQUENCE},
     .kind = SHARD_TABLE,
     .want = {3 * (24 + 1536 + 1536), .fwd_intra = 1536, .bwd_intra = 1536}},
    {"half of 256 columns", 8, 8, .table = {.dim = 256, .pooling_factor = 2},
     .kind = SHARD_COLUMN, .col_parts = 2,
     .want = {3 * (16 + 1024 + 512), .fwd_intra = 512, .bwd_intra = 512}},
    {"rows over the ranks of the only host", 8, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_ROW,
     .row_parts = 8,
     .want = {3 * (4 + 256 + 512), .fwd_intra = 512, .bwd_intra = 512,
              .bwd_hbm = 2.455 * 512}},
    {"rows over all ranks of two hosts", 16, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_ROW,
     .row_parts = 16,
     .want = {3 * (2 + 128 + 512), .fwd_inter = 512, .bwd_inter = 512,
              .bwd_hbm = 2.455 * 512}},
    {"rows over one of two hosts", 16, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_ROW,
     .row_parts = 8,
     .want = {3 * (4 + 256 + 512), .fwd_intra = 512, .fwd_inter = 64,
              .bwd_intra = 512, .bwd_inter = 64, .bwd_hbm = 2.455 * 512}},
    {"rows of a sequence", 16, 8,
     .table = {.dim = 16, .pooling_factor = 4, .output = OUTPUT_SEQUENCE},
     .kind = SHARD_ROW, .row_parts = 16,
     .want = {3 * (2 + 16 + 16), .fwd_inter = 16, .bwd_inter = 16,
              .bwd_hbm = 2.455 * 16}},
    {"a grid: half of the columns, rows over a host", 16, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_GRID,
     .row_parts = 8, .col_parts = 2,
     .want = {3 * (4 + 128 + 256), .fwd_intra = 256, .fwd_inter = 32,
              .bwd_intra = 256, .bwd_inter = 32, .bwd_hbm = 2.455 * 256}},
    /* Rows are cut over a pod, but only links inside a host are fast. These
     * values are TorchRec 1.9.2's own figures for Topology(16,
     * local_world_size=4 or 2, pod_size=2 or 8). */
    {"a table in a pod of hosts", 16, 2, .pod_size = 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_TABLE,
     .want = {3 * (32 + 2048 + 512), .fwd_inter = 512, .bwd_inter = 512}},
    {"rows over one of two pods", 16, 4, .pod_size = 2,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_ROW,
     .row_parts = 8,
     .want = {3 * (4 + 256 + 512), .fwd_inter = 512 + 64, .bwd_inter = 512 + 64,
              .bwd_hbm = 2.455 * 512}},
    {"rows over the only pod", 16, 2, .pod_size = 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_ROW,
     .row_parts = 16,
     .want = {3 * (2 + 128 + 512), .fwd_inter = 512, .bwd_inter = 512,
              .bwd_hbm = 2.455 * 512}},
    {"replicated in two pods of two hosts", 16, 4, .pod_size = 2,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_REPLICATE,
     .want = {2 * 3 * (2 + 128 + 32), .bwd_inter = 2 * 512 * 1.5 / 4,
              .bwd_hbm = 2 * 9.22 * 512}},
    /* 512 MiB of weights; dense kernels run at half the bandwidth */
    {"replicated on one host", 8, 8, .table = {.dim = 128, .pooling_factor = 4},
     .kind = SHARD_REPLICATE,
     .want = {2 * 3 * (4 + 256 + 64), .bwd_inter = 512 / 8.0,
              .bwd_hbm = 2 * 9.22 * 512}},
    {"replicated on two hosts", 16, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_REPLICATE,
     .want = {2 * 3 * (2 + 128 + 32), .bwd_inter = 512 * 1.5 / 8,
              .bwd_hbm = 2 * 9.22 * 512}},
    {"replicated on four hosts", 32, 8,
     .table = {.dim = 128, .pooling_factor = 4}, .kind = SHARD_REPLICATE,
     .want = {2 * 3 * (1 + 64 + 16), .bwd_inter = 2 * 512 * 1.5 / 8,
              .bwd_hbm = 2 * 9.22 * 512}},
    {"never looked up", 8, 8, .table = {.dim = 128, .pooling_factor = 0},
     .kind = SHARD_TABLE, .want = {0},
     .legacy = {3 * 512, .fwd_intra = 512, .bwd_intra = 512}},
};

static struct problem make_problem(struct table *table, uint32_t n_ranks,
                                   uint32_t n_local)
{
    static uint64_t memory[MAX_RANKS], reserve[MAX_RANKS];

    for (int r = 0; r < MAX_RANKS; r++)
        memory[r] = UINT64_C(1) << 40;
    return (struct problem){.tables = table,
                            .n_tables = 1,
                            .batch = BATCH,
                            .kinds = SHARD_ALL_KINDS,
                            .cluster = {.n_devices = n_ranks,
                                        .devices_per_host = n_local,
                                        .memory_bytes = memory,
                                        .reserve_bytes = reserve}};
}

static struct table make_table(const struct table *differs)
{
    struct table table;

    table_init(&table);
    table.name = "t";
    table.num_embeddings = ROWS;
    table.dim = differs->dim;
    table.pooling_factor = differs->pooling_factor;
    table.output = differs->output;
    table.precision = differs->precision;
    table.comm_precision = differs->comm_precision;
    if (differs->num_outputs > 0)
        table.num_outputs = differs->num_outputs;
    return table;
}

static double mib_ms(double mib, double gibps)
{
    return mib / 1024 / gibps * 1000;
}

/* Converts volumes to times with these bandwidths and compares them. */
#define BANDWIDTHS "hbm=100,intra=20,inter=4"
static void check_volumes(const double *vector, const struct volumes *want,
                          const char *name)
{
    const double want_ms[] = {
        mib_ms(want->compute_hbm, 100),
        mib_ms(want->fwd_intra, 20) + mib_ms(want->fwd_inter, 4),
        mib_ms(want->bwd_intra, 20) + mib_ms(want->bwd_inter, 4) +
            mib_ms(want->bwd_hbm, 100)};

    for (int lane = 0; lane < 3; lane++)
        is_near(vector[lane], want_ms[lane], 1e-9 * want_ms[lane], name);
}

static void check_case(const struct shard_case *test)
{
    struct table table = make_table(&test->table);
    struct problem problem = make_problem(&table, test->n_ranks, test->n_local);
    struct shard shard = shard_whole(&problem, 0, 0);
    uint32_t *pod_size = &problem.cluster.hosts_per_domain;
    struct err err = {0};
    struct arena arena = {0};

    *pod_size = test->pod_size;
    shard.kind = test->kind;
    if (test->row_parts)
        shard.row_end /= test->row_parts;
    if (test->col_parts)
        shard.col_end /= test->col_parts;
    for (int is_legacy = 0; is_legacy < 2; is_legacy++) {
        struct oracle *oracle;
        double vector[3];

        if (!ok(!oracle_open(&oracle,
                             is_legacy ? "torchrec:" BANDWIDTHS
                                         ",outputs=legacy"
                                       : "torchrec:" BANDWIDTHS ",outputs=new",
                             &problem, &arena, &err),
                "opens %s", err.msg))
            continue;
        is_i64(oracle->width, 3, "three lanes");
        oracle->ops->embed(oracle, &shard, 1, vector);
        check_volumes(vector,
                      is_legacy && test->legacy.compute_hbm > 0 ? &test->legacy
                                                                : &test->want,
                      test->name);
    }
    arena_release(&arena);
}

/* The step of a rank is the sum of its own terms, regardless of the other
 * ranks. */
static void check_head(void)
{
    struct table table = make_table(&cases[0].table);
    struct problem problem = make_problem(&table, 2, 2);
    const double sums[] = {1, 2, 4, 0, 0, 0, 8, 16, 32, 64, 128, 256};
    double compute[4], fwd[4], bwd[4], terms[4];
    struct oracle *oracle;
    struct err err = {0};
    struct arena arena = {0};

    if (ok(!oracle_open(&oracle, "torchrec", &problem, &arena, &err),
           "opens %s", err.msg)) {
        oracle->ops->compute(oracle, sums, 4, compute);
        oracle->ops->comm(oracle, 2, sums, compute, fwd, bwd);
        oracle->ops->terms(oracle, sums, 4, compute, terms);
        is_i64(oracle->n_terms, 1, "one term");
        ok(oracle->is_additive, "additive");
        for (int i = 0; i < 4; i++) {
            ok(compute[i] == sums[3 * i] && fwd[i] == sums[3 * i + 1] &&
                   bwd[i] == sums[3 * i + 2],
               "the head is the identity");
            ok(terms[i] == compute[i] + fwd[i] + bwd[i],
               "a rank's total is the sum");
        }
        is_i64(oracle->cost.basis, BASIS_ANALYTIC, "analytic");
        is_str(oracle->cost.comm,
               "TorchRec's formulas, 600 GiB/s inside a host, 12.5 GiB/s "
               "across",
               "its default bandwidths");
    }
    arena_release(&arena);
}

static void check_settings(void)
{
    static const struct {
        const char *cost, *message;
    } rejected[] = {
        {"torchrec:hbm=0", "cost model 'torchrec': hbm is a bandwidth in GiB/s "
                           "above 0, not '0'"},
        {"torchrec:intra=fast",
         "cost model 'torchrec': intra is a bandwidth in "
         "GiB/s above 0, not 'fast'"},
        {"torchrec:inter=",
         "cost model 'torchrec': inter is a bandwidth in GiB/s above 0, not "
         "''"},
        {"torchrec:outputs=old",
         "cost model 'torchrec': outputs is 'new' or 'legacy', not 'old'"},
        {"torchrec:hbm", "cost model 'torchrec' takes KEY=VALUE, not 'hbm'"},
        {"torchrec:hbm=5,", "cost model 'torchrec' takes KEY=VALUE, not ''"},
        {"torchrec:ddr=51", "cost model 'torchrec' has no setting 'ddr'; known "
                            "are hbm, intra, inter, outputs, backward"},
        {"torchrec:backward=-1",
         "cost model 'torchrec': backward is the time of a backward pass over "
         "that of a forward pass, 0 to 1e+06, not '-1'"},
        {"torchrec:backward=nan",
         "cost model 'torchrec': backward is the time of a backward pass over "
         "that of a forward pass, 0 to 1e+06, not 'nan'"},
    };
    struct table table = make_table(&cases[0].table);
    struct problem problem = make_problem(&table, 8, 8);
    struct oracle *oracle, *again;
    struct arena arena = {0};
    struct err err;

    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++) {
        err = (struct err){0};
        ok(oracle_open(&oracle, rejected[i].cost, &problem, &arena, &err) &&
               err.code == ERR_USAGE,
           "%s is refused", rejected[i].cost);
        is_str(err.msg, rejected[i].message, "and why");
    }
    if (ok(!oracle_open(&oracle, "torchrec", &problem, &arena, &err) &&
               !oracle_open(&again, "torchrec:hbm=897,intra=600,inter=12.5",
                            &problem, &arena, &err),
           "opens")) {
        is_str(oracle->cost.name, "torchrec", "named as asked");
        is_str(again->cost.name, "torchrec:hbm=897,intra=600,inter=12.5",
               "with its settings");
        is_str(again->cost.hash, oracle->cost.hash,
               "these settings are the defaults");
    }
    if (ok(!oracle_open(&again, "torchrec:outputs=legacy", &problem, &arena,
                        &err),
           "opens")) {
        ok(strcmp(again->cost.hash, oracle->cost.hash) != 0,
           "other rules, other hash");
    }
    arena_release(&arena);
}

static struct oracle *must_open(const char *cost, const struct problem *problem,
                                struct arena *arena)
{
    struct oracle *oracle = NULL;
    struct err err = {0};

    if (oracle_open(&oracle, cost, problem, arena, &err)) {
        ok(0, "%s opens: %s", cost, err.msg);
        exit(tap_done());
    }
    return oracle;
}

/* The backward factor multiplies all computing except the fixed work of a
 * backward pass. */
static void check_backward(void)
{
    static const enum shard_kind kinds[] = {SHARD_TABLE, SHARD_ROW,
                                            SHARD_REPLICATE};
    struct table table = make_table(&cases[0].table);
    struct problem problem = make_problem(&table, 8, 8);
    struct arena arena = {0};
    struct oracle *plain = must_open("torchrec", &problem, &arena);
    struct oracle *same = must_open("torchrec:backward=2", &problem, &arena);
    struct oracle *slow = must_open("torchrec:backward=6", &problem, &arena);

    is_str(same->cost.hash, plain->cost.hash, "a backward factor of 2");
    ok(strcmp(slow->cost.hash, plain->cost.hash) != 0, "another has another");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct shard shard = shard_whole(&problem, 0, 0);
        double x[3], y[3];

        shard.kind = kinds[i];
        if (shard.kind == SHARD_ROW)
            shard.row_end /= 8;
        plain->ops->embed(plain, &shard, 1, x);
        slow->ops->embed(slow, &shard, 1, y);
        is_near(y[0], x[0] * 7 / 3, 1e-9 * y[0], "a backward factor of 6");
        ok(x[1] == y[1] && x[2] == y[2], "and the exchanges are the same");
    }
    arena_release(&arena);
}

/* A bandwidth requested for the cluster replaces TorchRec's default, in
 * TorchRec's unit of 2^30 bytes per second. */
static void check_asked(void)
{
    struct table table = make_table(&cases[0].table);
    struct problem problem = make_problem(&table, 16, 8);
    struct problem asking = problem;
    struct oracle *asked, *same, *set;
    struct arena arena = {0};

    asking.cluster.inter_gbps = 25 * 0x1p30 / 1e9;
    asked = must_open("torchrec", &asking, &arena);
    set = must_open("torchrec:inter=12.5", &asking, &arena);
    same = must_open("torchrec:inter=25", &problem, &arena);
    is_str(asked->cost.hash, same->cost.hash,
           "a requested bandwidth has the effect of a setting");
    is_str(asked->cost.comm,
           "TorchRec's formulas, 600 GiB/s inside a host, 25 GiB/s across, as "
           "asked for",
           "the text says so");
    is_str(set->cost.comm,
           "TorchRec's formulas, 600 GiB/s inside a host, 12.5 GiB/s across",
           "but a setting wins");
    asking.cluster.inter_gbps = 0;
    asking.cluster.intra_gbps = 300 * 0x1p30 / 1e9;
    asked = must_open("torchrec", &asking, &arena);
    is_str(asked->cost.comm,
           "TorchRec's formulas, 300 GiB/s inside a host, 12.5 GiB/s across, "
           "as asked for",
           "inside a host alone");
    same = must_open("torchrec", &problem, &arena);
    is_str(same->cost.comm,
           "TorchRec's formulas, 600 GiB/s inside a host, 12.5 GiB/s across",
           "and nothing");
    arena_release(&arena);
}

/* 10 rows on 2 hosts of 2 devices: {device, first row, end}; no rows end the
 * list. */
struct row_case {
    const char *name;
    bool is_priced;
    uint32_t pieces[6][3];
};

static const struct row_case row_cases[] = {
    {"over all ranks", true, {{0, 0, 3}, {1, 3, 6}, {2, 6, 9}, {3, 9, 10}}},
    {"over one host", true, {{2, 0, 5}, {3, 5, 10}}},
    {"over two of different hosts", false, {{0, 0, 5}, {2, 5, 10}}},
    {"over three", false, {{0, 0, 4}, {1, 4, 8}, {2, 8, 10}}},
    {"unevenly", false, {{0, 0, 2}, {1, 2, 10}}},
};

static void check_rows(void)
{
    struct table table = make_table(&cases[0].table);
    struct problem problem = make_problem(&table, 4, 2);
    struct oracle *oracle;
    struct arena arena = {0};
    struct err err;

    table.num_embeddings = 10;
    if (oracle_open(&oracle, "torchrec", &problem, &arena, &err))
        return;
    for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++) {
        struct plan plan = {.problem = problem};
        struct shard shards[6];

        plan.shards = shards;
        for (int k = 0; row_cases[i].pieces[k][2]; k++) {
            shards[k] = shard_whole(&problem, 0, row_cases[i].pieces[k][0]);
            shards[k].row_begin = row_cases[i].pieces[k][1];
            shards[k].row_end = row_cases[i].pieces[k][2];
            plan.n_shards++;
        }
        err = (struct err){0};
        plan_derive_kinds(&plan);
        is_i64(!plan_price(&plan, oracle, &arena, &err), row_cases[i].is_priced,
               row_cases[i].name);
        if (!row_cases[i].is_priced)
            is_str(err.msg,
                   "cost model 'torchrec' prices row cuts only in equal blocks "
                   "over all 4 GPUs or the 2 of one host (table 't')",
                   "and why not");
        else
            ok(plan.shard_ms[0] == plan.shard_ms[plan.n_shards - 1],
               "a shorter last block costs as much as the others, as in "
               "TorchRec");
    }
    arena_release(&arena);
}

/* 2 hosts of 4 devices; a table of `rows` rows in blocks of one row, starting
 * at rank `first`. Each rank from `begin` to `end` costs as much as TorchRec's
 * estimator predicts for one of n_full blocks that all have a row, even if the
 * rank has none. */
static void check_few_rows(uint64_t rows, uint32_t first, uint32_t begin,
                           uint32_t end, uint32_t n_full)
{
    struct table table = make_table(&cases[0].table), full = table;
    struct problem problem = make_problem(&table, 8, 4);
    struct problem filled = make_problem(&full, 8, 4);
    struct plan plan = {.problem = problem};
    struct oracle *oracle, *whole;
    struct shard shards[8], block;
    struct arena arena = {0};
    struct err err;
    double want[3];

    table.num_embeddings = rows;
    full.num_embeddings = n_full;
    plan.problem.tables = &table;
    plan.shards = shards;
    for (; plan.n_shards < rows; plan.n_shards++) {
        struct shard *shard = &shards[plan.n_shards];

        *shard = shard_whole(&problem, 0, first + (uint32_t)plan.n_shards);
        shard->kind = SHARD_ROW;
        shard->row_begin = plan.n_shards;
        shard->row_end = plan.n_shards + 1;
    }
    oracle = must_open("torchrec", &plan.problem, &arena);
    whole = must_open("torchrec", &filled, &arena);
    block = shard_whole(&filled, 0, first);
    block.kind = SHARD_ROW;
    block.row_end = 1;
    whole->ops->embed(whole, &block, 1, want);
    if (ok(!plan_price(&plan, oracle, &arena, &err), "%d rows are priced",
           (int)rows))
        for (uint32_t r = 0; r < 8; r++) {
            bool is_in = r >= begin && r < end;

            is_near(plan.devices[r].total_ms,
                    is_in ? want[0] + want[1] + want[2] : 0, 1e-12,
                    "each rank of the cut has a block, of rows or not");
        }
    arena_release(&arena);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    check_head();
    check_settings();
    check_backward();
    check_asked();
    check_rows();
    check_few_rows(2, 0, 0, 8, 8);
    check_few_rows(3, 0, 0, 8, 8);
    check_few_rows(3, 4, 4, 8, 4);
    return tap_done();
}
