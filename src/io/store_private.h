/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_PRIVATE_H
#define NEUROSHARD_IO_STORE_PRIVATE_H

#include "base/member.h"
#include "io/store.h"

#include <sqlite3.h>

/* What the files of the store share, and nobody else sees. */

/* How long another process that has the file in hand is waited for. */
#define STORE_BUSY_TIMEOUT_MS 10000
/* A share may be a mean of shares, which rounds. */
#define STORE_MAX_SHARE (1 + 1e-9)

/* data/schema.sql itself, put into the program by the assembler. */
extern const char store_schema_sql[] __attribute__((visibility("hidden")));

/* 0 for SQLITE_OK, ROW and DONE, else the sentence for that status. */
int store_check(const struct store *store, int status,
                struct err *err) MUST_CHECK;

int store_execute(struct store *store, const char *sql,
                  struct err *err) MUST_CHECK;
/* Copies all of a database into that one of a connection. */
int store_copy(sqlite3 *into, const char *name, struct store *from,
               struct err *err) MUST_CHECK;

/* What a statement without values answers, as a text, none of which is NULL; ""
 * for no row. */
int store_ask(struct store *store, const char *sql, struct buf *answer,
              struct err *err) MUST_CHECK;
/* The tables, each behind those that its rows refer to. */
#define STORE_N_TABLES 7
extern const char *const store_tables[STORE_N_TABLES + 1]; /* and NULL */
/* Whether each of a table's rows is one that today's schema takes. */
int store_check_table(struct store *store, const char *table,
                      struct err *err) MUST_CHECK;

/* Samples of which a table is not there. */
#define STORE_PARTIAL                                                        \
    "sample LEFT JOIN (SELECT sample_id, count(*) AS n, max(table_idx) + 1 " \
    "AS n_there FROM sample_table GROUP BY sample_id) ON sample_id = id "    \
    "WHERE coalesce(n, 0) <> n_tables OR n <> n_there"

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
extern const struct store_list store_lists[]; /* the last one has no name */
/* That of the name, which ends where it ends or with a '}'. */
const struct store_list *store_list(const char *name) NEVER_NULL;
/* Appends a statement with its lists written out; `bound` gets those of its
 * values, or is NULL. */
#define STORE_MAX_BOUND 4
void store_expand(struct buf *sql, const char *template,
                  const struct store_list *bound[STORE_MAX_BOUND]);

struct query;
/* Adds to an item that was taken what its list does not say, or finds it
 * wrong. */
typedef int finish_item(const struct query *query, void *item, struct err *err);

/* One that is prepared at its first use. */
struct statement {
    const char *sql;     /* with lists as store_expand writes them out */
    const char *listed;  /* the list of its last columns, which are checked */
    size_t item_bytes;   /* of what query_list makes of a row */
    finish_item *finish; /* of that; may be NULL */
};
#define MAX_PREPARED 20

struct store {
    sqlite3 *db; /* the file, or for a reader of an old one a copy in memory */
    char *path;
    enum store_mode mode;
    int64_t version; /* of the schema, when it was opened */
    struct prepared {
        const struct statement *statement; /* NULL behind the last one */
        sqlite3_stmt *stmt;
        const struct store_list *bound[STORE_MAX_BOUND];
    } prepared[MAX_PREPARED];
};

/* Rows whose columns a statement binds, in the order of its "{?name}"; texts
 * must live until the query ends. */
#define BOUND(...) ((const void *const[]){__VA_ARGS__, NULL})

/*
 * A statement in use: its values are bound, then it is stepped, then a row's
 * columns are taken.
 */
#define STORE_MAX_COLUMNS 48
struct query {
    struct store *store;
    sqlite3_stmt *stmt;              /* owned by the store */
    const struct store_list *listed; /* or NULL */
    const void *ctx;                 /* of a finish_item */
    const char *table;               /* whose columns are checked: */
    int n_columns;
    const struct store_column *fields[STORE_MAX_COLUMNS]; /* or NULL */
};

int query_begin(struct query *query, struct store *store,
                const struct statement *statement, const void *const *bound,
                struct err *err) MUST_CHECK;
/* has_row may be NULL where no row is expected. A row that is there has been
 * checked: its fields are in range, or the sentence names database, table, row
 * and field. */
int query_step(struct query *query, bool *has_row, struct err *err) MUST_CHECK;
/* Makes the statement ready for its next use; a zeroed query is fine. */
void query_end(struct query *query);
/* All three, for a statement of one step. */
int query_run(struct store *store, const struct statement *statement,
              const void *const *bound, bool *has_row,
              struct err *err) MUST_CHECK;

/* All rows of a statement, *n items in the arena, NULL for a failure. */
void *query_list(struct store *store, const struct statement *statement,
                 const void *const *bound, const void *ctx, size_t *n,
                 struct arena *arena, struct err *err) MUST_CHECK;
/* The last columns of its row, those of its list, into a struct; an enum of an
 * unknown name is -1. Texts that `before`, the row before it or NULL, has too
 * are shared with it. */
void take_row(const struct query *query, void *row, const void *before,
              struct arena *arena);

#endif
