/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_PRIVATE_H
#define NEUROSHARD_IO_IDS_PRIVATE_H

#include "io/ids.h"
#include "io/npy.h"

#include <sys/types.h>

/* What the files of the id reader share: arrays, and which there are. */

/* Numbers that lie one after the other in a file, or come through a pipe. */
struct id_array {
    const char *path, *source;  /* source: "file" or "file: member" */
    struct npy npy;             /* begin and end in the file */
    int fd;                     /* of the file while it is open, else -1 */
    const struct crc *crc;      /* of a member of an archive, else NULL */
    uint64_t begin;             /* of the member */
    uint32_t crc_said, crc_sum; /* of it, and of what was read of it */
    uint64_t n_left;            /* bytes of it that were not read */
};

/* Samples of one table that stand together, in an archive or a folder. */
struct id_part {
    const char *table, *place;
    struct id_array ids;
    struct id_array bags; /* lengths, or offsets; no path: a row is a sample */
    bool is_offsets;
    bool is_matrix; /* a table a column, with the table's name before it */
    int64_t end;    /* of the ids of the last sample that was counted */
};

struct listing {
    struct id_part *parts; /* owned; in the order of the files, but those of a
                              table together */
    size_t n_parts, cap;
    uint64_t n_ids; /* of them all */
    struct arena *arena;
    const struct id_tables *tables;
    const char *left_out;       /* "'y', 'X_int'"; or NULL */
    struct npz_member *members; /* owned; of the archive that is read */
    size_t n_members, cap_members;
    /* Of the file that is read: */
    const char *place;
    const char *table;    /* of arrays whose names say none */
    struct id_array file; /* its source names the member, too */
};

/* From the first number on; without a header the file is the array. */
int ids_open(struct id_array *array, struct err *err) MUST_CHECK;
void ids_close(struct id_array *array);
/* So many bytes, or fewer where it ends; how many, or -1. */
ssize_t ids_read_bytes(const struct id_array *array, void *out, size_t n,
                       struct err *err) MUST_CHECK;
/* The next n numbers. */
int ids_read_numbers(struct id_array *array, int64_t *out, size_t n,
                     struct err *err) MUST_CHECK;
/* Fills listing->parts; the caller frees them, and the members. */
int ids_list_files(struct listing *listing, char *const *paths, size_t n_paths,
                   struct err *err) MUST_CHECK;

#endif
