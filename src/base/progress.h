/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PROGRESS_H
#define NEUROSHARD_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the width in columns of the terminal behind fd. If fd is no terminal
 * or its width is unknown, returns the environment variable COLUMNS; if this
 * variable is not set, returns `otherwise`. */
size_t terminal_columns(int fd, size_t otherwise);

struct buf;

/*
 * Progress on a terminal: one line on stderr, rewritten at most ten times a
 * second. It shows the label, done/total, percent, rate, time left, and the
 * text that `tell` appends. If there is a time limit, it shows the time that
 * has passed and the limit. If stderr is no terminal, nothing is printed; with
 * is_logged one line a minute is printed.
 *
 * A line fits the terminal, and 80 columns in a log. If it would be longer, the
 * rate is left out first, then the total, then the amount done, then the middle
 * of the label, and at last the end of the line.
 */
struct progress {
    const char *label; /* not owned */
    uint64_t total;    /* total amount of work; 0: unknown */
    bool is_logged;    /* print a line a minute if stderr is no terminal */
    /* Time limit: the work ends after limit_s seconds at the latest; 0: none.
     * before_s of these had passed at the start. These members and those below
     * may be set after the start. */
    double limit_s, before_s;
    /* Callback that appends more text to the line of progress; may be NULL. */
    void (*tell)(const void *ctx, struct buf *out);
    const void *ctx;
    /* amount of work done, as given to the last progress_update */
    uint64_t done;
    double start_ms, last_ms;
    bool is_terminal;
};
void progress_start(struct progress *progress, const char *label,
                    uint64_t total, bool is_logged);
/* Shows that the amount `done` of the work is done. Accepts NULL. */
void progress_update(struct progress *progress, uint64_t done);
/* Clears the line of progress from the terminal. */
void progress_finish(struct progress *progress);

#endif
