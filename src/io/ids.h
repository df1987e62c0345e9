/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_H
#define NEUROSHARD_IO_IDS_H

#include "base/crc.h"
#include "base/progress.h"
#include "core/profile.h"

/*
 * What the ids that a job looks up say of its tables, out of arrays of NumPy or
 * from a pipe; neuroshard-tables-profile(1) says how arrays are named. They are
 * read in blocks, so that memory does not grow with them.
 *
 * A pipe has frames of three numbers of 64 bits, little-endian, how many
 * samples, how many ids, and how many bytes its name has, then the name of the
 * table and the ids, 64 bits each. The samples of a frame are of one local
 * batch.
 */

struct id_table {
    struct table table;      /* as it was, with what is measured */
    size_t list_idx;         /* of it, in the list; without one its own */
    struct profile *profile; /* owned; NULL once it is measured */
    struct profile_result result;
};

/* What the columns of a matrix are, if its name does not say. */
enum columns_are {
    COLUMNS_ASK,    /* refused, with the question */
    COLUMNS_TABLES, /* a table each, with an id a sample */
    COLUMNS_SAMPLES /* the ids that a sample looks up in one table */
};

/* Zeroed but for what is to be measured, and how. */
struct id_tables {
    struct table_list list; /* whose tables they are; none: any may come */
    uint32_t dim;           /* of these */
    struct profile_options options; /* n_rows: those of the list */
    enum columns_are columns_are;
    struct arena *arena; /* gets names and lists */
    bool is_logged;      /* the progress, which counts ids */
    struct progress progress;
    struct id_table *tables; /* owned; in the order of their first ids */
    size_t n_tables, cap;
    uint64_t memory_bytes; /* of profiles, at most, at once */
    const char *left_out;  /* "'y', 'X_int'": arrays without ids; or NULL */
    struct crc crc;
};

/* Measures the tables whose ids are in the files, or, where the only one is
 * "-", come through standard input: all at once, of files one after the other.
 * ids_release is to follow. ERR_INPUT names the file, and the member of an
 * archive, or the frame, ERR_IO the file, ERR_INTERRUPTED where an interrupt
 * came. */
int ids_measure(struct id_tables *tables, char *const *paths, size_t n_paths,
                struct err *err) MUST_CHECK;
void ids_release(struct id_tables *tables);

#endif
