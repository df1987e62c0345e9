/* SPDX-License-Identifier: MIT */
#include "io/store_csv.h"

#include <string.h>

#include "io/store_merge.h"
#include "tests/fuzz/target.h"

static void to_csv(struct buf *out, struct store *store)
{
    struct store *sorted;
    struct err err = {0};

    MUST(!store_sorted(&sorted, store, &err));
    MUST(!store_to_csv(out, sorted, &err));
    store_close(sorted);
}

/* Either the file is refused with an error that has its name, or its samples
 * survive writing and reading without loss. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf first = {0}, second = {0};
    struct store *store, *again;
    struct arena arena = {0};
    struct err err = {0};

    if (store_from_csv(&store, (const char *)data, size, "fuzz", &arena,
                       &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5) ||
             !strncmp(err.msg, "cost database 'fuzz': ", 22));
    } else {
        to_csv(&first, store);
        MUST(!store_from_csv(&again, first.data, first.len, "again", &arena,
                             &err));
        to_csv(&second, again);
        MUST(first.len == second.len &&
             !memcmp(first.data, second.data, first.len));
        store_close(store);
        store_close(again);
    }
    buf_release(&first);
    buf_release(&second);
    arena_release(&arena);
    return 0;
}
