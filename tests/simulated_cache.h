/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_SIMULATED_CACHE_H
#define NEUROSHARD_TESTS_SIMULATED_CACHE_H

/*
 * Exact simulation of a cache of rows that several tables share, by the rule of
 * FBGEMM's LRU cache, beside the misses that core/cache_model.h predicts.
 *
 * Rule: the cache has sets of 32 slots. A hash of the row's number determines
 * its set; rows of all tables are numbered through. For each batch, the
 * distinct rows are first looked for, and the slots of those found are stamped
 * with the batch. Then the missing rows, in the order of their numbers, each
 * take the slot of their set with the oldest stamp. If that slot has the stamp
 * of this batch, the row stays outside the cache.
 *
 * Include in one file only.
 */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "core/cache_model.h"
#include "core/profile.h"

#define CACHE_WAYS 32

/* --- traces --- */

/* A table whose lookups follow a Zipf law. */
struct trace_table {
    uint32_t n_rows;
    double alpha;
    uint32_t n_lookups; /* per batch */
    double drift;       /* share of the rows that swap their ranks each batch */
    double *before;     /* owned; share of the lookups of lower ranks */
    uint32_t *guide;    /* owned; first rank to try, by the share */
    uint32_t *row_of;   /* owned; row of each rank */
    uint64_t *is_used;  /* owned; bit of each row */
};

static void trace_open(struct trace_table *table, struct rng *rng)
{
    const uint32_t n = table->n_rows;
    double sum = 0;

    table->before = mem_alloc(n + 1, sizeof(*table->before));
    table->guide = mem_alloc(n + 1, sizeof(*table->guide));
    table->row_of = mem_alloc(n, sizeof(*table->row_of));
    table->is_used = mem_alloc(n / 64 + 1, sizeof(*table->is_used));
    for (uint32_t r = 0; r < n; r++) {
        table->row_of[r] = r;
        table->before[r] = sum;
        sum += pow(r + 1.0, -table->alpha);
    }
    for (uint32_t r = 0; r < n; r++)
        table->before[r] /= sum;
    table->before[n] = 1;
    for (uint32_t i = 0, r = 0; i <= n; i++) {
        while (r + 1 < n && table->before[r + 1] <= (double)i / n)
            r++;
        table->guide[i] = r;
    }
    rng_shuffle(rng, table->row_of, n);
}

static void trace_close(struct trace_table *table)
{
    mem_free(table->before);
    mem_free(table->guide);
    mem_free(table->row_of);
    mem_free(table->is_used);
}

/* Draws a batch. Stores its distinct rows, in ascending order, plus `first`.
 * Returns their number. */
static size_t trace_draw(struct trace_table *table, uint32_t first,
                         uint32_t *rows, struct rng *rng)
{
    const uint32_t n = table->n_rows;
    size_t n_used = 0;

    for (uint32_t i = 0; i < table->n_lookups; i++) {
        const double share = rng_uniform(rng);
        uint32_t rank = table->guide[(uint32_t)(share * n)], row;

        while (table->before[rank + 1] <= share)
            rank++;
        row = table->row_of[rank];
        table->is_used[row / 64] |= 1ull << row % 64;
    }
    for (uint32_t word = 0; word <= n / 64; word++) {
        for (uint64_t bits = table->is_used[word]; bits; bits &= bits - 1)
            rows[n_used++] =
                first + word * 64 + (uint32_t)__builtin_ctzll(bits);
        table->is_used[word] = 0;
    }
    for (uint32_t i = 0; i < (uint32_t)(table->drift * n / 2); i++) {
        uint32_t *a = &table->row_of[rng_draw(rng, n)];
        uint32_t *b = &table->row_of[rng_draw(rng, n)], row = *a;

        *a = *b;
        *b = row;
    }
    return n_used;
}

/* --- the cache --- */

struct lru {
    uint64_t n_sets;
    uint32_t *rows;   /* owned; [n_sets][CACHE_WAYS] 1 + row, or 0 */
    uint32_t *stamps; /* owned; [n_sets][CACHE_WAYS] batch of the last use */
};

static void lru_open(struct lru *lru, double n_slots)
{
    lru->n_sets = (uint64_t)ceil(n_slots / CACHE_WAYS);
    lru->rows = mem_alloc(lru->n_sets * CACHE_WAYS, sizeof(*lru->rows));
    lru->stamps = mem_alloc(lru->n_sets * CACHE_WAYS, sizeof(*lru->stamps));
}

static void lru_close(struct lru *lru)
{
    mem_free(lru->rows);
    mem_free(lru->stamps);
}

/* Returns the first slot of the row's set. */
static uint64_t lru_set(const struct lru *lru, uint32_t row)
{
    return mix64(row) % lru->n_sets * CACHE_WAYS;
}

static bool lru_find(struct lru *lru, uint32_t row, uint32_t batch)
{
    const uint64_t set = lru_set(lru, row);
    unsigned way = CACHE_WAYS;

    for (unsigned i = 0; i < CACHE_WAYS; i++)
        way = lru->rows[set + i] == row + 1 ? i : way;
    if (way < CACHE_WAYS)
        lru->stamps[set + way] = batch;
    return way < CACHE_WAYS;
}

