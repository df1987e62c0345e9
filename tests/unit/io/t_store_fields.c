/* SPDX-License-Identifier: MIT */
/* The values that the program accepts when reading and those that
 * data/schema.sql accepts when writing are the same, field by field. Values in
 * files with another schema are refused. */
#include "io/store_fields.h"

#include "io/store_private.h"
#include "io/store_rows.h"
#include "tests/tap.h"

#include <unistd.h>

static char path[] = "/tmp/t_store_fields.XXXXXX";

static const struct sample_setting setting = {
    .device = "cpu:Some CPU",
    .n_threads = 2,
    .batch = 4096,
    .isa = "avx2",
    .driver = "Linux 6.1.0",
    .host = "box",
};

static void must(int rc, const struct err *err)
{
    if (rc) {
        printf("Bail out! %s\n", err->msg);
        exit(1);
    }
}

/* Returns a database with one row in each table. */
static struct store *open_rows(void)
{
    struct sample_table table = {
        .n_rows = 10, .dim = 4, .pooling_factor = 2, .n_unique = 5};
    struct sample sample = {.kind = SAMPLE_FUSED,
                            .tables = &table,
                            .n_tables = 1,
                            .total = {1, 1, 1},
                            .version = "0.1.0",
                            .started_at = "2026-11-21T04:05:06Z"};
    struct comm_sample comm = {
        .kind = "copy", .n_ranks = 2, .n_hosts = 1, .time = {1, 1, 1}};
    struct ceiling ceiling = {.probe = {.kind = PROBE_READ, .n_bytes = 64}};
    struct product_sample product = {
        .product = {DENSE_TYPE_FP32, PRODUCT_NN, 2, 3, 4, 1}};
    struct store *store;
    struct err err = {0};

    must(store_open(&store, path, STORE_WRITE, &err), &err);
    must(store_sink(store).put(store, &setting, &sample, &err), &err);
    must(store_sink(store).put_comm(store, &setting, &comm, &err), &err);
    must(store_put_ceiling(store, &setting, &ceiling, &err), &err);
    must(store_put_product(store, &setting, &product, &err), &err);
    must(store_sink(store).put_interference_probe(store, &setting, 1, &err),
         &err);
    return store;
}

static void run(struct store *store, const char *sql)
{
    char *message = NULL;

    if (sqlite3_exec(store->db, sql, NULL, NULL, &message)) {
        printf("Bail out! %s: %s\n", sql, message);
        exit(1);
    }
}

/* A column with a checked range. */
struct field {
    const char *table, *column;
    struct store_column is;
};

/* Lists all such columns; returns their number. */
static size_t list_fields(struct field *fields)
{
    size_t n = 0;

    for (const struct store_list *list = store_lists; list->name; list++)
        for (size_t c = 0; *list->table && c < list->n; c++) {
            const struct store_column *column = &list->columns[c];

            if (!column->names && !column->is_any)
                fields[n++] =
                    (struct field){list->table, column->name, *column};
        }
    return n;
}

/* Stores a value, an SQL expression, in a field; returns true if the schema
 * allows it. If not, the value is stored all the same, because a file may
 * contain it. */
static int is_stored(struct store *store, const struct field *field,
                     const char *value)
{
    char *sql = sqlite3_mprintf("UPDATE %s SET %s = %s", field->table,
                                field->column, value);
    int status = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

    if (status) {
        run(store, "PRAGMA ignore_check_constraints = 1");
        sqlite3_exec(store->db, sql, NULL, NULL, NULL);
        run(store, "PRAGMA ignore_check_constraints = 0");
    }
    sqlite3_free(sql);
    return !status;
}

static void same_verdict(struct store *store, const struct field *field,
                         const char *value, int want)
{
    struct err err = {0};
    int stored = is_stored(store, field, value);
    int read = !store_check_table(store, field->table, &err);
    char name[120];

    snprintf(name, sizeof(name), ": table %s, ", field->table);
    if (stored != want || read != want ||
        (!read && (!strstr(err.msg, path) || !strstr(err.msg, name) ||
                   !strstr(err.msg, field->column))))
        ok(0, "%s.%s = %s: want %d, stored %d, read %d: %s", field->table,
           field->column, value, want, stored, read, err.msg);
}

static void try_numbers(struct store *store, const struct field *field)
{
    const bool whole = field->is.type != MEMBER_REAL;
    char value[64];

    snprintf(value, sizeof(value), "%.17g", field->is.min);
    same_verdict(store, field, value, 1);
    snprintf(value, sizeof(value), whole ? "%.0f" : "%.17g", field->is.max);
    if (field->is.max < 9e18) {
        same_verdict(store, field, value, 1);
        snprintf(value, sizeof(value), whole ? "%.0f" : "%.17g",
                 whole ? field->is.max + 2
                       : nextafter(field->is.max, INFINITY));
        same_verdict(store, field, value, 0);
    }
    snprintf(value, sizeof(value), "%.17g",
             whole ? field->is.min - 1 : -nextafter(field->is.min, INFINITY));
    same_verdict(store, field, value, 0);
    if (!whole) {
        same_verdict(store, field, "9e999", 0);
        same_verdict(store, field, "-9e999", 0);
        same_verdict(store, field, "1e300", 0);
    }
    if (field->is.or_null)
        same_verdict(store, field, "NULL", 1);
}

