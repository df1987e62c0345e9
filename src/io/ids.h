/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_H
#define NEUROSHARD_IO_IDS_H

#include "base/crc.h"
#include "base/progress.h"
#include "core/profile.h"

/*
 * Measures table statistics from the ids that a job looks up. The ids come from
 * NumPy arrays in files, or from a pipe. neuroshard-tables-profile(1) describes
 * how arrays are named. Ids are read in blocks, so memory does not grow with
 * their number.
 *
 * The pipe carries frames. All samples of a frame belong to one local batch. A
 * frame consists of:
 *   3 x 64 bits, little-endian  number of samples, number of ids, bytes of the
 *                               name
 *   the name                    the table's
 *   64 bits each                the ids
 */

struct id_table {
    struct table table; /* the listed properties; measured ones replace them */
    /* index in the list; without a list, in order of first ids */
    size_t list_idx;
    struct profile *profile; /* owned; NULL after the measurement */
    struct profile_result result;
};

/* Meaning of a matrix's columns if its name does not tell it. */
enum columns_are {
    COLUMNS_ASK, /* unknown: refused with a message that asks for the option */
    COLUMNS_TABLES, /* one table per column, with one id per sample */
    COLUMNS_SAMPLES /* the ids that a sample looks up in one table */
};

/* One measurement. The caller zeroes it and sets the list and the options. */
struct id_tables {
    struct table_list list; /* permitted tables; empty: any table is accepted */
    uint32_t dim;           /* dim of tables that are not in a list */
    /* n_rows is ignored: the list's rows are used */
    struct profile_options options;
    enum columns_are columns_are;
    struct arena *arena; /* holds names and lists */
    bool is_logged;      /* true: print progress, counted in ids */
    struct progress progress;
    struct id_table *tables; /* owned; in order of first ids */
    size_t n_tables, cap;
    uint64_t memory_bytes; /* peak memory of all profiles together */
    /* skipped arrays that hold no ids, such as "'y', 'X_int'"; or NULL */
    const char *left_out;
    struct crc crc;
};

/* Measures the tables whose ids are in the files, one table after the other. If
 * the only path is "-", reads standard input and measures all tables at once.
 * The caller calls ids_release afterwards, also after an error.
 *   ERR_INPUT        names the file and the archive's member, or the frame
 *   ERR_IO           names the file
 *   ERR_INTERRUPTED  the user interrupted the reading */
int ids_measure(struct id_tables *tables, char *const *paths, size_t n_paths,
                struct err *err) MUST_CHECK;
void ids_release(struct id_tables *tables);

#endif
