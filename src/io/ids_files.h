/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_FILES_H
#define NEUROSHARD_IO_IDS_FILES_H

#include "core/table.h"
#include "io/npy.h"

#include <sys/types.h>

/* Arrays of ids in files, and lists of the arrays that the input files contain.
 */

/* Array of integers. They are contiguous in a file, or come through a pipe. */
struct id_array {
    const char *path, *source; /* `source` is "file" or "file: member" */
    struct npy npy;            /* `begin` and `end` are file offsets */
    int fd;         /* file descriptor while the file is open, else -1 */
    bool has_crc;   /* the array is in an archive, which records its CRC-32 */
    uint64_t begin; /* file offset of the archive's member */
    /* CRC-32 that the archive records, and CRC-32 of the bytes read so far */
    uint32_t crc_said, crc_sum;
    uint64_t n_left; /* unread bytes of the archive's member */
};

/* Samples of one table that come from one archive or folder. */
struct id_part {
    const char *table, *place;
    struct id_array ids;
    /* lengths or offsets of the samples. A NULL path means that each row of
     * `ids` is one sample. */
    struct id_array bags;
    bool is_offsets;
    /* true: `ids` is a matrix with one table per column, and `table` is the
     * common prefix of the tables' names */
    bool is_matrix;
    int64_t end; /* index behind the last id of the samples counted so far */
};

/* Meaning of a matrix's columns, for matrices whose name does not show it. */
enum columns_are {
    /* unknown: the matrix is refused, and the message asks for the option */
    COLUMNS_ASK,
    COLUMNS_TABLES, /* one table per column, with one id per sample */
    /* each row holds the ids that one sample looks up in a single table */
    COLUMNS_SAMPLES
};

struct ids_listing {
    /* owned parts, in the order of the files, except that parts of the same
     * table are adjacent */
    struct id_part *parts;
    size_t n_parts, cap;
    uint64_t n_ids; /* total number of ids in all parts */
    struct arena *arena;
    const struct table_list *list; /* permitted tables */
    enum columns_are columns_are;
    /* names of the skipped arrays, such as "'y', 'X_int'"; or NULL */
    const char *left_out;
    struct npz_member *members; /* owned; members of the current archive */
    size_t n_members, cap_members;
    /* The members below describe the current file. */
    const char *place;
    const char *table; /* table name for arrays whose own names contain none */
    struct id_array file; /* `file.source` names the archive's member, too */
};

/* Opens the array's file and moves to its first number. If the file has no
 * header, the whole file consists of numbers. */
int ids_open(struct id_array *array, struct err *err) MUST_CHECK;
void ids_close(struct id_array *array);
/* Reads n bytes of the array's file, or fewer if the file ends. Returns the
 * number of bytes read, or -1 on failure. */
ssize_t ids_read_bytes(const struct id_array *array, void *out, size_t n,
                       struct err *err) MUST_CHECK;
/* Reads the next n numbers of the array and widens them to 64 bits. */
int ids_read_numbers(struct id_array *array, int64_t *out, size_t n,
                     struct err *err) MUST_CHECK;
/* Fills listing->parts with the arrays of the files. The caller frees
 * listing->parts and listing->members. */
int ids_list_files(struct ids_listing *listing, char *const *paths,
                   size_t n_paths, struct err *err) MUST_CHECK;

#endif
