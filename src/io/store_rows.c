/* SPDX-License-Identifier: MIT */
#include "io/store_rows.h"

#include "base/hash.h"
#include "base/lock.h"
#include "io/store_fields.h"
#include "io/store_sql.h"

#include <inttypes.h>
#include <stdlib.h>

/* A reuse histogram's bins are stored as they are in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the database holds little-endian doubles");

/* True if a statement finds a row. An error counts as false, because the
 * function that then stores the row reports the error. */
static bool is_there(struct store *store, const struct statement *statement,
                     const void *const *bound)
{
    bool found = false;
    struct err ignored;

    return !query_run(store, statement, bound, &found, &ignored) && found;
}

/* current time in the format of clock_utc */
#define NOW "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"

/* --- settings --- */

#define ITS_SETTING "(SELECT id FROM setting WHERE ({setting}) = ({?setting}))"
/* Selects the rows of a setting. If {?flag} is 1, selects the rows of all
 * settings with the setting's device. ?1, ?2 and ?3 are the device's columns,
 * which are the first columns of {?setting}. */
#define OF_SETTINGS                                                   \
    "WHERE setting_id IN (SELECT id FROM setting WHERE ({setting}) =" \
    " ({?setting}) OR ({?flag} AND ({device}) = (?1, ?2, ?3))) "

/* Adds a setting if the database lacks it. Must be called inside a
 * transaction. */
static int add_setting(struct store *store,
                       const struct sample_setting *setting, struct err *err)
{
    static const struct statement add = {
        .sql = "INSERT INTO setting ({setting}) VALUES ({?setting}) "
               "ON CONFLICT DO NOTHING"};

    return query_run(store, &add, BOUND(setting), NULL, err);
}

static int finish_setting(const struct query *query, void *item,
                          struct err *err)
{
    struct sample_setting *setting = item;

    setting->id = sqlite3_column_int64(query->stmt, 0);
    if (setting->precision < N_PRECISIONS && setting->optimizer < N_OPTIMIZERS)
        return 0;
    return err_input(err,
                     "cost database '%s': a setting of device '%s' has an "
                     "unknown precision or optimizer",
                     query->store->path, setting->device);
}

int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err)
{
    static const struct statement list = {
        .sql = "SELECT id, {setting} FROM setting ORDER BY id",
        .listed = "setting",
        .item_bytes = sizeof(**settings),
        .finish = finish_setting};

    *settings = query_list(store, &list, NULL, NULL, n, arena, err);
    return *settings ? 0 : -1;
}

/* --- samples --- */

/* Adds a sample with its tables. A sample that is already stored stays
 * unchanged. */
static int add_sample(struct store *store, const struct sample_setting *setting,
                      const struct sample *sample, struct err *err)
{
    static const struct statement add = {
        .sql = "INSERT INTO sample (setting_id, {sample}) VALUES (" ITS_SETTING
               ", {?sample}) ON CONFLICT DO NOTHING"};
    static const struct statement add_table = {
        .sql = "INSERT INTO sample_table ({table_key}, {table}) VALUES "
               "({?table_key}, {?table})"};
    uint64_t key[2] = {0};

    if (add_setting(store, setting, err) ||
        query_run(store, &add, BOUND(setting, sample), NULL, err))
        return -1;
    if (!sqlite3_changes(store->db))
        return 0;
    key[0] = (uint64_t)sqlite3_last_insert_rowid(store->db);
    for (; key[1] < sample->n_tables; key[1]++)
        if (query_run(store, &add_table, BOUND(key, &sample->tables[key[1]]),
                      NULL, err))
            return -1;
    return 0;
}

static int put_sample(void *store, const struct sample_setting *setting,
                      const struct sample *sample, struct err *err)
{
    if (store_begin_write(store, err))
        return -1;
    return store_end(store, add_sample(store, setting, sample, err), err);
}

static int has_sample(void *ctx, const struct sample_setting *setting,
                      uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                      uint32_t part)
{
    static const struct statement has = {
        .sql = "SELECT 1 FROM sample WHERE setting_id = " ITS_SETTING
               " AND ({sample_key}) = ({?sample_key})"};
    const struct sample sample = {
        .seed = seed, .case_idx = case_idx, .kind = kind, .part = part};

    return is_there(ctx, &has, BOUND(setting, &sample));
}

