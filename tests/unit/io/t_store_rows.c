/* SPDX-License-Identifier: MIT */
/* For each kind of row: which rows count as equal, which of two equal rows is
 * kept, their order, and which rows are refused. */
#include "io/store_rows.h"

#include "io/store_sql.h"
#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/t_store_rows.XXXXXX";
static struct arena arena;

static const struct sample_setting usual = {
    .device = "cpu:Some CPU",
    .n_threads = 2,
    .precision = PRECISION_FP16,
    .optimizer = OPTIMIZER_ADAM,
    .batch = 4096,
    .isa = "avx2",
    .driver = "Linux 6.1.0",
    .cuda = "12.8",
    .host = "box",
};
#define N_SETTINGS 9

/* Returns the usual setting with member i changed. i = N_SETTINGS is the usual
 * setting itself. */
static struct sample_setting other_setting(unsigned i)
{
    struct sample_setting setting = usual;

    setting.device = i == 0 ? "cpu:Other CPU" : setting.device;
    setting.n_threads += i == 1;
    setting.isa = i == 2 ? "avx512" : setting.isa;
    setting.driver = i == 3 ? NULL : setting.driver;
    setting.cuda = i == 4 ? NULL : setting.cuda;
    setting.host = i == 5 ? NULL : setting.host;
    setting.precision = i == 6 ? PRECISION_FP32 : setting.precision;
    setting.optimizer = i == 7 ? OPTIMIZER_SGD : setting.optimizer;
    setting.batch += i == 8;
    return setting;
}

static void must(int rc, const struct err *err)
{
    if (rc) {
        printf("Bail out! %s\n", err->msg);
        exit(1);
    }
}

static struct store *open_store(void)
{
    struct store *store;
    struct err err = {0};

    unlink(path);
    must(store_open(&store, path, STORE_WRITE, &err), &err);
    return store;
}

static void run(struct store *store, const char *sql)
{
    char *message = NULL;

    if (sqlite3_exec(store->db, sql, NULL, NULL, &message)) {
        printf("Bail out! %s: %s\n", sql, message);
        exit(1);
    }
}

