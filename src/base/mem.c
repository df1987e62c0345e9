/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sizes in bytes of the blocks of an arena: the first block, and the largest
 * size up to which each new block is twice as large as the block before. The
 * first block is small because most arenas of a search are small and
 * short-lived: if the system had to map and clear a larger block each time,
 * mapping and clearing would take longer than the use of the block. */
#define ARENA_FIRST_BYTES ((size_t)8 << 10)
#define ARENA_BLOCK_BYTES ((size_t)256 << 10)

/* Under AddressSanitizer (CONFIG=asan) the unused part of a block is poisoned.
 * This catches a pointer that is used after a rewind, or a pointer past the end
 * of its array. */
#ifdef HAVE_ASAN
#    include <sanitizer/asan_interface.h>
#else
#    define ASAN_POISON_MEMORY_REGION(ptr, size) ((void)(ptr), (void)(size))
#    define ASAN_UNPOISON_MEMORY_REGION(ptr, size) ((void)(ptr), (void)(size))
#endif

/* Ends the program by _exit, so that no destructor runs. A library's destructor
 * could wait for a thread that was never created, or allocate memory. */
void mem_exhausted(size_t n, size_t size)
{
    char text[96];
    int len =
        snprintf(text, sizeof text,
                 "neuroshard: out of memory (%zu x %zu bytes)\n", n, size);

    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        _exit(1);
    _exit(1);
}

/* Returns n * size, at least 1. */
static size_t product(size_t n, size_t size)
{
    size_t n_bytes;

    if (__builtin_mul_overflow(n, size, &n_bytes) ||
        n_bytes > PTRDIFF_MAX - CACHE_LINE)
        mem_exhausted(n, size);
    return n_bytes ? n_bytes : 1;
}

/* Returns n * size rounded up to whole cache lines, at least one. */
static size_t padded(size_t n, size_t size)
{
    return (product(n, size) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

void *mem_alloc(size_t n, size_t size)
{
    size_t n_bytes = padded(n, size);
    void *ptr = aligned_alloc(CACHE_LINE, n_bytes);

    if (!ptr)
        mem_exhausted(n, size);
    return memset(ptr, 0, n_bytes);
}

void *mem_grow(void *ptr, size_t n, size_t size)
{
    void *grown = realloc(ptr, product(n, size));

    if (!grown)
        mem_exhausted(n, size);
    return grown;
}

void *mem_room(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = 2 * *cap + 64;
    return mem_grow(list, *cap, size);
}

void mem_expect_random(void *ptr, size_t n, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)ptr + page - 1) / page * page;
    const uintptr_t end = (uintptr_t)ptr + product(n, size);

    if (begin < end)
        (void)madvise((char *)ptr + (begin - (uintptr_t)ptr), end - begin,
                      MADV_HUGEPAGE);
}

void *mem_take(size_t size)
{
    return mem_grow(NULL, 1, size);
}

void mem_free(void *ptr)
{
    free(ptr);
}

/* A block of an arena. The header fills a cache line, so the data after the
 * header are aligned, too. */
struct arena_block {
    struct arena_block *older;     /* next older block; owned */
    struct arena_child *offspring; /* child arenas, newest first; stored in the
                                      data of the block */
    size_t used, cap; /* bytes of data in use, and bytes of data in all */
    _Alignas(64) char data[];
};

struct arena_child {
    struct arena arena;
    struct arena_child *older; /* next older child in the same block */
};

/* Frees the arenas of the children that lie in the block at or after offset
 * `used`. */
static void free_offspring(struct arena_block *block, size_t used)
{
    while (block->offspring && (char *)block->offspring >= block->data + used) {
        arena_release(&block->offspring->arena);
        block->offspring = block->offspring->older;
    }
}

static void free_newest(struct arena *arena)
{
    struct arena_block *block = arena->head;

    free_offspring(block, 0);
    arena->head = block->older;
    ASAN_UNPOISON_MEMORY_REGION(block->data, block->cap);
    mem_free(block);
}

