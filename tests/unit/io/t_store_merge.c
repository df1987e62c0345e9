/* SPDX-License-Identifier: MIT */
#include "io/store_merge.h"
#include "tests/tap.h"

#include "base/hash.h"
#include "base/rng.h"
#include "io/store_csv.h"
#include "io/store_rows.h"
#include "io/store_sql.h"

#include <math.h>
#include <stdlib.h>

#define N_STORES 5
#define N_PUT 60 /* samples in each database */

static void must(int rc, const struct err *err)
{
    if (rc) {
        ok(0, "%s", err->msg);
        exit(1);
    }
}

static struct store *open_memory(const char *name)
{
    struct store *store;
    struct err err = {0};

    must(store_open_memory(&store, name, &err), &err);
    return store;
}

static void execute(struct store *store, const char *sql)
{
    struct err err = {0};

    must(store_execute(store, sql, &err), &err);
}

static uint64_t hash_of(struct store *store)
{
    struct store *sorted;
    struct err err = {0};
    uint64_t hash;

    must(store_sorted(&sorted, store, &err), &err);
    must(store_hash(&hash, sorted, &err), &err);
    store_close(sorted);
    return hash;
}

/* The expected final sample of a key: the least one of those stored. */
struct expected {
    uint32_t setting, case_idx, kind;
    unsigned flags;
    const char *started_at;
};
static struct expected expected[N_STORES * N_PUT];
static size_t n_expected;

static void expect(uint32_t setting, const struct sample *sample)
{
    const struct expected new = {setting, (uint32_t)sample->case_idx,
                                 sample->kind, sample->flags,
                                 sample->started_at};
    size_t i = 0;

    while (i < n_expected && (expected[i].setting != new.setting ||
                              expected[i].case_idx != new.case_idx ||
                              expected[i].kind != new.kind))
        i++;
    if (i == n_expected)
        expected[n_expected++] = new;
    else if (new.flags < expected[i].flags ||
             (new.flags == expected[i].flags &&strcmp(
                               new.started_at, expected[i].started_at) < 0))
        expected[i] = new;
}

/* Returns settings that each differ from setting 0 in one member. */
static struct sample_setting make_setting(uint32_t idx)
{
    return (struct sample_setting){.device = "cpu:Some CPU",
                                   .n_threads = 2,
                                   .optimizer = OPTIMIZER_SGD,
                                   .batch = idx == 1 ? 64 : 4096,
                                   .isa = "avx2",
                                   .driver = idx == 2 ? "Linux 6.1.0" : "",
                                   .host = idx == 3 ? "box" : ""};
}

/* Stores a sample. Its values are drawn from few, so that keys, flags and times
 * are often equal and only the tables differ. */
static void put_sample(struct store *store, struct rng *rng)
{
    static const char *const times[] = {"2026-11-21T04:05:06Z",
                                        "2026-11-21T04:05:07Z"};
    const uint32_t setting_idx = (uint32_t)rng_below(rng, 4);
    const struct sample_setting setting = make_setting(setting_idx);
    const double ms = (double)(1 + rng_below(rng, 2)) / 3;
    struct sample_table tables[3] = {0};
    struct sample sample = {.kind = (enum sample_kind)rng_below(rng, 2),
                            .seed = UINT64_MAX - 6,
                            .case_idx = rng_below(rng, 5),
                            .n_tables = (uint32_t)rng_below(rng, 3),
                            .tables = tables,
                            .forward = {ms, ms, ms},
                            .flags = (unsigned)rng_below(rng, 2),
                            .started_at = times[rng_below(rng, 2)]};
    struct sample_sink sink = store_sink(store);
    struct err err = {0};

    for (uint32_t i = 0; i < sample.n_tables; i++)
        tables[i] =
            (struct sample_table){.n_rows = 1 + rng_below(rng, 2),
                                  .dim = 4,
                                  .zipf_alpha = rng_below(rng, 2) ? NAN : 1.05,
                                  .bins[1] = (double)rng_below(rng, 2) / 3};
    if (sink.has(store, &setting, sample.seed, sample.case_idx, sample.kind, 0))
        return;
    must(sink.put(store, &setting, &sample, &err), &err);
    expect(setting_idx, &sample);
}

