/* SPDX-License-Identifier: MIT */

/*
 * A library for LD_PRELOAD that makes one call fail. With FAULT=write:3 in the
 * environment, the third call of write fails with ENOSPC and all other calls
 * work. It supports write, pwrite64, pread, fsync, fdatasync, fflush, fclose
 * and rename, and also malloc, calloc, realloc and aligned_alloc, which return
 * NULL. The name `memory` counts these four together. Counting starts at main,
 * so allocations of libraries while they are loaded do not count. With
 * FAULT_COUNT=FILE the number of these allocations is written to the file when
 * main returns.
 *
 * With FAULT_CLOCK=N the monotonic clock runs N times as fast.
 *
 * stdio calls write inside libc, where this library cannot intercept it; fflush
 * and fclose stand for those calls. Not for programs built with sanitizers.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Names inside glibc. They need no dlsym, which may itself allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);

/* Counts one call of `name`; returns true if this call must fail. */
static bool fails(const char *name, atomic_long *n_calls)
{
    const char *fault = getenv("FAULT");
    size_t len = strlen(name);

    if (!fault || strncmp(fault, name, len) != 0 || fault[len] != ':')
        return false;
    if (atomic_fetch_add(n_calls, 1) + 1 != strtol(fault + len + 1, NULL, 10))
        return false;
    errno = ENOSPC;
    return true;
}

/* Stores the next library's `name` into the function pointer at `slot`. */
static void find_next(const char *name, void *slot)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (!symbol)
        abort();
    memcpy(slot, &symbol, sizeof symbol);
}

ssize_t write(int fd, const void *data, size_t n)
{
    static atomic_long n_calls;
    ssize_t (*next)(int, const void *, size_t);

    find_next("write", &next);
    return fails("write", &n_calls) ? -1 : next(fd, data, n);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset)
{
    static atomic_long n_calls;
    ssize_t (*next)(int, const void *, size_t, off64_t);

    find_next("pwrite64", &next);
    return fails("pwrite64", &n_calls) ? -1 : next(fd, data, n, offset);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
    static atomic_long n_calls;
    ssize_t (*next)(int, void *, size_t, off_t);

    find_next("pread", &next);
    return fails("pread", &n_calls) ? -1 : next(fd, data, n, offset);
}

int fsync(int fd)
{
    static atomic_long n_calls;
    int (*next)(int);

    find_next("fsync", &next);
    return fails("fsync", &n_calls) ? -1 : next(fd);
}

int fdatasync(int fd)
{
    static atomic_long n_calls;
    int (*next)(int);

    find_next("fdatasync", &next);
    return fails("fdatasync", &n_calls) ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    static atomic_long n_calls;
    int (*next)(const char *, const char *);

    find_next("rename", &next);
    return fails("rename", &n_calls) ? -1 : next(from, to);
}

int fflush(FILE *fp)
{
    static atomic_long n_calls;
    int (*next)(FILE *);

    find_next("fflush", &next);
    return fails("fflush", &n_calls) ? EOF : next(fp);
}

/* Closes the file even if the call is to fail, as a real failure does. */
int fclose(FILE *fp)
{
    static atomic_long n_calls;
    int (*next)(FILE *);
    int rc;

    find_next("fclose", &next);
    rc = next(fp);
    return fails("fclose", &n_calls) ? EOF : rc;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *times = getenv("FAULT_CLOCK");
    int (*next)(clockid_t, struct timespec *);
    int rc;

    find_next("clock_gettime", &next);
    rc = next(clock, now);
    if (times && clock == CLOCK_MONOTONIC)
        now->tv_sec = (now->tv_sec * 1000000000 + now->tv_nsec) / 1000 *
                      strtol(times, NULL, 10) / 1000000;
    return rc;
}

typedef int main_function(int argc, char **argv, char **environment);
typedef void void_function(void);
static main_function *real_main;
static atomic_bool is_in_main;
static atomic_long n_memory_calls;

static int marked_main(int argc, char **argv, char **environment)
{
    const char *path = getenv("FAULT_COUNT");
    FILE *fp = path ? fopen(path, "w") : NULL;
    int rc;

    atomic_store(&is_in_main, true);
    rc = real_main(argc, argv, environment);
    if (fp)
        fprintf(fp, "%ld\n", atomic_load(&n_memory_calls));
    return rc;
}

int __libc_start_main(main_function *main, int argc, char **argv,
                      void_function *init, void_function *fini,
                      void_function *rtld_fini, void *stack_end);
int __libc_start_main(main_function *main, int argc, char **argv,
                      void_function *init, void_function *fini,
                      void_function *rtld_fini, void *stack_end)
{
    __typeof__(__libc_start_main) *next;

    find_next("__libc_start_main", &next);
    real_main = main;
    return next(marked_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void *dlopen(const char *name, int mode)
{
    void *(*next)(const char *, int);
    void *handle;

    find_next("dlopen", &next);
    atomic_store(&is_in_main, false);
    handle = next(name, mode);
    atomic_store(&is_in_main, true);
    return handle;
}

static bool lacks_memory(const char *name, atomic_long *n_calls)
{
    bool is_it = false;

    if (atomic_load(&is_in_main)) {
        if (getenv("FAULT_COUNT"))
            atomic_fetch_add(&n_memory_calls, 1);
        is_it = fails("memory", &n_memory_calls);
    }
    if (!is_it && !fails(name, n_calls))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    static atomic_long n_calls;

    return lacks_memory("malloc", &n_calls) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    static atomic_long n_calls;

    return lacks_memory("calloc", &n_calls) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size)
{
    static atomic_long n_calls;

    return lacks_memory("realloc", &n_calls) ? NULL : __libc_realloc(ptr, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    static atomic_long n_calls;

    return lacks_memory("aligned_alloc", &n_calls)
               ? NULL
               : __libc_memalign(align, size);
}
