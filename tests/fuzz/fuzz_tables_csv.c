/* SPDX-License-Identifier: MIT */
#include "io/tables_csv.h"

#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* A list that is written is read as the same list, and written again with the
 * same text. */
static void must_be_written(const struct table_list *list, struct arena *arena)
{
    static const struct tables_options options = {0};
    struct table_list again = {0};
    struct buf first = {0}, second = {0};
    struct err err = {0};

    tables_to_csv(&first, list);
    MUST(!tables_from_csv(&again, first.data, first.len, "fuzz", &options,
                          arena, &err));
    MUST(again.n_tables == list->n_tables);
    tables_to_csv(&second, &again);
    MUST(first.len == second.len &&
         !memcmp(first.data, second.data, first.len));
    buf_release(&first);
    buf_release(&second);
}

/* Reads the list without --dim and --pooling, with both, and then as an import
 * does. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t dim = 0; dim <= 64; dim += 64) {
        struct tables_options options = {.dim = dim,
                                         .pooling = dim / 64,
                                         .warn = must_be_sentence,
                                         .columns = dim ? "name=id" : NULL};
        struct table_list list = {0};
        struct arena arena = {0};
        struct err err = {0};
        int rc;

        rc = tables_from_csv(&list, (const char *)data, size, "fuzz", &options,
                             &arena, &err);
        must_be_valid_or_explained(rc, &list, &err);
        must_be_sentence(NULL, err.msg);
        for (size_t i = 0; !rc && i < list.n_tables; i++)
            MUST(list.tables[i].dim && !isnan(list.tables[i].pooling_factor));
        if (!rc)
            must_be_written(&list, &arena);
        arena_release(&arena);
    }
    return 0;
}
