/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_PRIVATE_H
#define NEUROSHARD_IO_TABLES_PRIVATE_H

#include "io/tables_io.h"

/* What the two readers of table lists share. */

/* Text of a file as it may stand in a message: of what is long the beginning
 * and "...", in the arena. */
const char *tables_shown(const char *text, struct arena *arena);

/* "'a', 'b' and 3 more": so many of the names, and how many others. */
const char *tables_listed(const char *const *names, size_t n, size_t most,
                          struct arena *arena);

void tables_warn(const struct tables_options *options, const char *sentence);
/* One warning for all the `what` ("columns", "members") of that name. */
void tables_warn_unknown(const struct tables_options *options,
                         const char *source, const char *what,
                         const char *const *names, size_t n,
                         struct arena *arena);

/* Makes a list's tables, n_tables of them as table_init does, named by the
 * options, or by `prefix` and their number. */
int tables_name(struct table_list *list, const char *prefix,
                const struct tables_options *options, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Whether a text is a command line of dlrm, or a report of FBGEMM's. */
bool tables_is_dlrm(const char *text);
bool tables_is_tbe(const char *text);

#endif
