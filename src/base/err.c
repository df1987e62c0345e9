/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    err->code = code;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char text[sizeof err->msg], joined[2 * sizeof err->msg + 2];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(joined, sizeof joined, "%s: %s", text, err->msg);
    memcpy(err->msg, joined, sizeof err->msg - 1);
    err->msg[sizeof err->msg - 1] = '\0';
    return -1;
}

int err_exit_status(enum err_code code)
{
    switch (code) {
    case ERR_NONE:
        return 0;
    case ERR_USAGE:
        return 2;
    case ERR_NO_PLAN:
        return 3;
    case ERR_INTERRUPTED:
        return 130;
    case ERR_INPUT:
    case ERR_IO:
    case ERR_DEVICE:
        return 1;
    }
    return 1;
}
