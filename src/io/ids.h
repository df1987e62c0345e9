/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_H
#define NEUROSHARD_IO_IDS_H

#include "base/progress.h"
#include "core/profile.h"
#include "io/ids_files.h"

/*
 * Measures table statistics from the ids that a job looks up. The ids come from
 * NumPy arrays in files, or from a pipe. neuroshard-tables-profile(1) describes
 * the names that the arrays must have. The ids are read in blocks, so the
 * memory needed does not grow with the number of ids.
 *
 * The pipe carries frames. All samples of a frame belong to one local batch. A
 * frame consists of:
 *   3 x 64 bits, little-endian  number of samples, number of ids, bytes of the
 *                               name
 *   the name                    name of the table
 *   64 bits each                the ids
 */

struct id_table {
    /* properties from the list; measured values replace them */
    struct table table;
    /* index in the list. Without a list, tables are numbered in the order in
     * which their first ids arrive. */
    size_t list_idx;
    struct profile *profile; /* owned; NULL after the measurement */
    struct profile_result result;
};

/* State of one measurement of table statistics. The caller zeroes it and sets
 * the list and the options. */
struct id_tables {
    /* permitted tables; an empty list permits all tables */
    struct table_list list;
    uint32_t dim; /* dim for tables that are not in the list */
    /* `n_rows` is ignored, because the list gives the rows of each table */
    struct profile_options options;
    enum columns_are columns_are;
    struct arena *arena; /* holds names and lists */
    bool is_logged;      /* true: print progress, counted in ids */
    struct progress progress;
    /* owned; in the order in which the tables' first ids arrived */
    struct id_table *tables;
    size_t n_tables, cap;
    uint64_t memory_bytes; /* peak memory of all profiles together */
    /* names of the skipped arrays that hold no ids, such as "'y', 'X_int'"; or
     * NULL */
    const char *left_out;
};

/* Measures the tables whose ids are in the files, one table after the other. If
 * the only path is "-", reads standard input and measures all tables at the
 * same time. The caller must call ids_release afterwards, also after an error.
 * Errors:
 *   ERR_INPUT        an input is invalid; the message names the file and the
 *                    archive's member, or the frame of the pipe
 *   ERR_IO           a file cannot be read; the message names the file
 *   ERR_INTERRUPTED  the user interrupted the reading */
int ids_measure(struct id_tables *tables, char *const *paths, size_t n_paths,
                struct err *err) MUST_CHECK;
void ids_release(struct id_tables *tables);

#endif
