/* SPDX-License-Identifier: MIT */
#include "io/tables_tbe.h"

#include "tests/fuzz/tables_valid.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    must_import_list(tables_from_tbe, data, size);
    return 0;
}
