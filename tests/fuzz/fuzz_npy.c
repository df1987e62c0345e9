/* SPDX-License-Identifier: MIT */
#include "io/npy.h"
#include "tests/fuzz/target.h"

/* A .npy file is either valid or refused with an error. A valid one yields the
 * place of its numbers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy npy;
    struct err err = {0};

    if (npy_parse(&npy, (const char *)data, size, &err)) {
        MUST(err.code == ERR_INPUT && *err.msg);
        return 0;
    }
    MUST(npy.width == 4 || npy.width == 8);
    MUST(npy.begin <= size && npy.begin <= npy.end && npy.end <= INT64_MAX);
    MUST(!npy.n_rows || npy.n_columns <= INT64_MAX / npy.n_rows);
    MUST(npy.end - npy.begin == npy.n_rows * npy.n_columns * npy.width);
    return 0;
}
