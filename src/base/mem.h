/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_MEM_H
#define NEUROSHARD_BASE_MEM_H

/*
 * Host memory. Running out of it ends the program with one sentence on stderr
 * and status 1, wherever it happens, in the libraries that are given these
 * functions too (jansson, SQLite); it is never passed up. What is not in place
 * by then is not written: files appear by a rename, databases by a commit, and
 * standard output is not flushed. Most things live in an arena: one a command,
 * one a search.
 */

#include "base/err.h"

#include <stddef.h>

EXTERN_C_BEGIN

#define NEVER_NULL __attribute__((returns_nonnull))
#define CACHE_LINE ((size_t)64) /* of all processors that this runs on */

/* Says that there is no memory for n * size bytes, and ends the program. */
void mem_exhausted(size_t n, size_t size) __attribute__((noreturn));

/* Zeroed block of n * size bytes, aligned to 64; free with mem_free. An
 * overflowing product is more than there is. n * size == 0 gives a valid
 * pointer. */
void *mem_alloc(size_t n, size_t size) NEVER_NULL;
/* As realloc of n * size bytes (new bytes not zeroed, 16-byte aligned); the
 * pointer must come from mem_grow or be NULL. Free with mem_free. */
void *mem_grow(void *ptr, size_t n, size_t size) NEVER_NULL;
/* The same with room for at least one more than the n items that it holds; *cap
 * says for how many. */
void *mem_room(void *list, size_t n, size_t *cap, size_t size) NEVER_NULL;
/* Says that a large block will be read and written all over: where the system
 * has large pages it may use them. */
void mem_expect_random(void *ptr, size_t n, size_t size);
void mem_free(void *ptr);
/* mem_grow(NULL, 1, size), for libraries that take an allocator. */
void *mem_take(size_t size) NEVER_NULL;

/* A bump allocator: blocks are chained, freed together. Zeroed it is empty. Not
 * thread-safe. */
struct arena_block;
struct arena {
    struct arena_block *head; /* owned; newest block first */
};
struct arena_mark {
    struct arena_block *block;
    size_t used;
};

/* Frees everything; the arena may be used again. NULL and zeroed are fine. */
void arena_release(struct arena *arena);
/* Zeroed, aligned to 64 bytes, lives until rewind or release. */
void *arena_alloc(struct arena *arena, size_t n, size_t size) NEVER_NULL;
#define ARENA_NEW(arena, type, n) \
    ((type *)arena_alloc((arena), (size_t)(n), sizeof(type)))
/* An arena of its own, to be filled later or by another thread, that is
 * released with what is in this one now. */
struct arena *arena_child(struct arena *arena) NEVER_NULL;
/* All that is in `from` lives on in the arena; `from` is empty then. */
void arena_adopt(struct arena *arena, struct arena *from);
char *arena_strdup(struct arena *arena, const char *s) NEVER_NULL;
/* Copies len bytes and appends a NUL. */
char *arena_strndup(struct arena *arena, const char *s, size_t len) NEVER_NULL;
/* A copy of n items of a list by mem_grow, which is freed. */
void *arena_keep(struct arena *arena, void *list, size_t n,
                 size_t size) NEVER_NULL;
NEVER_NULL char *arena_printf(struct arena *arena, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
/* Everything allocated after the mark dies at the rewind. */
struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

/* A growable text, always NUL-terminated once something was added. */
struct buf {
    char *data; /* owned; NULL while empty */
    size_t len, cap;
};
/* Room for len more bytes and a NUL, behind those that there are. */
char *buf_reserve(struct buf *buf, size_t len) NEVER_NULL;
void buf_add(struct buf *buf, const char *data, size_t len);
void buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_release(struct buf *buf);

EXTERN_C_END

#endif