/* Returns the single number or text that a query gives. */
static const char *ask(struct store *store, const char *sql)
{
    static char answer[200];
    sqlite3_stmt *stmt;

    answer[0] = '\0';
    sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        snprintf(answer, sizeof(answer), "%s", sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return answer;
}

struct key {
    uint64_t seed, case_idx;
    enum sample_kind kind;
    uint32_t part;
};

static void put(struct store *store, const struct sample_setting *setting,
                struct key key, uint32_t n_tables)
{
    struct sample_table tables[3];
    struct sample sample = {.seed = key.seed,
                            .case_idx = key.case_idx,
                            .kind = key.kind,
                            .part = key.part,
                            .tables = tables,
                            .n_tables = n_tables,
                            .total = {1, 1, 1},
                            .version = "0.1.0",
                            .started_at = "2026-11-21T04:05:06Z"};
    struct err err = {0};

    for (uint32_t t = 0; t < 3; t++)
        tables[t] = (struct sample_table){.n_rows = 10 * (n_tables + 1) + t,
                                          .dim = 4,
                                          .pooling_factor = 2,
                                          .n_unique = 5};
    must(store_sink(store).put(store, setting, &sample, &err), &err);
}

static int has(struct store *store, const struct sample_setting *setting,
               struct key key)
{
    return store_sink(store).has(store, setting, key.seed, key.case_idx,
                                 key.kind, key.part);
}

static struct sample *read_all(struct store *store, enum store_scope scope,
                               size_t *n)
{
    struct sample *samples;
    struct err err = {0};

    must(store_samples(store, &usual, scope, &samples, n, &arena, &err), &err);
    return samples;
}

/* A sample is found by its setting and the four members of its key. */
static void test_same_sample(void)
{
    static const struct key key = {1, 2, SAMPLE_SINGLE, 3};
    static const struct key others[] = {{9, 2, SAMPLE_SINGLE, 3},
                                        {1, 9, SAMPLE_SINGLE, 3},
                                        {1, 2, SAMPLE_FUSED, 3},
                                        {1, 2, SAMPLE_SINGLE, 9}};
    struct store *store = open_store();
    struct sample *samples;
    size_t n;

    ok(!has(store, &usual, key), "nothing is there");
    put(store, &usual, key, 2);
    ok(has(store, &usual, key), "the stored row is found");
    for (size_t i = 0; i < 4; i++)
        ok(!has(store, &usual, others[i]), "another key: member %zu", i);
    for (unsigned i = 0; i < N_SETTINGS; i++) {
        const struct sample_setting other = other_setting(i);

        ok(!has(store, &other, key), "another setting: member %u", i);
    }
    put(store, &usual, key, 1);
    samples = read_all(store, STORE_SETTING, &n);
    ok(n == 1 && samples[0].n_tables == 2 && samples[0].tables[1].n_rows == 31,
       "stored twice: the first one and its tables stay");
    is_str(ask(store, "SELECT count(*) FROM sample_table"), "2",
           "and no others");
    is_str(ask(store, "SELECT count(*) FROM setting"), "1",
           "nor a second setting");
    store_close(store);
}

/* Samples are sorted by setting, oldest first, then by seed, case, kind and
 * part. */
static void test_order(void)
{
    static const struct key want[] = {
        {1, 1, SAMPLE_FUSED, 0},  {1, 1, SAMPLE_SINGLE, 1},
        {1, 1, SAMPLE_SINGLE, 2}, {1, 1, SAMPLE_SENTINEL, 0},
        {1, 2, SAMPLE_FUSED, 0},  {2, 0, SAMPLE_SINGLE, 1},
    };
    static const unsigned order[] = {4, 2, 5, 0, 3, 1};
    const struct sample_setting other = other_setting(8);
    struct store *store = open_store();
    struct sample *samples;
    bool is_right = true;
    size_t n;

    put(store, &other, want[5], 0);
    for (size_t i = 0; i < 6; i++)
        put(store, &usual, want[order[i]], 1);
    put(store, &other, want[0], 0);
    samples = read_all(store, STORE_DEVICE, &n);
    is_i64((int64_t)n, 8, "both settings of the device");
    for (size_t i = 0; n == 8 && i < 8; i++) {
        const struct key *key = &want[i > 1 ? i - 2 : i ? 5 : 0];

        is_right &= samples[i].setting->batch == (i < 2 ? 4097u : 4096u) &&
                    samples[i].seed == key->seed &&
                    samples[i].case_idx == key->case_idx &&
                    samples[i].kind == key->kind &&
                    samples[i].part == key->part;
    }
    ok(is_right, "in order");
    (void)read_all(store, STORE_SETTING, &n);
    is_i64((int64_t)n, 6, "one setting has its own");
    store_close(store);
}

/* Devices are equal if name, threads and instruction set are equal; settings if
 * all members are. */
static void test_scopes(void)
{
    struct store *store = open_store();
    size_t n;

    for (unsigned i = 0; i <= N_SETTINGS; i++) {
        const struct sample_setting setting = other_setting(i);

        put(store, &setting, (struct key){1, i, SAMPLE_FUSED, 0}, 1);
    }
    (void)read_all(store, STORE_SETTING, &n);
    is_i64((int64_t)n, 1, "samples of a setting");
    (void)read_all(store, STORE_DEVICE, &n);
    is_i64((int64_t)n, N_SETTINGS + 1 - 3, "samples of a device");
    store_close(store);
}

/* Samples with missing tables. */
static void test_lacking(void)
{
    static const struct {
        const char *sql;
        unsigned lacks; /* number of the sample with missing tables; 0: none */
    } CASES[] = {
        {"SELECT 1", 0},
        {"DELETE FROM sample_table WHERE sample_id = 2", 2},
        {"DELETE FROM sample_table WHERE sample_id = 1 AND table_idx = 1", 1},
        {"DELETE FROM sample_table WHERE sample_id = 1 AND table_idx = 0", 1},
        {"DELETE FROM sample_table WHERE sample_id = 3 AND table_idx = 1", 3},
        {"UPDATE sample_table SET table_idx = 7 WHERE sample_id = 3 AND "
         "table_idx = 1",
         3},
        {"DELETE FROM sample_table", 1},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct store *store = open_store();
        struct sample *samples;
        struct err err = {0};
        char want[80];
        size_t n;
        int rc;

        for (uint64_t c = 0; c < 3; c++)
            put(store, &usual, (struct key){1, c, SAMPLE_FUSED, 0}, 2);
        run(store, CASES[i].sql);
        rc = store_samples(store, &usual, STORE_SETTING, &samples, &n, &arena,
                           &err);
        snprintf(want, sizeof(want), "sample %u lacks some of its 2 tables",
                 CASES[i].lacks);
        if (CASES[i].lacks)
            ok(rc == -1 && err.code == ERR_INPUT && strstr(err.msg, want),
               "%s: %s", CASES[i].sql, err.msg);
        else
            ok(!rc && n == 3, "all are there %s", err.msg);
        store_close(store);
    }
}

static struct comm_sample comm_of(unsigned i)
{
    return (struct comm_sample){.kind = i == 0 ? "shm" : "copy",
                                .n_ranks = 2 + (i == 1),
                                .n_hosts = 1 + (i == 2),
                                .total_bytes = 100 + (i == 3),
                                .max_bytes = 10 + (i == 4),
                                .host_bytes = 7 * i,
                                .time = {1, 1, 1}};
}

/* An exchange is found by its setting and its own five members. A later equal
 * one replaces it. */
static void test_comm(void)
{
    /* sorted by kind ("copy" before "shm"), ranks, hosts and bytes */
    static const unsigned order[] = {5, 4, 3, 2, 1, 0};
    const struct comm_sample first = comm_of(5);
    struct store *store = open_store();
    struct sample_sink sink = store_sink(store);
    struct comm_sample *found, again = first;
    const struct sample_setting batch = other_setting(8),
                                device = other_setting(0);
    struct err err = {0};
    bool is_right;
    size_t n;

    ok(!sink.has_comm(store, &usual, &first), "no exchange is there");
    must(sink.put_comm(store, &usual, &first, &err), &err);
    ok(sink.has_comm(store, &usual, &first), "the stored row is found");
    for (unsigned i = 0; i < 5; i++) {
        const struct comm_sample other = comm_of(i);

        ok(!sink.has_comm(store, &usual, &other), "another: member %u", i);
        must(sink.put_comm(store, &usual, &other, &err), &err);
    }
    for (unsigned i = 0; i < N_SETTINGS; i++) {
        const struct sample_setting other = other_setting(i);

        ok(!sink.has_comm(store, &other, &first), "another setting: member %u",
           i);
    }
    again.time.median_ms = 2;
    must(sink.put_comm(store, &usual, &again, &err), &err);
    must(sink.put_comm(store, &batch, &first, &err), &err);
    must(sink.put_comm(store, &device, &first, &err), &err);
    must(store_comm_samples(store, &usual, STORE_SETTING, &found, &n, &arena,
                            &err),
         &err);
    is_i64((int64_t)n, 6, "exchanges of a setting");
    is_right = n == 6 && found[0].time.median_ms == 2;
    for (size_t i = 0; is_right && i < 6; i++) {
        const struct comm_sample want = comm_of(order[i]);

        is_right = !strcmp(found[i].kind, want.kind) &&
                   found[i].n_ranks == want.n_ranks &&
                   found[i].n_hosts == want.n_hosts &&
                   found[i].total_bytes == want.total_bytes &&
                   found[i].max_bytes == want.max_bytes &&
                   found[i].host_bytes == want.host_bytes;
    }
    ok(is_right, "in order, the latest of each");
    must(store_comm_samples(store, &usual, STORE_DEVICE, &found, &n, &arena,
                            &err),
         &err);
    is_i64((int64_t)n, 7, "exchanges of a device");
    store_close(store);
}

/* Returns true if another process can claim the case while this process holds
 * case 2 of seed 1 of the usual setting. */
static bool is_claimed(struct store *store,
                       const struct sample_setting *setting, uint64_t seed,
                       uint64_t case_idx)
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        struct lock lock = {0};
        struct err err;
        const int rc = store_sink(store).claim(store, setting, seed, case_idx,
                                               &lock, &err);

        _exit(rc ? 2 : lock.path != NULL);
    }
    waitpid(child, &status, 0);
    if (status && status != 1 << 8)
        ok(0, "claimed: %d", status);
    return status == 1 << 8;
}

