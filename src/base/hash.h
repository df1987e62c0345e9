/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_HASH_H
#define NEUROSHARD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3, 64 bits (libxxhash): stable across versions and machines. */
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);

#define HASH_TEXT_MAX 17
/* 16 hexadecimal digits and a NUL; buf is returned. */
const char *hash_text(char buf[HASH_TEXT_MAX], uint64_t hash);
/* The same as a text that lasts as long as the block it stands in. */
#define HASH_TEXT(hash) hash_text((char[HASH_TEXT_MAX]){0}, (hash))

#endif
