/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

static double read_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

double clock_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

double clock_thread_ms(void)
{
    return read_ms(CLOCK_THREAD_CPUTIME_ID);
}

double clock_process_ms(void)
{
    return read_ms(CLOCK_PROCESS_CPUTIME_ID);
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(buf, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return buf;
}
