/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_MS 100
#define CLEAR_TO_END "\033[K"

size_t terminal_columns(int fd, size_t otherwise)
{
    const char *said = getenv("COLUMNS");
    struct winsize size;
    uint64_t n;

    if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
        return size.ws_col;
    return said && text_to_u64(said, &n) && n ? n : otherwise;
}

void progress_start(struct progress *progress, const char *label,
                    uint64_t total)
{
    *progress = (struct progress){.label = label, .total = total};
    progress->is_terminal = isatty(STDERR_FILENO);
    if (!progress->is_terminal)
        return;
    progress->start_ms = progress->last_ms = clock_ms();
}

/* "12 s", "3:04 min", "2:03 h" */
static void print_duration(double s)
{
    uint64_t n = (uint64_t)(s + 0.5);

    if (n < 60)
        fprintf(stderr, "%" PRIu64 " s", n);
    else if (n < 3600)
        fprintf(stderr, "%" PRIu64 ":%02" PRIu64 " min", n / 60, n % 60);
    else
        fprintf(stderr, "%" PRIu64 ":%02" PRIu64 " h", n / 3600, n / 60 % 60);
}

/* Negative where there is no telling. */
static double seconds_left(const struct progress *progress, uint64_t done,
                           double spent_s)
{
    double left_s = -1, until_limit_s = progress->limit_s - spent_s;

    if (done && done < progress->total)
        left_s = (double)(progress->total - done) / (double)done * spent_s;
    if (progress->limit_s > 0 && (left_s < 0 || until_limit_s < left_s))
        left_s = until_limit_s > 0 ? until_limit_s : 0;
    return left_s;
}

void progress_update(struct progress *progress, uint64_t done)
{
    double now_ms, spent_s, left_s;

    if (!progress || !progress->is_terminal)
        return;
    now_ms = clock_ms();
    if (now_ms - progress->last_ms < REDRAW_MS)
        return;
    progress->last_ms = now_ms;
    spent_s = (now_ms - progress->start_ms) / 1e3;
    left_s = seconds_left(progress, done, spent_s);
    fprintf(stderr, "\r%s: %" PRIu64, progress->label, done);
    if (progress->total)
        fprintf(stderr, "/%" PRIu64 " (%.0f%%)", progress->total,
                100 * (double)done / (double)progress->total);
    fprintf(stderr, ", %.3g/s", (double)done / spent_s);
    if (left_s >= 0) {
        fputs(", ", stderr);
        print_duration(left_s);
        fputs(" left", stderr);
    }
    fputs(CLEAR_TO_END, stderr);
    fflush(stderr);
}

void progress_finish(struct progress *progress)
{
    if (progress->is_terminal)
        fputs("\r" CLEAR_TO_END, stderr);
}
