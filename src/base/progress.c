/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_MS 100
#define LOG_MS 60000
/* Width of a log, and of a terminal whose width is unknown. */
#define USUAL_COLUMNS 80
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

/* Prints the time left, and with a limit also the time that has passed. */
static void print_time(const struct progress *progress, double spent_s,
                       struct buf *out)
{
    const double passed_s = progress->before_s + spent_s;
    double left_s = -1; /* time left in s; negative: unknown */

    if (progress->done && progress->done < progress->total)
        left_s = (double)(progress->total - progress->done) /
                 (double)progress->done * spent_s;
    if (progress->limit_s > 0) {
        buf_printf(out, ", ");
        print_duration(passed_s, out);
        buf_printf(out, " of ");
        print_duration(progress->limit_s, out);
        if (passed_s + left_s >= progress->limit_s)
            return; /* the limit ends the work */
    }
    if (left_s >= 0) {
        buf_printf(out, ", ");
        print_duration(left_s, out);
        buf_printf(out, " left");
    }
}

/* How much of a line is left out because the line would be too long. */
enum brevity { ALL, NO_RATE, NO_TOTAL, PERCENT_ALONE };

/* Prints the line of progress after spent_s seconds, without its label. */
static void print_rest(const struct progress *progress, double spent_s,
                       enum brevity brevity, struct buf *out)
{
    const double done = (double)progress->done, rate = done / spent_s;

    buf_printf(out, ": ");
    if (!progress->total || brevity < PERCENT_ALONE)
        buf_printf(out, "%s", TEXT_COUNT(progress->done));
    if (progress->total && brevity < NO_TOTAL)
        buf_printf(out, " of %s", TEXT_COUNT(progress->total));
    if (progress->total)
        buf_printf(out, brevity < PERCENT_ALONE ? " (%.0f %%)" : "%.0f %%",
                   100 * done / (double)progress->total);
    if (brevity < NO_RATE) {
        if (rate < 10)
            buf_printf(out, ", %.2f/s", rate);
        else
            buf_printf(out, ", %s/s", TEXT_COUNT((uint64_t)rate));
    }
    print_time(progress, spent_s, out);
    if (progress->tell)
        progress->tell(progress->ctx, out);
}

/* Number of columns to which a label is never cut shorter. */
#define LEAST_LABEL 12u

/* Prints a label in about n_columns columns: '~' replaces its middle. Never
 * cuts inside a character. */
static void print_label(const char *label, size_t n_columns, struct buf *out)
{
    const size_t len = strlen(label), most = max_u64(n_columns, LEAST_LABEL);
    size_t head = most / 2, tail = len - (most - 1) / 2;

    if (len <= most) {
        buf_printf(out, "%s", label);
        return;
    }
    while (head && text_goes_on(label[head]))
        head--;
    while (tail < len && text_goes_on(label[tail]))
        tail++;
    buf_printf(out, "%.*s~%s", (int)head, label, label + tail);
}

/* Prints the line of progress in at most n_columns columns. A column is a byte,
 * so a line with other characters than ASCII may be shorter than necessary. */
static void print_line(const struct progress *progress, double spent_s,
                       size_t n_columns, struct buf *out)
{
    const size_t label = strlen(progress->label);
    struct buf rest = {0};
    enum brevity brevity = ALL;

    print_rest(progress, spent_s, brevity, &rest);
    while (label + rest.len > n_columns && brevity < PERCENT_ALONE) {
        buf_release(&rest);
        print_rest(progress, spent_s, ++brevity, &rest);
    }
    print_label(progress->label,
                rest.len < n_columns ? n_columns - rest.len : 0, out);
    buf_add(out, rest.data, rest.len);
    buf_release(&rest);
    if (out->len > n_columns) {
        while (n_columns && text_goes_on(out->data[n_columns]))
            n_columns--;
        out->data[n_columns] = '\0';
        out->len = n_columns;
    }
}

void progress_update(struct progress *progress, uint64_t done)
{
    struct buf line = {0};
    double now_ms;

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
    /* the last column of a terminal stays free, so that no line wraps */
    print_line(progress, (now_ms - progress->start_ms) / 1e3,
               progress->is_terminal
                   ? terminal_columns(STDERR_FILENO, USUAL_COLUMNS) - 1
                   : USUAL_COLUMNS,
               &line);
    if (progress->is_terminal)
        fprintf(stderr, "\r%s" CLEAR_TO_END, line.data);
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
