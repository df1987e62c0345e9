/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLANNER_REPORT_H
#define NEUROSHARD_IO_PLANNER_REPORT_H

#include "base/mem.h"

/*
 * The report that TorchRec's planner prints, found in the log of a job and
 * compared with what it says of itself.
 *
 * A report begins with "--- Planner Statistics ---". Each of its lines stands
 * between two '#', perhaps behind what a launcher or a log collector puts
 * before it; cells are two blanks or more apart. Lines of other programs are
 * passed over. These must agree:
 *
 *   - ranks are numbered from 0 without a gap, and reach as far as every
 *     "on rank N" does;
 *   - the shards of each rank by kind ("CW: 3 RW: 2") are those that the tables
 *     list on it, and "Compute Kernels Count" counts as many tables;
 *   - "Mean Total Perf" is the mean over the ranks that are there.
 *
 * The last report for which all of that holds is the one that is read.
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
    PLANNER_INDICES,  /* of a sample; before TorchRec 1.1 it is not printed */
    PLANNER_FACTOR,   /* look-ups a feature and pooling, summed over features */
    PLANNER_POOLINGS, /* summed over features; absent in the oldest */
    PLANNER_FEATURES,
    N_PLANNER_COLUMNS
};
/* Name of a column in the newest version that has it. */
const char *planner_column_name(enum planner_column column);

struct planner_row {
    const char *cells[N_PLANNER_COLUMNS]; /* NULL: there is no such column */
    size_t line;
};

struct planner_report {
    size_t line;             /* of its title */
    uint32_t n_ranks;        /* >= 1 */
    uint64_t batch_per_rank; /* 0: not said */
    struct planner_row *rows;
    size_t n_rows; /* >= 1 */
    /* Sentence about a later report that is not whole, or NULL. */
    const char *doubt;
};

bool planner_report_is(const char *text);

/* "TW" in "DP|TW|CW|TWCW|RW|TWRW|GS", as the report shortens the kinds. */
#define PLANNER_KINDS "DP|TW|CW|TWCW|RW|TWRW|GS"
#define N_PLANNER_KINDS 7

/* Ranks of "3,14,14" or "0-95" in a world of n_world, in the arena; NULL if
 * that is no such list. A single rank may be outside the world. */
uint32_t *planner_ranks(size_t *n, const char *text, uint32_t n_world,
                        struct arena *arena);

/* Finds the last report that agrees with itself. ERR_INPUT is
 * "source:line: what does not agree", with both numbers. */
int planner_report_find(struct planner_report *out, const char *text,
                        size_t len, const char *source, struct arena *arena,
                        struct err *err) MUST_CHECK;

#endif
