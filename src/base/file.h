/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FILE_H
#define NEUROSHARD_BASE_FILE_H

#include "base/mem.h"

/*
 * Reading of whole files, and the data files of the program. A reader sees a
 * complete file or an error.
 */

/* Declares `symbol` as the text of a source file, which the assembler puts into
 * the program. */
#define FILE_TEXT(symbol, path)                   \
    __asm__(".pushsection .rodata\n"              \
            ".global " #symbol "\n"               \
            ".hidden " #symbol "\n" #symbol ":\n" \
            ".incbin \"" path "\"\n"              \
            ".byte 0\n"                           \
            ".popsection\n");                     \
    extern const char(symbol)[] __attribute__((visibility("hidden")))

/* Largest file in bytes that file_read accepts. A larger file is taken for a
 * mistake of the user. */
#define FILE_MAX_BYTES ((size_t)256 << 20)

/* Reads path ("-" is standard input) into the arena and appends a NUL that len
 * does not count. A gzip file is unpacked. ERR_IO names the path and the
 * reason. A directory is an error, and so is a file or a content of more than
 * FILE_MAX_BYTES. */
int file_read(const char **text, size_t *len, const char *path,
              struct arena *arena, struct err *err) MUST_CHECK;

/* Returns the name of a file in messages: path, or "standard input" if it is
 * "-". */
const char *file_source(const char *path) NEVER_NULL;

/* Returns 1 if path exists and can be read, else 0. */
int file_exists(const char *path);

/* Returns the path of a file shipped with the program, e.g. "models/h200.nsm",
 * or NULL if the file is in none of these folders, which are tried in this
 * order:
 *
 * 1. $NEUROSHARD_DATA, if set and not empty
 * 2. ../share/neuroshard relative to the folder of the running program (so an
 *    installation can be moved)
 * 3. data/ in the folder of the running program (the build tree)
 * 4. DATADIR, set at build time */
const char *file_find_data(const char *name, struct arena *arena);
/* Lists the files with this suffix in a folder that is shipped with the
 * program. The folder is looked for in the same places as a file in
 * file_find_data. The names are sorted and are listed without the suffix; NULL
 * follows the last name. The list is empty if there is no such folder. */
const char *const *file_list_data(const char *folder, const char *suffix,
                                  struct arena *arena) NEVER_NULL;

#endif
