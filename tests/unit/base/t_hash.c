/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "tests/tap.h"

int main(void)
{
    char buf[HASH_TEXT_MAX];

    /* the published XXH3 value of an empty input */
    is_str(hash_text(buf, hash_bytes("", 0, 0)), "2d06800538d394c2",
           "hash of nothing");
    is_str(hash_text(buf, 1), "0000000000000001", "16 digits always");
    is_str(hash_text(buf, UINT64_MAX), "ffffffffffffffff", "largest hash");
    ok(hash_bytes("abc", 3, 0) != hash_bytes("abd", 3, 0), "content counts");
    ok(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1), "the seed counts");
    ok(hash_bytes("abc", 3, 0) != hash_bytes("abc", 2, 0), "length counts");
    return tap_done();
}
