/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_FILE_CLAIMS_H
#define NEUROSHARD_BASE_FILE_CLAIMS_H

#include "base/err.h"

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

#endif