static void lru_insert(struct lru *lru, uint32_t row, uint32_t batch)
{
    const uint64_t set = lru_set(lru, row);
    unsigned oldest = 0;

    for (unsigned i = 1; i < CACHE_WAYS; i++)
        if (lru->stamps[set + i] < lru->stamps[set + oldest])
            oldest = i;
    if (lru->stamps[set + oldest] == batch)
        return;
    lru->rows[set + oldest] = row + 1;
    lru->stamps[set + oldest] = batch;
}

/* Processes the rows of a batch, 1 or later, in ascending order. Moves the
 * missing rows to missed[] and returns their number. */
static size_t lru_process(struct lru *lru, const uint32_t *rows, size_t n,
                          uint32_t batch, uint32_t *missed)
{
    size_t n_missed = 0;

    for (size_t i = 0; i < n; i++)
        if (!lru_find(lru, rows[i], batch))
            missed[n_missed++] = rows[i];
    for (size_t i = 0; i < n_missed; i++)
        lru_insert(lru, missed[i], batch);
    return n_missed;
}

/* --- predictions beside simulations --- */

#define MOST_TRACED 5 /* tables */
#define MOST_SIZES 7

/* Largest and mean error of the predicted miss ratio, in percent of the rows of
 * a batch. */
struct cache_error {
    double worst, sum;
    unsigned n;
};

static void cache_error_add(struct cache_error *error, double predicted,
                            double simulated)
{
    const double points = 100 * fabs(predicted - simulated);

    error->worst = fmax(error->worst, points);
    error->sum += points;
    error->n++;
}

/* Tables that share caches of several sizes, simulated one beside the other. */
struct cache_case {
    struct trace_table tables[MOST_TRACED];
    uint32_t n_tables;
    /* sizes of the caches, relative to the rows of a batch. At most 0.8 of all
     * rows are taken. */
    const double *sizes;
    uint32_t n_sizes;
    /* number of batches of the trace; 0: as many as the predictions ask for.
     * Reach and misses are then measured in the trace, otherwise the law is
     * used. */
    uint32_t n_profiled;
    uint64_t seed;
};

/* Errors of the case's tables, and of the sums over its tables, for caches that
 * hold a batch's rows (1) or not (0). */
struct cache_errors {
    struct cache_error of_tables[2], of_sums[2];
};

struct cache_trace {
    const struct cache_case *of;
    struct rng rng;
    uint32_t first[MOST_TRACED + 1]; /* first row of each table */
    uint32_t *rows, *missed;         /* owned */
    struct lru lrus[MOST_SIZES];
    struct cache_curve curves[MOST_TRACED];
    struct profile *profiles[MOST_TRACED];
    struct cache_use uses[MOST_SIZES];
    /* sums over the batches that count */
    double n_used[MOST_TRACED], n_missed[MOST_SIZES][MOST_TRACED];
};

/* Draws and processes one batch, 1 or later; the batches from `first` on
 * count. */
static void cache_trace_step(struct cache_trace *trace, struct cache_case *of,
                             uint32_t batch, bool counts)
{
    size_t ends[MOST_TRACED + 1] = {0};

    for (uint32_t t = 0; t < of->n_tables; t++) {
        uint32_t *rows = trace->rows + ends[t];
        const size_t n =
            trace_draw(&of->tables[t], trace->first[t], rows, &trace->rng);

        ends[t + 1] = ends[t] + n;
        if (counts)
            trace->n_used[t] += (double)n;
        for (size_t i = 0; of->n_profiled && i < n; i++) {
            const int64_t id = (int64_t)(rows[i] - trace->first[t]);
            struct err err = {0};

            if (profile_add(trace->profiles[t], &id, 1, &err))
                abort();
        }
        if (of->n_profiled)
            profile_end(trace->profiles[t], 1);
    }
    for (uint32_t s = 0; s < of->n_sizes; s++) {
        const size_t n = lru_process(&trace->lrus[s], trace->rows,
                                     ends[of->n_tables], batch, trace->missed);

        for (size_t i = 0; counts && i < n; i++) {
            uint32_t t = 0;

            while (trace->missed[i] >= trace->first[t + 1])
                t++;
            trace->n_missed[s][t]++;
        }
    }
}

static struct table cache_trace_table(const struct trace_table *traced)
{
    struct table table;

    table_init(&table);
    table.num_embeddings = traced->n_rows;
    table.zipf_alpha = traced->alpha;
    table.skew_assumed = false;
    return table;
}

/* Returns the number of slots of a cache. */
static double cache_trace_slots(const struct cache_trace *trace,
                                const double pool[CACHE_LANES], uint32_t size)
{
    const struct cache_case *of = trace->of;
    const double n_rows = trace->first[of->n_tables];
    const double n_batch = pool[CACHE_MISSES]; /* an empty cache misses all */

    return CACHE_WAYS *
           ceil(fmin(of->sizes[size] * n_batch, 0.8 * n_rows) / CACHE_WAYS);
}

