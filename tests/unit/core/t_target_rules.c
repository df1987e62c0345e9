/* SPDX-License-Identifier: MIT */
/* Rules of the targets: a plan that obeys them, each rule broken by hand, and
 * what a problem may do under a target. */
#include "core/target_rules.h"

#include "base/mem.h"
#include "core/plan_check.h"
#include "tests/tap.h"

#define N_DEVICES 4
#define MAX_SHARDS 16
#define MAX_TABLES 3

/* A plan with up to three tables on two hosts of two devices. Each case sets
 * its differences from the defaults. */
struct fixture {
    struct table tables[MAX_TABLES];
    struct shard shards[MAX_SHARDS];
    uint64_t memory[N_DEVICES], reserve[N_DEVICES];
    struct plan plan;
};

static void add_table(struct fixture *f, const char *name, uint64_t rows,
                      uint32_t dim)
{
    struct table *table = &f->tables[f->plan.problem.n_tables++];

    table_init(table);
    table->name = name;
    table->num_embeddings = rows;
    table->dim = dim;
    table->pooling_factor = 3;
}

static void add(struct fixture *f, struct shard shard)
{
    f->shards[f->plan.n_shards++] = shard;
}

static void begin(struct fixture *f, enum target target)
{
    memset(f, 0, sizeof(*f));
    f->plan =
        (struct plan){.problem = {.tables = f->tables,
                                  .kinds = SHARD_ALL_KINDS,
                                  .batch = 1024,
                                  .target = target,
                                  .cluster = {.n_devices = N_DEVICES,
                                              .devices_per_host = 2,
                                              .memory_bytes = f->memory,
                                              .reserve_bytes = f->reserve}},
                      .shards = f->shards,
                      .total_ms = NAN,
                      .bound_ms = NAN};
    for (unsigned r = 0; r < N_DEVICES; r++)
        f->memory[r] = 1u << 30;
}

/* Adds a table of 4,002 rows and its pieces: c column ranges, each in k row
 * blocks, on n = c * k given devices, range by range. The blocks are dealt
 * (the first have one row more) or equal with a shorter last one. */
static void add_cut(struct fixture *f, enum shard_kind kind, uint32_t dim,
                    uint32_t c, uint32_t k, bool is_dealt,
                    const uint32_t *devices)
{
    const uint64_t rows = 4002, even = rows / k, more = rows % k;
    const uint64_t block = (rows - 1) / k + 1;
    const uint32_t t = (uint32_t)f->plan.problem.n_tables;

    add_table(f, "cut", rows, dim);
    for (uint32_t i = 0; i < c * k; i++) {
        const uint64_t b = i % k;
        const uint64_t from =
            is_dealt ? b * even + min_u64(b, more) : b * block;
        const uint64_t to =
            is_dealt ? from + even + (b < more) : min_u64(from + block, rows);

        add(f, (struct shard){t, kind, from, to, i / k * (dim / c),
                              (i / k + 1) * (dim / c), devices[i], TIER_HBM});
    }
}

static void is_fine(const struct fixture *f, const char *what)
{
    struct err err = {0};

    ok(!plan_check(&f->plan, &err), "%s: %s %s",
       problem_target(&f->plan.problem)->name, what, err.msg);
}

static void is_bad(const struct fixture *f, const char *message)
{
    struct err err = {0};
    struct fixture other = *f;

    ok(plan_check(&f->plan, &err) && err.code == ERR_INPUT, "refused");
    is_str(err.msg, message, message);
    other.plan.problem.tables = other.tables;
    other.plan.problem.target = TARGET_ANY;
    is_fine(&other, "the same plan");
}

static const uint32_t in_order[] = {0, 1, 2, 3}, turned[] = {1, 0, 2, 3},
                      host[] = {2, 3}, hosts[] = {0, 1, 2, 3}, apart[] = {0, 3},
                      same[] = {1, 1};

static void test_torchrec_rows(void)
{
    struct fixture f;

    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_ROW, 16, 1, 4, false, in_order);
    is_fine(&f, "rows over all");
    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_ROW, 16, 1, 2, false, host);
    is_fine(&f, "rows over a host");
    f.plan.problem.target = TARGET_TORCHREC_EC;
    is_bad(&f, "table 'cut': TorchRec cuts rows only into equal blocks in the "
               "order of the ranks, over all 4 ranks");
    f.plan.problem.target = TARGET_TORCHREC;
    f.tables[0].output = OUTPUT_SEQUENCE;
    is_bad(&f, "table 'cut': TorchRec cuts the rows of a sequence only into "
               "equal blocks in the order of the ranks, over all 4 ranks");
    begin(&f, TARGET_DLRM);
    add_cut(&f, SHARD_ROW, 16, 1, 4, false, turned);
    is_bad(&f,
           "table 'cut': DLRM cuts rows only into equal blocks in the order "
           "of the ranks, over all 4 ranks or over the 2 of one host");
    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_ROW, 16, 1, 4, true, in_order);
    is_bad(&f, "table 'cut': TorchRec cuts rows only into equal blocks in the "
               "order of the ranks, over all 4 ranks or over the 2 of one "
               "host");
}

