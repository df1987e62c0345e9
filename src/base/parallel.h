/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PARALLEL_H
#define NEUROSHARD_BASE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * A pool of threads that share an index range. The caller is one of its
 * threads, so a pool of one starts no thread. Tasks are handed out in order and
 * dynamically; results must not depend on which thread runs a task. Workers
 * spin for some microseconds before they sleep, so that a run that follows soon
 * after another run starts at once.
 */
struct pool; /* a pool; opaque */

/* Opens a pool of n_threads threads, or of cpu_count threads if n_threads is 0.
 * Never fails: if a thread cannot be started, the pool is smaller. */
struct pool *pool_open(unsigned n_threads);
void pool_close(struct pool *pool); /* accepts NULL */
unsigned pool_size(const struct pool *pool);

/* Calls fn(ctx, task, thread) for each task in [0, n_tasks), and returns when
 * all tasks are done. `thread` is the index of the calling thread, in [0,
 * pool_size). If pool is NULL, the caller runs all tasks. Not reentrant: fn
 * must not call pool_run on the same pool. */
void pool_run(struct pool *pool, size_t n_tasks,
              void (*fn)(void *ctx, size_t task, unsigned thread), void *ctx);

/* Works like pool_run, but on the items [0, n), in tasks of n_a_task items
 * each. fn gets the range [begin, end) of the items of one task. */
void pool_run_range(struct pool *pool, uint64_t n, uint64_t n_a_task,
                    void (*fn)(void *ctx, uint64_t begin, uint64_t end,
                               unsigned thread),
                    void *ctx);

#endif