static void put_others(struct store *store, struct rng *rng)
{
    const struct sample_setting setting = make_setting(0);
    const double ms = 1 + (double)rng_below(rng, 9) / 7;
    struct sample_sink sink = store_sink(store);
    struct comm_sample comm = {"copy",       2, 1, 8 + rng_below(rng, 3), 8, 0,
                               {ms, ms, ms}, 3};
    struct ceiling ceiling = {
        .probe = {.kind = PROBE_READ, .n_bytes = 64 + rng_below(rng, 3)},
        .timing = {ms, ms, ms},
        .flags = (unsigned)rng_below(rng, 2)};
    struct product_sample product = {
        .product = {DENSE_TYPE_FP32, PRODUCT_NN, 64,
                    1 + (uint32_t)rng_below(rng, 3), 1, 1},
        .timing = {ms, ms, ms},
        .flags = (unsigned)rng_below(rng, 2)};
    struct model_verdict verdict = {.model_path = "m.nsm",
                                    .old_mape = NAN,
                                    .new_mape = 0.1,
                                    .n_samples = rng_below(rng, 3)};
    struct err err = {0};

    must(sink.put_comm(store, &setting, &comm, &err), &err);
    must(sink.put_interference_probe(store, &setting, ms, &err), &err);
    must(store_put_ceiling(store, &setting, &ceiling, &err), &err);
    must(store_put_product(store, &setting, &product, &err), &err);
    must(store_log_verdict(store, &verdict, &err), &err);
}

static bool is_there(struct store *store, const struct expected *row)
{
    struct sample_setting setting = make_setting(row->setting);
    struct sample *samples;
    struct arena arena = {0};
    struct err err = {0};
    bool found = false;
    size_t n;

    must(store_samples(store, &setting, STORE_SETTING, &samples, &n, &arena,
                       &err),
         &err);
    for (size_t i = 0; i < n; i++)
        found |= samples[i].case_idx == row->case_idx &&
                 samples[i].kind == row->kind &&
                 samples[i].flags == row->flags &&
                 !strcmp(samples[i].started_at, row->started_at);
    arena_release(&arena);
    return found;
}

/* Five databases, merged in any order and some of them twice, give the same
 * content, and nothing is missing. */
static void test_any_order(unsigned n_orders)
{
    struct store *stores[N_STORES], *all = NULL, *sorted;
    struct err err = {0};
    struct rng rng;
    uint64_t hash = 0;
    unsigned n_same = 0;
    size_t n_there = 0;

    rng_init(&rng, 17, 0);
    n_expected = 0;
    for (int i = 0; i < N_STORES; i++) {
        stores[i] = open_memory("one");
        for (int j = 0; j < N_PUT; j++)
            put_sample(stores[i], &rng);
        for (int j = 0; j < 6; j++)
            put_others(stores[i], &rng);
    }
    for (unsigned order = 0; order < n_orders; order++) {
        unsigned todo = (1 << N_STORES) - 1;

        all = open_memory("all");
        while (todo) {
            const unsigned i = (unsigned)rng_below(&rng, N_STORES);

            must(store_merge(all, stores[i], &err), &err);
            todo &= ~(1u << i);
        }
        if (!order)
            hash = hash_of(all);
        n_same += hash_of(all) == hash;
        if (order + 1 < n_orders)
            store_close(all);
    }
    is_i64(n_same, n_orders, "any order, some twice: the same content");
    for (size_t i = 0; i < n_expected; i++)
        n_there += is_there(all, &expected[i]);
    is_i64((int64_t)n_there, (int64_t)n_expected,
           "the expected sample of each key");
    must(store_sorted(&sorted, all, &err), &err);
    must(store_merge(stores[0], sorted, &err), &err);
    ok(hash_of(stores[0]) == hash, "one of them becomes all of them");
    store_close(sorted);
    store_close(all);
    for (int i = 0; i < N_STORES; i++)
        store_close(stores[i]);
}

static int64_t ask(struct store *store, const char *sql)
{
    struct err err = {0};
    struct buf answer = {0};
    int64_t number;

    must(store_ask(store, sql, &answer, &err), &err);
    number = strtoll(answer.data, NULL, 10);
    buf_release(&answer);
    return number;
}

