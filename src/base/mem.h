/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_MEM_H
#define NEUROSHARD_BASE_MEM_H

/*
 * Host memory. If memory runs out, the program ends with one sentence on stderr
 * and status 1; callers never see an error. This also holds inside the
 * libraries that get these functions (jansson, SQLite). Unfinished output is
 * not written: files appear by a rename, databases by a commit, and standard
 * output is not flushed. Most data live in arenas: each command has an arena,
 * and each search has one.
 */

#include "base/err.h"

#include <stddef.h>

EXTERN_C_BEGIN

#define CACHE_LINE ((size_t)64) /* cache line of all supported processors */

/* Reports that there is no memory for n * size bytes, and ends the program. */
void mem_exhausted(size_t n, size_t size) __attribute__((noreturn));

/* Returns a zeroed block of n * size bytes, aligned to 64; free it with
 * mem_free. If the product overflows, memory counts as exhausted. n * size == 0
 * gives a valid pointer. */
void *mem_alloc(size_t n, size_t size) NEVER_NULL;
/* Changes the size of a block to n * size bytes, as realloc does, and returns
 * the block. New bytes are not zeroed; the block is 16-byte aligned. The
 * pointer must come from mem_grow or be NULL. Free it with mem_free. */
void *mem_grow(void *ptr, size_t n, size_t size) NEVER_NULL;
/* Grows a list that holds n items, if needed, so that at least one more fits.
 * *cap is the capacity of the list in items. Returns the list, as mem_grow
 * does. */
void *mem_room(void *list, size_t n, size_t *cap, size_t size) NEVER_NULL;
/* Announces that a large block will be read and written in random order, so
 * that the system may use large pages for it if it has them. */
void mem_expect_random(void *ptr, size_t n, size_t size);
void mem_free(void *ptr);
/* Returns mem_grow(NULL, 1, size). It is for libraries that accept an
 * allocator. */
void *mem_take(size_t size) NEVER_NULL;

/* A bump allocator: its blocks are chained and are freed together. A zeroed
 * arena is empty. Not thread-safe. */
struct arena_block;
struct arena {
    struct arena_block *head; /* newest block; owned */
};
struct arena_mark {
    struct arena_block *block;
    size_t used;
};

/* Frees all data of the arena, which may then be used again. Accepts NULL and a
 * zeroed arena. */
void arena_release(struct arena *arena);
/* Returns a zeroed block, aligned to 64 bytes, which lives until a rewind or
 * release. */
void *arena_alloc(struct arena *arena, size_t n, size_t size) NEVER_NULL;
#define ARENA_NEW(arena, type, n) \
    ((type *)arena_alloc((arena), (size_t)(n), sizeof(type)))
/* Returns a new arena that may be filled later or by another thread. It is
 * released together with the data that this arena holds now. */
struct arena *arena_child(struct arena *arena) NEVER_NULL;
/* Moves all data of `from` to the arena; `from` is empty afterwards. */
void arena_adopt(struct arena *arena, struct arena *from);
char *arena_strdup(struct arena *arena, const char *s) NEVER_NULL;
/* Copies len bytes and appends a NUL. */
char *arena_strndup(struct arena *arena, const char *s, size_t len) NEVER_NULL;
/* Returns a copy of the n items of a list, and frees the list, which must come
 * from mem_grow. */
void *arena_keep(struct arena *arena, void *list, size_t n,
                 size_t size) NEVER_NULL;
NEVER_NULL char *arena_printf(struct arena *arena, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* arena_mark returns the current end of the arena's data. arena_rewind frees
 * all data that were allocated after the mark. */
struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

/* A text that grows. It is NUL-terminated from the first addition on. */
struct buf {
    char *data; /* the text; owned; NULL until something is added */
    size_t len, cap;
};
/* Makes room for len more bytes and a NUL behind the current text, and returns
 * the end of the text. */
char *buf_reserve(struct buf *buf, size_t len) NEVER_NULL;
void buf_add(struct buf *buf, const char *data, size_t len);
void buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_release(struct buf *buf);

EXTERN_C_END

#endif
