/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bins are stored as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the database holds little-endian doubles");

/* id 0: the sample was there already. */
static int add_sample(struct store *store, int64_t setting_id,
                      const struct sample *sample, int64_t *id, struct err *err)
{
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_SAMPLE, err))
        return -1;
    bind_i64(&query, setting_id);
    bind_row(&query, LIST_SAMPLE, sample);
    if (query_run(&query, err))
        return -1;
    *id = sqlite3_changes(store->db) ? sqlite3_last_insert_rowid(store->db) : 0;
    return 0;
}

static int add_table(struct store *store, int64_t sample_id, uint32_t table_idx,
                     const struct sample_table *table, struct err *err)
{
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_TABLE, err))
        return -1;
    bind_i64(&query, sample_id);
    bind_i64(&query, table_idx);
    bind_row(&query, LIST_TABLE, table);
    return query_run(&query, err);
}

static int put(struct store *store, const struct sample_setting *setting,
               const struct sample *sample, struct err *err)
{
    int64_t setting_id, sample_id;

    if (store_setting_id(store, setting, &setting_id, err) ||
        add_sample(store, setting_id, sample, &sample_id, err))
        return -1;
    for (uint32_t i = 0; sample_id && i < sample->n_tables; i++)
        if (add_table(store, sample_id, i, &sample->tables[i], err))
            return -1;
    return 0;
}

int store_put(void *store, const struct sample_setting *setting,
              const struct sample *sample, struct err *err)
{
    if (store_begin(store, STORE_WRITE, err))
        return -1;
    return store_end(store, put(store, setting, sample, err), err);
}

static int has_sample(void *ctx, const struct sample_setting *setting,
                      uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                      uint32_t part)
{
    const struct sample sample = {
        .seed = seed, .case_idx = case_idx, .kind = kind, .part = part};
    struct query query;
    struct err ignored;

    if (query_begin(&query, ctx, STATEMENT_HAS_SAMPLE, &ignored))
        return 0;
    bind_row(&query, LIST_SETTING, setting);
    bind_row(&query, LIST_SAMPLE_KEY, &sample);
    return query_found(&query);
}

struct sample_sink store_sink(struct store *store)
{
    return (struct sample_sink){.ctx = store,
                                .put = store_put,
                                .put_comm = store_put_comm,
                                .has = has_sample,
                                .has_comm = store_has_comm};
}

/* What is being read: the samples of one setting or of all of a device. */
struct sample_list {
    struct sample_setting *settings; /* of the database, in the arena */
    size_t n_settings;
    const struct sample_setting *device; /* the caller's */
    int64_t setting_id;                  /* as of store_find_setting */
    struct sample *samples;              /* in the arena */
    size_t n;
};

static const struct sample_setting *
setting_of_id(const struct sample_list *list, int64_t id)
{
    for (size_t i = 0; i < list->n_settings; i++)
        if (list->settings[i].id == id)
            return &list->settings[i];
    return NULL; /* a foreign key forbids it */
}

/* A statement that lists rows of those samples. */
static int begin_list(struct query *query, struct store *store,
                      enum store_statement which,
                      const struct sample_list *list, struct err *err)
{
    if (query_begin(query, store, which, err))
        return -1;
    query->ctx = list;
    bind_row(query, LIST_DEVICE, list->device);
    bind_i64(query, list->setting_id);
    return 0;
}

static int take_sample(struct query *query, void *item, const void *before,
                       struct arena *arena, struct err *err)
{
    struct sample *sample = item;

    sample->id = take_i64(query);
    sample->setting = setting_of_id(query->ctx, take_i64(query));
    take_row(query, LIST_SAMPLE, sample, before, arena);
    if (sample->kind <= SAMPLE_SENTINEL)
        return 0;
    return err_set(err, ERR_INPUT,
                   "cost database '%s': sample %" PRId64
                   " is of an unknown kind",
                   query->store->path, sample->id);
}

static int missing_table(const struct store *store, const struct sample *sample,
                         struct err *err)
{
    return err_set(err, ERR_INPUT,
                   "cost database '%s': sample %" PRId64
                   " lacks some of its %u tables",
                   store->path, sample->id, sample->n_tables);
}

/* Both lists run by sample id, so one pass over the two joins them. */
static int read_tables(struct store *store, struct sample_list *list,
                       struct arena *arena, struct err *err)
{
    struct query query = {0};
    bool has_row;
    int rc = -1;

    if (begin_list(&query, store, STATEMENT_LIST_TABLES, list, err))
        goto out;
    for (size_t i = 0; i < list->n; i++) {
        struct sample *sample = &list->samples[i];

        sample->tables =
            ARENA_NEW(arena, struct sample_table, sample->n_tables);
        for (uint32_t j = 0; j < sample->n_tables; j++) {
            if (query_step(&query, &has_row, err))
                goto out;
            if (!has_row || take_i64(&query) != sample->id ||
                take_i64(&query) != j) {
                rc = missing_table(store, sample, err);
                goto out;
            }
            take_row(&query, LIST_TABLE, &sample->tables[j], NULL, arena);
        }
    }
    rc = 0;
out:
    query_end(&query);
    return rc;
}

static int compare_samples(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;

    if (a->setting != b->setting) /* of one array, in its order */
        return a->setting < b->setting ? -1 : 1;
    return sample_compare(a, b);
}

static int read_all(struct store *store, struct sample_list *list,
                    enum store_scope scope, struct arena *arena,
                    struct err *err)
{
    struct query query;

    if (store_find_setting(store, list->device, scope, &list->setting_id,
                           err) ||
        store_settings(store, &list->settings, &list->n_settings, arena, err) ||
        begin_list(&query, store, STATEMENT_LIST_SAMPLES, list, err))
        return -1;
    list->samples = query_list(&query, take_sample, sizeof(*list->samples),
                               &list->n, arena, err);
    return list->samples ? read_tables(store, list, arena, err) : -1;
}

int store_samples(struct store *store, const struct sample_setting *setting,
                  enum store_scope scope, struct sample **samples, size_t *n,
                  struct arena *arena, struct err *err)
{
    struct sample_list list = {.device = setting};

    /* One snapshot for all lists, whoever writes meanwhile. */
    if (store_begin(store, STORE_READ, err) ||
        store_end(store, read_all(store, &list, scope, arena, err), err))
        return -1;
    qsort(list.samples, list.n, sizeof(*list.samples), compare_samples);
    *samples = list.samples;
    *n = list.n;
    return 0;
}
