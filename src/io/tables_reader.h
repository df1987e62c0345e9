/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_READER_H
#define NEUROSHARD_IO_TABLES_READER_H

#include "base/mem.h"
#include "core/table.h"

/*
 * Declarations that the readers of table lists share: limits, options, names
 * and texts for messages.
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
     * columns, which are ignored, and a message about the columns that an
     * import guessed. */
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

/* Shortens a text of a file for a message. A long text becomes its beginning
 * and "...". The result is in the arena. */
const char *tables_shown(const char *text, struct arena *arena);

/* Lists the names for a message. If there are more than `most` names, lists the
 * first ones and counts the rest: "'a', 'b' and 3 more". */
const char *tables_listed(const char *const *names, size_t n, size_t most,
                          struct arena *arena);

/* Initializes the n_tables tables of a list with table_init. The names come
 * from the options. If the options give no names, a name is `prefix` and a
 * number. */
int tables_name(struct table_list *list, const char *prefix,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

#endif