void arena_release(struct arena *arena)
{
    while (arena && arena->head)
        free_newest(arena);
}

void *arena_alloc(struct arena *arena, size_t n, size_t size)
{
    size_t n_bytes = padded(n, size);
    struct arena_block *block = arena->head;
    char *ptr;

    if (!block || block->cap - block->used < n_bytes) {
        size_t cap = block ? min_u64(2 * block->cap, ARENA_BLOCK_BYTES)
                           : ARENA_FIRST_BYTES;

        cap = max_u64(cap, n_bytes);
        block = aligned_alloc(CACHE_LINE, padded(1, sizeof *block + cap));
        if (!block)
            mem_exhausted(1, n_bytes);
        *block = (struct arena_block){.older = arena->head, .cap = cap};
        ASAN_POISON_MEMORY_REGION(block->data, cap);
        arena->head = block;
    }
    ptr = block->data + block->used;
    block->used += n_bytes;
    ASAN_UNPOISON_MEMORY_REGION(ptr, n * size);
    return memset(ptr, 0, n * size);
}

struct arena *arena_child(struct arena *arena)
{
    struct arena_child *child = ARENA_NEW(arena, struct arena_child, 1);

    child->older = arena->head->offspring;
    arena->head->offspring = child;
    return &child->arena;
}

void arena_adopt(struct arena *arena, struct arena *from)
{
    struct arena_block *oldest = from->head;

    if (!oldest)
        return;
    while (oldest->older)
        oldest = oldest->older;
    oldest->older = arena->head;
    arena->head = from->head;
    from->head = NULL;
}

char *arena_strdup(struct arena *arena, const char *s)
{
    return arena_strndup(arena, s, strlen(s));
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
    char *copy = arena_alloc(arena, len + 1, 1);

    if (len)
        memcpy(copy, s, len);
    return copy;
}

void *arena_keep(struct arena *arena, void *list, size_t n, size_t size)
{
    void *kept = arena_alloc(arena, n, size);

    if (n)
        memcpy(kept, list, n * size);
    mem_free(list);
    return kept;
}

/* Returns the length of the formatted text in bytes, without its NUL. */
PRINTF_LIKE(1, 0) static size_t printed_len(const char *fmt, va_list args)
{
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    /* The formats are valid, so only a lack of memory can fail here. */
    if (len < 0)
        mem_exhausted(1, strlen(fmt));
    return (size_t)len;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    size_t len;
    char *s;

    va_start(args, fmt);
    len = printed_len(fmt, args);
    s = arena_alloc(arena, len + 1, 1);
    vsnprintf(s, len + 1, fmt, args);
    va_end(args);
    return s;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->head,
                               arena->head ? arena->head->used : 0};
}

/* A rewind to a mark of the empty arena keeps the oldest block, so that a loop
 * of mark, fill and rewind does not allocate each time. */
void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    struct arena_block *block;

    while ((block = arena->head) && block != mark.block &&
           (mark.block || block->older))
        free_newest(arena);
    assert(block || !mark.block);
    if (!block)
        return;
    free_offspring(block, mark.used);
    block->used = mark.used;
    ASAN_POISON_MEMORY_REGION(block->data + block->used,
                              block->cap - block->used);
}

char *buf_reserve(struct buf *buf, size_t len)
{
    if (buf->cap - buf->len <= len) {
        buf->cap = (buf->len + len + 1) * 3 / 2 + 64;
        buf->data = mem_grow(buf->data, buf->cap, 1);
    }
    return buf->data + buf->len;
}

void buf_add(struct buf *buf, const char *data, size_t len)
{
    char *end = buf_reserve(buf, len);

    if (len)
        memcpy(end, data, len);
    end[len] = '\0';
    buf->len += len;
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    size_t len;

    va_start(args, fmt);
    len = printed_len(fmt, args);
    vsnprintf(buf_reserve(buf, len), len + 1, fmt, args);
    va_end(args);
    buf->len += len;
}

void buf_release(struct buf *buf)
{
    mem_free(buf->data);
    *buf = (struct buf){0};
}