/* List of all settings of the database, in the arena. */
struct setting_list {
    struct sample_setting *items;
    size_t n;
};

static int finish_sample(const struct query *query, void *item, struct err *err)
{
    const struct setting_list *settings = query->ctx;
    const int64_t setting_id = sqlite3_column_int64(query->stmt, 1);
    struct sample *sample = item;

    sample->id = sqlite3_column_int64(query->stmt, 0);
    /* a foreign key guarantees that the loop finds the sample's setting */
    sample->setting = NULL;
    for (size_t i = 0; i < settings->n; i++)
        if (settings->items[i].id == setting_id)
            sample->setting = &settings->items[i];
    if (sample->kind <= SAMPLE_SENTINEL)
        return 0;
    return err_input(
        err, "cost database '%s': sample %" PRId64 " is of an unknown kind",
        query->store->path, sample->id);
}

/* Reads the tables of all samples. The samples and the tables are ordered by
 * sample id, so a single pass joins them. */
static int read_tables(struct store *store, const void *const *values,
                       struct sample *samples, size_t n, struct arena *arena,
                       struct err *err)
{
    static const struct statement list_tables = {
        .sql = "SELECT {table_key}, {table} FROM sample NOT INDEXED CROSS JOIN "
               "sample_table ON sample_id = id " OF_SETTINGS
               "ORDER BY id, table_idx",
        .listed = "table"};
    struct query query;
    bool found = false;
    int rc = query_begin(&query, store, &list_tables, values, err);

    for (struct sample *sample = samples; !rc && sample < samples + n;
         sample++) {
        sample->tables =
            ARENA_NEW(arena, struct sample_table, sample->n_tables);
        for (uint32_t j = 0; !rc && j < sample->n_tables; j++) {
            rc = query_step(&query, &found, err);
            if (!rc &&
                (!found || sqlite3_column_int64(query.stmt, 0) != sample->id ||
                 sqlite3_column_int64(query.stmt, 1) != j))
                rc = err_input(err,
                               "cost database '%s': sample %" PRId64
                               " lacks some of its %u tables",
                               store->path, sample->id, sample->n_tables);
            if (!rc)
                take_row(&query, &sample->tables[j], NULL, arena);
        }
    }
    query_end(&query);
    return rc;
}

static int compare_samples(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;

    /* both settings are in one array, so their addresses have the order of the
     * settings */
    if (a->setting != b->setting)
        return a->setting < b->setting ? -1 : 1;
    return sample_compare(a, b);
}

/* Reads the samples of the settings that OF_SETTINGS selects. */
static int read_samples(struct store *store, const void *const *values,
                        struct sample **samples, size_t *n, struct arena *arena,
                        struct err *err)
{
    /* The samples are read by a scan in the order of their ids, which needs no
     * sorting. Reading them through the index on the setting would need
     * sorting. */
    static const struct statement list_samples = {
        .sql = "SELECT id, setting_id, {sample} FROM sample NOT "
               "INDEXED " OF_SETTINGS "ORDER BY id",
        .listed = "sample",
        .item_bytes = sizeof(**samples),
        .finish = finish_sample};
    struct setting_list all;

    if (store_settings(store, &all.items, &all.n, arena, err))
        return -1;
    *samples = query_list(store, &list_samples, values, &all, n, arena, err);
    if (!*samples || read_tables(store, values, *samples, *n, arena, err))
        return -1;
    qsort(*samples, *n, sizeof(**samples), compare_samples);
    return 0;
}

int store_samples(struct store *store, const struct sample_setting *setting,
                  enum store_scope scope, struct sample **samples, size_t *n,
                  struct arena *arena, struct err *err)
{
    const void *const *values = BOUND(setting, &scope);

    /* Within a transaction all lists come from the same snapshot, even if other
     * processes write meanwhile. */
    if (store_begin_read(store, err))
        return -1;
    return store_end(store, read_samples(store, values, samples, n, arena, err),
                     err);
}

