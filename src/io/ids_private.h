/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_PRIVATE_H
#define NEUROSHARD_IO_IDS_PRIVATE_H

#include "io/ids.h"
#include "io/npy.h"

#include <sys/types.h>

/* Declarations that the files of the id reader share: arrays of ids, and lists
 * of the arrays in the input files. */

/* Array of integers that are contiguous in a file, or come through a pipe. */
struct id_array {
    const char *path, *source; /* source: "file" or "file: member" */
    struct npy npy;            /* begin and end are file offsets */
    int fd; /* file descriptor while the file is open, else -1 */
    /* CRC tables for a member of an archive, else NULL */
    const struct crc *crc;
    uint64_t begin; /* file offset of the member */
    /* recorded CRC-32, and the CRC-32 of the bytes read */
    uint32_t crc_said, crc_sum;
    uint64_t n_left; /* unread bytes of the member */
};

/* Samples of one table from one archive or folder. */
struct id_part {
    const char *table, *place;
    struct id_array ids;
    /* lengths or offsets; path NULL: each row of ids is a sample */
    struct id_array bags;
    bool is_offsets;
    /* one table per column; `table` is the prefix of their names */
    bool is_matrix;
    int64_t end; /* index behind the ids of the last counted sample */
};

struct ids_listing {
    /* owned; in the order of the files, except that the parts of a table are
     * adjacent */
    struct id_part *parts;
    size_t n_parts, cap;
    uint64_t n_ids; /* total over all parts */
    struct arena *arena;
    const struct id_tables *tables;
    const char *left_out; /* skipped arrays, such as "'y', 'X_int'"; or NULL */
    struct npz_member *members; /* owned; members of the current archive */
    size_t n_members, cap_members;
    /* The current file: */
    const char *place;
    const char *table;    /* table name for arrays whose own names give none */
    struct id_array file; /* its source names the member, too */
};

/* Opens the array's file and moves to its first number. If the array has no
 * header, the whole file is the array. */
int ids_open(struct id_array *array, struct err *err) MUST_CHECK;
void ids_close(struct id_array *array);
/* Reads n bytes, or fewer if the file ends. Returns the number of bytes read,
 * or -1. */
ssize_t ids_read_bytes(const struct id_array *array, void *out, size_t n,
                       struct err *err) MUST_CHECK;
/* Reads the next n numbers and widens them to 64 bits. */
int ids_read_numbers(struct id_array *array, int64_t *out, size_t n,
                     struct err *err) MUST_CHECK;
/* Fills listing->parts with the arrays of the files. The caller frees
 * listing->parts and listing->members. */
int ids_list_files(struct ids_listing *listing, char *const *paths,
                   size_t n_paths, struct err *err) MUST_CHECK;

#endif
