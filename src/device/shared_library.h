/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_SHARED_LIBRARY_H
#define NEUROSHARD_DEVICE_SHARED_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

/* Functions of a shared library that is loaded when it is needed. */

/* A function, and the offset of the member of a struct that receives its
 * address. */
struct shared_function {
    const char *name;
    size_t offset;
};

/* Stores the addresses of functions of `library`, which dlopen returned, in the
 * struct at `members`. The list `functions` ends with the name NULL. If the
 * library lacks a function, fails with ERR_DEVICE and a message that names the
 * library by `shown` and the versions that fit by `wanted`, such as "NCCL 2.13
 * or later". */
int shared_library_find(void *members, void *library,
                        const struct shared_function *functions,
                        const char *shown, const char *wanted,
                        struct err *err) MUST_CHECK;

#endif
