/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "io/nccl_tests.h"
#include "tests/fuzz/target.h"

/* An output of nccl-tests is either valid or refused with an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_tests tests;
    struct arena arena = {0};
    struct err err = {0};

    if (nccl_tests_parse(&tests, (const char *)data, size, "fuzz", &arena,
                         &err)) {
        MUST(err.code == ERR_INPUT && !strncmp(err.msg, "fuzz:", 5));
    } else {
        MUST(tests.n_rows >= 1 && tests.n_ranks >= 2);
        MUST(tests.n_hosts >= 1 && tests.n_hosts <= tests.n_ranks);
        MUST(*tests.device && text_is_printable(tests.device));
        for (size_t i = 0; i < tests.n_rows; i++)
            MUST(tests.rows[i].bytes > 0 && isfinite(tests.rows[i].us) &&
                 tests.rows[i].us > 0);
    }
    arena_release(&arena);
    return 0;
}
