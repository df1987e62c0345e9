/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_PRIVATE_H
#define NEUROSHARD_IO_STORE_PRIVATE_H

#include "base/member.h"
#include "io/store.h"

#include <sqlite3.h>

/* Declarations that only the files of the store share. */

/* Time to wait for another process's lock on the file. */
#define STORE_BUSY_TIMEOUT_MS 10000
/* Upper limit of a share. It may be a mean of shares, which rounds. */
#define STORE_MAX_SHARE (1 + 1e-9)

/* Content of data/schema.sql, which the assembler includes into the program. */
extern const char store_schema_sql[] __attribute__((visibility("hidden")));

/* Converts a status of SQLite. Returns 0 for SQLITE_OK, ROW and DONE; otherwise
 * sets err and returns -1. */
int store_check(const struct store *store, int status,
                struct err *err) MUST_CHECK;

int store_execute(struct store *store, const char *sql,
                  struct err *err) MUST_CHECK;
/* Copies a whole database into database `name` of the connection `into`. */
int store_copy(sqlite3 *into, const char *name, struct store *from,
               struct err *err) MUST_CHECK;

/* Runs a statement without parameters and stores the first column of its first
 * row as text, "" if there are no rows. The column must not be NULL. */
int store_ask(struct store *store, const char *sql, struct buf *answer,
              struct err *err) MUST_CHECK;
/* Tables of the schema. Each comes after the tables that its rows refer to. */
#define STORE_N_TABLES 7
extern const char *const store_tables[STORE_N_TABLES + 1]; /* NULL-terminated */
/* Checks that the schema accepts each row of a table. */
int store_check_table(struct store *store, const char *table,
                      struct err *err) MUST_CHECK;

/* FROM clause: samples that lack some of their tables. */
#define STORE_PARTIAL                                                        \
    "sample LEFT JOIN (SELECT sample_id, count(*) AS n, max(table_idx) + 1 " \
    "AS n_there FROM sample_table GROUP BY sample_id) ON sample_id = id "    \
    "WHERE coalesce(n, 0) <> n_tables OR n <> n_there"

/* Begin and end a transaction. A writing transaction takes the lock at once; a
 * reading one sees a single snapshot. store_end commits if rc is 0 and rolls
 * back if it is -1. It returns rc, or -1 if the commit failed. */
int store_begin(struct store *store, enum store_mode mode,
                struct err *err) MUST_CHECK;
int store_end(struct store *store, int rc, struct err *err) MUST_CHECK;

/*
 * The columns of the tables: the struct member that each one holds, and its
 * range. A file may come from anywhere, with a schema that is less strict than
 * ours. So no row is used before its columns have passed these checks.
 */
struct store_column {
    const char *name;
    enum member_type type; /* type and offset are set by MEMBER_OF */
    size_t offset;
    double min, max; /* inclusive range; for a text, its number of characters */
    bool or_null;    /* a real may be NULL, which is read as NAN */
    bool is_any;     /* not checked here; the reader may check it */
    bool is_blob;    /* an array of REUSE_BINS doubles */
    /* names of an enum, which is stored by its name */
    const char *const *names;
};
/* A list of columns that are bound or read together. */
struct store_list {
    /* name of the list: in a statement "{name}" expands to its columns,
     * "{?name}" to a '?' for each */
    const char *name;
    const char *table; /* table whose rows are checked with these columns */
    const struct store_column *columns;
    size_t n;
};
/* ends with an entry without a name */
extern const struct store_list store_lists[];
/* Returns a list by its name, which ends at the text's end or at a '}'. */
const struct store_list *store_list(const char *name) NEVER_NULL;
/* Appends a statement with its lists expanded. `bound` receives the lists of
 * its "{?name}", or is NULL. */
#define STORE_MAX_BOUND 4
void store_expand(struct buf *sql, const char *template,
                  const struct store_list *bound[STORE_MAX_BOUND]);

struct query;
/* Completes an item from columns outside of its list, or rejects it. */
typedef int finish_item(const struct query *query, void *item, struct err *err);

/* A statement, prepared at its first use. */
struct statement {
    const char *sql;     /* may contain lists, which store_expand expands */
    const char *listed;  /* list of the last columns, which are checked */
    size_t item_bytes;   /* size of query_list's item for a row */
    finish_item *finish; /* called for each item; may be NULL */
};
#define MAX_PREPARED 20

struct store {
    sqlite3 *db; /* the file, or a reader's upgraded copy of it in memory */
    char *path;
    enum store_mode mode;
    int64_t version; /* schema version when the file was opened */
    struct prepared {
        const struct statement *statement; /* NULL behind the last one */
        sqlite3_stmt *stmt;
        const struct store_list *bound[STORE_MAX_BOUND];
    } prepared[MAX_PREPARED];
};

/* Rows whose columns are bound to a statement, in the order of its "{?name}".
 * Their texts must live until the query ends. */
#define BOUND(...) ((const void *const[]){__VA_ARGS__, NULL})

/*
 * A statement in use. First its parameters are bound, then it is stepped, then
 * the columns of a row are read.
 */
#define STORE_MAX_COLUMNS 48
struct query {
    struct store *store;
    sqlite3_stmt *stmt; /* owned by the store */
    /* list of the statement's last columns, or NULL */
    const struct store_list *listed;
    const void *ctx; /* context for finish_item */
    /* table of the columns; each is checked with its entry in `fields`: */
    const char *table;
    int n_columns;
    /* [n_columns]; NULL: not checked */
    const struct store_column *fields[STORE_MAX_COLUMNS];
};

int query_begin(struct query *query, struct store *store,
                const struct statement *statement, const void *const *bound,
                struct err *err) MUST_CHECK;
/* Steps to the next row. has_row may be NULL if no row is expected. The row's
 * fields are checked; if one is out of range, the error names the database, the
 * table, the row and the field. */
int query_step(struct query *query, bool *has_row, struct err *err) MUST_CHECK;
/* Resets the statement for its next use; accepts a zeroed query. */
void query_end(struct query *query);
/* Runs begin, step and end for a statement of one step. */
int query_run(struct store *store, const struct statement *statement,
              const void *const *bound, bool *has_row,
              struct err *err) MUST_CHECK;

/* Reads all rows of a statement as *n items in the arena. Returns NULL on
 * failure. */
void *query_list(struct store *store, const struct statement *statement,
                 const void *const *bound, const void *ctx, size_t *n,
                 struct arena *arena, struct err *err) MUST_CHECK;
/* Reads the last columns of the current row, those of its list, into a struct.
 * An unknown name of an enum becomes -1. `before` is the previous row or NULL;
 * equal texts are shared with it. */
void take_row(const struct query *query, void *row, const void *before,
              struct arena *arena);

#endif