/* --- exchanges --- */

static int put_comm(void *store, const struct sample_setting *setting,
                    const struct comm_sample *sample, struct err *err)
{
    static const struct statement add = {
        .sql = "INSERT OR REPLACE INTO comm_sample (setting_id, {comm}) VALUES "
               "(" ITS_SETTING ", {?comm})"};
    int rc;

    if (store_begin_write(store, err))
        return -1;
    rc = add_setting(store, setting, err) ||
         query_run(store, &add, BOUND(setting, sample), NULL, err);
    return store_end(store, rc ? -1 : 0, err);
}

static int has_comm(void *store, const struct sample_setting *setting,
                    const struct comm_sample *sample)
{
    static const struct statement has = {
        .sql = "SELECT 1 FROM comm_sample WHERE setting_id = " ITS_SETTING
               " AND ({comm_key}) = ({?comm_key})"};

    return is_there(store, &has, BOUND(setting, sample));
}

int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, struct comm_sample **samples,
                       size_t *n, struct arena *arena, struct err *err)
{
    static const struct statement list = {
        .sql = "SELECT id, {comm} FROM comm_sample " OF_SETTINGS
               "ORDER BY setting_id, {comm_key}",
        .listed = "comm",
        .item_bytes = sizeof(**samples)};

    *samples =
        query_list(store, &list, BOUND(setting, &scope), NULL, n, arena, err);
    return *samples ? 0 : -1;
}

/* --- interference probes (table canary) --- */

#define ITS_VERSION "version = '" NEUROSHARD_VERSION "'"

static int find_interference_probe(void *store,
                                   const struct sample_setting *setting,
                                   double *best_ms, struct err *err)
{
    static const struct statement find = {
        .sql = "SELECT id, {canary} FROM canary WHERE ({machine}) = "
               "({?machine}) AND " ITS_VERSION,
        .listed = "canary"};
    struct query query;
    bool has_row = false;
    int rc = query_begin(&query, store, &find, BOUND(setting), err) ||
             query_step(&query, &has_row, err);

    *best_ms = rc || !has_row ? 0 : sqlite3_column_double(query.stmt, 1);
    query_end(&query);
    return rc ? -1 : 0;
}

static int put_interference_probe(void *store,
                                  const struct sample_setting *setting,
                                  double best_ms, struct err *err)
{
    static const struct statement put = {
        .sql =
            "INSERT INTO canary ({machine}, {canary}, version, measured_at) "
            "VALUES ({?machine}, {?canary}, '" NEUROSHARD_VERSION "', " NOW ") "
            "ON CONFLICT DO UPDATE SET best_ms = excluded.best_ms, "
            "measured_at = excluded.measured_at "
            "WHERE excluded.best_ms < best_ms"};

    return query_run(store, &put, BOUND(setting, &best_ms), NULL, err);
}

static int claim_case(void *ctx, const struct sample_setting *setting,
                      uint64_t seed, uint64_t case_idx, struct lock *lock,
                      struct err *err)
{
    const struct store *store = ctx;
    struct buf name = {0};
    int rc;

    buf_printf(&name, "%s %u %s %s %s %s %d %d %u %" PRIu64 " %" PRIu64,
               setting->device, setting->n_threads, setting->isa,
               setting_known(setting->driver), setting_known(setting->cuda),
               setting_known(setting->host), (int)setting->precision,
               (int)setting->optimizer, setting->batch, seed, case_idx);
    rc = lock_try(lock, store->path, hash_bytes(name.data, name.len, 0), err);
    buf_release(&name);
    return rc;
}

struct sample_sink store_sink(struct store *store)
{
    return (struct sample_sink){
        .ctx = store,
        .put = put_sample,
        .put_comm = put_comm,
        .has = has_sample,
        .has_comm = has_comm,
        .find_interference_probe = find_interference_probe,
        .put_interference_probe = put_interference_probe,
        .claim = claim_case};
}

/* --- ceilings --- */

