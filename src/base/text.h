/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_TEXT_H
#define NEUROSHARD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Numbers out of text and back. Every parser takes the whole string (leading
 * or trailing anything is refused), never reads the locale and returns false
 * for what does not fit; the caller says what was wrong, with its file:line.
 */

/* Decimal digits only: no sign, no blank, no overflow. */
bool text_to_u64(const char *s, uint64_t *out);
bool text_to_i64(const char *s, int64_t *out);
/* A finite decimal number; "nan", "inf", hexadecimal and what overflows to
 * infinity are refused. */
bool text_to_double(const char *s, double *out);
/* "80GiB", "512 MiB", "4096", "1.5TiB": KiB MiB GiB TiB (binary) and
 * KB MB GB TB (decimal), B or nothing for bytes; at most 2^63-1. */
bool text_to_bytes(const char *s, uint64_t *out);
/* Part of `whole` bytes: a size as above, or a percentage, "15%" or "0.5%".
 * What is more than the whole is refused. */
bool text_to_share(const char *s, uint64_t whole, uint64_t *out);

/* "1.50 GiB", "512 B"; three significant digits or more. buf is returned. */
#define TEXT_BYTES_MAX 32
const char *text_from_bytes(char buf[TEXT_BYTES_MAX], double bytes);
/* 1234567 -> "1,234,567" */
const char *text_from_count(char buf[TEXT_BYTES_MAX], uint64_t n);

bool text_is_utf8(const char *s, size_t len);

#ifdef __cplusplus
}
#endif
#endif
