/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_ERR_H
#define NEUROSHARD_BASE_ERR_H

#include "base/host_device.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Error handling of the whole program. A function that can fail returns 0 or
 * -1, takes a `struct err *` as its last parameter and is marked MUST_CHECK. On
 * -1 the err holds a code and one complete sentence, and no output needs
 * releasing. The sentence is in lower case without a full stop, names first
 * what failed, puts the subject in single quotes, and begins with "file:line: "
 * if the error is at a line of a file.
 */

EXTERN_C_BEGIN

enum err_code {
    ERR_NONE = 0,
    ERR_INPUT,     /* a file or a value in it is wrong */
    ERR_IO,        /* the operating system refused */
    ERR_USAGE,     /* an option or an argument is wrong */
    ERR_OVERWRITE, /* an option or an argument is wrong: an output would destroy
                      an input */
    ERR_NO_PLAN,   /* no plan fits the memory */
    ERR_DEVICE,    /* an accelerator or a communicator failed */
    ERR_INTERRUPTED, /* the user stopped the command; finished work is kept */
};

/* The content of an ERR_NO_PLAN sentence as data for programs. A member is 0,
 * NULL or "" if the sentence does not mention it. Each fits_ member is a remedy
 * that is enough on its own. */
struct shortage {
    /* Kind of thing that is too large: "table", "group", "device", "host",
     * "pinned", "samples", "tables" or "movement". */
    const char *subject;
    char name[256]; /* name of the table or group, cut if it is too long */
    bool is_of_device;
    uint32_t device;
    uint64_t need_bytes, have_bytes;
    bool is_proven;             /* proven: no plan can exist */
    uint64_t fits_memory_bytes; /* memory of one device that would be enough */
    uint64_t fits_n_gpus, fits_move_bytes;
    const char *fits_cuts; /* kinds of cuts that would be enough if allowed */
};

/* An error. It owns no memory and may be copied. A zeroed struct means "no
 * error". */
struct err {
    enum err_code code;
    char msg[512];
    struct shortage shortage;
};

/* Stores a code and a sentence, clears the shortage and returns -1, so a
 * function can write `return err_set(err, ERR_INPUT, ...)`. A sentence that is
 * too long is cut. Unprintable characters in it are quoted (text_sentence). */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Call err_set with the two most common codes, ERR_INPUT and ERR_USAGE. */
#define err_input(err, ...) err_set((err), ERR_INPUT, __VA_ARGS__)
#define err_usage(err, ...) err_set((err), ERR_USAGE, __VA_ARGS__)

/* Puts "<text>: " in front of the stored sentence; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Appends a text to the stored sentence; returns -1. */
int err_suffix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Returns the name of a code: "input", "no_plan" ... */
const char *err_kind(enum err_code code);

/* Returns the exit status of the program for an error code:
 *
 *   0    done
 *   1    failed
 *   2    wrong usage
 *   3    no plan
 *   130  interrupted (as shells report SIGINT) */
int err_exit_status(enum err_code code);

EXTERN_C_END

#endif
