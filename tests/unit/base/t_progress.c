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
    is_str(said(&progress, 50, 100), "cases: 50, 0.50/s, 5:00 min left\n",
           "of what has no end a limit is one");
    return tap_done();
}
