/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include "base/mem.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void tell(const void *ctx, struct buf *out)
{
    buf_printf(out, ", %s", (const char *)ctx);
}

static void tell_tail(const void *ctx, struct buf *out)
{
    buf_printf(out, "%s", (const char *)ctx);
}

/* Returns the text of an update on a stderr that is a file; `spent_s` seconds
 * have passed since the start and since the last line. */
static const char *said(struct progress *progress, uint64_t done,
                        double spent_s)
{
    static char text[256];
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);
    size_t n;

    progress->start_ms -= 1000 * spent_s;
    progress->last_ms -= 1000 * spent_s;
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    progress_update(progress, done);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

/* Whatever the label and the text, a line has at most 80 columns. */
static void test_width(void)
{
    static const struct {
        const char *label, *tail, *line;
    } cases[] = {
        {"searching", "",
         "searching: 857,000 of 1,000,000 (86 %), 8,569/s, 1:40 min of 3:20 "
         "min, 17 s left\n"},
        {"searching", ", best 2.307 (-2 %)",
         "searching: 857,000 (86 %), 1:40 min of 3:20 min, 17 s left, best "
         "2.307 (-2 %)\n"},
        {"searching", ", best 2.307 ms (-2.0 %)",
         "searching: 86 %, 1:40 min of 3:20 min, 17 s left, best 2.307 ms "
         "(-2.0 %)\n"},
        {"a_table_with_a_name_that_is_much_too_long_for_a_line_of_progress", "",
         "a_table_with_a_name_~r_a_line_of_progress: 86 %, 1:40 min of 3:20 "
         "min, 17 s left\n"},
        {"searching",
         ", best 2.307 ms (-2.0 %), a text that does not fit, whatever is cut",
         "searching: 86 %, 1:40 min of 3:20 min, 17 s left, best 2.307 ms "
         "(-2.0 %), a text\n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct progress progress;
        const char *line;

        progress_start(&progress, cases[i].label, 1000000, true);
        progress.is_terminal = false;
        progress.limit_s = 200;
        progress.tell = tell_tail;
        progress.ctx = cases[i].tail;
        line = said(&progress, 857000, 100);
        is_str(line, cases[i].line, cases[i].label);
        ok(strlen(line) <= 81, "80 columns");
    }
}

int main(void)
{
    struct progress progress;

    progress_start(&progress, "searching", 1000000, false);
    progress.is_terminal = false;
    is_str(said(&progress, 10, 61), "", "a log is silent");
    is_i64((int64_t)progress.done, 10, "but what is done is known");
    progress_start(&progress, "searching", 1000000, true);
    progress.is_terminal = false;
    progress.tell = tell;
    progress.ctx = "best 2.5 ms";
    is_str(said(&progress, 857000, 100),
           "searching: 857,000 of 1,000,000 (86 %), 8,569/s, 17 s left, best "
           "2.5 ms\n",
           "or has a line, in plain numbers");
    is_str(said(&progress, 900000, 30), "", "a minute");
    progress_start(&progress, "cases", 0, true);
    progress.is_terminal = false;
    progress.limit_s = 400;
    is_str(said(&progress, 50, 100),
           "cases: 50, 0.50/s, 1:40 min of 6:40 min\n",
           "a limit is shown with the time that has passed");
    progress_start(&progress, "searching", 1000000, true);
    progress.is_terminal = false;
    progress.limit_s = 200;
    progress.before_s = 20;
    is_str(said(&progress, 900000, 90),
           "searching: 900,000 of 1,000,000 (90 %), 9,999/s, 1:50 min of 3:20 "
           "min, 10 s left\n",
           "work that ends before the limit has a time left");
    progress.last_ms = progress.start_ms;
    is_str(said(&progress, 950000, 60),
           "searching: 950,000 of 1,000,000 (95 %), 6,333/s, 2:50 min of 3:20 "
           "min, 8 s left\n",
           "also later");
    test_width();
    return tap_done();
}
