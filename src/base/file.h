/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FILE_H
#define NEUROSHARD_BASE_FILE_H

#include "base/mem.h"

/*
 * Whole files in, whole files out. A reader sees a complete file or an error;
 * a writer leaves the complete new file or the old one untouched.
 */

/*
 * What a command reads and what it writes are different files, whatever they
 * are called: what its options name as outputs is claimed before anything is
 * read, and each file that is then opened is looked up by device and inode. So
 * an input cannot be overwritten, be it named by a link, on standard input or
 * inside another input. Outside of a command nothing is watched.
 */
enum file_use {
    FILE_READ = 1,    /* by file_read */
    FILE_WRITE = 2,   /* by file_write */
    FILE_DATABASE = 4 /* read, and perhaps written, by SQLite */
};
void file_claims_begin(void);
void file_claims_end(void);
/* For these uses (a mask) and no other. ERR_OVERWRITE where the file is claimed
 * or in use already; of FILE_WRITE also for a loop of symbolic links and for a
 * database, which would be lost, and ERR_IO for a folder, or one that is not
 * there or takes no file. */
int file_claim(const char *path, unsigned uses, struct err *err) MUST_CHECK;
/* Before a file is opened: ERR_OVERWRITE where it is claimed, or was used, for
 * something else. file_read and file_write call it. */
int file_use(const char *path, enum file_use use, struct err *err) MUST_CHECK;

/* The text of a file of the sources, put into the program by the assembler. */
#define FILE_TEXT(symbol, path)                   \
    __asm__(".pushsection .rodata\n"              \
            ".global " #symbol "\n"               \
            ".hidden " #symbol "\n" #symbol ":\n" \
            ".incbin \"" path "\"\n"              \
            ".byte 0\n"                           \
            ".popsection\n");                     \
    extern const char(symbol)[] __attribute__((visibility("hidden")))

/* Of a file that is read: more is no input but a mistake. */
#define FILE_MAX_BYTES ((size_t)256 << 20)

/* Reads path ("-" is standard input) into the arena and appends a NUL that
 * len does not count. ERR_IO names the path and the reason; a directory is an
 * error, and so is more than FILE_MAX_BYTES. */
int file_read(const char **text, size_t *len, const char *path,
              struct arena *arena, struct err *err) MUST_CHECK;

/* Writes to a temporary file beside path, fsyncs, renames over path, fsyncs
 * the folder. "-" is standard output; a path that exists and is no regular
 * file (a device, a pipe) is written to directly; of a symbolic link the file
 * it leads to is replaced, or made. On failure the temporary file is removed
 * and the old file untouched. The mode of a new file follows the umask; an
 * existing file's mode is kept. Temporary files that killed processes of this
 * user have left in the folder are removed; where it has more than 10,000
 * files, those among the first of them. */
int file_write(const char *path, const void *data, size_t len,
               struct err *err) MUST_CHECK;

/* The program's own reader of a format: 0 where it takes the text, -1 and the
 * reason where not. `source` is the file's name. */
typedef int file_check(const char *text, size_t len, const char *source,
                       struct arena *arena, struct err *err);
/* As file_write, but what was written is read back and checked before it takes
 * the old file's place; what the check refuses is not kept. */
int file_write_checked(const char *path, const void *data, size_t len,
                       file_check *check, struct err *err) MUST_CHECK;

/* "name" of "folder/name", a part of it; and "folder/", "./" of "name". */
const char *file_name(const char *path) NEVER_NULL;
const char *file_folder(const char *path, struct arena *arena) NEVER_NULL;
/* Where what is written to path comes to lie: behind symbolic links, whether
 * or not there is a file yet. Of a loop of links some path in it. */
const char *file_target(const char *path, struct arena *arena) NEVER_NULL;

/* 1 where path exists and can be read, else 0. */
int file_exists(const char *path);

/* Path of a file shipped with the program, e.g. "models/h200.nsm": under
 * $NEUROSHARD_DATA unless that is empty, else ../share/neuroshard beside the
 * folder of the running program, so that a moved prefix works, else data/
 * beside the program, as it is built, else DATADIR given at build time. NULL
 * where none has it. */
const char *file_find_data(const char *name, struct arena *arena);
/* The files with this suffix in a folder that is found so, sorted and without
 * it; the last one is NULL. None where no such folder is found. */
const char *const *file_list_data(const char *folder, const char *suffix,
                                  struct arena *arena) NEVER_NULL;

#endif
