/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "io/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bins are stored as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the database holds little-endian doubles");

static void bind_health(struct query *query, const struct sample_health *health)
{
    bind_double(query, health->sm_mhz);
    bind_double(query, health->memory_mhz);
    bind_double(query, health->temperature_c);
    bind_double(query, health->power_w);
    bind_u64(query, health->throttle_reasons);
}

static struct sample_health take_health(struct query *query)
{
    struct sample_health health;

    health.sm_mhz = take_double(query);
    health.memory_mhz = take_double(query);
    health.temperature_c = take_double(query);
    health.power_w = take_double(query);
    health.throttle_reasons = take_u64(query);
    return health;
}

/* id 0: the sample was there already. */
static int add_sample(struct store *store, int64_t setting_id,
                      const struct sample *sample, int64_t *id, struct err *err)
{
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_SAMPLE, err))
        return -1;
    bind_i64(&query, setting_id);
    bind_u64(&query, sample->seed);
    bind_u64(&query, sample->case_idx);
    bind_text(&query, sample_kind_names[sample->kind]);
    bind_i64(&query, sample->part);
    bind_i64(&query, sample->n_tables);
    bind_timing(&query, &sample->forward);
    bind_timing(&query, &sample->backward);
    bind_timing(&query, &sample->total);
    bind_timing(&query, &sample->linearise);
    bind_timing(&query, &sample->sort);
    bind_timing(&query, &sample->update);
    bind_health(&query, &sample->health);
    bind_i64(&query, sample->n_iterations);
    bind_i64(&query, sample->flags);
    bind_text(&query, sample->version);
    bind_text(&query, sample->started_at);
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
    bind_u64(&query, table->n_rows);
    bind_i64(&query, table->dim);
    bind_double(&query, table->pooling_factor);
    bind_double(&query, table->zipf_alpha);
    bind_double(&query, table->n_unique);
    bind_blob(&query, table->bins, sizeof(table->bins));
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

int store_put(struct store *store, const struct sample_setting *setting,
              const struct sample *sample, struct err *err)
{
    if (store_begin(store, STORE_WRITE, err))
        return -1;
    return store_end(store, put(store, setting, sample, err), err);
}

static int store_has(struct store *store, const struct sample_setting *setting,
                     uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                     uint32_t part)
{
    struct query query;
    struct err ignored;

    if (query_begin(&query, store, STATEMENT_HAS_SAMPLE, &ignored))
        return 0;
    bind_setting(&query, setting);
    bind_u64(&query, seed);
    bind_u64(&query, case_idx);
    bind_text(&query, sample_kind_names[kind]);
    bind_i64(&query, part);
    return query_found(&query);
}

static int sink_put(void *ctx, const struct sample_setting *setting,
                    const struct sample *sample, struct err *err)
{
    return store_put(ctx, setting, sample, err);
}

static int sink_put_comm(void *ctx, const struct sample_setting *setting,
                         const struct comm_sample *sample, struct err *err)
{
    return store_put_comm(ctx, setting, sample, err);
}

static int sink_has(void *ctx, const struct sample_setting *setting,
                    uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                    uint32_t part)
{
    return store_has(ctx, setting, seed, case_idx, kind, part);
}

static int sink_has_comm(void *ctx, const struct sample_setting *setting,
                         const struct comm_sample *sample)
{
    return store_has_comm(ctx, setting, sample);
}

struct sample_sink store_sink(struct store *store)
{
    return (struct sample_sink){.ctx = store,
                                .put = sink_put,
                                .put_comm = sink_put_comm,
                                .has = sink_has,
                                .has_comm = sink_has_comm};
}

/* What is being read: the samples of one setting or of all of a device. */
struct sample_list {
    struct stored_setting *settings; /* of the database, in the arena */
    size_t n_settings;
    const struct sample_setting *device; /* the caller's */
    int64_t setting_id;                  /* 0: all settings of the device */
    struct sample *samples;              /* in the arena */
    size_t n;
};

static void bind_list(struct query *query, const struct sample_list *list)
{
    bind_device(query, list->device);
    bind_i64(query, list->setting_id);
}

static const struct sample_setting *
setting_of_id(const struct sample_list *list, int64_t id)
{
    for (size_t i = 0; i < list->n_settings; i++)
        if (list->settings[i].id == id)
            return &list->settings[i].setting;
    return NULL; /* a foreign key forbids it */
}

