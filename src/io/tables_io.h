/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_IO_H
#define NEUROSHARD_IO_TABLES_IO_H

#include "base/mem.h"
#include "core/table.h"

/*
 * Table lists: text to nouns. Two forms: CSV with a header that names the
 * columns, and TorchRec's JSON
 * {name: {num_embeddings, embedding_dim, pooling_factor}}; both are specified
 * in neuroshard-tables(5).
 *
 * A list that was read holds at least one table, and of each table this is
 * true: the name is unique, not empty, UTF-8 and free of control characters;
 * 1 <= num_embeddings <= INT64_MAX; 1 <= dim <= TABLES_MAX_DIM; pooling_factor
 * and num_outputs are in [0, TABLES_MAX_FACTOR], zipf_alpha in
 * [0, TABLE_MAX_ZIPF]; bins, where given, are in [0, 1] and add up to about 1,
 * or all are 0 and so is pooling_factor; kinds is not empty; device is -1 or
 * 0 .. TABLES_MAX_DEVICE; a group is a text like a name.
 */

#define TABLES_MAX_DIM 1048576u
#define TABLES_MAX_FACTOR 1e6
#define TABLES_MAX_DEVICE 1048575u

struct tables_options {
    uint32_t dim;   /* fills empty dim cells; 0: an empty dim is an error */
    double pooling; /* fills empty pooling_factor cells; 0: likewise */
    /* Of lists that are not planned yet: what no cell and no option says stays
     * unknown, a dim of 0 and a pooling_factor of NAN. */
    bool keeps_unknown;
    uint32_t n_devices; /* that pins may name; 0: TABLES_MAX_DEVICE + 1 */
    /* Gets a sentence about unknown columns, which are left out, and one about
     * a list without any pooling factors; may be NULL. */
    void (*warn)(void *ctx, const char *sentence);
    void *warn_ctx;
    /* Of an import: "COLUMN=NAME,...", columns that a CSV file has under other
     * names (ERR_USAGE where it is no such text), or ""; else NULL. */
    const char *columns;
    /* Names for the tables of a source that has none, with commas or line ends
     * between; or NULL. */
    const char *names;
    struct buf *notes; /* gets lines of a comment; or NULL */
};

/* Each takes the whole text; `source` is the name for messages. The list
 * lives in the arena. ERR_INPUT is "source:line: what is wrong". */
typedef int tables_reader(struct table_list *list, const char *text, size_t len,
                          const char *source,
                          const struct tables_options *options,
                          struct arena *arena, struct err *err);
tables_reader tables_from_csv MUST_CHECK;
tables_reader tables_from_json MUST_CHECK;

/* What others have, in a form that only an import takes: the JSON that FBGEMM's
 * TBE reporter writes, TBEDataConfig; and a command line of dlrm_main.py or
 * dlrm_s_pytorch.py, or a script with one. text[len] must be a NUL. */
tables_reader tables_from_tbe MUST_CHECK;
tables_reader tables_from_dlrm MUST_CHECK;

/* JSON where the first character that is no blank is '{' or '[', else CSV; for
 * an import any of the forms, which the content tells. Draws the seeds of rows
 * as well. */
tables_reader tables_from_text MUST_CHECK;
/* The same of a file ("-": standard input); ERR_IO where it cannot be read. */
int tables_load(struct table_list *list, const char *path,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Appends the list as CSV: the first four columns, and others where a table
 * needs them. The reader makes the same list of it; cells that are not known
 * are empty. */
void tables_to_csv(struct buf *out, const struct table_list *list);
/* Writes it ("-": standard output) behind the lines of a comment, each with its
 * '#', or "", once it has been read back. */
int tables_save(const struct table_list *list, const char *comment,
                const char *path, struct err *err) MUST_CHECK;

#endif
