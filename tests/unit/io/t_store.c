/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"
#include "tests/tap.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/file_write.h"
#include "base/rng.h"
#include "io/store_rows.h"
#include "io/store_sql.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct sample_setting setting = {.device = "cpu:Some CPU",
                                              .n_threads = 2,
                                              .precision = PRECISION_FP16,
                                              .optimizer = OPTIMIZER_SGD,
                                              .batch = 4096,
                                              .isa = "avx2",
                                              .driver = "Linux 6.1.0",
                                              .host = "box"};
static const struct sample_setting other_setting = {
    .device = "cuda:NVIDIA H200",
    .precision = PRECISION_FP32,
    .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
    .batch = 65536,
    .isa = "sm_90"};

static char dir[] = "/tmp/t_store.XXXXXX";

static const char *in_dir(char buf[128], const char *name)
{
    snprintf(buf, 128, "%s/%s", dir, name);
    return buf;
}

static struct timing random_timing(struct rng *rng)
{
    double median_ms = rng_uniform(rng) * 10 + 1e-3;

    return (struct timing){median_ms, median_ms * 0.9, median_ms * 1.3};
}

/* Returns a sample in which every field has a different value. */
static struct sample make_sample(struct arena *arena, enum sample_kind kind,
                                 uint64_t case_idx, uint32_t part,
                                 uint32_t n_tables)
{
    struct sample sample = {.kind = kind,
                            .seed = 7,
                            .case_idx = case_idx,
                            .part = part,
                            .n_tables = n_tables,
                            .n_iterations = 12,
                            .flags = SAMPLE_THROTTLED,
                            .version = "0.1.0",
                            .started_at = "2026-11-21T04:05:06Z"};
    struct rng rng;

    rng_init(&rng, case_idx, part);
    sample.forward = random_timing(&rng);
    sample.backward = random_timing(&rng);
    sample.total = random_timing(&rng);
    sample.linearise = random_timing(&rng);
    sample.sort = random_timing(&rng);
    sample.update = random_timing(&rng);
    sample.health = (struct sample_health){.sm_mhz = 1980,
                                           .memory_mhz = 3201,
                                           .temperature_c = 41 + part,
                                           .power_w = 512.25,
                                           .throttle_reasons = 1ull << 63};
    sample.tables = ARENA_NEW(arena, struct sample_table, n_tables);
    for (uint32_t i = 0; i < n_tables; i++) {
        struct sample_table *table = &sample.tables[i];

        table->n_rows = 1 + rng_below(&rng, UINT64_C(5000000000));
        table->dim = 4 * (1 + i);
        table->pooling_factor = rng_uniform(&rng) * 100;
        table->zipf_alpha = i % 2 ? NAN : rng_uniform(&rng);
        table->n_unique = rng_uniform(&rng) * 1e6;
        for (int k = 0; k < REUSE_BINS; k++)
            table->bins[k] = rng_uniform(&rng);
    }
    return sample;
}

static int same_timing(const struct timing *a, const struct timing *b)
{
    return a->median_ms == b->median_ms && a->p10_ms == b->p10_ms &&
           a->p90_ms == b->p90_ms;
}

static int same_table(const struct sample_table *a,
                      const struct sample_table *b)
{
    int same = a->n_rows == b->n_rows && a->dim == b->dim &&
               a->pooling_factor == b->pooling_factor &&
               a->n_unique == b->n_unique &&
               (a->zipf_alpha == b->zipf_alpha ||
                (isnan(a->zipf_alpha) && isnan(b->zipf_alpha)));

    for (int k = 0; k < REUSE_BINS; k++)
        same &= a->bins[k] == b->bins[k];
    return same;
}