/* Fills each column of the schema with its own value. */
static void fill_all(struct store *store)
{
    execute(
        store,
        "INSERT INTO setting VALUES (7, 'cuda:\"G, PU\"', 3, 'int8', "
        "'adam', 11, 'sm_90', ' 570', '12.8', 'box\r\n#'), (9, 'a', 3, "
        "'int8', 'adam', 11, 'b', '', '', '');"
        "INSERT INTO sample VALUES (5, 7, -3, 4, 'repeat', 6, 1, 0.1, 1e-9, "
        "1e9, 1.25, 2.5, 3.75, 4.1, 5.1, 6.1, 12, 1, '0.1.0', '2026', 7.1, "
        "8.1, 9.1, 10.1, 11.1, 12.1, 13.1, 14.1, 15.1, 16, 17, 18.5, 19.5, "
        "-9223372036854775808);"
        "INSERT INTO sample_table VALUES (5, 0, 9007199254740992, 8, "
        "0.30000000000000004, NULL, 5e-324, CAST(zeroblob(128) || "
        "x'555555555555d53f' AS BLOB));"
        "INSERT INTO comm_sample VALUES (3, 7, 'nccl', 4, 2, 99, 98, 0.7, "
        "0.6, 0.8, 21, 0);"
        "INSERT INTO ceiling VALUES (2, 'd', 1, 'i', 'gather', 2, 3, 4, 5, "
        "1.5, 1.25, 1.75, 6, 7, 1, 't');"
        "INSERT INTO product VALUES (2, 'd', 1, 'i', 'bf16', 'tn', 5, 6, 7, 8, "
        "2.5, 2.25, 2.75, 9, 1, 't');"
        "INSERT INTO canary VALUES (2, 'd', 1, 'i', 'x', 'c', 'h', 'v', "
        "0.25, 't');"
        "INSERT INTO training_log VALUES (4, 't', 'v', 'p', 'h', 'kept', "
        "0.5, NULL, 3, 'o', 'n', 4, 0.125, 0.25, 'r', 's')");
}

static void read_fails(const char *text, const char *want, struct arena *arena)
{
    struct store *store;
    struct err err = {0};

    ok(store_from_csv(&store, text, strlen(text), "x.csv", arena, &err) == -1 &&
           err.code == ERR_INPUT,
       "refused");
    is_str(err.msg, want, "why");
}

static void test_lossless(struct arena *arena)
{
    static const char *const rows[] = {
        "\nsetting,2,\"cuda:\"\"G, PU\"\"\",3,int8,adam,11,sm_90,\" 570\",12.8,"
        "\"box\r\n#\",,",
        "\nsample,1,,,,,,,,,,2,-3,4,repeat,6,1,0.10000000000000001,"
        "1.0000000000000001e-09,1000000000,1.25,2.5,3.75,",
        ",6.0999999999999996,12,1,0.1.0,2026,7.0999999999999996,",
        ",16,17,18.5,19.5,-9223372036854775808,,",
        "\nsample_table,,",
        ",1,0,9007199254740992,8,0.30000000000000004,,"
        "4.9406564584124654e-324,0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
        "0.33333333333333331,,",
        "\ncomm_sample,1,,,,,,,,,,2,,,nccl,,,,,,,,,,,,21,,",
        ",4,2,99,98,0.69999999999999996,0.59999999999999998,"
        "0.80000000000000004,0,,",
        "\nceiling,1,d,1,,,,i,,,,,,,gather,",
        ",1.5,1.25,1.75,,2,3,4,5,6,t,,",
        "\nproduct,1,d,1,,,,i,",
        ",t,bf16,tn,5,7,8,,",
        "\ncanary,1,d,1,,,,i,x,c,h,,",
        ",v,,",
        ",t,,,,,,0.25,,",
        "\ntraining_log,1,",
        ",v,,",
        ",t,p,h,kept,0.5,,3,o,n,4,0.125,0.25,r,s\n"};
    struct store *store = open_memory("full"), *sorted, *read, *again;
    struct buf text = {0}, second = {0};
    struct err err = {0};

    fill_all(store);
    must(store_sorted(&sorted, store, &err), &err);
    must(store_to_csv(&text, sorted, &err), &err);
    must(store_from_csv(&read, text.data, text.len, "full.csv", arena, &err),
         &err);
    must(store_sorted(&again, read, &err), &err);
    must(store_to_csv(&second, again, &err), &err);
    is_str(second.data, text.data, "the text of what was read of a text");
    is_i64(ask(read, "SELECT hex(bins) = hex(zeroblob(128)) || "
                     "'555555555555D53F' FROM sample_table"),
           1, "each bit of a third");
    is_i64(ask(read, "SELECT n_unique = 5e-324 AND pooling_factor = "
                     "0.30000000000000004 AND zipf_alpha IS NULL "
                     "FROM sample_table"),
           1, "the least number, one of 17 digits, none");
    is_i64(ask(read, "SELECT host = 'box' || char(13, 10) || '#' AND "
                     "driver = ' 570' FROM setting WHERE batch = 11 AND isa = "
                     "'sm_90'"),
           1, "line ends and blanks of a text");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ok(strstr(text.data, rows[i]) != NULL, "row part %zu", i);
    strstr(text.data, "\nsample_table,,")[1] = '\0';
    read_fails(text.data, "x.csv:5: sample 1 lacks some of its tables", arena);
    buf_release(&text);
    buf_release(&second);
    store_close(store);
    store_close(sorted);
    store_close(read);
    store_close(again);
}

