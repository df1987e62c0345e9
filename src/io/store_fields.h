/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_FIELDS_H
#define NEUROSHARD_IO_STORE_FIELDS_H

#include "base/member.h"
#include "io/store_sql.h"

/* Columns of the cost database, and statements that bind and read them. */

/* Upper limit of a bin's share of the lookups. A share may be a mean of several
 * shares, and so exceed 1 by a rounding error. */
#define STORE_MAX_SHARE (1 + 1e-9)

/* Names of the schema's tables. A table comes after the tables that its rows
 * refer to. */
#define STORE_N_TABLES 8
extern const char *const store_tables[STORE_N_TABLES + 1]; /* NULL-terminated */
/* Checks that the schema accepts each row of a table. */
int store_check_table(struct store *store, const char *table,
                      struct err *err) MUST_CHECK;

/* FROM clause that gives the samples that lack some of their tables. */
#define STORE_PARTIAL                                                        \
    "sample LEFT JOIN (SELECT sample_id, count(*) AS n, max(table_idx) + 1 " \
    "AS n_there FROM sample_table GROUP BY sample_id) ON sample_id = id "    \
    "WHERE coalesce(n, 0) <> n_tables OR n <> n_there"

/*
 * A column of the database: the struct member that it fills, and its range. A
 * file may come from anywhere, and its schema may be less strict than ours.
 * Therefore no row is used before its columns have passed the checks of their
 * ranges.
 */
struct store_column {
    const char *name;
    enum member_type type; /* MEMBER_OF sets `type` and `offset` */
    size_t offset;
    /* inclusive range of the value, or of a text's number of characters */
    double min, max;
    bool or_null; /* true: a real may be NULL, which is read as NAN */
    /* true: the column has no range; the code that reads it may check it */
    bool is_any;
    bool is_blob; /* true: the column is an array of REUSE_BINS doubles */
    /* names of an enum's values; the database stores the name */
    const char *const *names;
};
/* Columns that a statement binds or reads together. */
struct store_list {
    /* Name of the list in statements. "{name}" expands to the list's columns,
     * "{?name}" to one '?' for each column. */
    const char *name;
    /* table whose rows are checked with the columns of this list */
    const char *table;
    const struct store_column *columns;
    size_t n;
};
/* All lists. The last entry has no name. */
extern const struct store_list store_lists[];
/* Returns the list with a name. The name ends at the text's end or at a '}'. */
const struct store_list *store_list(const char *name) NEVER_NULL;

/* Appends a statement to `sql`, with "{name}" and "{?name}" expanded. `bound`
 * receives the lists of all "{?name}", in their order. It may be NULL. */
void store_expand(struct buf *sql, const char *template,
                  const struct store_list *bound[STORE_MAX_BOUND]);

struct query;
/* Completes a struct that query_list has filled from a row. Reads columns of
 * the row that are outside of the struct's list. May reject the row by an
 * error. */
typedef int finish_item(const struct query *query, void *item, struct err *err);

/* An SQL statement. It is prepared when it is used for the first time. */
struct statement {
    /* text of the statement; store_expand expands the lists in it */
    const char *sql;
    /* name of the list that gives the last columns of the result; its columns
     * are checked */
    const char *listed;
    /* bytes of the struct into which query_list reads one row */
    size_t item_bytes;
    /* called for each struct that query_list fills; may be NULL */
    finish_item *finish;
};

/* Structs whose members are bound to a statement, one struct for each
 * "{?name}", in the order of the statement. The texts of the structs must live
 * until the query ends. */
#define BOUND(...) ((const void *const[]){__VA_ARGS__, NULL})

/*
 * A statement while it runs. It goes through three steps: its parameters are
 * bound, it is stepped to a row, and the columns of the row are read.
 */
#define STORE_MAX_COLUMNS 48
struct query {
    struct store *store;
    sqlite3_stmt *stmt; /* owned by the store */
    /* list of the statement's last columns, or NULL */
    const struct store_list *listed;
    const void *ctx; /* context for the callback finish_item */
    /* Table of the result's columns. `fields` has the check of each column. */
    const char *table;
    int n_columns;
    /* [n_columns] check of each column; NULL: the column is not checked */
    const struct store_column *fields[STORE_MAX_COLUMNS];
};

int query_begin(struct query *query, struct store *store,
                const struct statement *statement, const void *const *bound,
                struct err *err) MUST_CHECK;
/* Steps to the next row of the result. has_row may be NULL if no row is
 * expected. Checks the row's fields. If a field is out of range, the error
 * names the database, the table, the row and the field. */
int query_step(struct query *query, bool *has_row, struct err *err) MUST_CHECK;
/* Resets the statement, so that it can be used again. The query may be
 * zeroed. */
void query_end(struct query *query);
/* Runs query_begin, query_step and query_end for a statement that needs only
 * one step. */
int query_run(struct store *store, const struct statement *statement,
              const void *const *bound, bool *has_row,
              struct err *err) MUST_CHECK;

/* Reads all rows of a statement's result into an array of *n structs in the
 * arena. Returns NULL on failure. */
void *query_list(struct store *store, const struct statement *statement,
                 const void *const *bound, const void *ctx, size_t *n,
                 struct arena *arena, struct err *err) MUST_CHECK;
/* Reads the last columns of the current row into a struct. query->listed is the
 * list of these columns. An unknown name of an enum becomes -1. `before` is the
 * struct of the previous row, or NULL. A text that equals the previous row's
 * text is shared with it instead of copied. */
void take_row(const struct query *query, void *row, const void *before,
              struct arena *arena);

#endif
