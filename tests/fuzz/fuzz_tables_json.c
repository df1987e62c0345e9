/* SPDX-License-Identifier: MIT */
#include "io/tables_json.h"

#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* Reads the list without --dim and --pooling, and with both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t dim = 0; dim <= 64; dim += 64) {
        struct tables_options options = {
            .dim = dim, .pooling = dim / 64, .warn = must_be_sentence};
        struct table_list list = {0};
        struct arena arena = {0};
        struct err err = {0};
        int rc;

        rc = tables_from_json(&list, (const char *)data, size, "fuzz", &options,
                              &arena, &err);
        must_be_valid_or_explained(rc, &list, &err);
        must_be_sentence(NULL, err.msg);
        arena_release(&arena);
    }
    return 0;
}
