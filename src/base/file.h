/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FILE_H
#define NEUROSHARD_BASE_FILE_H

#include "base/mem.h"

/*
 * Reading and writing whole files. A reader sees a complete file or an error. A
 * writer leaves either the complete new file or the old one untouched.
 */

/*
 * Claims prevent a command from overwriting one of its inputs. Files named by
 * output options are claimed before anything is read. Each file that is then
 * opened is looked up among the claims by device and inode. So the check also
 * finds an input that is named by a link, comes on standard input or is
 * referenced inside another input. Outside of a command no file is checked.
 */
enum file_use {
    FILE_READ = 1,    /* read by file_read */
    FILE_WRITE = 2,   /* written by file_write */
    FILE_DATABASE = 4 /* read, and perhaps written, by SQLite */
};
void file_claims_begin(void);
void file_claims_end(void);
/* Claims a file for the given uses, a mask of enum file_use. The file may then
 * be used in no other way. Fails with ERR_OVERWRITE if the file is claimed or
 * in use already. A claim for FILE_WRITE also fails
 *
 * - with ERR_OVERWRITE if path is a loop of symbolic links, or a database,
 *   which would be lost;
 * - with ERR_IO if path is a folder, or if its folder is missing or not
 *   writable. */
int file_claim(const char *path, unsigned uses, struct err *err) MUST_CHECK;
/* Notes that a file is going to be opened for this use. Call it before a file
 * is opened; file_read and file_write call it themselves. Fails with
 * ERR_OVERWRITE if the file is claimed for another use, or was opened for
 * another use before. */
int file_use(const char *path, enum file_use use, struct err *err) MUST_CHECK;

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
 * does not count. ERR_IO names the path and the reason. A directory is an
 * error, and so is a file of more than FILE_MAX_BYTES. */
int file_read(const char **text, size_t *len, const char *path,
              struct arena *arena, struct err *err) MUST_CHECK;

/* Writes a file atomically: writes a temporary file in the same folder, fsyncs
 * it, renames it to path and fsyncs the folder. On failure the temporary file
 * is removed and the old file is untouched.
 *
 * - "-" is standard output.
 * - A path that exists and is no regular file (a device, a pipe) is written to
 *   directly.
 * - If path is a symbolic link, the file that it leads to is replaced or made.
 * - A new file's mode follows the umask; an existing file's mode is kept.
 * - Temporary files left in the folder by killed processes of this user are
 *   removed. Only the first 10,000 files of the folder are looked at. */
int file_write(const char *path, const void *data, size_t len,
               struct err *err) MUST_CHECK;

/* The program's own reader of a file format, as a callback. It returns 0 if it
 * accepts the text, else -1 with the reason. `source` is the file's name. */
typedef int file_check(const char *text, size_t len, const char *source,
                       struct arena *arena, struct err *err);
/* Writes a file atomically, like file_write, but reads the new file back and
 * checks it before it replaces the old file. If the check refuses the new file,
 * the old file stays. */
int file_write_checked(const char *path, const void *data, size_t len,
                       file_check *check, struct err *err) MUST_CHECK;

/* file_name returns "name" for "folder/name", as a pointer into path.
 * file_folder returns "folder/" for "folder/name" and "./" for "name". */
const char *file_name(const char *path) NEVER_NULL;
const char *file_folder(const char *path, struct arena *arena) NEVER_NULL;
/* Returns the path of the file that writing to path creates or replaces, after
 * following symbolic links. The file need not exist. For a loop of links it
 * returns some path of the loop. */
const char *file_target(const char *path, struct arena *arena) NEVER_NULL;

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
