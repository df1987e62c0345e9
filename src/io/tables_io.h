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
 * A list that was read has at least one table. Each table of the list
 * satisfies:
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
 *   group            a text with the same rules as a name
 */

#define TABLES_MAX_DIM 1048576u
#define TABLES_MAX_FACTOR 1e6
#define TABLES_MAX_DEVICE 1048575u

struct tables_options {
    /* dim for tables whose dim cell is empty; 0: an empty cell is an error */
    uint32_t dim;
    /* pooling factor for tables whose cell is empty; 0: an empty cell is an
     * error */
    double pooling;
    /* true: a dim or pooling_factor that is given neither by a cell nor by an
     * option stays unknown, as 0 or NAN. This is used for lists that are not
     * planned yet. */
    bool keeps_unknown;
    /* number of devices to which tables may be pinned; 0: TABLES_MAX_DEVICE +
     * 1 */
    uint32_t n_devices;
    /* Callback for warnings; may be NULL. It gets a message about unknown
     * columns, which are ignored, and a message about a list without any
     * pooling factors. */
    void (*warn)(void *ctx, const char *sentence);
    void *warn_ctx;
    /* For an import: "COLUMN=NAME,...", the names that the columns have in a
     * CSV file, or "". A text of any other form gives ERR_USAGE. NULL: not an
     * import. */
    const char *columns;
    /* Names for the tables of a source that gives no names. Commas or line ends
     * separate them. May be NULL. */
    const char *names;
    /* gets the lines of a comment about the source; or NULL */
    struct buf *notes;
};

/* Reads a table list from a whole text. `source` is the text's name in
 * messages. The list lives in the arena. ERR_INPUT messages have the form
 * "source:line: what is wrong". */
typedef int tables_reader(struct table_list *list, const char *text, size_t len,
                          const char *source,
                          const struct tables_options *options,
                          struct arena *arena, struct err *err);
tables_reader tables_from_csv MUST_CHECK;
tables_reader tables_from_json MUST_CHECK;

/* Readers of other programs' formats, used only by imports. tables_from_tbe
 * reads TBEDataConfig, the JSON of FBGEMM's TBE reporter. tables_from_dlrm
 * reads a command line of dlrm_main.py or dlrm_s_pytorch.py, or a script that
 * contains one. For both, text[len] must be a NUL. */
tables_reader tables_from_tbe MUST_CHECK;
tables_reader tables_from_dlrm MUST_CHECK;

/* Reads a table list. The format is JSON if the first nonblank character is '{'
 * or '[', else CSV. An import also accepts the formats of other programs, and
 * recognizes the format by the content. The function draws the row seeds,
 * too. */
tables_reader tables_from_text MUST_CHECK;
/* Reads the file `path` with tables_from_text; the path "-" is standard input.
 * Fails with ERR_IO if the file cannot be read. */
int tables_load(struct table_list *list, const char *path,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Appends the list as CSV. The first four columns are always written, other
 * columns only if some table needs them. Unknown values give empty cells.
 * Reading the text back gives an equal list. */
void tables_to_csv(struct buf *out, const struct table_list *list);
/* Writes the list as CSV to the file `path`; the path "-" is standard output.
 * The text is read back as a check before it is written. `comment` is written
 * first: lines that begin with '#', or "". */
int tables_save(const struct table_list *list, const char *comment,
                const char *path, struct err *err) MUST_CHECK;

#endif
