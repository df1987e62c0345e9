/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* A text of any format, which the reader tells by itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    must_import_list(tables_from_text, (const uint8_t *)text, size);
    free(text);
    return 0;
}
