/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_FUZZ_TARGET_H
#define NEUROSHARD_TESTS_FUZZ_TARGET_H

/* Interface of the fuzz targets and the check that they use. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program if the condition is false. */
#define MUST(cond)                                                             \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                           \
        }                                                                      \
    } while (0)

#endif
