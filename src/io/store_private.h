/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_PRIVATE_H
#define NEUROSHARD_IO_STORE_PRIVATE_H

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
 * What a field may hold. A file may come from anywhere, with a schema that says
 * less than ours: nothing is taken from a row that is not in these ranges.
 */
enum field_type {
    FIELD_INTEGER,
    FIELD_REAL,
    FIELD_TEXT,  /* min and max are its characters */
    FIELD_SHARES /* REUSE_BINS doubles, each in the range */
};
struct store_field {
    const char *table, *column;
    enum field_type type;
    double min, max; /* both included */
    bool or_null;
};
extern const struct store_field store_fields[];
extern const size_t n_store_fields;

#define STORE_MAX_COLUMNS 48
/* The fields behind the columns of a statement, found once. */
struct row_reader {
    const char *table; /* NULL: nothing to check */
    int n_columns;
    const struct store_field *fields[STORE_MAX_COLUMNS]; /* or NULL */
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
    const void *ctx; /* of a take_row */
    struct row_reader reader;
};

int query_begin(struct query *query, struct store *store,
                enum store_statement which, struct err *err) MUST_CHECK;
void bind_i64(struct query *query, int64_t value);
void bind_u64(struct query *query, uint64_t value);
/* NAN becomes NULL. */
void bind_double(struct query *query, double value);
/* The text must live until the query ends. */
void bind_text(struct query *query, const char *text);
void bind_blob(struct query *query, const void *data, size_t len);
/* has_row may be NULL where no row is expected. A row that is there has been
 * checked: its fields are in range. */
int query_step(struct query *query, bool *has_row, struct err *err) MUST_CHECK;
/* Makes the statement ready for its next use; a zeroed query is fine. */
void query_end(struct query *query);
/* Steps where no row is expected, and ends the query. */
int query_run(struct query *query, struct err *err) MUST_CHECK;

/* Takes a row as an item of a list; `before` is the item before it, NULL for
 * the first. */
typedef int take_row(struct query *query, void *item, const void *before,
                     struct arena *arena, struct err *err);
/* All rows that are left, as items of `size` bytes in the arena. Ends the
 * query. */
int query_list(struct query *query, take_row *take, size_t size, void **items,
               size_t *n, struct arena *arena, struct err *err) MUST_CHECK;
/* Whether there is a row; a failure counts as none, as what is put next says
 * what is wrong. Ends the query. */
bool query_found(struct query *query);

int64_t take_i64(struct query *query);
uint64_t take_u64(struct query *query);
double take_double(struct query *query); /* NULL becomes NAN */
/* Quoted where it is not printable. */
const char *take_text(struct query *query, struct arena *arena);
/* The same; `before` itself where it is that text. NULL is none. */
const char *take_shared_text(struct query *query, const char *before,
                             struct arena *arena);

void bind_timing(struct query *query, const struct timing *timing);
struct timing take_timing(struct query *query);

/* Binds a device as its settings have it: name, threads, isa. */
void bind_device(struct query *query, const struct sample_setting *setting);
/* Binds the columns of a setting. */
void bind_setting(struct query *query, const struct sample_setting *setting);
/* id 0: the database has no such setting. */
int store_find_setting(struct store *store,
                       const struct sample_setting *setting, int64_t *id,
                       struct err *err) MUST_CHECK;
/* All of them, with their keys. */
struct stored_setting {
    int64_t id;
    struct sample_setting setting;
};
int store_list_settings(struct store *store, struct stored_setting **settings,
                        size_t *n, struct arena *arena,
                        struct err *err) MUST_CHECK;
/* Adds it where it is missing; inside a transaction. */
int store_setting_id(struct store *store, const struct sample_setting *setting,
                     int64_t *id, struct err *err) MUST_CHECK;

/* Gives SQLite memory that never fails (base/mem.h): a column for whose text
 * there is none would read as NULL. Once SQLite works it stays as it is. */
void store_give_memory(void);

#endif
