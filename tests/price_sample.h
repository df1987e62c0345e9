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

/* Largest number of samples that one oracle prices. Opening an oracle takes
 * longer than pricing a sample. */
#define SAMPLES_AT_ONCE 64

/* Makes a problem of one device from the tables of n samples of one setting. */
static inline void fill_joint_problem(struct problem *problem,
                                      const struct sample *const *samples,
                                      size_t n, struct arena *arena)
{
    const struct sample_setting *setting = samples[0]->setting;
    size_t n_tables = 0;

    for (size_t i = 0; i < n; i++)
        n_tables += samples[i]->n_tables;
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, n_tables),
        .cluster = {.n_devices = 1,
                    .devices_per_host = 1,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, 1),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, 1)},
        .batch = setting->batch,
        .kinds = SHARD_ALL_KINDS,
    };
    problem->cluster.memory_bytes[0] = (uint64_t)1 << 40;
    for (size_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < samples[i]->n_tables; t++) {
            const struct sample_table *from = &samples[i]->tables[t];
            struct table *table = &problem->tables[problem->n_tables];

            table_init(table);
            table->name = arena_printf(arena, "%zu", problem->n_tables++);
            table->num_embeddings = from->n_rows;
            table->dim = from->dim;
            table->pooling_factor = from->pooling_factor;
            table->precision = setting->precision;
            table->optimizer = setting->optimizer;
            table->has_bins = true;
            memcpy(table->bins, from->bins, sizeof(table->bins));
        }
}

/* Makes a problem of one device from the tables of the sample. */
static inline void fill_problem(struct problem *problem,
                                const struct sample *sample,
                                struct arena *arena)
{
    fill_joint_problem(problem, &sample, 1, arena);
}

/* Finds the rates of the GPU that the cost model names, for the check of
 * ids. */
static inline int find_id_rates(struct id_rates *ids, const char *cost,
                                struct arena *arena, struct err *err)
{
    const char *folder = strrchr(cost, '/');
    const char *gpu = (folder ? folder : strchr(cost, ':')) + 1;
    const struct gpu_spec *spec;

    if (gpu_spec_get(&spec, arena_strndup(arena, gpu, strcspn(gpu, ".")), arena,
                     err))
        return -1;
    *ids = gpu_spec_ids(spec, 1);
    return 0;
}

/* Returns the time, in ms, that a job spends beyond a sample's step: the check
 * of ids. */
static inline double added_ms(const struct sample *sample,
                              const struct id_rates *ids)
{
    const double batch = sample->setting->batch;
    double ms = 1e-3 * ids->check.base_us;

    for (uint32_t t = 0; t < sample->n_tables; t++)
        ms += 1e-6 * comm_id_work_ns(&ids->check, batch,
                                     batch * sample->tables[t].pooling_factor);
    return ms;
}

/* As price_samples, for n samples of one setting. */
static inline int price_alike(double *ms, const struct sample *const *samples,
                              size_t n, const char *cost, struct arena *arena,
                              struct err *err)
{
    struct problem problem;
    struct oracle *oracle;
    struct shard *shards;
    struct id_rates ids;
    double *vectors, *sums;
    uint32_t first = 0;

    fill_joint_problem(&problem, samples, n, arena);
    if (oracle_open(&oracle, cost, &problem, arena, err) ||
        find_id_rates(&ids, cost, arena, err))
        return -1;
    shards = ARENA_NEW(arena, struct shard, problem.n_tables);
    vectors = ARENA_NEW(arena, double, (size_t)oracle->width *problem.n_tables);
    sums = ARENA_NEW(arena, double, oracle->width);
    for (size_t i = 0; i < n; i++) {
        const uint32_t n_tables = samples[i]->n_tables;

        for (uint32_t t = 0; t < n_tables; t++)
            shards[t] = shard_whole(&problem, first + t, 0);
        first += n_tables;
        memset(sums, 0, oracle->width * sizeof *sums);
        oracle->ops->embed(oracle, shards, n_tables, vectors);
        oracle_add_shards(oracle, shards, vectors, n_tables, 1, sums);
        oracle->ops->compute(oracle, sums, 1, &ms[i]);
        ms[i] -= added_ms(samples[i], &ids);
    }
    return 0;
}

/* Stores the step times of n samples, in ms, as cost model COST of a shipped
 * GPU predicts them without the check of ids. */
static inline int price_samples(double *ms, const struct sample *const *samples,
                                size_t n, const char *cost, struct arena *arena,
                                struct err *err)
{
    size_t n_alike;

    for (size_t i = 0; i < n; i += n_alike) {
        const struct arena_mark mark = arena_mark(arena);

        for (n_alike = 1; i + n_alike < n && n_alike < SAMPLES_AT_ONCE &&
                          samples[i + n_alike]->setting == samples[i]->setting;)
            n_alike++;
        if (price_alike(ms + i, samples + i, n_alike, cost, arena, err))
            return -1;
        arena_rewind(arena, mark);
    }
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