#define SETTING_HEADER \
    "table,id,device,n_threads,precision,optimizer,batch,isa\n"
#define SETTING "setting,1,d,1,fp32,sgd,64,i\n"

static void test_refused(struct arena *arena)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "x.csv:1: the header does not begin with 'table', as that of an "
             "exported cost database does"},
        {"# a\nid,table\n", "x.csv:2: the header does not begin with 'table', "
                            "as that of an exported cost database does"},
        {"table,id,ids\n", "x.csv:1: column 'ids' is unknown or given twice"},
        {"table,id,id\n", "x.csv:1: column 'id' is unknown or given twice"},
        {"table,id\nsetting\n", "x.csv:2: 1 fields, but the header has 2"},
        {"table,id\n\nsettings,1\n", "x.csv:3: there is no table 'settings'"},
        {"table,id\nsample_table,\n",
         "x.csv:2: the header has no column of 'sample_table'"},
        {"table,id,n_rows\nsetting,1,2\n",
         "x.csv:2: table 'setting' has no column 'n_rows'"},
        {"table,id\nsetting,1\n",
         "x.csv:2: NOT NULL constraint failed: setting.device"},
        {SETTING_HEADER SETTING "setting,1.5,e,1,fp32,sgd,64,i\n",
         "x.csv:3: id '1.5' is not a whole number"},
        {SETTING_HEADER SETTING "setting,2,d,1,fp32,sgd,64,i\n",
         "x.csv:3: UNIQUE constraint failed: setting.device, "
         "setting.n_threads, setting.precision, setting.optimizer, "
         "setting.batch, setting.isa, setting.driver, setting.cuda, "
         "setting.host"},
        {SETTING_HEADER "setting,1,d,1,fp64,sgd,64,i\n",
         "x.csv:2: CHECK constraint failed: precision IN ('fp32', 'fp16', "
         "'bf16', 'int8')"},
        {"table,best_ms\ncanary,1e\n", "x.csv:2: best_ms '1e' is not a number"},
        {"table,bins\nsample_table,0 1  2\n",
         "x.csv:2: bins '0 1  2' is not 17 shares separated by blanks"},
        {"table,bins\nsample_table,\"0\n", "x.csv:2: a quoted field is not "
                                           "closed"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        read_fails(cases[i].text, cases[i].want, arena);
}

/* Values that a file with another schema, or one edited by hand, may hold. */
static void test_verify(void)
{
    static const struct {
        const char *sql, *want;
    } cases[] = {
        {"UPDATE sample SET n_tables = 2",
         "cost database 'v': sample 5 lacks some of its tables"},
        {"UPDATE sample_table SET table_idx = 1",
         "cost database 'v': sample 5 lacks some of its tables"},
        {"DELETE FROM sample_table",
         "cost database 'v': sample 5 lacks some of its tables"},
        {"PRAGMA foreign_keys = OFF; DELETE FROM setting WHERE id = 7",
         "cost database 'v': comm_sample 3 refers to a row that is not there"},
        {"PRAGMA ignore_check_constraints = ON; UPDATE sample SET "
         "forward_p10_ms = -1",
         "cost database 'v': table sample, id 5: forward_p10_ms is -1, not a "
         "number from 0 to 1000000000"},
        {"UPDATE sample_table SET bins = CAST(zeroblob(135) || x'01' AS BLOB)",
         NULL},
        {"UPDATE sample_table SET bins = CAST(zeroblob(134) || x'f0ff' AS "
         "BLOB)",
         "cost database 'v': table sample_table, sample_id 5, table_idx 0: "
         "bins is a blob of 136 bytes, not 17 doubles from 0 to 1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct store *store = open_memory("v");
        struct err err = {0};

        fill_all(store);
        must(store_verify(store, &err), &err);
        execute(store, cases[i].sql);
        is_i64(store_verify(store, &err), cases[i].want ? -1 : 0, cases[i].sql);
        if (cases[i].want)
            is_str(err.msg, cases[i].want, "why");
        store_close(store);
    }
}

int main(void)
{
    struct arena arena = {0};

    test_any_order((unsigned)tap_size(40, 4000));
    test_lossless(&arena);
    test_refused(&arena);
    test_verify();
    arena_release(&arena);
    return tap_done();
}