/* Cases are different if their setting, seed or number differs. */
static void test_claims(void)
{
    struct store *store = open_store();
    struct lock lock = {0};
    struct err err = {0};

    must(store_sink(store).claim(store, &usual, 1, 2, &lock, &err), &err);
    ok(lock.path != NULL, "a case is claimed");
    ok(!is_claimed(store, &usual, 1, 2), "by one process");
    ok(is_claimed(store, &usual, 9, 2) && is_claimed(store, &usual, 1, 9),
       "others claim other cases");
    for (unsigned i = 0; i < N_SETTINGS; i++) {
        const struct sample_setting other = other_setting(i);

        ok(is_claimed(store, &other, 1, 2), "of other settings: member %u", i);
    }
    lock_release(&lock);
    ok(is_claimed(store, &usual, 1, 2), "and it, once it is given back");
    store_close(store);
}

/* The training log records which model is in use. */
static void test_verdicts(void)
{
    struct model_verdict verdict = {.model_path = "m.nsm",
                                    .old_hash = "old",
                                    .new_hash = "new",
                                    .reason = "few",
                                    .old_mape = 0.5,
                                    .new_mape = 0.25,
                                    .n_samples = 7,
                                    .n_held_out = 3,
                                    .setting = "s"};
    struct store *store = open_store();
    struct err err = {0};

    must(store_log_verdict(store, &verdict, &err), &err);
    verdict.replaced = true;
    must(store_log_verdict(store, &verdict, &err), &err);
    is_str(ask(store, "SELECT group_concat(verdict || ' ' || model_hash || ' ' "
                      "|| old_hash || ' ' || new_hash || ' ' || version, ';') "
                      "FROM training_log"),
           "kept old old new " NEUROSHARD_VERSION
           ";replaced new old new " NEUROSHARD_VERSION,
           "a model that is kept, and one that is replaced");
    is_str(ask(store, "SELECT old_mape || ' ' || new_mape || ' ' || n_samples "
                      "|| ' ' || n_held_out || ' ' || reason FROM "
                      "training_log"),
           "0.5 0.25 7 3 few", "with its figures");
    store_close(store);
}

