/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PARALLEL_H
#define NEUROSHARD_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * A pool of threads that share an index range. The caller is one of them, so
 * a pool of one starts no thread. Tasks are handed out in order, dynamically;
 * results must not depend on which thread runs a task. Workers spin for some
 * microseconds before they sleep, so that short runs start at once.
 */
struct pool; /* opaque */

/* n_threads 0: cpu_count. Never fails: where a thread cannot be started the
 * pool is smaller. */
struct pool *pool_open(unsigned n_threads);
void pool_close(struct pool *pool); /* NULL is fine */
unsigned pool_size(const struct pool *pool);

/* Calls fn(ctx, task, thread) for each task in [0, n_tasks), thread in
 * [0, pool_size); returns when all are done. A NULL pool runs them here.
 * Not reentrant: fn must not call pool_run on the same pool. */
void pool_run(struct pool *pool, size_t n_tasks,
              void (*fn)(void *ctx, size_t task, unsigned thread), void *ctx);

/* The same of the items [0, n), so many a task: fn gets [begin, end). */
void pool_run_range(struct pool *pool, uint64_t n, uint64_t n_a_task,
                    void (*fn)(void *ctx, uint64_t begin, uint64_t end,
                               unsigned thread),
                    void *ctx);

#endif
