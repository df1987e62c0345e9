/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_PRIVATE_H
#define NEUROSHARD_IO_STORE_PRIVATE_H

#include "base/member.h"
#include "io/store.h"

#include <sqlite3.h>

/* What the files of the store share, and nobody else sees. */

/* How long another process that has the file in hand is waited for. */
#define STORE_BUSY_TIMEOUT_MS 10000

/* data/schema.sql itself, put into the program by the assembler. */
extern const char store_schema_sql[] __attribute__((visibility("hidden")));

enum store_statement {
    STATEMENT_FIND_SETTING,
    STATEMENT_ADD_SETTING,
    STATEMENT_LIST_SETTINGS,
    STATEMENT_ADD_SAMPLE,
    STATEMENT_ADD_TABLE,
    STATEMENT_HAS_SAMPLE,
    STATEMENT_LIST_SAMPLES,
    STATEMENT_LIST_TABLES,
    STATEMENT_ADD_COMM,
    STATEMENT_HAS_COMM,
    STATEMENT_LIST_COMM,
    STATEMENT_ADD_CEILING,
    STATEMENT_HAS_CEILING,
    STATEMENT_LIST_CEILINGS,
    STATEMENT_ADD_TRAINING,
    N_STATEMENTS
};

struct store {
    sqlite3 *db; /* the file, or for a reader of an old one a copy in memory */
    char *path;
    enum store_mode mode;
    sqlite3_stmt *statements[N_STATEMENTS]; /* prepared at first use */
};

/* 0 for SQLITE_OK, ROW and DONE, else the sentence for that status. */
int store_check(const struct store *store, int status,
                struct err *err) MUST_CHECK;

int store_execute(struct store *store, const char *sql,
                  struct err *err) MUST_CHECK;
/* Takes from a database what could do harm when it is opened or read. */
int store_defend(struct store *store, struct err *err) MUST_CHECK;
/* Makes sure that the database has the schema of this program. */
int store_prepare(struct store *store, struct err *err) MUST_CHECK;

/* A transaction: a writing one takes the lock at once, a reading one sees one
 * snapshot. The end commits where rc is 0 and rolls back where it is -1;
 * returns rc, or -1 where the commit failed. */
int store_begin(struct store *store, enum store_mode mode,
                struct err *err) MUST_CHECK;
int store_end(struct store *store, int rc, struct err *err) MUST_CHECK;

/*
 * The columns of the tables, each with the member of a struct that it holds and
 * with what it may be. A file may come from anywhere, with a schema that says
 * less than ours: nothing is taken from a row that is not in these ranges.
 */
struct store_column {
    const char *name;
    enum member_type type; /* by MEMBER_OF, like the next */
    size_t offset;
    double min, max; /* both included; of a text its characters */
    bool or_null;    /* a real: NAN */
    bool is_any;     /* nothing is asked of it, or whoever takes it asks */
    bool is_blob;    /* not one double but REUSE_BINS */
    const char *const *names; /* of an enum, which is kept as its name */
};
/* Columns that are bound or taken together. */
struct store_list {
    const char *name;  /* in a statement: "{name}" are the columns, "{?name}" a
                          '?' for each */
    const char *table; /* of whose rows these columns are checked */
    const struct store_column *columns;
    size_t n;
};
enum store_list_id {
    LIST_DEVICE,
    LIST_SETTING,
    LIST_SAMPLE_KEY,
    LIST_SAMPLE,
    LIST_TABLE_KEY,
    LIST_TABLE,
    LIST_COMM_KEY,
    LIST_COMM,
    LIST_PROBE,
    LIST_CEILING,
    LIST_MOVED,
    LIST_VERDICT,
    N_LISTS
};
extern const struct store_list store_lists[N_LISTS];
/* Appends a statement with its lists written out. */
void store_expand(struct buf *sql, const char *template);

#define STORE_MAX_COLUMNS 48
/* The columns of a statement whose values are checked, found once. */
struct row_reader {
    const char *table; /* NULL: nothing to check */
    int n_columns;
    const struct store_column *fields[STORE_MAX_COLUMNS]; /* or NULL */
};
void row_reader_init(struct row_reader *reader, const char *table,
                     sqlite3_stmt *stmt);
/* Whether all fields of the row are in range; the sentence names database,
 * table, row and field. */
int row_check(const struct row_reader *reader, const struct store *store,
              sqlite3_stmt *stmt, struct err *err) MUST_CHECK;

/*
 * A statement in use: values are bound from left to right, then it is stepped,
 * then a row's columns are taken from left to right. The first bind that fails
 * is remembered and comes out of the next step.
 */
struct query {
    struct store *store;
    sqlite3_stmt *stmt; /* owned by the store */
    int column;         /* last one bound or taken */
    int status;
    const void *ctx; /* of a take_item */
    struct row_reader reader;
};

int query_begin(struct query *query, struct store *store,
                enum store_statement which, struct err *err) MUST_CHECK;
void bind_i64(struct query *query, int64_t value);
/* NAN becomes NULL. */
void bind_double(struct query *query, double value);
/* The text must live until the query ends. */
void bind_text(struct query *query, const char *text);
void bind_blob(struct query *query, const void *data, size_t len);
/* The columns of a list, from a struct of its rows. */
void bind_row(struct query *query, enum store_list_id list, const void *row);
/* has_row may be NULL where no row is expected. A row that is there has been
 * checked: its fields are in range. */
int query_step(struct query *query, bool *has_row, struct err *err) MUST_CHECK;
/* Makes the statement ready for its next use; a zeroed query is fine. */
void query_end(struct query *query);
/* Steps where no row is expected, and ends the query. */
int query_run(struct query *query, struct err *err) MUST_CHECK;

/* Takes a row as an item of a list; `before` is the item before it, NULL for
 * the first. */
typedef int take_item(struct query *query, void *item, const void *before,
                      struct arena *arena, struct err *err);
/* All rows that are left, *n items of `size` bytes in the arena, NULL for a
 * failure. Ends the query. */
void *query_list(struct query *query, take_item *take, size_t size, size_t *n,
                 struct arena *arena, struct err *err) MUST_CHECK;
/* Whether there is a row; a failure counts as none, as what is put next says
 * what is wrong. Ends the query. */
bool query_found(struct query *query);

int64_t take_i64(struct query *query);
double take_double(struct query *query); /* NULL becomes NAN */
/* Quoted where it is not printable; `before` itself where it is that text, NULL
 * is none. */
const char *take_text(struct query *query, const char *before,
                      struct arena *arena);
/* The columns of a list into a struct; an enum of an unknown name is -1. Texts
 * that `before`, the row before it or NULL, has too are shared with it. */
void take_row(struct query *query, enum store_list_id list, void *row,
              const void *before, struct arena *arena);

/* What the lists of samples are asked by: the setting's key, or 0 for all of
 * its device; -1 where the database has no such setting. */
int store_find_setting(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, int64_t *id,
                       struct err *err) MUST_CHECK;
/* Adds it where it is missing; inside a transaction. */
int store_setting_id(struct store *store, const struct sample_setting *setting,
                     int64_t *id, struct err *err) MUST_CHECK;

/* Gives SQLite memory that never fails (base/mem.h): a column for whose text
 * there is none would read as NULL. Once SQLite works it stays as it is. */
void store_give_memory(void);

#endif