static int same_sample(const struct sample *a, const struct sample *b)
{
    int same = a->kind == b->kind && a->seed == b->seed &&
               a->case_idx == b->case_idx && a->part == b->part &&
               a->n_tables == b->n_tables &&
               same_timing(&a->forward, &b->forward) &&
               same_timing(&a->backward, &b->backward) &&
               same_timing(&a->total, &b->total) &&
               same_timing(&a->linearise, &b->linearise) &&
               same_timing(&a->sort, &b->sort) &&
               same_timing(&a->update, &b->update) &&
               a->health.sm_mhz == b->health.sm_mhz &&
               a->health.memory_mhz == b->health.memory_mhz &&
               a->health.temperature_c == b->health.temperature_c &&
               a->health.power_w == b->health.power_w &&
               a->health.throttle_reasons == b->health.throttle_reasons &&
               a->n_iterations == b->n_iterations && a->flags == b->flags &&
               !strcmp(a->version, b->version) &&
               !strcmp(a->started_at, b->started_at);

    for (uint32_t i = 0; same && i < a->n_tables; i++)
        same = same_table(&a->tables[i], &b->tables[i]);
    return same;
}

static void open_ok(struct store **store, const char *path,
                    enum store_mode mode)
{
    struct err err = {0};

    if (!ok(!store_open(store, path, mode, &err), "opens %s", path)) {
        printf("# %s\n", err.msg);
        exit(1);
    }
}

static void put_ok(struct store *store, const struct sample_setting *at,
                   const struct sample *sample)
{
    struct err err = {0};

    if (store_sink(store).put(store, at, sample, &err)) {
        ok(0, "put: %s", err.msg);
        exit(1);
    }
}

static void opening_fails(const char *path, enum store_mode mode,
                          enum err_code code, const char *want)
{
    struct store *store = NULL;
    struct err err = {0};

    ok(store_open(&store, path, mode, &err) == -1, "%s is refused", path);
    is_i64(err.code, code, "code");
    is_str(err.msg, want, "message");
}

static void holds(const char *held, const char *path, struct arena *arena)
{
    struct err err = {0};
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, &err))
        ok(0, "%s", err.msg);
    else
        is_str(held, text, path);
}

/* The schema compiled into the program is the text of this file. */
static void test_schema(struct arena *arena)
{
    holds(store_schema_sql, "data/schema.sql", arena);
}

static void test_round_trip(struct arena *arena)
{
    struct sample in[] = {
        make_sample(arena, SAMPLE_FUSED, 3, 0, 5),
        make_sample(arena, SAMPLE_SINGLE, 9, 2, 1),
        make_sample(arena, SAMPLE_FUSED, 9, 0, 15),
        make_sample(arena, SAMPLE_SENTINEL, 0, 0, 2),
        make_sample(arena, SAMPLE_SINGLE, 9, 1, 1),
        make_sample(arena, SAMPLE_EXECUTED, 3, 0, 0),
    };
    static const size_t order[] = {3, 0, 5, 2, 4, 1};
    struct sample_setting *settings;
    struct sample *out;
    struct store *store;
    struct err err = {0};
    char path[128];
    size_t n;

    open_ok(&store, in_dir(path, "round.db"), STORE_WRITE);
    for (size_t i = 0; i < 6; i++)
        put_ok(store, &setting, &in[i]);
    put_ok(store, &other_setting, &in[0]);
    store_close(store);
    snprintf(path + strlen(path), 8, "-wal");
    ok(access(path, F_OK) != 0, "no WAL is left after closing");

    open_ok(&store, in_dir(path, "round.db"), STORE_READ);
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err),
       "reads");
    is_i64((int64_t)n, 6, "all samples of the setting");
    for (size_t i = 0; i < n; i++)
        ok(same_sample(&out[i], &in[order[i]]) &&
               out[i].setting->batch == setting.batch,
           "sample %zu is the same", i);
    ok(!store_settings(store, &settings, &n, arena, &err), "settings");
    is_i64((int64_t)n, 2, "two settings");
    is_str(settings[1].device, "cuda:NVIDIA H200", "device");
    is_str(settings[0].isa, "avx2", "isa");
    is_str(settings[0].driver, "Linux 6.1.0", "driver");
    is_str(settings[0].cuda, "", "no CUDA");
    is_str(settings[0].host, "box", "host");
    ok(settings[0].precision == PRECISION_FP16 &&
           settings[0].optimizer == OPTIMIZER_SGD &&
           settings[0].n_threads == 2 && settings[0].batch == 4096,
       "the rest of a setting");
    ok(store_sink(store).put(store, &setting, &in[0], &err) == -1,
       "a store opened for reading takes no sample");
    store_close(store);
}

