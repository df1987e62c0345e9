/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include <string.h>

/* What is kept once for each setting. */
static void bind_pattern(struct query *query, const struct comm_sample *sample)
{
    bind_text(query, sample->kind);
    bind_i64(query, sample->n_ranks);
    bind_i64(query, sample->n_hosts);
    bind_u64(query, sample->total_bytes);
    bind_u64(query, sample->max_bytes);
}

static int put_comm(struct store *store, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err)
{
    struct query query;
    int64_t setting_id;

    if (store_setting_id(store, setting, &setting_id, err) ||
        query_begin(&query, store, STATEMENT_ADD_COMM, err))
        return -1;
    bind_i64(&query, setting_id);
    bind_pattern(&query, sample);
    bind_timing(&query, &sample->time);
    bind_i64(&query, sample->n_iterations);
    return query_run(&query, err);
}

int store_put_comm(struct store *store, const struct sample_setting *setting,
                   const struct comm_sample *sample, struct err *err)
{
    if (store_begin(store, STORE_WRITE, err))
        return -1;
    return store_end(store, put_comm(store, setting, sample, err), err);
}

bool store_has_comm(struct store *store, const struct sample_setting *setting,
                    const struct comm_sample *sample)
{
    struct query query;
    struct err ignored;

    if (query_begin(&query, store, STATEMENT_HAS_COMM, &ignored))
        return false;
    bind_setting(&query, setting);
    bind_pattern(&query, sample);
    return query_found(&query);
}

static int take_comm(struct query *query, void *item, const void *before,
                     struct arena *arena, struct err *err)
{
    struct comm_sample *sample = item;

    (void)before, (void)err;
    take_i64(query); /* its key */
    sample->kind = take_text(query, arena);
    sample->n_ranks = (uint32_t)take_u64(query);
    sample->n_hosts = (uint32_t)take_u64(query);
    sample->total_bytes = take_u64(query);
    sample->max_bytes = take_u64(query);
    sample->time = take_timing(query);
    sample->n_iterations = (uint32_t)take_u64(query);
    return 0;
}

static int list_comm(struct store *store, const struct sample_setting *setting,
                     int64_t setting_id, struct comm_sample **samples,
                     size_t *n, struct arena *arena, struct err *err)
{
    struct query query;
    void *items;

    if (query_begin(&query, store, STATEMENT_LIST_COMM, err))
        return -1;
    bind_device(&query, setting);
    bind_i64(&query, setting_id);
    if (query_list(&query, take_comm, sizeof(**samples), &items, n, arena, err))
        return -1;
    *samples = items;
    return 0;
}

int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       struct comm_sample **samples, size_t *n,
                       struct arena *arena, struct err *err)
{
    int64_t setting_id;

    *samples = NULL;
    *n = 0;
    if (store_find_setting(store, setting, &setting_id, err))
        return -1;
    if (!setting_id)
        return 0;
    return list_comm(store, setting, setting_id, samples, n, arena, err);
}

int store_device_comm_samples(struct store *store,
                              const struct sample_setting *setting,
                              struct comm_sample **samples, size_t *n,
                              struct arena *arena, struct err *err)
{
    return list_comm(store, setting, 0, samples, n, arena, err);
}