/* Ceilings of every kind are read back in the order in which they were
 * stored. */
static void test_ceilings(void)
{
    struct store *store = open_store();
    struct ceiling *found;
    struct err err = {0};
    bool is_right = true;
    size_t n = 0;

    for (unsigned k = 0; k <= PROBE_LAUNCH; k++) {
        const struct ceiling ceiling = {
            .probe = {.kind = (enum probe_kind)k, .n_bytes = 64}};

        ok(!store_has_ceiling(store, &usual, &ceiling.probe), "not yet: %s",
           probe_kind_names[k]);
        must(store_put_ceiling(store, &usual, &ceiling, &err), &err);
        ok(store_has_ceiling(store, &usual, &ceiling.probe), "now it is");
    }
    must(store_ceilings(store, &usual, &found, &n, &arena, &err), &err);
    for (size_t k = 0; k < n; k++)
        is_right &= found[k].probe.kind == k;
    ok(is_right && n == PROBE_LAUNCH + 1, "all kinds");
    store_close(store);
}

/* Matrix products are read back in the order of type, form and shape. A new
 * time of a shape takes the place of the old one. */
static void test_products(void)
{
    static const struct product products[] = {
        {DENSE_TYPE_TF32, PRODUCT_TN, 4, 3, 2, 1},
        {DENSE_TYPE_BF16, PRODUCT_NT, 4, 3, 2, 1},
        {DENSE_TYPE_BF16, PRODUCT_NT, 4, 3, 2, 9},
    };
    static const size_t order[] = {1, 2, 0};
    const struct sample_setting other = {.device = "cpu:other", .isa = "x"};
    struct store *store = open_store();
    struct product_sample *found;
    struct err err = {0};
    bool is_right = true;
    size_t n = 0;

    for (size_t i = 0; i < 3; i++) {
        struct product_sample sample = {products[i], {2, 1, 3}, 5, 0};

        ok(!store_has_product(store, &usual, &products[i]), "not yet");
        must(store_put_product(store, &usual, &sample, &err), &err);
        ok(store_has_product(store, &usual, &products[i]) &&
               !store_has_product(store, &other, &products[i]),
           "now it is, on this device");
        sample.timing.median_ms = (double)i + 1;
        must(store_put_product(store, &usual, &sample, &err), &err);
    }
    must(store_products(store, &usual, &found, &n, &arena, &err), &err);
    for (size_t i = 0; i < n && i < 3; i++)
        is_right &= product_is_same(&found[i].product, &products[order[i]]) &&
                    found[i].timing.median_ms == (double)order[i] + 1 &&
                    found[i].timing.p90_ms == 3 && found[i].n_iterations == 5;
    ok(is_right && n == 3, "all products, once");
    run(store, "PRAGMA ignore_check_constraints = 1");
    run(store, "UPDATE product SET form = 'tt'");
    ok(store_products(store, &usual, &found, &n, &arena, &err) &&
           strstr(err.msg, "unknown type 'bf16' or form 'tt'"),
       "%s", err.msg);
    store_close(store);
}