static void test_torchrec_widths(void)
{
    struct fixture f;

    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_GRID, 16, 2, 2, false, hosts);
    is_fine(&f, "a grid over two hosts");
    f.plan.problem.target = TARGET_TORCHREC_EC;
    is_bad(&f, "table 'cut' has shards of kind 'grid', but the target "
               "torchrec-ec takes table, column, row or replicate for pooled "
               "tables");
    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_GRID, 16, 2, 2, false, turned);
    is_bad(&f,
           "table 'cut': TorchRec cuts a grid only into column blocks, each "
           "in equal row blocks over the 2 ranks of one host");
    begin(&f, TARGET_TORCHREC);
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, false, same);
    is_fine(&f, "two pieces on a rank");
    f.shards[0].col_end = f.shards[1].col_begin = 12;
    is_bad(&f, "table 'cut' has pieces of 12 and of 20 columns on rank 1, but "
               "TorchRec needs equal widths on a rank");
    f.shards[0].device = 0;
    is_fine(&f, "uneven pieces on two ranks");
    begin(&f, TARGET_TORCHREC_EC);
    add_table(&f, "odd", 10, 10);
    add(&f, (struct shard){0, SHARD_TABLE, 0, 10, 0, 10, 0, TIER_HBM});
    is_bad(&f, "table 'odd' has 10 columns, but TorchRec's kernels take "
               "multiples of 4");
}

static void test_sequences(void)
{
    struct fixture f;

    begin(&f, TARGET_TORCHREC_EC);
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, false, apart);
    add_table(&f, "b.other", 10, 32);
    add(&f, (struct shard){1, SHARD_COLUMN, 0, 10, 0, 8, 0, TIER_HBM});
    add(&f, (struct shard){1, SHARD_COLUMN, 0, 10, 8, 32, 1, TIER_HBM});
    f.tables[0].name = "a.cut";
    f.tables[0].output = f.tables[1].output = OUTPUT_SEQUENCE;
    is_bad(&f, "table 'b.other' has a piece of 8 columns and 'b.other' one of "
               "24, but the column pieces of a TorchRec module's sequence "
               "tables must have one width");
    f.shards[2].col_end = f.shards[3].col_begin = 16;
    is_fine(&f, "pieces of one width");
    f.tables[1].dim = 64;
    f.shards[3].col_end = 32;
    add(&f, (struct shard){1, SHARD_COLUMN, 0, 10, 32, 48, 2, TIER_HBM});
    add(&f, (struct shard){1, SHARD_COLUMN, 0, 10, 48, 64, 3, TIER_HBM});
    is_fine(&f, "two dims in two modules");
    f.tables[1].name = "a.other";
    is_bad(&f, "tables 'a.cut' and 'a.other' have 32 and 64 columns, but the "
               "sequence tables of a TorchRec module must have one width");
}

static void add_replicas(struct fixture *f, uint32_t t)
{
    for (uint32_t r = 0; r < N_DEVICES; r++)
        add(f,
            (struct shard){t, SHARD_REPLICATE, 0, f->tables[t].num_embeddings,
                           0, f->tables[t].dim, r, TIER_HBM});
}

static void test_dlrm(void)
{
    struct fixture f;

    begin(&f, TARGET_DLRM);
    add_table(&f, "small", 10, 16);
    add_replicas(&f, 0);
    is_fine(&f, "replicas");
    f.tables[0].optimizer = OPTIMIZER_LAMB;
    is_bad(&f, "table 'small' is replicated and has the optimizer lamb, which "
               "DLRM has for cut and whole tables only");
    f.tables[0].optimizer = OPTIMIZER_ADAMA;
    is_bad(&f, "table 'small' has the optimizer adama, which DLRM does not "
               "have");
    f.tables[0].optimizer = OPTIMIZER_SGD;
    f.tables[0].precision = PRECISION_BF16;
    is_bad(&f, "table 'small' is bf16, but DLRM's tables are fp32 and fp16");
    f.tables[0].precision = PRECISION_FP16;
    f.tables[0].num_outputs = 2;
    is_bad(&f, "table 'small' does not give one pooled vector a sample, as "
               "DLRM's tables do");
    f.tables[0].num_outputs = 1;
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, false, apart);
    is_bad(&f, "tables 'small' and 'cut' have optimizers sgd and "
               "rowwise_adagrad, but DLRM has one for all");
}

