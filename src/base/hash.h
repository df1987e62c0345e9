/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_HASH_H
#define NEUROSHARD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the XXH3 hash of 64 bits (libxxhash). The hash does not depend on the
 * version of the library or on the machine. */
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);

#define HASH_TEXT_MAX 17
/* Writes a hash as 16 hexadecimal digits and a NUL; returns buf. */
const char *hash_text(char buf[HASH_TEXT_MAX], uint64_t hash);
/* Returns a hash as 16 hexadecimal digits. The text lives as long as the
 * enclosing block. */
#define HASH_TEXT(hash) hash_text((char[HASH_TEXT_MAX]){0}, (hash))

#endif