static int take_sample(struct query *query, void *item, const void *last,
                       struct arena *arena, struct err *err)
{
    struct sample *sample = item;
    const struct sample *before = last;
    const unsigned char *kind_name;
    int kind;

    sample->id = take_i64(query);
    sample->setting = setting_of_id(query->ctx, take_i64(query));
    sample->seed = take_u64(query);
    sample->case_idx = take_u64(query);
    kind_name = sqlite3_column_text(query->stmt, ++query->column);
    kind = kind_name ? text_choice(sample_kind_names, (const char *)kind_name)
                     : -1;
    sample->part = (uint32_t)take_u64(query);
    sample->n_tables = (uint32_t)take_u64(query);
    sample->forward = take_timing(query);
    sample->backward = take_timing(query);
    sample->total = take_timing(query);
    sample->linearise = take_timing(query);
    sample->sort = take_timing(query);
    sample->update = take_timing(query);
    sample->health = take_health(query);
    sample->n_iterations = (uint32_t)take_u64(query);
    sample->flags = (unsigned)take_u64(query);
    sample->version =
        take_shared_text(query, before ? before->version : NULL, arena);
    sample->started_at =
        take_shared_text(query, before ? before->started_at : NULL, arena);
    if (kind < 0)
        return err_set(err, ERR_INPUT,
                       "cost database '%s': sample %" PRId64
                       " is of an unknown kind",
                       query->store->path, sample->id);
    sample->kind = (enum sample_kind)kind;
    return 0;
}

static int read_samples(struct store *store, struct sample_list *list,
                        struct arena *arena, struct err *err)
{
    struct query query;
    void *items;

    if (query_begin(&query, store, STATEMENT_LIST_SAMPLES, err))
        return -1;
    query.ctx = list;
    bind_list(&query, list);
    if (query_list(&query, take_sample, sizeof(*list->samples), &items,
                   &list->n, arena, err))
        return -1;
    list->samples = items;
    return 0;
}

/* The rest of a row of sample_table, whose sample and index were taken. */
static void take_table(struct query *query, struct sample_table *table)
{
    table->n_rows = take_u64(query);
    table->dim = (uint32_t)take_u64(query);
    table->pooling_factor = take_double(query);
    table->zipf_alpha = take_double(query);
    table->n_unique = take_double(query);
    memcpy(table->bins, sqlite3_column_blob(query->stmt, ++query->column),
           sizeof(table->bins));
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

    if (query_begin(&query, store, STATEMENT_LIST_TABLES, err))
        goto out;
    bind_list(&query, list);
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
            take_table(&query, &sample->tables[j]);
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
    if (a->seed != b->seed)
        return a->seed < b->seed ? -1 : 1;
    if (a->case_idx != b->case_idx)
        return a->case_idx < b->case_idx ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

static int read_all(struct store *store, struct sample_list *list,
                    bool one_setting, struct arena *arena, struct err *err)
{
    if (one_setting) {
        if (store_find_setting(store, list->device, &list->setting_id, err))
            return -1;
        if (!list->setting_id)
            return 0;
    }
    if (store_list_settings(store, &list->settings, &list->n_settings, arena,
                            err) ||
        read_samples(store, list, arena, err))
        return -1;
    return read_tables(store, list, arena, err);
}

static int list_samples(struct store *store,
                        const struct sample_setting *setting, bool one_setting,
                        struct sample **samples, size_t *n, struct arena *arena,
                        struct err *err)
{
    struct sample_list list = {.device = setting};

    /* One snapshot for all lists, whoever writes meanwhile. */
    if (store_begin(store, STORE_READ, err) ||
        store_end(store, read_all(store, &list, one_setting, arena, err), err))
        return -1;
    if (list.n)
        qsort(list.samples, list.n, sizeof(*list.samples), compare_samples);
    *samples = list.samples;
    *n = list.n;
    return 0;
}

int store_samples(struct store *store, const struct sample_setting *setting,
                  struct sample **samples, size_t *n, struct arena *arena,
                  struct err *err)
{
    return list_samples(store, setting, true, samples, n, arena, err);
}

int store_device_samples(struct store *store,
                         const struct sample_setting *setting,
                         struct sample **samples, size_t *n,
                         struct arena *arena, struct err *err)
{
    return list_samples(store, setting, false, samples, n, arena, err);
}
