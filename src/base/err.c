/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    err->code = code;
    va_start(args, fmt);
    text_sentence(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char prefix[sizeof err->msg], old[sizeof err->msg];
    va_list args;

    va_start(args, fmt);
    text_sentence(prefix, sizeof prefix, fmt, args);
    va_end(args);
    memcpy(old, err->msg, sizeof old);
    return err_set(err, err->code, "%s: %s", prefix, old);
}

int err_exit_status(enum err_code code)
{
    switch (code) {
    case ERR_NONE:
        return 0;
    case ERR_USAGE:
    case ERR_OVERWRITE:
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
