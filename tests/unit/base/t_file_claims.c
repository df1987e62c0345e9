/* SPDX-License-Identifier: MIT */
#include "base/file_claims.h"

#include "base/file.h"
#include "base/file_write.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/tap.h"

static struct err err;

static void make(const char *path)
{
    ok(!file_write(path, "x", 1, &err), "there is '%s'", path);
}

static int read_it(const char *path)
{
    struct arena arena = {0};
    const char *text;
    size_t len;
    int rc = file_read(&text, &len, path, &arena, &err);

    arena_release(&arena);
    return rc;
}

static int is_refused(int rc)
{
    return rc == -1 && err.code == ERR_OVERWRITE;
}

/* Each name reaches the same file by another path or link. */
static void test_output(void)
{
    static const char *const names[] = {"a", "./a", "sub/../a", "hard", "soft"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file_claims_begin();
        ok(!file_claim("a", FILE_WRITE, &err), "an output");
        ok(is_refused(read_it(names[i])), "is not read as %s", names[i]);
        ok(is_refused(file_use(names[i], FILE_DATABASE, &err)), "nor opened");
        ok(is_refused(file_claim(names[i], FILE_WRITE, &err)),
           "nor claimed again");
        ok(!read_it("b"), "another file is read");
        ok(!file_write("a", "y", 1, &err) && !file_write("a", "y", 1, &err),
           "it is written, and again");
        file_claims_end();
        unlink("hard");
        ok(!link("a", "hard"), "the link is the new file's");
    }
}

/* A file that was read must not be written, even if nobody claimed it. */
static void test_input(void)
{
    file_claims_begin();
    ok(!read_it("b"), "an input");
    ok(!read_it("b"), "is read again");
    ok(is_refused(file_write("./b", "y", 1, &err)), "but not written");
    ok(is_refused(file_claim("b", FILE_WRITE, &err)), "nor claimed");
    ok(!file_write("c", "y", 1, &err), "another file is");
    file_claims_end();
    ok(!file_write("b", "y", 1, &err), "nothing lasts beyond the command");
}

/* A file is read, replaced by another program, read again and then replaced. */
static void test_update(void)
{
    file_claims_begin();
    ok(!file_claim("b", FILE_READ | FILE_WRITE, &err) && !read_it("b"),
       "a file that is improved");
    ok(!rename("c", "b") && !read_it("b"), "by another one, too");
    ok(is_refused(file_use("./b", FILE_DATABASE, &err)), "is no database");
    ok(!file_write("b", "z", 1, &err), "and is replaced by this one");
    file_claims_end();
}

static void test_not_there(void)
{
    file_claims_begin();
    ok(!file_claim("new", FILE_DATABASE, &err), "a database to be made");
    ok(is_refused(file_claim("sub/../new", FILE_WRITE, &err)),
       "is no output by another name");
    ok(!symlink("../new", "sub/soft") &&
           is_refused(file_claim("sub/soft", FILE_WRITE, &err)),
       "nor by a link");
    ok(!unlink("sub/soft"), "which goes");
    ok(!file_claim("sub/new", FILE_WRITE, &err), "one in another folder is");
    ok(file_claim("none/new", FILE_WRITE, &err) && err.code == ERR_IO,
       "what cannot be is no clash: %s", err.msg);
    ok(file_claim("sub", FILE_WRITE, &err) && err.code == ERR_IO,
       "nor is a folder: %s", err.msg);
    file_claims_end();
}

static void test_special(void)
{
    file_claims_begin();
    ok(!file_claim("/dev/null", FILE_WRITE, &err) && !read_it("/dev/null") &&
           !file_write("/dev/null", "x", 1, &err),
       "a device is read and written");
    ok(!file_claim("-", FILE_WRITE, &err), "standard output is no file");
    ok(is_refused(file_claim("loop", FILE_WRITE, &err)), "a loop: %s", err.msg);
    ok(!file_write("d", "SQLite format 3", 16, &err), "a database");
    ok(is_refused(file_claim("d", FILE_WRITE, &err)), "%s", err.msg);
    ok(is_refused(file_write("d", "x", 1, &err)), "nor is it written");
    ok(!file_claim("d", FILE_DATABASE, &err), "it is one");
    file_claims_end();
    is_i64(err_exit_status(ERR_OVERWRITE), 2, "the status is that of usage");
}

static void test_bounds(void)
{
    ok(!truncate("b", (off_t)FILE_MAX_BYTES + 1), "a file that is too large");
    ok(read_it("b") == -1 && err.code == ERR_IO, "is refused");
    is_str(err.msg,
           "'b' is larger than 256 MiB, the largest file that can be read",
           "says so");
    ok(read_it("/dev/zero") == -1 && err.code == ERR_IO, "what never ends too");
}

int main(void)
{
    static const char *const left[] = {"a", "b", "d", "hard", "soft", "loop"};
    char folder[] = "/tmp/t_file_claims-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder))
        tap_skip_all("no temporary folder");
    make("a");
    make("b");
    ok(!mkdir("sub", 0777) && !link("a", "hard") && !symlink("a", "soft") &&
           !symlink("loop", "loop"),
       "links");
    test_output();
    test_input();
    test_update();
    test_not_there();
    test_special();
    test_bounds();
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        unlink(left[i]);
    ok(!rmdir("sub") && !chdir("/") && !rmdir(folder), "nothing else is left");
    return tap_done();
}
