/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "base/file.h"
#include "base/file_write.h"
#include "io/store_rows.h"
#include "io/store_sql.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Databases of older versions. The test makes one with the schema of version 1,
 * tests/unit/io/schema_1.sql, and samples from the shipped database.
 */
#define OLD_SCHEMA "tests/unit/io/schema_1.sql"
#define SHIPPED "data/measurements/cpu-amd-epyc-2t.db"

static char dir[] = "/tmp/t_upgrade.XXXXXX";

static const char *in_dir(char buf[128], const char *name)
{
    snprintf(buf, 128, "%s/%s", dir, name);
    return buf;
}

static void copy_file(const char *to, const char *from, struct arena *arena)
{
    struct arena_mark mark = arena_mark(arena);
    struct err err = {0};
    const char *data;
    size_t len;

    if (file_read(&data, &len, from, arena, &err) ||
        file_write(to, data, len, &err)) {
        ok(0, "copy: %s", err.msg);
        exit(1);
    }
    arena_rewind(arena, mark);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) || sqlite3_exec(db, sql, NULL, NULL, NULL)) {
        ok(0, "%s", sqlite3_errmsg(db));
        exit(1);
    }
    sqlite3_close(db);
}

static int64_t ask(const char *path, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db;
    int64_t value = -1;

    if (!sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
        !sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) &&
        sqlite3_step(stmt) == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

struct contents {
    size_t n_settings, n_samples, n_comm;
    double total_ms, comm_ms;
    /* new fields that are not empty, although an old file lacks them */
    int n_odd;
};

static struct contents read_all(struct store *store)
{
    struct contents contents = {0};
    struct sample_setting *settings;
    struct comm_sample *comm;
    struct sample *samples;
    struct arena arena = {0};
    struct err err = {0};
    size_t n;

    if (store_settings(store, &settings, &contents.n_settings, &arena, &err) ||
        !contents.n_settings ||
        store_samples(store, &settings[0], STORE_DEVICE, &samples,
                      &contents.n_samples, &arena, &err) ||
        store_comm_samples(store, &settings[0], STORE_SETTING, &comm, &n,
                           &arena, &err)) {
        ok(0, "reading: %s", err.msg);
        exit(1);
    }
    for (size_t i = 0; i < contents.n_samples; i++) {
        contents.total_ms += samples[i].total.median_ms;
        contents.n_odd += samples[i].sort.median_ms != 0 ||
                          samples[i].health.sm_mhz != 0 ||
                          samples[i].setting->batch != settings[0].batch;
    }
    contents.n_comm = n;
    for (size_t i = 0; i < n; i++) {
        contents.comm_ms += comm[i].time.median_ms;
        contents.n_odd += comm[i].n_hosts != 1 || comm[i].host_bytes != 0;
    }
    arena_release(&arena);
    return contents;
}

static struct contents contents_of(const char *path, enum store_mode mode)
{
    struct contents contents;
    struct store *store;
    struct err err = {0};

    if (store_open(&store, path, mode, &err)) {
        ok(0, "opening: %s", err.msg);
        exit(1);
    }
    contents = read_all(store);
    store_close(store);
    return contents;
}

static int same_contents(const struct contents *a, const struct contents *b)
{
    return a->n_settings == b->n_settings && a->n_samples == b->n_samples &&
           a->n_comm == b->n_comm && a->total_ms == b->total_ms &&
           a->comm_ms == b->comm_ms && a->n_odd == b->n_odd;
}

/* Makes a small database of version 1 with samples of the shipped database. */
static void make_old(const char *path, struct arena *arena)
{
    struct err err = {0};
    const char *schema;
    size_t len;

    if (file_read(&schema, &len, OLD_SCHEMA, arena, &err)) {
        ok(0, "%s", err.msg);
        exit(1);
    }
    run_sql(path, schema);
    run_sql(path,
            "ATTACH '" SHIPPED "' AS shipped;"
            "INSERT INTO setting SELECT * FROM shipped.setting LIMIT 1;"
            "INSERT INTO sample SELECT id, setting_id, seed, case_idx, kind, "
            "part, n_tables, forward_median_ms, forward_p10_ms, "
            "forward_p90_ms, backward_median_ms, backward_p10_ms, "
            "backward_p90_ms, total_median_ms, total_p10_ms, total_p90_ms, "
            "n_iterations, flags, version, started_at FROM shipped.sample "
            "WHERE setting_id = 1 ORDER BY id LIMIT 60;"
            "INSERT INTO sample_table SELECT * FROM shipped.sample_table "
            "WHERE sample_id IN (SELECT id FROM sample);"
            "INSERT INTO comm_sample SELECT id, setting_id, kind, n_ranks, "
            "total_bytes, max_bytes, median_ms, p10_ms, p90_ms, n_iterations "
            "FROM shipped.comm_sample WHERE setting_id = 1");
}

static void test_read(const char *old, struct arena *arena)
{
    struct contents contents;
    const char *before, *after;
    size_t n_before, n_after;
    struct store *store;
    struct err err = {0};

    ok(!file_read(&before, &n_before, old, arena, &err), "old file");
    contents = contents_of(old, STORE_READ);
    ok(contents.n_samples == 60 && contents.n_comm > 100 && !contents.n_odd,
       "a reader finds everything, %zu samples and %zu exchanges",
       contents.n_samples, contents.n_comm);
    ok(!file_read(&after, &n_after, old, arena, &err) && n_before == n_after &&
           !memcmp(before, after, n_before),
       "and leaves the file as it is");
    if (!store_open(&store, old, STORE_READ, &err)) {
        ok(store_log_verdict(store, &(struct model_verdict){.model_path = "m"},
                             &err) == -1,
           "a reader's copy takes nothing");
        store_close(store);
    }
}

static void test_write(const char *old, struct arena *arena)
{
    struct contents before = contents_of(old, STORE_READ), after;
    char path[128];

    copy_file(in_dir(path, "written.db"), old, arena);
    after = contents_of(path, STORE_WRITE);
    ok(same_contents(&before, &after), "a writer finds the same");
    is_i64(ask(path, "PRAGMA user_version"), STORE_VERSION,
           "in a file of this version");
    is_i64(ask(path, "SELECT (SELECT count(*) FROM ceiling) + "
                     "(SELECT count(*) FROM product)"),
           0, "with new tables");
    is_i64(ask(path, "SELECT count(*) FROM canary"), 0, "the newest too");
    after = contents_of(path, STORE_READ);
    ok(same_contents(&before, &after), "as does the next reader");
}

/* An upgraded file has the same columns as a new one. */
static void test_same_schema(void)
{
    static const char columns[] =
        "SELECT group_concat(line, ';') FROM (SELECT s.name || ' ' || i.name "
        "|| ' ' || i.type || ' ' || i.\"notnull\" || ' ' || "
        "coalesce(i.dflt_value, '') AS line FROM sqlite_schema s, "
        "pragma_table_info(s.name) i WHERE s.type = 'table' "
        "ORDER BY s.name, i.cid)";
    char fresh[128], written[128];
    sqlite3_stmt *stmt[2] = {0};
    struct store *store;
    sqlite3 *db[2];
    struct err err = {0};

    if (store_open(&store, in_dir(fresh, "fresh.db"), STORE_WRITE, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    store_close(store);
    in_dir(written, "written.db");
    for (int i = 0; i < 2; i++) {
        sqlite3_open(i ? written : fresh, &db[i]);
        sqlite3_prepare_v2(db[i], columns, -1, &stmt[i], NULL);
        is_i64(sqlite3_step(stmt[i]), SQLITE_ROW, "columns");
    }
    is_str((const char *)sqlite3_column_text(stmt[1], 0),
           (const char *)sqlite3_column_text(stmt[0], 0),
           "the same columns, in the same order");
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(stmt[i]);
        sqlite3_close(db[i]);
    }
}

/* --- killed during the upgrade */

static int die(void *unused)
{
    (void)unused;
    kill(getpid(), SIGKILL);
    return 1;
}

/* Global because a sqlite3_auto_extension callback has no user argument. */
static int n_instructions; /* 0: die at the commit */

static int arm(sqlite3 *db, char **message, const void *api)
{
    (void)message;
    (void)api;
    if (n_instructions)
        sqlite3_progress_handler(db, n_instructions, die, NULL);
    else
        sqlite3_commit_hook(db, die, NULL);
    return 0;
}

/* Opens path for writing in a process that dies after n virtual instructions of
 * SQLite, or, if n is 0, at its first commit. Returns true if it died. */
static bool dies_upgrading(const char *path, int n)
{
    struct store *store;
    struct err err = {0};
    pid_t child = fork();
    int status;

    if (child == 0) {
        n_instructions = n;
        sqlite3_auto_extension((void (*)(void))arm);
        if (store_open(&store, path, STORE_WRITE, &err))
            _exit(1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void test_killed(const char *old, struct arena *arena)
{
    struct contents want = contents_of(old, STORE_READ), got;
    int n_deaths = 0, n_bad = 0, n_old = 0;
    char path[128];
    bool died = true;

    in_dir(path, "killed.db");
    for (int n = 0; died || n < 2; n = n * 5 / 4 + 1) {
        copy_file(path, old, arena);
        died = dies_upgrading(path, n);
        n_deaths += died;
        n_old += ask(path, "PRAGMA user_version") == 1;
        got = contents_of(path, STORE_READ);
        n_bad += !same_contents(&got, &want);
        got = contents_of(path, STORE_WRITE);
        n_bad += !same_contents(&got, &want) ||
                 ask(path, "PRAGMA user_version") != STORE_VERSION;
    }
    ok(n_deaths > 15, "killed %d times", n_deaths);
    ok(n_old >= n_deaths, "an upgrade is done at once or not at all");
    is_i64(n_bad, 0, "all data survive each kill and are upgraded");
}

static void remove_dir(void)
{
    static const char *const names[] = {"old.db", "written.db", "fresh.db",
                                        "killed.db"};
    char path[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_dir(path, names[i]));
    ok(!rmdir(dir), "no stray files");
}

int main(void)
{
    struct arena arena = {0};
    char old[128];

    if (!file_exists(SHIPPED))
        tap_skip_all("no " SHIPPED);
    if (!mkdtemp(dir))
        tap_skip_all("no temporary folder");
    make_old(in_dir(old, "old.db"), &arena);
    test_read(old, &arena);
    test_write(old, &arena);
    test_same_schema();
    test_killed(old, &arena);
    remove_dir();
    arena_release(&arena);
    return tap_done();
}
