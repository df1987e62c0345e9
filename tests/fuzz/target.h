/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_FUZZ_TARGET_H
#define NEUROSHARD_TESTS_FUZZ_TARGET_H

/* What each fuzz target is, and how it says that something is wrong. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program where that is not so. */
#define MUST(cond)                                                             \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                           \
        }                                                                      \
    } while (0)

#endif
