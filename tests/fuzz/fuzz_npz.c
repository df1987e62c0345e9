/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "io/npy.h"
#include "tests/fuzz/target.h"

/* Each member of an archive is either valid or refused with an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npz_member member, members[8];
    struct arena arena = {0};
    struct err err = {0};
    size_t at = 0, n = 0;

    for (;;) {
        if (npz_parse(&member, (const char *)data + at, size - at, &arena,
                      &err)) {
            MUST(err.code == ERR_INPUT && *err.msg);
            break;
        }
        if (!member.name) {
            if (npz_check_directory(members, n, (const char *)data + at,
                                    size - at, at, &err))
                MUST(err.code == ERR_INPUT && *err.msg);
            break;
        }
        if (n == sizeof(members) / sizeof(*members))
            break;
        MUST(member.begin >= 30 && member.begin <= size - at);
        MUST(member.begin <= member.end && member.end <= INT64_MAX);
        MUST(strlen(member.name) <= member.begin - 30);
        if (member.end > size - at)
            break;
        member.pos = at;
        member.begin += at;
        member.end += at;
        members[n++] = member;
        at = member.end;
    }
    arena_release(&arena);
    return 0;
}
