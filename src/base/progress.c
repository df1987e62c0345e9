/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_MS 100
#define CLEAR_TO_END "\033[K"

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

void progress_update(struct progress *progress, uint64_t done)
{
    double now_ms, spent_s, rate;

    if (!progress->is_terminal)
        return;
    now_ms = clock_ms();
    if (now_ms - progress->last_ms < REDRAW_MS)
        return;
    progress->last_ms = now_ms;
    spent_s = (now_ms - progress->start_ms) / 1e3;
    rate = (double)done / spent_s;
    fprintf(stderr, "\r%s: %" PRIu64, progress->label, done);
    if (progress->total)
        fprintf(stderr, "/%" PRIu64 " (%.0f%%)", progress->total,
                100 * (double)done / (double)progress->total);
    fprintf(stderr, ", %.3g/s", rate);
    if (done && done < progress->total) {
        fputs(", ", stderr);
        print_duration((double)(progress->total - done) / rate);
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
