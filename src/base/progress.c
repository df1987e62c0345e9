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
#define LOG_MS 60000
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
                    uint64_t total, bool is_logged)
{
    *progress = (struct progress){
        .label = label, .total = total, .is_logged = is_logged};
    progress->is_terminal = isatty(STDERR_FILENO);
    progress->start_ms = progress->last_ms = clock_ms();
}

/* Prints a duration as "12 s", "3:04 min" or "2:03 h". */
static void print_duration(double s, struct buf *out)
{
    uint64_t n = (uint64_t)(s + 0.5);

    if (n < 60)
        buf_printf(out, "%" PRIu64 " s", n);
    else if (n < 3600)
        buf_printf(out, "%" PRIu64 ":%02" PRIu64 " min", n / 60, n % 60);
    else
        buf_printf(out, "%" PRIu64 ":%02" PRIu64 " h", n / 3600, n / 60 % 60);
}

/* Prints the line of progress after spent_s seconds. */
static void print_line(const struct progress *progress, double spent_s,
                       struct buf *out)
{
    const double done = (double)progress->done, rate = done / spent_s;
    const double until_limit_s = progress->limit_s - spent_s;
    double left_s = -1; /* time left in s; negative: unknown */

    if (progress->done && progress->done < progress->total)
        left_s = (double)(progress->total - progress->done) / done * spent_s;
    if (progress->limit_s > 0 && (left_s < 0 || until_limit_s < left_s))
        left_s = until_limit_s > 0 ? until_limit_s : 0;
    buf_printf(out, "%s: %s", progress->label, TEXT_COUNT(progress->done));
    if (progress->total)
        buf_printf(out, " of %s (%.0f %%)", TEXT_COUNT(progress->total),
                   100 * done / (double)progress->total);
    if (rate < 10)
        buf_printf(out, ", %.2f/s", rate);
    else
        buf_printf(out, ", %s/s", TEXT_COUNT((uint64_t)rate));
    if (left_s >= 0) {
        buf_printf(out, ", ");
        print_duration(left_s, out);
        buf_printf(out, " left");
    }
    if (progress->tell)
        progress->tell(progress->ctx, out);
}

void progress_update(struct progress *progress, uint64_t done)
{
    struct buf line = {0};
    double now_ms;
    size_t most;

    if (!progress)
        return;
    progress->done = done;
    if (!progress->is_terminal && !progress->is_logged)
        return;
    now_ms = clock_ms();
    if (now_ms - progress->last_ms <
        (progress->is_terminal ? REDRAW_MS : LOG_MS))
        return;
    progress->last_ms = now_ms;
    print_line(progress, (now_ms - progress->start_ms) / 1e3, &line);
    most = terminal_columns(STDERR_FILENO, SIZE_MAX) - 1;
    if (progress->is_terminal)
        fprintf(stderr, "\r%.*s" CLEAR_TO_END,
                (int)(line.len < most ? line.len : most), line.data);
    else
        fprintf(stderr, "%s\n", line.data);
    fflush(stderr);
    buf_release(&line);
}

void progress_finish(struct progress *progress)
{
    if (progress->is_terminal)
        fputs("\r" CLEAR_TO_END, stderr);
}
