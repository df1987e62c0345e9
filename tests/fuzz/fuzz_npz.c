/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "io/npy.h"
#include "tests/fuzz/target.h"

/* Each member in turn: valid or explained. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npz_member member;
    struct arena arena = {0};
    struct err err = {0};
    size_t at = 0;

    for (;;) {
        if (npz_parse(&member, (const char *)data + at, size - at, &arena,
                      &err)) {
            MUST(err.code == ERR_INPUT && *err.msg);
            break;
        }
        if (!member.name)
            break;
        MUST(member.begin >= 30 && member.begin <= size - at);
        MUST(member.begin <= member.end && member.end <= INT64_MAX);
        MUST(strlen(member.name) <= member.begin - 30);
        if (member.end > size - at)
            break;
        at += member.end;
    }
    arena_release(&arena);
    return 0;
}