static void try_texts(struct store *store, const struct field *field)
{
    same_verdict(store, field, "''", field->is.min == 0);
    same_verdict(store, field, "'x'", 1);
    same_verdict(store, field, "printf('%.*c', 200, 'x')", 1);
    same_verdict(store, field, "printf('%.*c', 201, 'x')", 0);
    same_verdict(store, field, "replace(printf('%.*c', 200, 'x'), 'x', 'ü')",
                 1);
    same_verdict(store, field, "replace(printf('%.*c', 201, 'x'), 'x', 'ü')",
                 0);
}

/* The schema checks the length of bins. The reader also checks their
 * contents. */
static void try_shares(struct store *store, const struct field *field)
{
    static const double odd[] = {-1e-9, 1.1, NAN, INFINITY};
    double shares[REUSE_BINS] = {0.25, 0.75};
    char value[2 * sizeof(shares) + 4] = "x'";
    struct err err = {0};

    same_verdict(store, field, "zeroblob(135)", 0);
    same_verdict(store, field, "zeroblob(137)", 0);
    same_verdict(store, field, "zeroblob(136)", 1);
    for (size_t i = 0; i <= sizeof(odd) / sizeof(*odd); i++) {
        unsigned char bytes[sizeof(shares)];

        if (i)
            shares[16] = odd[i - 1];
        memcpy(bytes, shares, sizeof(shares));
        for (size_t b = 0; b < sizeof(shares); b++)
            snprintf(value + 2 + 2 * b, 4, "%02x%s", bytes[b],
                     b + 1 == sizeof(shares) ? "'" : "");
        ok(is_stored(store, field, value) == 1 &&
               !store_check_table(store, field->table, &err) == !i,
           "a share of %g: %s", shares[16], err.msg);
    }
}

static void test_fields(void)
{
    struct store *store = open_rows();
    struct field fields[100];
    const size_t n_fields = list_fields(fields);
    char sql[200];

    run(store, "PRAGMA foreign_keys = OFF");
    for (size_t f = 0; f < n_fields; f++) {
        const struct field *field = &fields[f];
        const int n_failed = tap_failed;

        snprintf(sql, sizeof(sql),
                 "CREATE TEMP TABLE keep AS SELECT %s AS "
                 "value FROM %s",
                 field->column, field->table);
        run(store, sql);
        if (field->is.type == MEMBER_TEXT)
            try_texts(store, field);
        else if (field->is.is_blob)
            try_shares(store, field);
        else
            try_numbers(store, field);
        ok(tap_failed == n_failed, "%s.%s", field->table, field->column);
        snprintf(sql, sizeof(sql),
                 "UPDATE %s SET %s = (SELECT value FROM "
                 "keep); DROP TABLE keep",
                 field->table, field->column);
        run(store, sql);
    }
    store_close(store);
    unlink(path);
}

/* Every column that is read has a range, except keys and columns with a few
 * allowed words. */
static void test_all_fields(void)
{
    struct store *store = open_rows();
    sqlite3_stmt *stmt;
    struct field fields[100];
    const size_t n_fields = list_fields(fields);
    char known[4096] = ";";
    size_t n = 0;

    for (size_t f = 0; f < n_fields; f++)
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s.%s;",
                 fields[f].table, fields[f].column);
    sqlite3_prepare_v2(
        store->db,
        "SELECT t.name || '.' || c.name FROM sqlite_schema t, "
        "pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name IN "
        "('setting', 'sample', 'sample_table', 'comm_sample', 'ceiling', "
        "'product', 'canary') AND c.name NOT IN ('id', 'setting_id', "
        "'sample_id', 'seed', "
        "'precision', 'optimizer', 'throttle_reasons', 'measured_at') AND "
        "t.name || '.' || c.name NOT IN ('sample.kind', 'ceiling.kind', "
        "'product.type', 'product.form', 'canary.version')",
        -1, &stmt, NULL);
    for (; sqlite3_step(stmt) == SQLITE_ROW; n++) {
        char name[128];

        snprintf(name, sizeof(name), ";%s;", sqlite3_column_text(stmt, 0));
        if (!strstr(known, name))
            ok(0, "%s has no range", name);
    }
    is_i64((int64_t)n, (int64_t)n_fields, "columns with a range");
    sqlite3_finalize(stmt);
    store_close(store);
    unlink(path);
}