static void test_duplicates(struct arena *arena)
{
    struct sample first = make_sample(arena, SAMPLE_FUSED, 1, 0, 3);
    struct sample second = make_sample(arena, SAMPLE_FUSED, 1, 0, 3);
    struct sample *out;
    struct sample_sink sink;
    struct store *store;
    struct err err = {0};
    char path[128];
    size_t n;

    second.total.median_ms = 1e6;
    open_ok(&store, in_dir(path, "twice.db"), STORE_WRITE);
    sink = store_sink(store);
    ok(!sink.has(sink.ctx, &setting, 7, 1, SAMPLE_FUSED, 0), "not there yet");
    ok(!sink.put(sink.ctx, &setting, &first, &err), "put");
    ok(sink.has(sink.ctx, &setting, 7, 1, SAMPLE_FUSED, 0), "now it is");
    ok(!sink.has(sink.ctx, &setting, 7, 1, SAMPLE_REPEAT, 0) &&
           !sink.has(sink.ctx, &setting, 7, 1, SAMPLE_FUSED, 1) &&
           !sink.has(sink.ctx, &setting, 8, 1, SAMPLE_FUSED, 0) &&
           !sink.has(sink.ctx, &other_setting, 7, 1, SAMPLE_FUSED, 0),
       "nothing else is");
    put_ok(store, &setting, &second);
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err),
       "reads");
    is_i64((int64_t)n, 1, "stored once");
    ok(same_sample(&out[0], &first), "the first one stays");
    store_close(store);
}

static void test_comm(struct arena *arena)
{
    struct comm_sample in[] = {
        {"copy", 4, 1, 1 << 20, 300000, 0, {1, 0.9, 1.1}, 12},
        {"copy", 2, 1, 1 << 21, 1 << 20, 0, {2, 1.9, 2.1}, 12},
        {"copy", 4, 1, 1 << 20, 300000, 0, {1.5, 1.4, 1.6}, 13},
        {"copy", 4, 2, 1 << 20, 300000, 0, {9, 8, 10}, 12},
    };
    struct comm_sample *out;
    struct store *store;
    struct err err = {0};
    char path[128];
    size_t n;

    open_ok(&store, in_dir(path, "comm.db"), STORE_WRITE);
    for (size_t i = 0; i < 4; i++)
        ok(!store_sink(store).put_comm(store, &setting, &in[i], &err),
           "put_comm");
    ok(!store_comm_samples(store, &setting, STORE_SETTING, &out, &n, arena,
                           &err),
       "reads");
    is_i64((int64_t)n, 3, "a pattern is kept once");
    ok(store_sink(store).has_comm(store, &setting, &in[1]) &&
           store_sink(store).has_comm(store, &setting, &in[3]),
       "the stored row is found");
    ok(!store_sink(store).has_comm(store, &other_setting, &in[1]),
       "not of another setting");
    for (int i = 0; i < 5; i++) {
        struct comm_sample other = in[1];

        other.kind = i == 0 ? "mpi" : other.kind;
        other.n_ranks += i == 1;
        other.n_hosts += i == 2 ? 2 : 0;
        other.total_bytes += i == 3;
        other.max_bytes += i == 4;
        ok(!store_sink(store).has_comm(store, &setting, &other),
           "nor of pattern %d", i);
    }
    ok(out[0].n_ranks == 2 && out[1].n_ranks == 4 && out[1].n_hosts == 1 &&
           out[2].n_hosts == 2,
       "ordered");
    ok(out[1].time.median_ms == 1.5 && out[1].n_iterations == 13 &&
           out[1].max_bytes == 300000 && out[1].total_bytes == 1 << 20,
       "the newest wins");
    is_str(out[0].kind, "copy", "kind");
    ok(!store_comm_samples(store, &other_setting, STORE_SETTING, &out, &n,
                           arena, &err) &&
           n == 0,
       "none of another setting");
    ok(!store_log_verdict(
           store,
           &(struct model_verdict){.model_path = "m.nsm",
                                   .old_hash = "0123456789abcdef",
                                   .new_hash = "1123456789abcdef",
                                   .replaced = true,
                                   .old_mape = 0.03,
                                   .new_mape = 0.02,
                                   .gain_se = NAN,
                                   .n_samples = 1000},
           &err),
       "training log");
    store_close(store);
}

