/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include "base/file_write.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

/* Returns the number of files in the working folder. The tests start in an
 * empty folder and must leave it empty. */
static int n_files_here(void)
{
    DIR *dir = opendir(".");
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n - 2; /* without . and .. */
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : st.st_mode & 07777;
}

static void write_text(const char *path, const char *text)
{
    struct err err = {0};

    if (!ok(!file_write(path, text, strlen(text), &err), "write %s", path))
        printf("# %s\n", err.msg);
}

static void is_content(const char *path, const char *want)
{
    struct arena arena = {0};
    struct err err = {0};
    const char *text = NULL;
    size_t len = 0;

    if (!ok(!file_read(&text, &len, path, &arena, &err), "read %s", path))
        printf("# %s\n", err.msg);
    is_str(text, want, "its content");
    is_i64((int64_t)len, (int64_t)strlen(want), "its length");
    arena_release(&arena);
}

static void test_round_trip(void)
{
    write_text("a", "one");
    is_content("a", "one");
    write_text("a", "");
    is_content("a", "");
    mkdir("sub", 0777);
    write_text("sub/b", "two");
    is_content("sub/b", "two");
    unlink("sub/b");
    is_i64(rmdir("sub"), 0, "no temporary file is left in the folder");
    unlink("a");
    is_i64(n_files_here(), 0, "nor here");
}

static void test_large(void)
{
    const size_t len = 3 * 1000 * 1000 + 7;
    struct arena arena = {0};
    struct err err = {0};
    char *data = mem_alloc(len, 1);
    const char *text = NULL;
    size_t got_len = 0;

    for (size_t i = 0; i < len; i++)
        data[i] = (char)(i * 31 + i / 256);
    ok(!file_write("large", data, len, &err), "write a large file");
    ok(!file_read(&text, &got_len, "large", &arena, &err), "read it");
    ok(got_len == len && !memcmp(text, data, len), "all its bytes");
    ok(text && text[len] == '\0', "a NUL behind them");
    unlink("large");
    mem_free(data);
    arena_release(&arena);
}

static void test_modes(void)
{
    mode_t mask = umask(027);

    write_text("a", "x");
    is_i64(mode_of("a"), 0640, "a new file follows the umask");
    chmod("a", 0604);
    write_text("a", "y");
    is_i64(mode_of("a"), 0604, "an old one keeps its mode");
    umask(mask);
    ok(symlink("a", "link") == 0, "a symbolic link");
    write_text("link", "z");
    is_content("a", "z");
    ok(readlink("link", (char[8]){0}, 8) == 1, "stays a link");
    unlink("link");
    unlink("a");
}

/* Writes through links to files that do not exist yet: a link into a folder,
 * and a link to a link. */
static void test_dangling(void)
{
    struct err err = {0};

    mkdir("sub", 0777);
    ok(!symlink("sub/next", "first") && !symlink("../last", "sub/next"),
       "links");
    write_text("first", "one");
    is_content("last", "one");
    ok(readlink("first", (char[16]){0}, 16) == 8 &&
           readlink("sub/next", (char[16]){0}, 16) == 7,
       "they stay links");
    ok(!symlink("loop", "loop"), "a loop");
    ok(file_write("loop", "x", 1, &err), "is not written");
    is_str(err.msg, "cannot write 'loop': Too many levels of symbolic links",
           "says so");
    ok(readlink("loop", (char[8]){0}, 8) == 4, "and stays");
    unlink("loop");
    unlink("first");
    unlink("sub/next");
    unlink("last");
    rmdir("sub");
}

static void test_special(void)
{
    struct err err = {0};
    char text[16] = "";
    int fd;

    write_text("/dev/null", "gone");
    mkfifo("pipe", 0666);
    fd = open("pipe", O_RDONLY | O_NONBLOCK);
    write_text("pipe", "through");
    ok(read(fd, text, sizeof text - 1) == 7, "a pipe is written to directly");
    is_str(text, "through", "its content");
    close(fd);
    unlink("pipe");
    ok(file_write("/dev/full", "x", 1, &err), "a full device");
    is_str(err.msg, "cannot write '/dev/full': No space left on device",
           "says so");
}

/* Reads stdin and writes stdout by the name "-", in a child. */
static void test_standard(void)
{
    int in[2], out[2], status = -1;
    char text[32] = "";
    pid_t child;

    if (pipe(in) || pipe(out))
        return;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        struct arena arena = {0};
        struct err err = {0};
        const char *data;
        size_t len;

        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        printf("first ");
        _exit(file_read(&data, &len, "-", &arena, &err) ||
              file_write("-", data, len, &err));
    }
    ok(write(in[1], "second", 6) == 6, "say something");
    close(in[1]);
    waitpid(child, &status, 0);
    close(out[1]);
    ok(status == 0 && read(out[0], text, sizeof text - 1) == 12,
       "- is standard input and output");
    is_str(text, "first second", "in order with what was printed");
    close(in[0]);
    close(out[0]);
}

static void test_read_errors(void)
{
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"none", "cannot open 'none': No such file or directory"},
        {".", "cannot read '.': Is a directory"},
        {"", "cannot open '': No such file or directory"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = {0};
        struct err err = {0};
        const char *text;
        size_t len;

        ok(file_read(&text, &len, cases[i].path, &arena, &err), "refused");
        is_i64(err.code, ERR_IO, "as the system's refusal");
        is_str(err.msg, cases[i].message, "with path and reason");
        arena_release(&arena);
    }
}

