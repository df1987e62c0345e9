/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLANNER_REPORT_H
#define NEUROSHARD_IO_PLANNER_REPORT_H

#include "base/mem.h"

/*
 * Finds the report of TorchRec's planner in a job's log and checks its
 * consistency.
 *
 * A report begins with "--- Planner Statistics ---". Each of its lines stands
 * between two '#', perhaps behind a prefix of a launcher or a log collector.
 * Two blanks or more separate cells. Lines of other programs are skipped.
 * Checks:
 *
 *   - Ranks are numbered from 0 without a gap, and include every rank of an
 *     "on rank N".
 *   - The shards of each rank by kind ("CW: 3 RW: 2") are those that the tables
 *     list on it, and "Compute Kernels Count" counts the same number of tables.
 *   - "Mean Total Perf" is the mean over the listed ranks.
 *
 * The last report that passes all checks is used.
 */

/* Columns of "Parameter Info". */
enum planner_column {
    PLANNER_FQN,
    PLANNER_SHARDING,
    PLANNER_KERNEL,
    PLANNER_DIM,
    PLANNER_ROWS,
    PLANNER_RANKS,
    PLANNER_OUTPUT,
    PLANNER_INDICES, /* lookups per sample; not printed before TorchRec 1.1 */
    PLANNER_FACTOR,  /* lookups per feature and pooling, summed over features */
    PLANNER_POOLINGS, /* summed over features; absent in the oldest versions */
    PLANNER_FEATURES,
    N_PLANNER_COLUMNS
};
/* Returns the name of a column in the newest version that has it. */
const char *planner_column_name(enum planner_column column);

struct planner_row {
    const char *cells[N_PLANNER_COLUMNS]; /* NULL: there is no such column */
    size_t line;
};

struct planner_report {
    size_t line;             /* line of its title */
    uint32_t n_ranks;        /* number of ranks, >= 1 */
    uint64_t batch_per_rank; /* 0: not printed */
    struct planner_row *rows;
    size_t n_rows; /* number of rows, >= 1 */
    /* Message about a later, inconsistent report; or NULL. */
    const char *doubt;
};

bool planner_report_is(const char *text);

/* The report's abbreviations of sharding kinds, such as "TW", separated by
 * '|'. */
#define PLANNER_KINDS "DP|TW|CW|TWCW|RW|TWRW|GS"
#define N_PLANNER_KINDS 7

/* Returns the ranks of a text such as "3,14,14" or "0-95", in the arena.
 * n_world is the number of ranks in the world; a single rank may be outside of
 * it. Returns NULL if the text is not such a list. */
uint32_t *planner_ranks(size_t *n, const char *text, uint32_t n_world,
                        struct arena *arena);

/* Finds the last consistent report. ERR_INPUT messages have the form
 * "source:line: what does not agree", with both numbers. */
int planner_report_find(struct planner_report *out, const char *text,
                        size_t len, const char *source, struct arena *arena,
                        struct err *err) MUST_CHECK;

#endif
