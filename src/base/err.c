/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include "base/printable.h"

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

int err_suffix(struct err *err, const char *fmt, ...)
{
    const struct err old = *err;
    char suffix[sizeof err->msg];
    va_list args;

    va_start(args, fmt);
    text_sentence(suffix, sizeof suffix, fmt, args);
    va_end(args);
    err_set(err, old.code, "%s%s", old.msg, suffix);
    err->shortage = old.shortage;
    return -1;
}

static const struct {
    const char *kind;
    int exit_status;
} codes[] = {
    [ERR_NONE] = {"none", 0},       [ERR_INPUT] = {"input", 1},
    [ERR_IO] = {"io", 1},           [ERR_USAGE] = {"usage", 2},
    [ERR_OVERWRITE] = {"usage", 2}, [ERR_NO_PLAN] = {"no_plan", 3},
    [ERR_DEVICE] = {"device", 1},   [ERR_INTERRUPTED] = {"interrupted", 130},
};

const char *err_kind(enum err_code code)
{
    return codes[code].kind;
}

int err_exit_status(enum err_code code)
{
    return codes[code].exit_status;
}
