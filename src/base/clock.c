/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

double clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(buf, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return buf;
}
