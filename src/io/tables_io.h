/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_IO_H
#define NEUROSHARD_IO_TABLES_IO_H

#include "base/mem.h"
#include "core/table.h"

/*
 * Readers and writer of table lists. neuroshard-tables(5) specifies two forms:
 * CSV with a header that names the columns, and TorchRec's JSON:
 *   {name: {num_embeddings, embedding_dim, pooling_factor}}
 *
 * A list that was read has at least one table. Each table satisfies:
 *   name             unique, not empty, UTF-8, no control characters
 *   num_embeddings   1 .. INT64_MAX
 *   dim              1 .. TABLES_MAX_DIM
 *   pooling_factor   0 .. TABLES_MAX_FACTOR
 *   num_outputs      0 .. TABLES_MAX_FACTOR
 *   zipf_alpha       0 .. TABLE_MAX_ZIPF
 *   bins             if given, each in 0 .. 1 with a sum of about 1, or all 0
 *                    if pooling_factor is 0
 *   kinds            not empty
 *   device           -1 or 0 .. TABLES_MAX_DEVICE
 *   group            a text like a name
 */

#define TABLES_MAX_DIM 1048576u
#define TABLES_MAX_FACTOR 1e6
#define TABLES_MAX_DEVICE 1048575u

struct tables_options {
    uint32_t dim; /* fills empty dim cells; 0: an empty dim is an error */
    /* fills empty pooling_factor cells; 0: an empty one is an error */
    double pooling;
    /* true: a dim or pooling_factor that neither a cell nor an option gives
     * stays unknown, as 0 or NAN. Used for lists that are not planned yet. */
    bool keeps_unknown;
    /* devices that pins may name; 0: TABLES_MAX_DEVICE + 1 */
    uint32_t n_devices;
    /* Gets a message about unknown columns, which are ignored, and one about a
     * list without any pooling factors; may be NULL. */
    void (*warn)(void *ctx, const char *sentence);
    void *warn_ctx;
    /* For an import: "COLUMN=NAME,...", names that columns have in a CSV file,
     * or "". Another form is ERR_USAGE. NULL: not an import. */
    const char *columns;
    /* Names for the tables of a source that has none, separated by commas or
     * line ends; or NULL. */
    const char *names;
    struct buf *notes; /* gets lines of a comment; or NULL */
};

/* Reads a whole text; `source` is its name in messages. The list lives in the
 * arena. ERR_INPUT messages have the form "source:line: what is wrong". */
typedef int tables_reader(struct table_list *list, const char *text, size_t len,
                          const char *source,
                          const struct tables_options *options,
                          struct arena *arena, struct err *err);
tables_reader tables_from_csv MUST_CHECK;
tables_reader tables_from_json MUST_CHECK;

/* Readers of other programs' formats, for imports only. tables_from_tbe reads
 * TBEDataConfig, the JSON of FBGEMM's TBE reporter. tables_from_dlrm reads a
 * command line of dlrm_main.py or dlrm_s_pytorch.py, or a script with one.
 * text[len] must be a NUL. */
tables_reader tables_from_tbe MUST_CHECK;
tables_reader tables_from_dlrm MUST_CHECK;

/* Reads JSON if the first nonblank character is '{' or '[', else CSV. An import
 * reads any of the forms, recognized by their content. Draws the row seeds,
 * too. */
tables_reader tables_from_text MUST_CHECK;
/* Reads a file ("-": standard input) with tables_from_text; ERR_IO if it cannot
 * be read. */
int tables_load(struct table_list *list, const char *path,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Appends the list as CSV: the first four columns, and other columns if some
 * table needs them. Unknown values give empty cells. The reader makes an equal
 * list from the text. */
void tables_to_csv(struct buf *out, const struct table_list *list);
/* Writes the list as CSV to a file ("-": standard output), after it has been
 * read back as a check. `comment` precedes it: lines that begin with '#', or
 * "". */
int tables_save(const struct table_list *list, const char *comment,
                const char *path, struct err *err) MUST_CHECK;

#endif
