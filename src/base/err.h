/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_ERR_H
#define NEUROSHARD_BASE_ERR_H

#include "base/host_device.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How everything here fails: a function that can fail returns 0 or -1, takes a
 * `struct err *` last and is marked MUST_CHECK. On -1 the err holds a code and
 * one complete sentence (lower case, no full stop, what failed first, the
 * subject in single quotes, "file:line: " in front where there is one), and no
 * output needs releasing.
 */

EXTERN_C_BEGIN

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

enum err_code {
    ERR_NONE = 0,
    ERR_INPUT,       /* a file or a value in it is wrong */
    ERR_IO,          /* the operating system refused */
    ERR_USAGE,       /* options or arguments */
    ERR_OVERWRITE,   /* the same: an output would destroy an input */
    ERR_NO_PLAN,     /* no plan fits the memory */
    ERR_DEVICE,      /* an accelerator or a communicator failed */
    ERR_INTERRUPTED, /* the user stopped it; what was done is kept */
};

/* Of ERR_NO_PLAN what the sentence says, for programs; 0, NULL and "" are what
 * it does not say. Amounts that would do are each enough alone. */
struct shortage {
    const char *of; /* "table", "group", "device", "pinned", "samples", "tables"
                       or "movement" */
    char name[256]; /* of the table or group; a longer one is cut */
    bool is_of_device;
    uint32_t device;
    uint64_t need_bytes, have_bytes;
    bool is_proven;             /* no plan at all does */
    uint64_t fits_memory_bytes; /* of a device */
    uint64_t fits_n_gpus, fits_move_bytes;
    const char *fits_cuts; /* that would have to be allowed */
};

/* Owns nothing; may be copied. Zeroed means "no error". */
struct err {
    enum err_code code;
    char msg[512];
    struct shortage shortage;
};

/* Stores code and sentence, no shortage, and returns -1, so a leaf says
 * `return err_set(err, ERR_INPUT, ...)`. Longer sentences are cut, and what is
 * not printable in them is quoted (text_sentence). */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* The same of ERR_INPUT and ERR_USAGE, which most say. */
#define err_input(err, ...) err_set((err), ERR_INPUT, __VA_ARGS__)
#define err_usage(err, ...) err_set((err), ERR_USAGE, __VA_ARGS__)

/* Puts "<text>: " in front of the sentence already stored; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "input", "no_plan" ... */
const char *err_kind(enum err_code code);

/* The exit status a code stands for: 0 done, 1 failed, 2 usage, 3 no plan,
 * 130 interrupted (as a shell says it of SIGINT). */
int err_exit_status(enum err_code code);

EXTERN_C_END

#endif