/* A manipulated file: triggers and views in its schema are not executed. */
static void test_prepared(struct arena *arena)
{
    struct sample sample = make_sample(arena, SAMPLE_FUSED, 1, 0, 1), *out;
    struct store *store;
    struct err err = {0};
    sqlite3 *db = NULL;
    char path[128];
    size_t n;

    open_ok(&store, in_dir(path, "prepared.db"), STORE_WRITE);
    store_close(store);
    ok(!sqlite3_open(path, &db) &&
           !sqlite3_exec(db,
                         "CREATE TRIGGER t AFTER INSERT ON sample_table BEGIN "
                         "DELETE FROM sample; END",
                         NULL, NULL, NULL),
       "a trigger that empties the database");
    sqlite3_close(db);
    open_ok(&store, path, STORE_WRITE);
    ok(!store_sink(store).put(store, &setting, &sample, &err),
       "a sample is put");
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err) &&
           n == 1,
       "and stays");
    store_close(store);

    ok(!sqlite3_open(path, &db) &&
           !sqlite3_exec(db,
                         "DROP TABLE training_log; DROP TABLE ceiling; CREATE "
                         "VIEW ceiling AS SELECT *, 1 AS id FROM setting",
                         NULL, NULL, NULL),
       "a view in the place of a table");
    sqlite3_close(db);
    open_ok(&store, path, STORE_READ);
    ok(store_ceilings(store, &setting, &(struct ceiling *){0}, &n, arena,
                      &err) == -1 &&
           strstr(err.msg, "prohibited"),
       "is not asked: %s", err.msg);
    store_close(store);
}

/* Every defect of the file has its own message. */
static void test_refused(void)
{
    char path[128], want[256];
    struct store *store;
    struct err err = {0};

    in_dir(path, "garbage.db");
    ok(!file_write(path, "name,num_embeddings\n", 20, &err), "garbage");
    snprintf(want, sizeof(want), "'%s' is not a SQLite database", path);
    opening_fails(path, STORE_READ, ERR_INPUT, want);
    opening_fails(path, STORE_WRITE, ERR_INPUT, want);

    in_dir(path, "absent.db");
    snprintf(want, sizeof(want),
             "cannot access '%s': "
             "No such file or directory",
             path);
    opening_fails(path, STORE_READ, ERR_IO, want);

    in_dir(path, "no/such/folder.db");
    snprintf(want, sizeof(want),
             "cannot access '%s': "
             "No such file or directory",
             path);
    opening_fails(path, STORE_WRITE, ERR_IO, want);

    snprintf(want, sizeof(want), "cannot access '%s': Is a directory", dir);
    opening_fails(dir, STORE_WRITE, ERR_IO, want);

    in_dir(path, "empty.db");
    ok(!file_write(path, "", 0, &err), "empty");
    snprintf(want, sizeof(want), "'%s' is empty, not a cost database", path);
    opening_fails(path, STORE_READ, ERR_INPUT, want);

    in_dir(path, "version.db");
    open_ok(&store, path, STORE_WRITE);
    sqlite3_exec(store->db, "PRAGMA user_version = 7", NULL, NULL, NULL);
    store_close(store);
    snprintf(want, sizeof(want),
             "cost database '%s' has schema version 7, this program reads "
             "versions 1 to 6: use the neuroshard that made it, or a new file",
             path);
    opening_fails(path, STORE_READ, ERR_INPUT, want);
    opening_fails(path, STORE_WRITE, ERR_INPUT, want);

    in_dir(path, "foreign.db");
    open_ok(&store, path, STORE_WRITE);
    sqlite3_exec(store->db, "PRAGMA application_id = 1", NULL, NULL, NULL);
    store_close(store);
    snprintf(want, sizeof(want),
             "'%s' is a database of another program, not a cost database",
             path);
    opening_fails(path, STORE_WRITE, ERR_INPUT, want);
}

