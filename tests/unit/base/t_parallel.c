/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"
#include "base/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

#define N_TASKS 1000

struct tally {
    atomic_int n_done[N_TASKS];
    atomic_int n_bad_threads;
    unsigned n_threads;
};

static void count_task(void *ctx, size_t task, unsigned thread)
{
    struct tally *tally = ctx;

    atomic_fetch_add(&tally->n_done[task], 1);
    if (thread >= tally->n_threads)
        atomic_fetch_add(&tally->n_bad_threads, 1);
}

/* Returns true if the tasks below n_tasks ran n_times each and the others never
 * ran. */
static bool each_ran(struct tally *tally, size_t n_tasks, int n_times)
{
    for (size_t i = 0; i < N_TASKS; i++)
        if (tally->n_done[i] != (i < n_tasks ? n_times : 0))
            return false;
    return tally->n_bad_threads == 0;
}

static void test_runs(unsigned n_threads)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 100, N_TASKS};
    struct pool *pool = pool_open(n_threads);

    ok(pool_size(pool) == n_threads, "a pool of %u threads", n_threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tally tally = {.n_threads = n_threads};

        pool_run(pool, sizes[i], count_task, &tally);
        ok(each_ran(&tally, sizes[i], 1), "%u threads, %zu tasks, each once",
           n_threads, sizes[i]);
    }
    pool_close(pool);
}

/* Runs many short batches of tasks back to back, with pauses that let the
 * workers sleep. */
static void test_many_runs(unsigned n_threads, int n_runs, int rest_every)
{
    struct pool *pool = pool_open(n_threads);
    struct tally tally = {.n_threads = n_threads};

    for (int i = 0; i < n_runs; i++) {
        pool_run(pool, 5, count_task, &tally);
        if (i % rest_every == 0)
            nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    ok(each_ran(&tally, 5, n_runs), "%d short runs on %u threads", n_runs,
       n_threads);
    pool_close(pool);
}

/* Stores without atomics: a run must publish all that its tasks wrote. */
static void store_square(void *ctx, size_t task, unsigned thread)
{
    (void)thread;
    ((size_t *)ctx)[task] = task * task;
}

static void test_visibility(void)
{
    static size_t squares[N_TASKS];
    struct pool *pool = pool_open(3);
    bool all = true;

    for (int run = 0; run < 200; run++) {
        memset(squares, 0, sizeof squares);
        pool_run(pool, N_TASKS, store_square, squares);
        for (size_t i = 0; i < N_TASKS; i++)
            all = all && squares[i] == i * i;
    }
    ok(all, "the caller sees what the tasks wrote");
    pool_close(pool);
}

static void test_no_pool(void)
{
    struct tally tally = {.n_threads = 1};
    struct pool *pool;

    pool_run(NULL, 10, count_task, &tally);
    ok(each_ran(&tally, 10, 1), "no pool runs tasks here");
    ok(pool_size(NULL) == 1, "no pool is one thread");
    pool_close(NULL);
    pool = pool_open(0);
    ok(pool_size(pool) == cpu_count(),
       "by default as many as there are processors");
    pool_close(pool);
}

/* Returns cpu_count() of a child that is bound to one processor. */
static int count_bound_to_one(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        unsigned long mask[128] = {0};
        long n_bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
        bool is_first = true;

        for (long bit = 0; bit < n_bytes * 8; bit++) {
            unsigned long *word = &mask[bit / 64], flag = 1UL << bit % 64;

            if (*word & flag && !is_first)
                *word &= ~flag;
            else if (*word & flag)
                is_first = false;
        }
        syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
        _exit((int)cpu_count());
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void test_cpu(void)
{
    struct err err = {0};
    enum cpu_isa best;
    char name[64];

    is_i64(count_bound_to_one(), 1, "one processor when bound to one");
    unsetenv("NEUROSHARD_ISA");
    best = cpu_isa_best();
    setenv("NEUROSHARD_ISA", "portable", 1);
    ok(cpu_isa_best() == CPU_PORTABLE, "the environment lowers the set");
    setenv("NEUROSHARD_ISA", "avx2", 1);
    ok(cpu_isa_best() <= CPU_AVX2 && cpu_isa_best() <= best,
       "to one that is there");
    setenv("NEUROSHARD_ISA", "avx512", 1);
    ok(cpu_isa_best() == best, "and never raises it");
    ok(!cpu_check_environment(&err), "which is a set");
    setenv("NEUROSHARD_ISA", "", 1);
    ok(!cpu_check_environment(&err) && cpu_isa_best() == best,
       "an empty one is none");
    setenv("NEUROSHARD_ISA", "bogus", 1);
    ok(cpu_check_environment(&err) == -1 && err.code == ERR_USAGE,
       "an unknown one is an error");
    is_str(err.msg,
           "environment variable NEUROSHARD_ISA must be portable, avx2 or "
           "avx512, not 'bogus'",
           "its sentence");
    unsetenv("NEUROSHARD_ISA");
    is_str(cpu_isa_name(CPU_AVX2), "avx2", "a name for each");
    ok(strlen(cpu_model_name(name, sizeof name)) > 0, "model: %s", name);
    ok(strlen(cpu_model_name(name, 3)) <= 2, "a short buffer cuts it");
}

int main(void)
{
    for (unsigned n_threads = 1; n_threads <= 5; n_threads++)
        test_runs(n_threads);
    test_many_runs(2, 20000, 100);
    test_many_runs(4, 3000, 100);
    test_many_runs(3, 500, 1);
    test_visibility();
    test_no_pool();
    test_cpu();
    return tap_done();
}
