/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

static int put_comm(struct store *store, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err)
{
    struct query query;
    int64_t setting_id;

    if (store_setting_id(store, setting, &setting_id, err) ||
        query_begin(&query, store, STATEMENT_ADD_COMM, err))
        return -1;
    bind_i64(&query, setting_id);
    bind_row(&query, LIST_COMM, sample);
    return query_run(&query, err);
}

int store_put_comm(void *store, const struct sample_setting *setting,
                   const struct comm_sample *sample, struct err *err)
{
    if (store_begin(store, STORE_WRITE, err))
        return -1;
    return store_end(store, put_comm(store, setting, sample, err), err);
}

int store_has_comm(void *store, const struct sample_setting *setting,
                   const struct comm_sample *sample)
{
    struct query query;
    struct err ignored;

    if (query_begin(&query, store, STATEMENT_HAS_COMM, &ignored))
        return 0;
    bind_row(&query, LIST_SETTING, setting);
    bind_row(&query, LIST_COMM_KEY, sample);
    return query_found(&query);
}

static int take_comm(struct query *query, void *item, const void *before,
                     struct arena *arena, struct err *err)
{
    (void)err;
    take_i64(query); /* its key */
    take_row(query, LIST_COMM, item, before, arena);
    return 0;
}

int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, struct comm_sample **samples,
                       size_t *n, struct arena *arena, struct err *err)
{
    struct query query;
    int64_t id;

    if (store_find_setting(store, setting, scope, &id, err) ||
        query_begin(&query, store, STATEMENT_LIST_COMM, err))
        return -1;
    bind_row(&query, LIST_DEVICE, setting);
    bind_i64(&query, id);
    *samples = query_list(&query, take_comm, sizeof(**samples), n, arena, err);
    return *samples ? 0 : -1;
}
