/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_PRICE_SAMPLE_H
#define NEUROSHARD_TESTS_PRICE_SAMPLE_H

#include "core/sample.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "io/store.h"
#include "io/store_rows.h"

#include <inttypes.h>
#include <string.h>

/* Makes a problem of one device from the tables of the sample. */
static inline void fill_problem(struct problem *problem,
                                const struct sample *sample,
                                struct arena *arena)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, sample->n_tables),
        .n_tables = sample->n_tables,
        .cluster = {.n_devices = 1,
                    .devices_per_host = 1,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, 1),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, 1)},
        .batch = sample->setting->batch,
        .kinds = SHARD_ALL_KINDS,
    };
    problem->cluster.memory_bytes[0] = (uint64_t)1 << 40;
    for (uint32_t t = 0; t < sample->n_tables; t++) {
        const struct sample_table *from = &sample->tables[t];
        struct table *table = &problem->tables[t];

        table_init(table);
        table->name = arena_printf(arena, "%" PRIu32, t);
        table->num_embeddings = from->n_rows;
        table->dim = from->dim;
        table->pooling_factor = from->pooling_factor;
        table->precision = sample->setting->precision;
        table->optimizer = sample->setting->optimizer;
        table->has_bins = true;
        memcpy(table->bins, from->bins, sizeof(table->bins));
    }
}

/* Stores the time, in ms, that a job spends beyond a sample's step: the check
 * of ids, at the rates of the GPU that the cost model names. */
static inline int added_ms(double *ms, const struct sample *sample,
                           const char *cost, struct arena *arena,
                           struct err *err)
{
    const char *folder = strrchr(cost, '/');
    const char *gpu = (folder ? folder : strchr(cost, ':')) + 1;
    const double batch = sample->setting->batch;
    const struct gpu_spec *spec;
    struct id_rates ids;

    if (gpu_spec_get(&spec, arena_strndup(arena, gpu, strcspn(gpu, ".")), arena,
                     err))
        return -1;
    ids = gpu_spec_ids(spec, 1);
    *ms = 1e-3 * ids.check.base_us;
    for (uint32_t t = 0; t < sample->n_tables; t++)
        *ms += 1e-6 * comm_id_work_ns(&ids.check, batch,
                                      batch * sample->tables[t].pooling_factor);
    return 0;
}

/* Stores the step time of a sample, in ms, as cost model COST of a shipped GPU
 * predicts it without the check of ids. */
static inline int price_sample(double *ms, const struct sample *sample,
                               const char *cost, struct arena *arena,
                               struct err *err)
{
    struct shard *shards = ARENA_NEW(arena, struct shard, sample->n_tables);
    struct problem problem;
    struct oracle *oracle;
    double *vectors, *sums, added;

    fill_problem(&problem, sample, arena);
    if (oracle_open(&oracle, cost, &problem, arena, err))
        return -1;
    vectors =
        ARENA_NEW(arena, double, (size_t)oracle->width * sample->n_tables);
    sums = ARENA_NEW(arena, double, oracle->width);
    for (uint32_t t = 0; t < sample->n_tables; t++)
        shards[t] = shard_whole(&problem, t, 0);
    oracle->ops->embed(oracle, shards, sample->n_tables, vectors);
    oracle_add_shards(oracle, shards, vectors, sample->n_tables, 1, sums);
    oracle->ops->compute(oracle, sums, 1, ms);
    if (added_ms(&added, sample, cost, arena, err))
        return -1;
    *ms -= added;
    return 0;
}

/* Reads all samples of a database that has one device; they live in the
 * arena. */
static inline int read_samples(struct sample **samples, size_t *n,
                               const char *db, struct arena *arena,
                               struct err *err)
{
    struct sample_setting *settings;
    struct store *store = NULL;
    size_t n_settings;
    int rc = -1;

    *samples = NULL;
    *n = 0;
    if (store_open(&store, db, STORE_READ, err) ||
        store_settings(store, &settings, &n_settings, arena, err) ||
        (n_settings &&
         store_samples(store, settings, STORE_DEVICE, samples, n, arena, err)))
        goto out;
    rc = 0;
out:
    store_close(store);
    return rc;
}

#endif
