/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* What is imported is a list that its reader takes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tables_options options = {.columns = ""};
    struct table_list list = {0}, again = {0};
    struct buf notes = {0}, text = {0};
    struct tables_options import = {
        .columns = "", .notes = &notes, .warn = must_be_sentence};
    struct arena arena;
    struct err err = {0};
    int rc;

    arena_init(&arena);
    rc = tables_from_dlrm(&list, (const char *)data, size, "fuzz", &import,
                          &arena, &err);
    if (!rc) {
        buf_printf(&text, "%s", notes.data ? notes.data : "");
        tables_to_csv(&text, &list);
        MUST(!tables_from_csv(&again, text.data, text.len, "fuzz", &options,
                              &arena, &err));
        MUST(again.n_tables == list.n_tables);
    }
    must_be_valid_or_explained(rc, &list, &err);
    must_be_sentence(NULL, err.msg);
    buf_release(&notes);
    buf_release(&text);
    arena_release(&arena);
    return 0;
}
