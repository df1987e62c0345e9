/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/text.h"
#include "core/settings.h"
#include "tests/fuzz/target.h"

/* Settings are refused with a sentence, or each lies within its range and is
 * given at most once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings;
    struct arena arena = {0};
    struct err err = {0};
    uint64_t bytes;

    if (settings_parse(&settings, (const char *)data, size, &arena, &err))
        MUST(err.code == ERR_USAGE && *err.msg);
    else {
        MUST(settings.batch || settings.n_devices || settings.reserve);
        MUST((double)settings.batch <= PROBLEM_MAX_BATCH);
        MUST(settings.n_devices <= SETTINGS_MAX_DEVICES);
        if (settings.reserve)
            MUST(text_to_share(settings.reserve, INT64_MAX, &bytes));
    }
    arena_release(&arena);
    return 0;
}
