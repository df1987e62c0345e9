/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLANNER_REPORT_H
#define NEUROSHARD_IO_PLANNER_REPORT_H

#include "base/mem.h"

/*
 * Finds the report of TorchRec's planner in a job's log and checks that its
 * numbers agree with each other.
 *
 * A report begins with "--- Planner Statistics ---". Each line of the report
 * stands between two '#', and a launcher or a log collector may have put a
 * prefix before the first '#'. Two blanks or more separate cells. Lines of
 * other programs are skipped. The reader checks the following:
 *
 * - Ranks are numbered from 0 without a gap, and include every rank that an "on
 * rank N" names.
 * - Each rank's row counts its shards by kind ("CW: 3 RW: 2"). The list of
 * tables gives the same counts. "Compute Kernels Count" counts as many tables
 * as are listed.
 * - "Mean Total Perf" is the mean over the listed ranks.
 *
 * The last report that passes all checks is used.
 */

/* Columns of the report's table "Parameter Info". */
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
    /* poolings, summed over features; absent in the oldest versions */
    PLANNER_POOLINGS,
    PLANNER_FEATURES,
    PLANNER_LOAD_FACTOR, /* load factor of a cached table, or "None" */
    N_PLANNER_COLUMNS
};
/* Returns the name of a column in the newest version that has it. */
const char *planner_column_name(enum planner_column column);

struct planner_row {
    /* text of each column; NULL if the report lacks the column */
    const char *cells[N_PLANNER_COLUMNS];
    size_t line;
};

struct planner_report {
    size_t line;             /* line number of the report's title */
    uint32_t n_ranks;        /* number of ranks, >= 1 */
    uint64_t batch_per_rank; /* 0 if the report does not print it */
    struct planner_row *rows;
    size_t n_rows; /* number of rows, >= 1 */
    /* Message about an inconsistent report later in the log; or NULL. */
    const char *doubt;
};

bool planner_report_is(const char *text);

/* The report's abbreviations of sharding kinds, such as "TW", separated by
 * '|'. */
#define PLANNER_KINDS "DP|TW|CW|TWCW|RW|TWRW|GS"
#define N_PLANNER_KINDS 7

/* Returns the ranks of a text such as "3,14,14" or "0-95", in the arena.
 * n_world is the number of ranks in the world: a range such as "0-95" may have
 * at most n_world ranks, but a rank's number may be n_world or more. Returns
 * NULL if the text is not such a list. */
uint32_t *planner_ranks(size_t *n, const char *text, uint32_t n_world,
                        struct arena *arena);

/* Finds the last consistent report in a log. ERR_INPUT messages have the form
 * "source:line: what does not agree", and give the two numbers that
 * disagree. */
int planner_report_find(struct planner_report *out, const char *text,
                        size_t len, const char *source, struct arena *arena,
                        struct err *err) MUST_CHECK;

#endif
