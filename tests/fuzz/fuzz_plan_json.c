/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/plan_check.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "tests/fuzz/target.h"
#include "tests/hostile.h"

/* A plan is either valid or refused with an error. A valid plan is legal, is
 * unchanged after writing and reading, and is written without control
 * characters. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan plan, again;
    struct arena arena = {0};
    struct err err = {0};

    if (plan_from_json(&plan, (const char *)data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT || err.code == ERR_NO_PLAN);
        MUST(!strncmp(err.msg, "fuzz:", 5));
    } else {
        const char *text = plan_to_json(&plan, &arena);

        MUST(!plan_check(&plan, &err));
        MUST(is_clean(text));
        MUST(!plan_from_json(&again, text, strlen(text), "fuzz", &arena, &err));
        MUST(!strcmp(plan_to_json(&again, &arena), text));
    }
    arena_release(&arena);
    return 0;
}
