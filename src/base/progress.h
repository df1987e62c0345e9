/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PROGRESS_H
#define NEUROSHARD_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the width in columns of the terminal behind fd. If fd is no terminal
 * or its width is unknown, returns the environment variable COLUMNS; without
 * it, returns `otherwise`. */
size_t terminal_columns(int fd, size_t otherwise);

struct buf;

/*
 * Progress on a terminal: one line on stderr, rewritten at most ten times a
 * second. It shows the label, done/total, percent, rate, time left, and the
 * text that `tell` appends. If stderr is no terminal nothing is printed, or one
 * line a minute if is_logged.
 */
struct progress {
    const char *label; /* not owned */
    uint64_t total;    /* 0: unknown */
    bool is_logged;    /* print a line a minute if there is no terminal */
    /* Time limit: the work ends after limit_s seconds at the latest; 0: none.
     * This member and those below may be set after the start. */
    double limit_s;
    /* Appends more text to the line; or NULL. */
    void (*tell)(const void *ctx, struct buf *out);
    const void *ctx;
    uint64_t done; /* argument of the last update */
    double start_ms, last_ms;
    bool is_terminal;
};
void progress_start(struct progress *progress, const char *label,
                    uint64_t total, bool is_logged);
/* NULL is fine */
void progress_update(struct progress *progress, uint64_t done);
/* Clears the line. */
void progress_finish(struct progress *progress);

#endif
