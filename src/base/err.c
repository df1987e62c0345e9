/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Room for a sentence before it is quoted; the rest would be cut anyway. */
#define SENTENCE_MAX (2 * sizeof(((struct err *)0)->msg))

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    err->code = code;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    text_quote(err->msg, sizeof err->msg, sentence);
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char text[sizeof err->msg], joined[SENTENCE_MAX + 2];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(joined, sizeof joined, "%s: %s", text, err->msg);
    text_quote(err->msg, sizeof err->msg, joined);
    return -1;
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