static void test_write_errors(void)
{
    struct err err = {0};

    ok(file_write("none/a", "x", 1, &err), "no such folder");
    is_str(err.msg, "cannot write 'none/a': No such file or directory",
           "says so");
    ok(file_write(".", "x", 1, &err), "a folder cannot be written");
    is_str(err.msg, "cannot write '.': Is a directory", "says so");
}

/* A limit on the file size makes write fail half way. */
static void test_failing_write(void)
{
    struct rlimit old, limit;
    struct err err = {0};
    char *data = mem_alloc(100000, 1);

    write_text("kept", "old content");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 50000;
    setrlimit(RLIMIT_FSIZE, &limit);
    ok(file_write("kept", data, 100000, &err), "the file grows too large");
    setrlimit(RLIMIT_FSIZE, &old);
    is_i64(err.code, ERR_IO, "as the system's refusal");
    is_str(err.msg, "cannot write 'kept': File too large", "says so");
    is_content("kept", "old content");
    is_i64(n_files_here(), 1, "the temporary file is gone");
    unlink("kept");
    mem_free(data);
}

/* A reader that accepts only texts that begin with 'o'. */
static int check_first(const char *text, size_t len, const char *source,
                       struct arena *arena, struct err *err)
{
    (void)arena;
    if (len && *text == 'o')
        return 0;
    return err_set(err, ERR_INPUT, "%s:1: no 'o'", source);
}

static void test_checked(void)
{
    struct err err = {0};

    ok(!file_write_checked("a", "old", 3, check_first, &err), "a good text");
    is_content("a", "old");
    ok(file_write_checked("a", "new", 3, check_first, &err) == -1, "a bad one");
    is_str(err.msg,
           "'a' was not written, as it could not be read back: a:1: no 'o'",
           "says so");
    is_content("a", "old");
    ok(file_write_checked("b", "new", 3, check_first, &err) == -1,
       "a bad text for a new file");
    ok(!file_exists("b"), "makes none");
    ok(file_write_checked("/dev/null", "new", 3, check_first, &err) == -1,
       "nor does one reach a device");
    is_i64(n_files_here(), 1, "nothing else is left");
    unlink("a");
}

/* Returns the id of a process that no longer exists: a child that has ended. */
static long dead_pid(void)
{
    pid_t child = fork();

    if (!child)
        _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0666);

    ok(fd >= 0 && !close(fd), "there is '%s'", path);
}

/* Files that a process left behind when it was killed during a write. */
static void test_orphans(void)
{
    char orphan[64], names[4][64];
    long dead = dead_pid();

    mkdir("sub", 0777);
    snprintf(orphan, sizeof orphan, "sub/.neuroshard-%ld-0", dead);
    snprintf(names[0], 64, "sub/.neuroshard-%ld-1", (long)getppid());
    snprintf(names[1], 64, "sub/.neuroshard-%ld-1x", dead);
    snprintf(names[2], 64, "sub/.neuroshard-0%ld-1", dead);
    snprintf(names[3], 64, "sub/.neuroshard-%ld-1", dead);
    make_file(orphan);
    for (int i = 0; i < 3; i++)
        make_file(names[i]);
    mkdir(names[3], 0777);
    write_text("sub/a", "x");
    ok(!file_exists(orphan), "a dead writer's file is gone");
    for (int i = 0; i < 4; i++)
        ok(file_exists(names[i]), "'%s' is not", names[i]);
    for (int i = 0; i < 3; i++)
        unlink(names[i]);
    rmdir(names[3]);
    unlink("sub/a");
    is_i64(rmdir("sub"), 0, "nothing else is left");
}

static void test_find_data(void)
{
    static const char *const names[] = {"b.nsm", "a.b.nsm", ".nsm", "c.json"};
    struct arena arena = {0};

    mkdir("sub", 0777);
    mkdir("sub/models", 0777);
    write_text("sub/model", "x");
    setenv("NEUROSHARD_DATA", "sub", 1);
    is_str(file_find_data("model", &arena), "sub/model",
           "found under $NEUROSHARD_DATA");
    ok(!file_find_data("no such model", &arena), "or not at all");
    write_text("sub/models/b.nsm", "x");
    write_text("sub/models/a.b.nsm", "x");
    write_text("sub/models/.nsm", "x");
    write_text("sub/models/c.json", "x");
    is_str(text_list(file_list_data("models", ".nsm", &arena), " ", &arena),
           "a.b b", "those with a name and the suffix, sorted");
    ok(!*file_list_data("folder", "", &arena), "none without the folder");
    setenv("NEUROSHARD_DATA", "", 1);
    ok(!file_find_data("bin/sh", &arena), "an empty name is no folder");
    unsetenv("NEUROSHARD_DATA");
    ok(!file_find_data("model", &arena), "only there");
    for (size_t i = 0; i < 4; i++)
        unlink(arena_printf(&arena, "sub/models/%s", names[i]));
    rmdir("sub/models");
    ok(file_exists("sub/model") && !file_exists("sub/none"), "file_exists");
    unlink("sub/model");
    rmdir("sub");
    arena_release(&arena);
}

int main(void)
{
    char folder[] = "/tmp/t_file-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder))
        tap_skip_all("no temporary folder");
    test_round_trip();
    test_large();
    test_modes();
    test_dangling();
    test_special();
    test_standard();
    test_read_errors();
    test_write_errors();
    test_failing_write();
    test_checked();
    test_orphans();
    test_find_data();
    is_i64(n_files_here(), 0, "nothing is left behind");
    ok(chdir("/") == 0 && rmdir(folder) == 0, "the folder goes too");
    return tap_done();
}