static void test_hugectr_pieces(void)
{
    struct fixture f;

    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_GRID, 32, 2, 2, true, in_order);
    is_fine(&f, "two column pieces by rows");
    f.shards[0].device = 1;
    f.shards[1].device = 0;
    is_bad(&f, "table 'cut': GPU 0 holds rows 2001 to 4002 from column 0 on, "
               "but HugeCTR deals it rows 0 to 2001 from column 0 on");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_ROW, 32, 1, 4, true, in_order);
    is_fine(&f, "dealt rows");
    f.shards[0].device = 3;
    f.shards[3].device = 0;
    is_bad(&f, "table 'cut': GPU 0 holds rows 3002 to 4002 from column 0 on, "
               "but HugeCTR deals it rows 0 to 1001 from column 0 on");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, true, apart);
    f.shards[0].device = 3;
    f.shards[1].device = 0;
    is_bad(&f, "table 'cut': GPU 0 holds rows 0 to 4002 from column 16 on, but "
               "HugeCTR deals it rows 0 to 4002 from column 0 on");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, true, same);
    is_bad(&f, "table 'cut' has two pieces on GPU 1, but HugeCTR lists a table "
               "once for each GPU");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_COLUMN, 32, 2, 1, true, apart);
    f.shards[0].col_end = f.shards[1].col_begin = 20;
    is_bad(&f, "table 'cut' has pieces of 20 and of 12 columns, but HugeCTR "
               "cuts columns evenly");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_COLUMN, 520, 2, 1, true, apart);
    is_bad(&f, "table 'cut' has a piece of 260 columns, but HugeCTR's kernels "
               "take at most 256");
    begin(&f, TARGET_HUGECTR);
    add_cut(&f, SHARD_GRID, 32, 2, 1, true, apart);
    f.shards[0].row_end = 2000;
    add(&f, (struct shard){0, SHARD_GRID, 2000, 4002, 0, 16, 2, TIER_HBM});
    is_bad(&f, "table 'cut' has 2 column pieces on 3 GPUs, but HugeCTR gives "
               "each of them equally many GPUs");
}

static void test_hugectr_tables(void)
{
    struct fixture f;

    begin(&f, TARGET_HUGECTR);
    add_table(&f, "small", 10, 16);
    add_replicas(&f, 0);
    add_table(&f, "list", 10, 16);
    add(&f, (struct shard){1, SHARD_TABLE, 0, 10, 0, 16, 3, TIER_HBM});
    f.tables[1].output = OUTPUT_SEQUENCE;
    f.tables[1].pooling_factor = 1;
    is_fine(&f, "replicas beside a sequence of one lookup");
    ok(problem_kinds(&f.plan.problem, 0) & SHARD_REPLICATE, "replicas");
    f.tables[1].pooling_factor = 2;
    ok(!(problem_kinds(&f.plan.problem, 0) & SHARD_REPLICATE), "no replicas");
    is_bad(&f, "table 'small' is replicated, but HugeCTR has no replicas if a "
               "sequence table, 'list', has more than one lookup per sample");
    f.tables[1].output = OUTPUT_POOLED;
    f.tables[0].precision = PRECISION_FP16;
    is_bad(&f, "table 'small' is fp16, but HugeCTR's tables are fp32");
    f.tables[0].dim = 260;
    ok(problem_kinds(&f.plan.problem, 0) == (SHARD_COLUMN | SHARD_GRID),
       "a wide table is cut by columns");
    target_adopt(&f.plan.problem);
    ok(f.tables[0].row_order == ROW_ORDER_UNIFORM, "dealt rows are uniform");
    f.plan.problem.target = TARGET_DLRM;
    f.tables[0].optimizer = OPTIMIZER_LAMB;
    ok(problem_kinds(&f.plan.problem, 0) ==
           (SHARD_ALL_KINDS & ~(unsigned)SHARD_REPLICATE),
       "no replicas with LAMB");
    f.tables[0].output = OUTPUT_SEQUENCE;
    ok(!problem_kinds(&f.plan.problem, 0), "no sequences");
    f.plan.problem.target = TARGET_TORCHREC;
    ok(!(problem_kinds(&f.plan.problem, 0) & SHARD_GRID),
       "no grids of sequences");
    f.tables[0].output = OUTPUT_POOLED;
    f.tables[0].optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    f.plan.problem.cluster.hosts_per_domain = 2;
    ok(!(problem_kinds(&f.plan.problem, 0) & SHARD_GRID),
       "no grids over hosts of a domain");
}

int main(void)
{
    for (unsigned i = 0; i < N_TARGETS; i++) {
        ok(target_traits[i].target == i, "%s has its row", target_names[i]);
        is_str(target_traits[i].name, target_names[i], "name");
    }
    test_torchrec_rows();
    test_torchrec_widths();
    test_sequences();
    test_dlrm();
    test_hugectr_pieces();
    test_hugectr_tables();
    return tap_done();
}