/* Two writers and a reader use one file; each sees the samples of the
 * others. */
static void test_shared(struct arena *arena)
{
    struct store *stores[2], *reader;
    struct err err = {0};
    struct sample *out;
    char path[128];
    size_t n;

    in_dir(path, "shared.db");
    open_ok(&stores[0], path, STORE_WRITE);
    open_ok(&stores[1], path, STORE_WRITE);
    open_ok(&reader, path, STORE_READ);
    for (uint64_t i = 0; i < 10; i++) {
        struct sample sample = make_sample(arena, SAMPLE_FUSED, i, 0, 2);

        put_ok(stores[i % 2], &setting, &sample);
        ok(!store_samples(reader, &setting, STORE_SETTING, &out, &n, arena,
                          &err) &&
               n == i + 1,
           "the reader sees sample %d", (int)i);
    }
    store_close(stores[0]);
    ok(!store_samples(reader, &setting, STORE_SETTING, &out, &n, arena, &err) &&
           n == 10,
       "one writer has closed the file");
    store_close(reader);
    store_close(stores[1]);
}

/* A killed process leaves its log behind; the next reader recovers from it. */
static void test_killed(struct arena *arena)
{
    struct sample sample = make_sample(arena, SAMPLE_FUSED, 0, 0, 2);
    struct store *store;
    struct err err = {0};
    struct sample *out;
    char path[128], log[160];
    pid_t child;
    size_t n;

    in_dir(path, "killed.db");
    child = fork();
    if (child == 0) {
        if (store_open(&store, path, STORE_WRITE, &err))
            _exit(1);
        for (uint64_t i = 0; i < 5; i++) {
            sample.case_idx = i;
            if (store_sink(store).put(store, &setting, &sample, &err))
                _exit(1);
        }
        _exit(0); /* ends without closing the database */
    }
    waitpid(child, NULL, 0);
    snprintf(log, sizeof(log), "%s-wal", path);
    ok(access(log, F_OK) == 0, "the log is left");
    open_ok(&store, path, STORE_READ);
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err) &&
           n == 5,
       "a reader finds all samples");
    store_close(store);
    open_ok(&store, path, STORE_WRITE);
    store_close(store);
    ok(access(log, F_OK) != 0, "a writer clears it up");
}

/* Time in ms that a commit waits for a process that reads for a moment. */
#define COMMIT_WAIT_MS 10000

/* Two processes change the file's journal mode at once: the second must first
 * release its lock. Here one process holds a write transaction and commits a
 * little later. */
static void test_waits(void)
{
    static const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    struct store *store;
    char path[128], byte = 0;
    sqlite3 *db = NULL;
    int ready[2];
    pid_t child;

    in_dir(path, "waits.db");
    open_ok(&store, path, STORE_WRITE);
    store_close(store);
    ok(!pipe(ready), "a pipe");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        if (sqlite3_open(path, &db) ||
            sqlite3_busy_timeout(db, COMMIT_WAIT_MS) ||
            sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) ||
            write(ready[1], &byte, 1) != 1)
            _exit(1);
        nanosleep(&pause, NULL);
        _exit(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    }
    ok(read(ready[0], &byte, 1) == 1, "another process writes");
    open_ok(&store, path, STORE_WRITE);
    store_close(store);
    waitpid(child, &ready[0], 0);
    is_i64(ready[0], 0, "which could");
    close(ready[1]);
}