/* Predicts the use of all caches from the curves. */
static void cache_trace_predict(struct cache_trace *trace,
                                double slots[MOST_SIZES])
{
    const struct cache_case *of = trace->of;
    double pool[CACHE_LANES] = {0}, lanes[CACHE_LANES];

    for (uint32_t t = 0; t < of->n_tables; t++) {
        cache_embed(lanes, &trace->curves[t], 1, 1, 0);
        for (unsigned i = 0; i < CACHE_LANES; i++)
            pool[i] += lanes[i];
    }
    for (uint32_t s = 0; s < of->n_sizes; s++) {
        if (!trace->lrus[s].n_sets)
            slots[s] = cache_trace_slots(trace, pool, s);
        trace->uses[s] = cache_evaluate(pool, slots[s]);
    }
}

/* Returns the number of batches in the window of a cache, at least 1. */
static double cache_window(struct cache_point point)
{
    return point.knot < CACHE_LEVELS
               ? 1
               : ldexp(1 + point.frac, (int)point.knot - CACHE_LEVELS);
}

static void cache_trace_compare(const struct cache_trace *trace,
                                struct cache_errors *errors)
{
    const struct cache_case *of = trace->of;

    for (uint32_t s = 0; s < of->n_sizes; s++) {
        const bool holds = trace->uses[s].point.knot >= CACHE_LEVELS;
        double n_used = 0, n_missed = 0, of_batch = 0;

        for (uint32_t t = 0; t < of->n_tables; t++) {
            const struct cache_curve *curve = &trace->curves[t];

            cache_error_add(&errors->of_tables[holds],
                            cache_misses(curve, 1, trace->uses[s].point) /
                                curve->misses[0],
                            trace->n_missed[s][t] / trace->n_used[t]);
            n_used += trace->n_used[t];
            n_missed += trace->n_missed[s][t];
            of_batch += curve->misses[0];
        }
        cache_error_add(&errors->of_sums[holds],
                        trace->uses[s].misses / of_batch, n_missed / n_used);
    }
}

/* Replaces the curves by those that the profiles give. */
static void cache_trace_profile(struct cache_trace *trace)
{
    for (uint32_t t = 0; t < trace->of->n_tables; t++) {
        struct table table = cache_trace_table(&trace->of->tables[t]);
        struct profile_result result;
        struct arena arena = {0};

        profile_finish(trace->profiles[t], &result, &arena);
        table.n_reach = result.n_reach;
        memcpy(table.reach, result.reach, sizeof(table.reach));
        memcpy(table.misses, result.misses, sizeof(table.misses));
        cache_curve_init(&trace->curves[t], &table, 0);
        arena_release(&arena);
    }
}

static void cache_trace_open(struct cache_trace *trace, struct cache_case *of)
{
    size_t room = 0;

    *trace = (struct cache_trace){.of = of};
    rng_init(&trace->rng, of->seed, 0);
    for (uint32_t t = 0; t < of->n_tables; t++) {
        struct trace_table *traced = &of->tables[t];
        const struct table table = cache_trace_table(traced);
        const struct profile_options options = {
            .batch = 1, .local_batch = 1, .n_rows = traced->n_rows};

        trace_open(traced, &trace->rng);
        cache_curve_init(&trace->curves[t], &table, traced->n_lookups);
        trace->profiles[t] = profile_open(&options);
        trace->first[t + 1] = trace->first[t] + traced->n_rows;
        room += traced->n_lookups;
    }
    trace->rows = mem_alloc(room, sizeof(*trace->rows));
    trace->missed = mem_alloc(room, sizeof(*trace->missed));
}

static void cache_trace_close(struct cache_trace *trace, struct cache_case *of)
{
    for (uint32_t t = 0; t < of->n_tables; t++) {
        trace_close(&of->tables[t]);
        profile_close(trace->profiles[t]);
    }
    for (uint32_t s = 0; s < of->n_sizes; s++)
        lru_close(&trace->lrus[s]);
    mem_free(trace->rows);
    mem_free(trace->missed);
}

/* Simulates all caches of the case and adds the errors of the predictions. */
__attribute__((unused)) static void
cache_case_compare(struct cache_case *of, struct cache_errors *errors)
{
    double slots[MOST_SIZES] = {0}, window = 1;
    struct cache_trace trace;
    uint32_t n_warm, n;

    cache_trace_open(&trace, of);
    cache_trace_predict(&trace, slots);
    for (uint32_t s = 0; s < of->n_sizes; s++) {
        window = fmax(window, cache_window(trace.uses[s].point));
        lru_open(&trace.lrus[s], slots[s]);
    }
    n_warm = of->n_profiled ? of->n_profiled / 2 : (uint32_t)(2 * window) + 20;
    n = of->n_profiled ? of->n_profiled : n_warm + 40;
    for (uint32_t batch = 1; batch <= n; batch++)
        cache_trace_step(&trace, of, batch, batch > n_warm);
    if (of->n_profiled)
        cache_trace_profile(&trace);
    cache_trace_predict(&trace, slots);
    cache_trace_compare(&trace, errors);
    cache_trace_close(&trace, of);
}

#endif
