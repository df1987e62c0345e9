/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_IO_H
#define NEUROSHARD_IO_TABLES_IO_H

#include "io/tables_reader.h"

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
 *   reach, misses    possible by table_wrong_reach
 *   bins             if given, each in 0 .. 1 with a sum of about 1, or all 0
 *                    if pooling_factor is 0
 *   kinds            not empty
 *   device           -1 or 0 .. TABLES_MAX_DEVICE
 *   group            a text with the same rules as a name
 */

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

/* Writes the list as CSV to the file `path`; the path "-" is standard output.
 * The text is read back as a check before it is written. `comment` is written
 * first: lines that begin with '#', or "". */
int tables_save(const struct table_list *list, const char *comment,
                const char *path, struct err *err) MUST_CHECK;

#endif