static void test_read_only(void)
{
    struct store *store;
    char path[128], want[256];

    in_dir(path, "readonly.db");
    open_ok(&store, path, STORE_WRITE);
    store_close(store);
    if (geteuid() == 0) {
        tap_skip("a read-only file", "root may write anything");
        return;
    }
    chmod(path, 0444);
    snprintf(want, sizeof(want), "cannot write '%s': the file is read-only",
             path);
    opening_fails(path, STORE_WRITE, ERR_IO, want);
    open_ok(&store, path, STORE_READ);
    store_close(store);
}

static void test_disk_full(struct arena *arena)
{
    struct sample sample;
    struct sample *out;
    struct store *store;
    struct err err = {0};
    char path[128], want[256];
    uint64_t i;
    int64_t n_good;
    size_t n;

    open_ok(&store, in_dir(path, "full.db"), STORE_WRITE);
    sqlite3_exec(store->db, "PRAGMA max_page_count = 40", NULL, NULL, NULL);
    for (i = 0; i < 1000; i++) {
        sample = make_sample(arena, SAMPLE_FUSED, i, 0, 10);
        if (store_sink(store).put(store, &setting, &sample, &err))
            break;
    }
    n_good = (int64_t)i;
    ok(i > 1 && i < 1000, "the disk is full at some point");
    is_i64(err.code, ERR_IO, "code");
    snprintf(want, sizeof(want),
             "cannot access '%s': "
             "database or disk is full",
             path);
    is_str(err.msg, want, "message");
    store_close(store);

    open_ok(&store, path, STORE_WRITE);
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err),
       "reads");
    is_i64((int64_t)n, n_good, "exactly the acknowledged samples are stored");
    put_ok(store, &setting, &sample);
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err) &&
           (int64_t)n == n_good + 1,
       "with room again the same sample goes in");
    store_close(store);
}

/* If a database's constraints were bypassed, its wrong values cause an
 * error. */
static void test_damaged(struct arena *arena)
{
    static const struct {
        const char *sql, *want;
    } cases[] = {
        {"DELETE FROM sample_table WHERE table_idx = 1",
         "cost database '%s': sample 1 lacks some of its 3 tables"},
        {"UPDATE sample SET kind = 'odd'",
         "cost database '%s': sample 1 is of an unknown kind"},
        {"UPDATE sample SET n_tables = 2000000000",
         "cost database '%s': table sample, id 1: n_tables is 2000000000, not "
         "a whole number from 0 to 1000000"},
        {"UPDATE sample_table SET bins = x'00'",
         "cost database '%s': table sample_table, sample_id 1, table_idx 0: "
         "bins "
         "is a blob of 1 bytes, not 17 doubles from 0 to 1"},
    };
    struct sample sample = make_sample(arena, SAMPLE_FUSED, 1, 0, 3);
    char path[128], want[256];
    struct sample *out;
    struct store *store;
    size_t n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err err = {0};

        in_dir(path, "damaged.db");
        unlink(path);
        open_ok(&store, path, STORE_WRITE);
        put_ok(store, &setting, &sample);
        sqlite3_exec(store->db, "PRAGMA ignore_check_constraints = 1", NULL,
                     NULL, NULL);
        is_i64(sqlite3_exec(store->db, cases[i].sql, NULL, NULL, NULL), 0,
               cases[i].sql);
        ok(store_samples(store, &setting, STORE_SETTING, &out, &n, arena,
                         &err) == -1,
           "is refused");
        /* want contains one %s, for the path */
        snprintf(want, sizeof(want), "%.15s%s%s", cases[i].want, path,
                 strchr(cases[i].want, '%') + 2);
        is_str(err.msg, want, "message");
        is_i64(err.code, ERR_INPUT, "code");
        store_close(store);
    }
}

