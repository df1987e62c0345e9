/* SPDX-License-Identifier: MIT */
#include "io/store.h"
#include "microbench/sampler.h"
#include "tests/tap.h"

#include "base/file.h"
#include "base/rng.h"
#include "io/store_rows.h"
#include "microbench/bench_options.h"

#include <math.h>

/* The shipped measurements name the case lists that they were made from
 * (data/SOURCES.md). These lists must still give the same cases, lookup for
 * lookup. Otherwise a resumed run would mix two lists under one name. */
#define SHIPPED "data/measurements/cpu-amd-epyc-2t.db"
/* One case in this number is also drawn lookup for lookup. */
#define DRAWN_EVERY 60

static struct bench_options list_of(uint64_t seed, uint32_t max_tables)
{
    struct bench_options options;

    bench_options_init(&options);
    options.seed = seed;
    options.max_tables = max_tables;
    return options;
}

static bool same_table(const struct sample_table *stored,
                       const struct case_table *drawn)
{
    const struct stream *stream = &drawn->stream;

    return stored->n_rows == stream->n_rows && stored->dim == drawn->dim &&
           stored->pooling_factor ==
               (double)stream_n_lookups(stream) / stream->batch &&
           (stream->use_bins ? isnan(stored->zipf_alpha)
                             : stored->zipf_alpha == stream->zipf_alpha);
}

static bool same_lookups(const struct sample_table *stored,
                         const struct stream *stream, uint64_t batch_seed,
                         struct arena *arena)
{
    struct arena_mark mark = arena_mark(arena);
    uint64_t n = stream_n_lookups(stream);
    uint32_t *indices = ARENA_NEW(arena, uint32_t, n);
    uint64_t *offsets = ARENA_NEW(arena, uint64_t, stream->batch + 1u);
    double bins[REUSE_BINS], n_unique;

    stream_fill(stream, batch_seed, 0, offsets, indices);
    n_unique = stream_histogram(indices, n, stream->n_rows, bins);
    arena_rewind(arena, mark);
    return n_unique == stored->n_unique &&
           !memcmp(bins, stored->bins, sizeof(bins));
}

static bool same_case(const struct sample *sample,
                      const struct bench_case *drawn, struct arena *arena)
{
    uint64_t batch_seed = mix64(sample->seed + sample->case_idx);
    bool same = sample->n_tables == drawn->n_tables;

    for (uint32_t t = 0; same && t < drawn->n_tables; t++) {
        same = same_table(&sample->tables[t], &drawn->tables[t]);
        if (same && sample->case_idx % DRAWN_EVERY == 0)
            same = same_lookups(&sample->tables[t], &drawn->tables[t].stream,
                                batch_seed, arena);
    }
    return same;
}

static void test_list(const struct sample *samples, size_t n,
                      const struct bench_options *list, struct arena *arena)
{
    uint64_t id = case_list_id(list);
    size_t n_cases = 0, n_other = 0;
    struct bench_case drawn;

    for (size_t i = 0; i < n; i++) {
        if (samples[i].seed != id || samples[i].kind != SAMPLE_FUSED)
            continue;
        case_draw(&drawn, list, samples[i].case_idx);
        n_cases++;
        n_other += !same_case(&samples[i], &drawn, arena);
    }
    ok(n_cases > 500, "list of %u tables: %zu cases", list->max_tables,
       n_cases);
    is_i64((int64_t)n_other, 0, "all are drawn as they were measured");
}

int main(void)
{
    struct sample_setting *settings;
    struct bench_options lists[2];
    struct sample *samples;
    struct store *store;
    struct arena arena = {0};
    struct err err = {0};
    size_t n_settings, n;

    if (!file_exists(SHIPPED))
        tap_skip_all("no " SHIPPED);
    if (store_open(&store, SHIPPED, STORE_READ, &err) ||
        store_settings(store, &settings, &n_settings, &arena, &err) ||
        store_samples(store, &settings[0], STORE_SETTING, &samples, &n, &arena,
                      &err)) {
        ok(0, "%s", err.msg);
        return tap_done();
    }
    store_close(store);
    lists[0] = list_of(1, 15);
    lists[1] = list_of(2, 24);
    for (size_t i = 0; i < 2; i++)
        test_list(samples, n, &lists[i], &arena);
    arena_release(&arena);
    return tap_done();
}
