/* SPDX-License-Identifier: MIT */
#include "base/gzip.h"
#include "tests/fuzz/target.h"

/* A gzip file is either unpacked, within the limit, or refused with a reason.
 * The input is the file without its first three bytes, because they are always
 * the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf file = {0}, out = {0};
    const char *reason;

    buf_add(&file, "\x1f\x8b\x08", 3);
    buf_add(&file, (const char *)data, size);
    MUST(gzip_is(file.data, file.len));
    reason = gzip_unpack(&out, file.data, file.len, 1 << 16);
    MUST(!reason || *reason);
    MUST(out.len <= 1 << 16);
    buf_release(&file);
    buf_release(&out);
    return 0;
}
