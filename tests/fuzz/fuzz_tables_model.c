/* SPDX-License-Identifier: MIT */
#include "io/tables_model.h"

#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

/* A printed model. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text);
    memcpy(text, data, size);
    text[size] = '\0';
    (void)tables_is_model(text);
    must_import_list(tables_from_model, (const uint8_t *)text, size);
    free(text);
    return 0;
}
