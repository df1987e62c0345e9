/* SPDX-License-Identifier: MIT */
#include "io/store_merge.h"

#include "base/file.h"
#include "base/file_write.h"
#include "base/json.h"
#include "io/store_fields.h"
#include "io/store_sql.h"

FILE_TEXT(store_faults_sql, "src/io/store_faults.sql");
FILE_TEXT(store_merge_sql, "src/io/store_merge.sql");
FILE_TEXT(store_describe_sql, "src/io/store_describe.sql");

/* --- verification --- */

/* Runs a query that returns the faults of a database. If it returns a row,
 * fails with the text of the row as message. */
static int must_be_none(struct store *store, const char *sql, struct err *err)
{
    struct buf answer = {0};
    int rc = store_ask(store, sql, &answer, err);

    if (!rc && *answer.data)
        rc = err_input(err, "cost database '%s': %s", store->path, answer.data);
    buf_release(&answer);
    return rc;
}

int store_verify(struct store *store, struct err *err)
{
    if (must_be_none(store, store_faults_sql, err))
        return -1;
    for (size_t i = 0; i < STORE_N_TABLES; i++)
        if (store_check_table(store, store_tables[i], err))
            return -1;
    return must_be_none(store,
                        "SELECT 'sample ' || id || ' lacks some of its tables' "
                        "FROM " STORE_PARTIAL,
                        err);
}

/* --- merging --- */

/* Copies the database `from` into memory and attaches the copy to `into` under
 * the name "other". */
static int attach(struct store *into, struct store *from, struct err *err)
{
    int rc;

    sqlite3_limit(into->db, SQLITE_LIMIT_ATTACHED, 1);
    rc = store_execute(into, "ATTACH ':memory:' AS other", err);
    sqlite3_limit(into->db, SQLITE_LIMIT_ATTACHED, 0);
    return rc || store_copy(into->db, "other", from, err) ? -1 : 0;
}

static int merge_rows(struct store *into, struct err *err)
{
    struct buf sql = {0};
    int rc;

    store_expand(&sql, store_merge_sql, NULL);
    rc = store_execute(into, sql.data, err);
    buf_release(&sql);
    return rc;
}

int store_merge(struct store *into, struct store *from, struct err *err)
{
    int rc = attach(into, from, err) || store_begin_write(into, err) ||
             store_end(into, merge_rows(into, err), err);

    if (store_execute(into, "DETACH other", rc ? &(struct err){0} : err))
        rc = -1;
    return rc ? -1 : 0;
}

int store_sorted(struct store **out, struct store *from, struct err *err)
{
    struct store *store = NULL;

    if (store_verify(from, err) || store_open_memory(&store, from->path, err))
        return -1;
    if (store_merge(store, from, err)) {
        store_close(store);
        return -1;
    }
    *out = store;
    return 0;
}

int store_save(struct store *store, const char *path, struct err *err)
{
    sqlite3_int64 len;
    unsigned char *bytes = sqlite3_serialize(store->db, "main", &len, 0);
    int rc = file_write(path, bytes, (size_t)len, err);

    sqlite3_free(bytes);
    return rc;
}

int store_describe(json_t **out, struct store *store, struct err *err)
{
    struct buf text = {0};
    const int rc = store_ask(store, store_describe_sql, &text, err) ||
                   json_parse(out, text.data, text.len, store->path, err);

    if (!rc)
        json_object_set_new(*out, "schema", json_integer(store->version));
    buf_release(&text);
    return rc ? -1 : 0;
}