/* Rows of unknown kinds, which a file may contain. */
static void test_unknown(void)
{
    static const char *const bad[] = {
        "UPDATE setting SET precision = 'fp1'",
        "UPDATE setting SET optimizer = 'none'",
        "UPDATE sample SET kind = 'odd'",
    };
    static const char *const want[] = {"unknown precision or optimizer",
                                       "unknown precision or optimizer",
                                       "is of an unknown kind"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct store *store = open_store();
        struct sample *samples;
        struct err err = {0};
        size_t n;

        put(store, &usual, (struct key){1, 1, SAMPLE_SENTINEL, 0}, 1);
        ok(!store_samples(store, &usual, STORE_SETTING, &samples, &n, &arena,
                          &err) &&
               n == 1,
           "the last kind is known");
        run(store, "PRAGMA ignore_check_constraints = 1");
        run(store, bad[i]);
        ok(store_samples(store, &usual, STORE_DEVICE, &samples, &n, &arena,
                         &err) == -1 ||
               !n,
           "%s", bad[i]);
        ok(strstr(err.msg, want[i]) != NULL, "%s", err.msg);
        store_close(store);
    }
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        tap_skip_all("no temporary file");
    close(fd);
    test_same_sample();
    test_order();
    test_scopes();
    test_lacking();
    test_comm();
    test_claims();
    test_verdicts();
    test_ceilings();
    test_products();
    test_unknown();
    unlink(path);
    arena_release(&arena);
    return tap_done();
}
