/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_PROGRESS_H
#define NEUROSHARD_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of the terminal behind the descriptor; where it is none, or does not
 * say, those of the variable COLUMNS, and without it `otherwise`. */
size_t terminal_columns(int fd, size_t otherwise);

struct buf;

/*
 * Progress on a terminal: one line on stderr, rewritten at most ten times a
 * second: label, done/total, percent, rate, time left, and what `tell` adds.
 * Where stderr is no terminal nothing is printed, but a line a minute where
 * that is asked for.
 */
struct progress {
    const char *label; /* not owned */
    uint64_t total;    /* 0: unknown */
    bool is_logged;    /* a line a minute where there is no terminal */
    double limit_s;    /* may be set after the start, like all below: ends then,
                          if not before; 0: none */
    void (*tell)(const void *ctx, struct buf *out); /* more; or NULL */
    const void *ctx;
    uint64_t done; /* of the last update */
    double start_ms, last_ms;
    bool is_terminal;
};
void progress_start(struct progress *progress, const char *label,
                    uint64_t total, bool is_logged);
void progress_update(struct progress *progress, uint64_t done); /* or NULL */
/* Clears the line. */
void progress_finish(struct progress *progress);

#endif
