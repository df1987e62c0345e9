/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, len, seed);
}

const char *hash_text(char buf[HASH_TEXT_MAX], uint64_t hash)
{
    snprintf(buf, HASH_TEXT_MAX, "%016" PRIx64, hash);
    return buf;
}
