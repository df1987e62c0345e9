/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/dense.h"
#include "tests/fuzz/target.h"

static void check_fit(struct dense *dense)
{
    struct dense_bucket buckets[DENSE_MAX_BUCKETS];
    struct table tables[2];
    uint64_t n_parameters = 0;
    struct err err = {0};
    uint32_t n;

    for (size_t i = 0; i < 2; i++) {
        table_init(&tables[i]);
        tables[i].name = i ? "b" : "a";
        tables[i].dim = 128;
    }
    if (dense_fit(dense, tables, 2, &err)) {
        MUST(err.code == ERR_INPUT);
        return;
    }
    MUST(dense->n_products >= 1 && dense->n_products <= DENSE_MAX_PRODUCTS);
    n = dense_buckets(dense, buckets);
    MUST(n >= 1 && n <= DENSE_MAX_BUCKETS);
    for (uint32_t i = 0; i < n; i++)
        n_parameters += buckets[i].n_parameters;
    MUST(n_parameters == dense->n_parameters);
}

/* A description of a dense part is refused, or it prints as a text that reads
 * as the same dense part. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0}, again = {0};
    struct dense dense, copy;
    struct err err = {0};

    if (dense_parse(&dense, (const char *)data, size, &err)) {
        MUST(err.code == ERR_INPUT && *err.msg);
        return 0;
    }
    dense_print(&dense, &text);
    MUST(!dense_parse(&copy, text.data, text.len, &err));
    dense_print(&copy, &again);
    MUST(text.len == again.len && !memcmp(text.data, again.data, text.len));
    check_fit(&dense);
    buf_release(&text);
    buf_release(&again);
    return 0;
}
