/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include "base/text.h"

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    err->code = code;
    err->shortage = (struct shortage){0};
    va_start(args, fmt);
    text_sentence(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    const struct err old = *err;
    char prefix[sizeof err->msg];
    va_list args;

    va_start(args, fmt);
    text_sentence(prefix, sizeof prefix, fmt, args);
    va_end(args);
    err_set(err, old.code, "%s: %s", prefix, old.msg);
    err->shortage = old.shortage;
    return -1;
}

const char *err_kind(enum err_code code)
{
    static const char *const kinds[] = {
        [ERR_NONE] = "none",       [ERR_INPUT] = "input",
        [ERR_IO] = "io",           [ERR_USAGE] = "usage",
        [ERR_OVERWRITE] = "usage", [ERR_NO_PLAN] = "no_plan",
        [ERR_DEVICE] = "device",   [ERR_INTERRUPTED] = "interrupted",
    };

    return kinds[code];
}

int err_exit_status(enum err_code code)
{
    static const int statuses[] = {
        [ERR_NONE] = 0,   [ERR_INPUT] = 1,         [ERR_IO] = 1,
        [ERR_USAGE] = 2,  [ERR_OVERWRITE] = 2,     [ERR_NO_PLAN] = 3,
        [ERR_DEVICE] = 1, [ERR_INTERRUPTED] = 130,
    };

    return statuses[code];
}
