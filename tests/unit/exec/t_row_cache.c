/* SPDX-License-Identifier: MIT */
#include "exec/row_cache.h"

#include "tests/simulated_cache.h"
#include "tests/tap.h"

/* The cache misses the same rows, batch by batch, as the simulation in
 * tests/simulated_cache.h, which is written apart from it. */

#define N_BATCHES 40

/* Returns whether the moves of a batch are consistent: each row enters a slot
 * of its own, from which the row that held the slot leaves. slots[n_slots] are
 * the rows in the slots. */
static bool make_moves(uint64_t *slots, const struct row_move *moves, size_t n)
{
    bool is_right = true;

    for (size_t i = 0; i < n; i++) {
        is_right &= slots[moves[i].slot] == moves[i].evicted;
        slots[moves[i].slot] = moves[i].row;
    }
    return is_right;
}

/* Compares the misses of one batch, and the contents of all slots after it. */
static bool same_batch(struct row_cache *cache, struct lru *lru,
                       const uint32_t *rows, size_t n, uint32_t batch,
                       uint64_t *slots)
{
    uint64_t *wide = mem_alloc(n, sizeof(*wide));
    uint32_t *missed = mem_alloc(n, sizeof(*missed));
    struct row_move *moves = mem_alloc(n, sizeof(*moves));
    size_t n_moves, n_missed, want = lru_process(lru, rows, n, batch, missed);
    bool same;

    for (size_t i = 0; i < n; i++)
        wide[i] = rows[i];
    n_missed = row_cache_use(cache, wide, n, moves, &n_moves);
    same = n_missed == want && make_moves(slots, moves, n_moves);
    for (uint64_t s = 0; s < lru->n_sets * CACHE_WAYS; s++)
        same &= slots[s] == (lru->rows[s] ? lru->rows[s] - 1 : NO_ROW) &&
                cache->rows[s] == slots[s] &&
                cache->stamps[s] == lru->stamps[s];
    mem_free(wide);
    mem_free(missed);
    mem_free(moves);
    return same;
}

/* Draws a table and a cache and compares some batches. */
static void test_trace(uint64_t seed)
{
    struct trace_table table = {0};
    struct row_cache cache;
    struct lru lru;
    struct rng rng;
    uint64_t n_slots, *slots, n_used = 0;
    uint32_t *rows;
    unsigned n_same = 0;

    rng_init(&rng, seed, 0);
    table.n_rows = 100 + rng_draw(&rng, 20000);
    table.n_lookups = 1 + rng_draw(&rng, 3000);
    table.alpha = 1.3 * rng_uniform(&rng);
    table.drift = seed % 4 ? 0 : 0.01;
    n_slots = CACHE_WAYS * (1 + (uint64_t)rng_draw(&rng, 100));
    trace_open(&table, &rng);
    row_cache_open(&cache, n_slots);
    lru_open(&lru, (double)n_slots);
    rows = mem_alloc(table.n_lookups, sizeof(*rows));
    slots = mem_alloc(n_slots, sizeof(*slots));
    memset(slots, 0xff, n_slots * sizeof(*slots));
    for (uint32_t batch = 1; batch <= N_BATCHES; batch++)
        n_same += same_batch(&cache, &lru, rows,
                             trace_draw(&table, 0, rows, &rng), batch, slots);
    for (uint64_t s = 0; s < n_slots; s++)
        n_used += slots[s] != NO_ROW;
    ok(n_same == N_BATCHES && cache.n_used == n_used,
       "seed %llu: %u of %d batches are as simulated, %llu of %llu slots are "
       "used",
       (unsigned long long)seed, n_same, N_BATCHES, (unsigned long long)n_used,
       (unsigned long long)n_slots);
    row_cache_close(&cache);
    lru_close(&lru);
    trace_close(&table);
    mem_free(rows);
    mem_free(slots);
}

/* 40 rows of one batch in one set: 8 find no slot, and the next batch finds 32
 * of them. */
static void test_conflicts(void)
{
    struct row_cache cache;
    struct row_move moves[40];
    uint64_t rows[40];
    size_t n_moves, n_missed;

    for (unsigned i = 0; i < 40; i++)
        rows[i] = i;
    row_cache_open(&cache, ROW_CACHE_WAYS);
    n_missed = row_cache_use(&cache, rows, 40, moves, &n_moves);
    is_i64((int64_t)n_missed, 40, "an empty cache misses all rows");
    is_i64((int64_t)n_moves, ROW_CACHE_WAYS, "and takes one set of them");
    ok(moves[0].row == 0 && moves[0].evicted == NO_ROW && moves[31].row == 31,
       "the first rows get the slots");
    n_missed = row_cache_use(&cache, rows, 40, moves, &n_moves);
    is_i64((int64_t)n_missed, 8, "the next batch misses the others");
    is_i64((int64_t)n_moves, 0, "which cannot displace rows of their batch");
    n_missed = row_cache_use(&cache, rows + 8, 32, moves, &n_moves);
    is_i64((int64_t)n_moves, 8, "a batch without the first rows");
    ok(n_missed == 8 && moves[7].evicted < 8, "displaces them");
    row_cache_clear(&cache);
    ok(!cache.n_used && row_cache_use(&cache, rows, 1, moves, &n_moves) == 1,
       "an emptied cache holds nothing");
    row_cache_close(&cache);
}

int main(void)
{
    for (uint64_t seed = 0; seed < tap_size(12, 200); seed++)
        test_trace(seed);
    test_conflicts();
    return tap_done();
}