/* 20,000 samples of 8 tables; the time is printed, not checked. */
static void test_many(struct arena *arena)
{
    struct sample sample = make_sample(arena, SAMPLE_FUSED, 0, 0, 8);
    struct sample *out;
    struct store *store;
    struct err err = {0};
    char path[128];
    double begin_ms;
    size_t n;

    open_ok(&store, in_dir(path, "many.db"), STORE_WRITE);
    sqlite3_exec(store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    begin_ms = clock_ms();
    for (uint64_t i = 0; i < 20000; i++) {
        sample.case_idx = i * 7919 % 20000;
        put_ok(store, &setting, &sample);
    }
    printf("# 20,000 samples written without fsync in %.0f ms\n",
           clock_ms() - begin_ms);
    begin_ms = clock_ms();
    ok(!store_samples(store, &setting, STORE_SETTING, &out, &n, arena, &err),
       "reads");
    printf("# and read in %.0f ms\n", clock_ms() - begin_ms);
    is_i64((int64_t)n, 20000, "all");
    for (uint64_t i = 0; i < n; i++)
        if (out[i].case_idx != i)
            ok(0, "sample %" PRIu64 " is out of order", i);
    store_close(store);
}

static void remove_dir(void)
{
    static const char *const names[] = {
        "round",  "twice",   "comm",     "garbage",  "empty",
        "full",   "version", "many",     "foreign",  "damaged",
        "shared", "killed",  "readonly", "prepared", "waits"};
    char path[128], name[32];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(name, sizeof(name), "%s.db", names[i]);
        unlink(in_dir(path, name));
    }
    ok(!rmdir(dir), "no stray files");
}

/* The settings of an open database, which prevent that a foreign file executes
 * anything. */
static void test_defended(void)
{
    static const struct {
        const char *name;
        int option, value;
    } options[] = {
        {"defensive", SQLITE_DBCONFIG_DEFENSIVE, 1},
        {"trusted_schema", SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {"triggers", SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {"views", SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {"foreign keys", SQLITE_DBCONFIG_ENABLE_FKEY, 1},
    };
    static const struct {
        const char *pragma, *writer, *reader;
    } pragmas[] = {
        {"PRAGMA cell_size_check", "1", "1"},
        {"PRAGMA synchronous", "2", NULL},
        {"PRAGMA journal_mode", "wal", NULL},
    };
    char path[128];

    in_dir(path, "defended.db");
    for (int is_reader = 0; is_reader < 2; is_reader++) {
        const enum store_mode mode = is_reader ? STORE_READ : STORE_WRITE;
        struct store *store = NULL;
        struct buf answer = {0};
        struct err err = {0};

        if (!ok(!store_open(&store, path, mode, &err), "opens%s", err.msg))
            return;
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
            int value = -1;

            if (is_reader && options[i].option == SQLITE_DBCONFIG_ENABLE_FKEY)
                continue;
            sqlite3_db_config(store->db, options[i].option, -1, &value);
            is_i64(value, options[i].value, options[i].name);
        }
        is_i64(sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, -1), 16 << 20,
               "a cell has 16 MiB at most");
        is_i64(sqlite3_db_readonly(store->db, "main"), is_reader,
               is_reader ? "a reader cannot write" : "a writer can");
        is_i64(sqlite3_limit(store->db, SQLITE_LIMIT_ATTACHED, -1), 0,
               "no database is attached");
        for (size_t i = 0; i < sizeof(pragmas) / sizeof(*pragmas); i++) {
            const char *want =
                is_reader ? pragmas[i].reader : pragmas[i].writer;

            if (!want)
                continue;
            ok(!store_ask(store, pragmas[i].pragma, &answer, &err), "%s%s",
               pragmas[i].pragma, err.msg);
            is_str(answer.data, want, pragmas[i].pragma);
        }
        buf_release(&answer);
        store_close(store);
    }
    unlink(path);
}

int main(void)
{
    struct arena arena = {0};

    if (!mkdtemp(dir))
        tap_skip_all("no temporary folder");
    test_schema(&arena);
    test_round_trip(&arena);
    test_duplicates(&arena);
    test_comm(&arena);
    test_prepared(&arena);
    test_refused();
    test_shared(&arena);
    test_killed(&arena);
    test_waits();
    test_read_only();
    test_disk_full(&arena);
    test_damaged(&arena);
    test_many(&arena);
    test_defended();
    remove_dir();
    arena_release(&arena);
    return tap_done();
}
