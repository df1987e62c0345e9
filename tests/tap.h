/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_TAP_H
#define NEUROSHARD_TESTS_TAP_H

/*
 * Test Anything Protocol for C tests; `prove` runs them. A test program's exit
 * status is its verdict. Include in one file only.
 *
 *     ok(cond, "what holds, %s", ...)     is_i64(got, want, "name")
 *     is_str(got, want, "name")           is_near(got, want, tol, "name")
 *     tap_skip("name", "reason")          tap_skip_all("reason")
 *     return tap_done();
 *     tap_many(n)                         number of cases to try: n, or a
 *                                         tenth of n under TEST_SIZE=tiny
 *                                         (for programs with sanitizers)
 *     tap_size(quick, full)               tap_many(quick) by default, full
 *                                         under TEST_SIZE=full, and 7 % of
 *                                         the way from quick to full under
 *                                         TEST_SIZE=7 (make test-long)
 *     tap_worst(worst, error)             the larger; NAN counts as larger
 *                                         than any number
 */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_run, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static int
ok(int cond, const char *fmt, ...)
{
    va_list args;

    printf("%sok %d - ", cond ? "" : "not ", ++tap_run);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    tap_failed += !cond;
    fflush(stdout);
    return cond;
}

__attribute__((unused)) static int is_i64(int64_t got, int64_t want,
                                          const char *name)
{
    if (!ok(got == want, "%s", name))
        printf("# got %" PRId64 ", want %" PRId64 "\n", got, want);
    return got == want;
}

__attribute__((unused)) static int is_str(const char *got, const char *want,
                                          const char *name)
{
    int same = got && want ? !strcmp(got, want) : got == want;

    if (!ok(same, "%s", name))
        printf("#  got '%s'\n# want '%s'\n", got ? got : "(null)",
               want ? want : "(null)");
    return same;
}

/* |got - want| <= tol; NAN is near nothing. */
__attribute__((unused)) static int is_near(double got, double want, double tol,
                                           const char *name)
{
    int near = fabs(got - want) <= tol;

    if (!ok(near, "%s", name))
        printf("# got %.17g, want %.17g +- %g\n", got, want, tol);
    return near;
}

__attribute__((unused)) static size_t tap_many(size_t n)
{
    const char *size = getenv("TEST_SIZE");

    return size && !strcmp(size, "tiny") ? (n + 9) / 10 : n;
}

__attribute__((unused)) static size_t tap_size(size_t quick, size_t full)
{
    const char *size = getenv("TEST_SIZE");

    if (!size || !strcmp(size, "tiny"))
        return tap_many(quick);
    if (!strcmp(size, "full"))
        return full;
    return quick + (full - quick) * strtoul(size, NULL, 10) / 100;
}

__attribute__((unused)) static double tap_worst(double worst, double error)
{
    return isnan(worst) || error <= worst ? worst : error;
}

__attribute__((unused)) static void tap_skip(const char *name,
                                             const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_run, name, reason);
}

__attribute__((unused, noreturn)) static void tap_skip_all(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    exit(0);
}

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_run);
    return tap_failed != 0;
}

#endif
