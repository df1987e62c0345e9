/* SPDX-License-Identifier: MIT */

/*
 * Databases of a process that was killed after writing pages and before
 * removing its rollback journal. The next reader rolls back, or reports why it
 * cannot.
 */
#include "tests/tap.h"

#include "base/file.h"
#include "base/file_write.h"
#include "io/store_rows.h"
#include "io/store_sql.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_SAMPLES 200
#define NOBODY 65534

static const struct sample_setting setting = {
    .device = "cpu:Some CPU", .n_threads = 2, .batch = 4096, .isa = "avx2"};
static char dir[] = "/tmp/t_store_journal.XXXXXX";
static char path[64], journal[80];

/* Ends the program with a failed test, because later tests would be
 * meaningless. */
static void bail(const char *why)
{
    ok(0, "%s", why);
    exit(1);
}

static void fill(void)
{
    struct store *store;
    struct err err = {0};
    struct sample sample = {.kind = SAMPLE_FUSED,
                            .seed = 7,
                            .forward = {1, 1, 1},
                            .backward = {1, 1, 1},
                            .total = {1, 1, 1},
                            .version = "0.1.0",
                            .started_at = "2026-11-21T04:05:06Z"};

    if (store_open(&store, path, STORE_WRITE, &err))
        bail(err.msg);
    for (; sample.case_idx < N_SAMPLES; sample.case_idx++)
        if (store_sink(store).put(store, &setting, &sample, &err))
            bail(err.msg);
    store_close(store);
}

/* Ends in the middle of a transaction; half of it is in the file. */
static void die_writing(void)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) ||
        sqlite3_exec(db,
                     "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                     "UPDATE sample SET total_p90_ms = 99;",
                     NULL, NULL, NULL))
        _exit(1);
    _exit(0);
}

static void leave_journal(void)
{
    int status = 1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        die_writing();
    waitpid(child, &status, 0);
    ok(!status && access(journal, F_OK) == 0, "a journal is left");
}

/* Reads all samples. Returns true if none has a value of the unfinished
 * transaction. */
static bool read_whole(struct err *err)
{
    struct arena arena = {0};
    struct store *store = NULL;
    struct sample *samples;
    bool is_whole = false;
    size_t n = 0;

    if (!store_open(&store, path, STORE_READ, err) &&
        !store_samples(store, &setting, STORE_SETTING, &samples, &n, &arena,
                       err)) {
        is_whole = n == N_SAMPLES;
        for (size_t i = 0; i < n; i++)
            is_whole &= samples[i].total.p90_ms == 1;
    }
    store_close(store);
    arena_release(&arena);
    return is_whole;
}

static void test_reader_rolls_back(void)
{
    struct err err = {0};

    leave_journal();
    ok(read_whole(&err), "a reader finds what was committed: %s", err.msg);
    ok(access(journal, F_OK) != 0, "and no journal is left");
}

/* Several readers at once: one of them rolls back, the others wait for it. */
static void test_readers_at_once(void)
{
    pid_t children[6];
    int n_good = 0, status;

    leave_journal();
    fflush(stdout);
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(!read_whole(&(struct err){0}));
    }
    for (int i = 0; i < 6; i++) {
        waitpid(children[i], &status, 0);
        n_good += !status;
    }
    is_i64(n_good, 6, "readers at once all find what was committed");
}

/* Tests in a child that runs as user nobody, because the superuser may write
 * anything. */
static bool is_refused(mode_t file_mode, mode_t dir_mode, struct err *err)
{
    int status = 1, message[2];
    pid_t child;
    ssize_t n;

    if (pipe(message) || chmod(path, file_mode) || chmod(dir, dir_mode))
        bail("no pipe");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(1);
        read_whole(err);
        if (write(message[1], err, sizeof *err) != sizeof *err)
            _exit(1);
        _exit(0);
    }
    close(message[1]);
    n = read(message[0], err, sizeof *err);
    close(message[0]);
    waitpid(child, &status, 0);
    return !status && n == sizeof *err;
}

static void test_not_writable(void)
{
    static const struct {
        mode_t file, dir;
        const char *name;
    } cases[] = {{0444, 0755, "file and folder are read-only"},
                 {0666, 0555, "the folder is read-only"},
                 {0444, 0777, "the file is read-only"}};
    char want[256];

    leave_journal();
    chmod(journal, 0644);
    snprintf(want, sizeof want,
             "cannot read '%s': a killed process left an unfinished change, "
             "and to undo it the file and its folder must be writable",
             path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};

        ok(is_refused(cases[i].file, cases[i].dir, &err), "%s", cases[i].name);
        is_str(err.msg, want, "message");
        is_i64(err.code, ERR_IO, "code");
    }
    chmod(path, 0644);
    chmod(dir, 0755);
    ok(read_whole(&(struct err){0}), "nothing was lost by trying");
}

/* If bytes of a page are overwritten, every process that opens the file gets an
 * error. */
static void test_damaged_page(void)
{
    const size_t page_bytes = 4096;
    struct arena arena = {0};
    struct err err = {0};
    const char *text;
    char *bytes;
    size_t len, n_refused = 0;

    if (file_read(&text, &len, path, &arena, &err))
        bail(err.msg);
    bytes = arena_alloc(&arena, len, 1);
    for (size_t page = 1; page < len / page_bytes; page++)
        for (int mode = STORE_READ; mode <= STORE_WRITE; mode++) {
            struct store *store = NULL;

            memcpy(bytes, text, len);
            memset(bytes + page * page_bytes, 0, 8);
            if (file_write(path, bytes, len, &err))
                bail(err.msg);
            n_refused +=
                store_open(&store, path, (enum store_mode)mode, &err) == -1 &&
                err.code == ERR_INPUT && !strchr(err.msg, '\n') &&
                strstr(err.msg, "is damaged: ");
            store_close(store);
        }
    is_i64((int64_t)n_refused, (int64_t)(2 * (len / page_bytes - 1)),
           "a damaged page is seen at once");
    arena_release(&arena);
}

int main(void)
{
    if (!mkdtemp(dir))
        tap_skip_all("no temporary folder");
    snprintf(path, sizeof path, "%s/costs.db", dir);
    snprintf(journal, sizeof journal, "%s-journal", path);
    fill();
    test_reader_rolls_back();
    test_readers_at_once();
    test_not_writable();
    test_damaged_page();
    unlink(path);
    ok(!rmdir(dir), "no stray files");
    return tap_done();
}
