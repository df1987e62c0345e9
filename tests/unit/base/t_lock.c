/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_write.h"
#include "base/interrupt.h"
#include "tests/tap.h"

static void take_ok(struct lock *lock, const char *path)
{
    struct err err = {0};

    if (!ok(!lock_take(lock, path, 0, &err), "lock %s", path))
        printf("# %s\n", err.msg);
}

static bool exists(const char *path)
{
    struct stat st;

    return !lstat(path, &st);
}

/* Starts a process that takes the lock, or one part of it, reports this and
 * holds it until it is killed. */
static pid_t hold_part(const char *path, uint64_t part)
{
    struct lock lock;
    struct err err;
    int said[2];
    char byte;
    pid_t child;

    if (pipe(said))
        return -1;
    child = fork();
    if (child == 0) {
        byte = (char)('a' + (part ? lock_try(&lock, path, part, &err)
                                  : lock_take(&lock, path, 0, &err)));
        if (write(said[1], &byte, 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    if (read(said[0], &byte, 1) != 1 || byte != 'a')
        ok(0, "the other process has the lock");
    close(said[0]);
    close(said[1]);
    return child;
}

static pid_t hold(const char *path)
{
    return hold_part(path, 0);
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_take(void)
{
    struct lock lock = {0};

    lock_release(&lock);
    take_ok(&lock, "model");
    ok(exists("model.lock"), "a file says so");
    lock_release(&lock);
    ok(!exists("model.lock"), "which goes with it");
    lock_release(&lock);
    take_ok(&lock, "-");
    lock_release(&lock);
    take_ok(&lock, "/dev/null");
    ok(!exists("-.lock") && !exists("/dev/null.lock"),
       "a path that is not a file needs no lock");
    lock_release(&lock);
}

static void test_held(void)
{
    const pid_t child = hold("model");
    struct lock lock;
    struct err err = {0};
    char want[64];

    snprintf(want, sizeof want, "cannot write 'model': process %ld on ",
             (long)child);
    ok(lock_take(&lock, "model", 0.05, &err) == -1 && err.code == ERR_IO &&
           !strncmp(err.msg, want, strlen(want)) &&
           strstr(err.msg, "has held its lock 'model.lock' for 0.05 s"),
       "held: %s", err.msg);
    lock_release(&lock);
    ok(exists("model.lock"), "the lock of another is not removed");
    ok(!symlink("model", "link") && !file_write("model", "", 0, &err), "link");
    ok(lock_take(&lock, "link", 0, &err) == -1, "held by another name, too");
    take_ok(&lock, "other");
    lock_release(&lock);
    end(child);
    ok(exists("model.lock"), "the dead leave a file behind");
    take_ok(&lock, "model");
    lock_release(&lock);
    ok(!exists("model.lock"), "that is taken over and removed");
    unlink("link");
    unlink("model");
}

/* Locks parts of one file; parts differ only in their numbers. */
static void test_parts(void)
{
    const uint64_t parts[] = {4, 1ull << 40, UINT64_MAX};
    const pid_t one = hold_part("db", parts[0]),
                two = hold_part("db", parts[2]);
    struct lock lock = {0};
    struct err err = {0};

    for (size_t i = 0; i < 3; i++) {
        ok(!lock_try(&lock, "db", parts[i], &err), "part %zu is tried", i);
        ok((lock.path != NULL) == (i == 1), "part %zu is %s", i,
           i == 1 ? "free" : "another's");
        lock_release(&lock);
        ok(exists("db.lock"), "the file stays for the others");
    }
    end(one);
    ok(!lock_try(&lock, "db", parts[0], &err) && lock.path,
       "a part of the dead is free");
    lock_release(&lock);
    end(two);
    ok(exists("db.lock"), "the last one was killed, too");
    ok(!lock_try(&lock, "db", 8, &err) && lock.path, "the next of any part");
    lock_release(&lock);
    ok(!exists("db.lock"), "removes the file");
}

/* Several processes walk through one list of parts. The process that gets a
 * part marks it. */
static void test_shared(void)
{
    enum { N_PROCESSES = 4, N_PARTS = 400 };
    size_t n_marked = 0;
    char name[32];

    for (int p = 0; p < N_PROCESSES; p++) {
        if (fork())
            continue;
        for (unsigned i = 0; i < N_PARTS; i++) {
            struct lock lock;
            struct err err;
            int fd;

            if (lock_try(&lock, "list", 4 * (i + 1), &err))
                _exit(1);
            if (!lock.path)
                continue;
            snprintf(name, sizeof name, "part-%u", i);
            fd = open(name, O_CREAT | O_WRONLY, 0666);
            if (fd < 0 || close(fd))
                _exit(1);
            lock_release(&lock);
        }
        _exit(0);
    }
    for (int status; wait(&status) > 0;)
        ok(!status, "a process went through the list");
    for (unsigned i = 0; i < N_PARTS; i++) {
        snprintf(name, sizeof name, "part-%u", i);
        n_marked += !unlink(name);
    }
    is_i64((int64_t)n_marked, N_PARTS,
           "no part is left to a process that is at another one");
    ok(!exists("list.lock"), "and no lock is left");
}

/* Several processes take turns at incrementing a number in a file. */
static void test_turns(void)
{
    enum { N_PROCESSES = 4, N_TURNS = 25 };
    struct err err = {0};
    struct arena arena = {0};
    const char *text = "";
    char number[16];
    size_t len;

    ok(!file_write("number", "0", 1, &err), "a number");
    for (int p = 0; p < N_PROCESSES; p++) {
        if (fork())
            continue;
        for (int i = 0; i < N_TURNS; i++) {
            struct lock lock;

            if (lock_take(&lock, "number", 3600, &err) ||
                file_read(&text, &len, "number", &arena, &err))
                _exit(1);
            snprintf(number, sizeof number, "%d", atoi(text) + 1);
            if (file_write("number", number, strlen(number), &err))
                _exit(1);
            lock_release(&lock);
        }
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    ok(!file_read(&text, &len, "number", &arena, &err), "read");
    is_i64(atoi(text), N_PROCESSES * N_TURNS, "no turn is lost");
    ok(!exists("number.lock"), "and no lock is left");
    unlink("number");
    arena_release(&arena);
}

static void test_refused(void)
{
    struct lock lock;
    struct err err = {0};

    ok(lock_take(&lock, "no/such/folder", 1, &err) == -1 && err.code == ERR_IO,
       "%s", err.msg);
    ok(lock_try(&lock, "no/such/folder", 2, &err) == -1 && err.code == ERR_IO,
       "tried: %s", err.msg);
    ok(!symlink("elsewhere", "trap.lock"), "a link in the lock's place");
    ok(lock_take(&lock, "trap", 1, &err) == -1 && !exists("elsewhere"),
       "is not followed: %s", err.msg);
    unlink("trap.lock");
}

/* Runs last, as the interrupt flag stays set. */
static void test_interrupt(void)
{
    const pid_t child = hold("model");
    struct lock lock;
    struct err err = {0};

    interrupt_install();
    raise(SIGINT);
    ok(lock_take(&lock, "model", 3600, &err) == -1 &&
           err.code == ERR_INTERRUPTED,
       "an interrupt ends the wait: %s", err.msg);
    end(child);
    unlink("model.lock");
}

int main(void)
{
    char folder[] = "/tmp/t_lock_XXXXXX";

    if (!mkdtemp(folder) || chdir(folder)) {
        printf("Bail out! no folder to work in\n");
        return 1;
    }
    test_take();
    test_held();
    test_parts();
    test_shared();
    test_turns();
    test_refused();
    test_interrupt();
    ok(!rmdir(folder), "nothing was left behind");
    return tap_done();
}
