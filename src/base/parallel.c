/* SPDX-License-Identifier: MIT */
#include "base/parallel.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"

#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define SPIN_MS 0.03
#define IS_OPEN 0x80000000u

/*
 * A run is announced by incrementing `run`. `state` holds the flag IS_OPEN
 * while workers may join the run, and in its low bits the number of workers
 * that have joined. A worker joins by raising this number while IS_OPEN is set.
 * The caller closes the run when all tasks have been handed out, and waits for
 * this number to reach zero. So a worker that wakes too late finds the run
 * closed, and the caller does not wait for that worker. The task fields are
 * written only while nobody can read them (state == 0).
 *
 * A thread that is going to sleep (worker or caller) first increments
 * `n_asleep` and then checks its condition again. A thread that wakes others
 * first changes the value that they wait for and then checks `n_asleep`. Both
 * steps are sequentially consistent, so one of the two threads sees the other
 * and no wake-up is lost.
 */
struct pool {
    unsigned size;          /* number of threads, the caller included */
    struct worker *workers; /* [size - 1] worker threads; owned */
    double spin_ms;

    void (*fn)(void *ctx, size_t task, unsigned thread);
    void *ctx;
    size_t n_tasks;

    _Alignas(64) atomic_size_t next_task;
    _Alignas(64) atomic_uint state;
    _Alignas(64) atomic_uint run;
    atomic_bool is_closing;
    atomic_uint n_asleep;
    /* held only while a thread goes to sleep or is woken */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct worker {
    struct pool *pool;
    pthread_t id;
};

static void run_tasks(struct pool *pool, unsigned thread)
{
    size_t task;

    while ((task = atomic_fetch_add_explicit(
                &pool->next_task, 1, memory_order_relaxed)) < pool->n_tasks)
        pool->fn(pool->ctx, task, thread);
}

/* Wakes all sleeping threads. Call it after changing a value that a thread may
 * wait for. */
static void wake(struct pool *pool)
{
    if (!atomic_load(&pool->n_asleep))
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* Waits until *value equals `than` (if until_equal is true), or until it
 * differs from `than` (if until_equal is false). Polls for spin_ms, then
 * sleeps. */
static void wait_until(struct pool *pool, const atomic_uint *value,
                       unsigned expected, bool until_equal)
{
    const double end_ms = pool->spin_ms > 0 ? clock_ms() + pool->spin_ms : 0;

    do {
        for (int i = 0; i < 16; i++) {
            if ((atomic_load(value) == expected) == until_equal)
                return;
            _mm_pause();
        }
    } while (end_ms > 0 && clock_ms() < end_ms);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->n_asleep, 1);
    while ((atomic_load(value) == expected) != until_equal)
        pthread_cond_wait(&pool->changed, &pool->lock);
    atomic_fetch_sub(&pool->n_asleep, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker_main(void *arg)
{
    const struct worker *worker = arg;
    struct pool *pool = worker->pool;
    unsigned seen = 0, state;

    for (;;) {
        wait_until(pool, &pool->run, seen, false);
        seen = atomic_load(&pool->run);
        if (atomic_load(&pool->is_closing))
            return NULL;
        state = atomic_load(&pool->state);
        while ((state & IS_OPEN) &&
               !atomic_compare_exchange_weak(&pool->state, &state, state + 1))
            ;
        if (!(state & IS_OPEN))
            continue;
        run_tasks(pool, 1 + (unsigned)(worker - pool->workers));
        if (atomic_fetch_sub(&pool->state, 1) == 1)
            wake(pool);
    }
}

struct pool *pool_open(unsigned n_threads)
{
    struct pool *pool = mem_alloc(1, sizeof *pool);
    unsigned n_cpus = cpu_count();
    sigset_t all, kept;

    if (!n_threads)
        n_threads = n_cpus;
    /* With more threads than processors, a spinning thread would take the place
     * of a working one. */
    pool->spin_ms = n_threads <= n_cpus ? SPIN_MS : 0;
    pool->workers = mem_alloc(n_threads, sizeof *pool->workers);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    /* Workers block all signals, so that signals interrupt only system calls of
     * the caller. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    for (pool->size = 1; pool->size < n_threads; pool->size++) {
        struct worker *worker = &pool->workers[pool->size - 1];

        worker->pool = pool;
        if (pthread_create(&worker->id, NULL, worker_main, worker))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    return pool;
}

void pool_close(struct pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->is_closing, true);
    atomic_fetch_add(&pool->run, 1);
    wake(pool);
    for (unsigned i = 0; i + 1 < pool->size; i++)
        pthread_join(pool->workers[i].id, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->workers);
    mem_free(pool);
}

unsigned pool_size(const struct pool *pool)
{
    return pool ? pool->size : 1;
}

void pool_run(struct pool *pool, size_t n_tasks,
              void (*fn)(void *ctx, size_t task, unsigned thread), void *ctx)
{
    if (pool_size(pool) == 1 || n_tasks < 2) {
        for (size_t task = 0; task < n_tasks; task++)
            fn(ctx, task, 0);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n_tasks = n_tasks;
    atomic_store(&pool->next_task, 0);
    atomic_store(&pool->state, IS_OPEN);
    atomic_fetch_add(&pool->run, 1);
    wake(pool);
    run_tasks(pool, 0);
    atomic_fetch_and(&pool->state, ~IS_OPEN);
    wait_until(pool, &pool->state, 0, true);
}

struct range {
    uint64_t n, n_a_task;
    void (*fn)(void *ctx, uint64_t begin, uint64_t end, unsigned thread);
    void *ctx;
};

static void run_range(void *ctx, size_t task, unsigned thread)
{
    const struct range *range = ctx;
    uint64_t begin = task * range->n_a_task, end = begin + range->n_a_task;

    range->fn(range->ctx, begin, end < range->n ? end : range->n, thread);
}

void pool_run_range(struct pool *pool, uint64_t n, uint64_t n_a_task,
                    void (*fn)(void *ctx, uint64_t begin, uint64_t end,
                               unsigned thread),
                    void *ctx)
{
    struct range range = {n, n_a_task, fn, ctx};

    pool_run(pool, (size_t)((n + n_a_task - 1) / n_a_task), run_range, &range);
}