int store_put_ceiling(void *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling, struct err *err)
{
    static const struct statement add = {
        .sql =
            "INSERT OR REPLACE INTO ceiling ({device}, {ceiling}, {moved}, "
            "measured_at) VALUES ({?device}, {?ceiling}, {?moved}, " NOW ")"};
    const double moved_bytes = probe_moved_bytes(&ceiling->probe);

    return query_run(store, &add, BOUND(setting, ceiling, &moved_bytes), NULL,
                     err);
}

bool store_has_ceiling(void *store, const struct sample_setting *setting,
                       const struct probe *probe)
{
    static const struct statement has = {
        .sql = "SELECT 1 FROM ceiling WHERE ({device}, {probe}) = "
               "({?device}, {?probe})"};
    const struct ceiling ceiling = {.probe = *probe};

    return is_there(store, &has, BOUND(setting, &ceiling));
}

static int check_ceiling(const struct query *query, void *item, struct err *err)
{
    const struct ceiling *ceiling = item;

    if (ceiling->probe.kind <= PROBE_LAUNCH)
        return 0;
    return err_input(err,
                     "cost database '%s': a ceiling is of an unknown kind '%s'",
                     query->store->path, sqlite3_column_text(query->stmt, 1));
}

int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err)
{
    static const struct statement list = {
        .sql =
            "SELECT id, {ceiling} FROM ceiling WHERE ({device}) = ({?device}) "
            "ORDER BY id",
        .listed = "ceiling",
        .item_bytes = sizeof(**ceilings),
        .finish = check_ceiling};

    *ceilings = query_list(store, &list, BOUND(setting), NULL, n, arena, err);
    return *ceilings ? 0 : -1;
}

/* --- matrix products --- */

int store_put_product(void *store, const struct sample_setting *setting,
                      const struct product_sample *sample, struct err *err)
{
    static const struct statement add = {
        .sql = "INSERT OR REPLACE INTO product ({product_device}, {product}, "
               "measured_at) VALUES ({?product_device}, {?product}, " NOW ")"};

    return query_run(store, &add, BOUND(setting, sample), NULL, err);
}

bool store_has_product(void *store, const struct sample_setting *setting,
                       const struct product *product)
{
    static const struct statement has = {
        .sql = "SELECT 1 FROM product WHERE ({product_device}, {shape}) = "
               "({?product_device}, {?shape})"};
    const struct product_sample sample = {.product = *product};

    return is_there(store, &has, BOUND(setting, &sample));
}

static int check_product(const struct query *query, void *item, struct err *err)
{
    const struct product *product =
        &((const struct product_sample *)item)->product;

    if (product->type < N_DENSE_TYPES && product->form < N_PRODUCT_FORMS)
        return 0;
    return err_input(err,
                     "cost database '%s': a matrix product is of an unknown "
                     "type '%s' or form '%s'",
                     query->store->path, sqlite3_column_text(query->stmt, 1),
                     sqlite3_column_text(query->stmt, 2));
}

int store_products(struct store *store, const struct sample_setting *setting,
                   struct product_sample **samples, size_t *n,
                   struct arena *arena, struct err *err)
{
    static const struct statement list = {
        .sql = "SELECT id, {product} FROM product WHERE ({product_device}) = "
               "({?product_device}) ORDER BY {shape}",
        .listed = "product",
        .item_bytes = sizeof(**samples),
        .finish = check_product};

    *samples = query_list(store, &list, BOUND(setting), NULL, n, arena, err);
    return *samples ? 0 : -1;
}

/* --- verdicts --- */

int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err)
{
    /* Numbers of the parameters: old_hash ?2, new_hash ?3, the flag ?12. */
    static const struct statement add = {
        .sql = "INSERT INTO training_log ({verdict}, verdict, model_hash, "
               "version, logged_at) VALUES ({?verdict}, "
               "iif({?flag}, 'replaced', 'kept'), iif(?12, ?3, ?2), "
               "'" NEUROSHARD_VERSION "', " NOW ")"};
    const uint32_t is_replaced = verdict->replaced;

    return query_run(store, &add, BOUND(verdict, &is_replaced), NULL, err);
}