/* Every function that reads a list checks its values. */
static void test_lists(void)
{
    static const char *const bad[] = {
        "UPDATE setting SET batch = 0",
        "UPDATE sample SET total_median_ms = -1",
        "UPDATE sample_table SET pooling_factor = 1e300",
        "UPDATE sample_table SET n_unique = -5",
        "UPDATE comm_sample SET n_ranks = 0",
        "UPDATE ceiling SET median_ms = 9e999",
        "UPDATE product SET n_batch = 0",
        "UPDATE canary SET best_ms = -1",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct store *store = open_rows();
        struct sample_setting *settings;
        struct comm_sample *comm;
        struct product_sample *products;
        struct ceiling *ceilings;
        struct sample *samples;
        struct arena arena = {0};
        struct err err = {0};
        double best_ms;
        size_t n;

        run(store, "PRAGMA ignore_check_constraints = 1");
        run(store, bad[i]);
        ok(store_settings(store, &settings, &n, &arena, &err) ||
               store_samples(store, &setting, STORE_DEVICE, &samples, &n,
                             &arena, &err) ||
               store_comm_samples(store, &setting, STORE_SETTING, &comm, &n,
                                  &arena, &err) ||
               store_ceilings(store, &setting, &ceilings, &n, &arena, &err) ||
               store_products(store, &setting, &products, &n, &arena, &err) ||
               store_sink(store).find_interference_probe(store, &setting,
                                                         &best_ms, &err),
           "%s: %s", bad[i], err.msg);
        is_i64(err.code, ERR_INPUT, "a wrong input");
        store_close(store);
        arena_release(&arena);
        unlink(path);
    }
}

/* If a sample's second table is refused, nothing of the sample is stored, and
 * the store remains usable. */
static void test_refused_sample(void)
{
    struct sample_table tables[2] = {
        {.n_rows = 10, .dim = 4, .pooling_factor = 2, .n_unique = 5},
        {.n_rows = 10, .dim = 4, .pooling_factor = 2, .n_unique = -5}};
    struct sample sample = {.kind = SAMPLE_FUSED,
                            .case_idx = 7,
                            .tables = tables,
                            .n_tables = 2,
                            .version = "0.1.0",
                            .started_at = "2026-11-21T04:05:06Z"};
    struct store *store = open_rows();
    struct sample *samples;
    struct arena arena = {0};
    struct err err = {0};
    size_t n = 0;

    ok(store_sink(store).put(store, &setting, &sample, &err) == -1, "%s",
       err.msg);
    ok(!store_samples(store, &setting, STORE_SETTING, &samples, &n, &arena,
                      &err) &&
           n == 1,
       "nothing of it is there: %s", err.msg);
    tables[1].n_unique = 5;
    err = (struct err){0};
    ok(!store_sink(store).put(store, &setting, &sample, &err),
       "mended it is put%s", err.msg);
    ok(!store_samples(store, &setting, STORE_SETTING, &samples, &n, &arena,
                      &err) &&
           n == 2,
       "both are there: %s", err.msg);
    store_close(store);
    arena_release(&arena);
    unlink(path);
}

/* A file whose tables accept any type in any column. */
static void test_types(void)
{
    struct buf schema = {0};
    const char *at = store_schema_sql, *found;
    struct sample *samples;
    struct arena arena = {0};
    struct store *store;
    struct err err = {0};
    sqlite3 *db;
    size_t n;

    while ((found = strstr(at, ") STRICT"))) {
        buf_add(&schema, at, (size_t)(found + 1 - at));
        at = found + strlen(") STRICT");
        at += *at == ',';
    }
    buf_printf(&schema, "%s", at);
    sqlite3_open(path, &db);
    is_i64(sqlite3_exec(db, schema.data, NULL, NULL, NULL), 0, "tables");
    sqlite3_close(db);
    buf_release(&schema);
    store = open_rows();
    run(store, "PRAGMA ignore_check_constraints = 1");
    run(store, "UPDATE sample_table SET dim = 'wide'");
    ok(store_samples(store, &setting, STORE_DEVICE, &samples, &n, &arena,
                     &err) == -1,
       "text is no number");
    ok(strstr(err.msg, "table sample_table, sample_id 1, table_idx 0: dim is a "
                       "text of 4 bytes, not a whole number from 1 to "
                       "1048576") != NULL,
       "%s", err.msg);
    store_close(store);
    arena_release(&arena);
    unlink(path);
}

/* A table in a foreign file may have more columns than any of our tables. */
static void test_wide_table(void)
{
    struct store *store = open_rows();
    struct err err = {0};
    char sql[80];

    for (int i = 0; i < 2 * STORE_MAX_COLUMNS; i++) {
        snprintf(sql, sizeof(sql), "ALTER TABLE setting ADD COLUMN more_%d ANY",
                 i);
        run(store, sql);
    }
    ok(!store_check_table(store, "setting", &err), "many columns: %s", err.msg);
    store_close(store);
    unlink(path);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0)
        tap_skip_all("no temporary file");
    close(fd);
    unlink(path);
    test_fields();
    test_all_fields();
    test_lists();
    test_refused_sample();
    test_types();
    test_wide_table();
    return tap_done();
}
