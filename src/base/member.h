/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_MEMBER_H
#define NEUROSHARD_BASE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Members of a struct as data. Tables with one line per member describe which
 * members are printed, read from and written to JSON, or kept in a database.
 */
enum member_type {
    MEMBER_U32, /* uint32_t, or an enum */
    MEMBER_U64,
    MEMBER_REAL,
    MEMBER_BOOL,
    MEMBER_TEXT, /* const char * */
    MEMBER_HASH  /* a hash that hash_text prints; MEMBER_OF never yields this
                    type */
};

/* Type and offset of a member of the struct `row`. */
#define MEMBER_OF(row, member) \
    _Generic(((row *)0)->member,    \
        double: MEMBER_REAL,        \
        uint32_t: MEMBER_U32,       \
        uint64_t: MEMBER_U64,       \
        bool: MEMBER_BOOL,          \
        const char *: MEMBER_TEXT), \
        offsetof(row, member)

#endif
