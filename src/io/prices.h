/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PRICES_H
#define NEUROSHARD_IO_PRICES_H

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>

/*
 * Prices of GPUs. Each line of the text has the name of a GPU and its price per
 * hour, separated by a comma or by blanks:
 *
 *     # from our contract
 *     h100 2.49
 *     NVIDIA A100-SXM4-80GB, 1.19
 *
 * Text after '#' is a comment, and empty lines are skipped. A first line
 * "gpu,price" is a heading. The currency does not matter.
 */

#define PRICES_MOST 1e9 /* largest price of a GPU-hour */

struct gpu_price {
    const char *gpu; /* as written */
    double per_hour;
    size_t line;
};
struct prices {
    const char *source; /* file; not owned */
    struct gpu_price *list;
    size_t n;
};
/* Reads a text. The result is in the arena. Errors are ERR_INPUT and name the
 * line. */
int prices_read(struct prices *prices, const char *text, size_t len,
                const char *source, struct arena *arena,
                struct err *err) MUST_CHECK;

#endif
