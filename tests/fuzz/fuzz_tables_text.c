/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"
#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* Reads a text of any format; the reader detects the format. */
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
