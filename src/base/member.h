/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_MEMBER_H
#define NEUROSHARD_BASE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Members of a struct as data: what is printed, read from JSON and written to
 * it, or kept in a database goes by tables with a line a member.
 */
enum member_type {
    MEMBER_U32, /* an enum, too */
    MEMBER_U64,
    MEMBER_REAL,
    MEMBER_BOOL,
    MEMBER_TEXT, /* const char * */
    MEMBER_HASH  /* one that hash_text prints: said by hand */
};

/* Type and offset of a member of the rows' struct. */
#define MEMBER_OF(row, member) \
    _Generic(((row *)0)->member,    \
        double: MEMBER_REAL,        \
        uint32_t: MEMBER_U32,       \
        uint64_t: MEMBER_U64,       \
        bool: MEMBER_BOOL,          \
        const char *: MEMBER_TEXT), \
        offsetof(row, member)

#endif
