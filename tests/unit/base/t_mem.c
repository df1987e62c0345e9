/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static bool is_aligned(const void *p)
{
    return (uintptr_t)p % 64 == 0;
}

static void test_blocks(void)
{
    char *p = mem_alloc(1000, 3), *empty = mem_alloc(0, 8);
    int *grown = NULL;

    ok(is_aligned(p) && is_zero(p, 3000), "a block is aligned and zeroed");
    ok(empty != NULL, "an empty block is a pointer too");
    for (int i = 0; i < 1000; i++) {
        grown = mem_grow(grown, (size_t)i + 1, sizeof *grown);
        grown[i] = i;
    }
    ok(grown[0] == 0 && grown[999] == 999, "a grown block keeps its content");
    mem_free(grown);
    mem_free(empty);
    mem_free(p);
    mem_free(NULL);
}

static void test_arena(void)
{
    struct arena arena = {0};
    struct arena_mark mark;
    char *first, *second, *big, *again;

    first = arena_alloc(&arena, 1, 1);
    second = ARENA_NEW(&arena, char, 100);
    ok(is_aligned(first) && is_aligned(second), "arena blocks are aligned");
    memset(second, 'x', 100);
    mark = arena_mark(&arena);
    again = arena_alloc(&arena, 50, 1);
    memset(again, 'y', 50);
    big = arena_alloc(&arena, 3, (size_t)1 << 20);
    ok(is_aligned(big) && is_zero(big, (size_t)3 << 20),
       "a block larger than the arena's own is zeroed");
    arena_rewind(&arena, mark);
    ok(second[0] == 'x' && second[99] == 'x', "older allocations survive it");
    ok(arena_alloc(&arena, 50, 1) == again, "a rewind gives memory back");
    ok(is_zero(again, 50), "and it comes zeroed again");
    arena_release(&arena);
    is_str(arena_printf(&arena, "%s-%d", "a", 7), "a-7",
           "a released arena may be used again");
    is_str(arena_strndup(&arena, "hello", 4), "hell", "strndup ends in NUL");
    is_str(arena_strndup(&arena, NULL, 0), "", "strndup of nothing");
    is_str(arena_strdup(&arena, ""), "", "strdup of an empty string");
    arena_release(&arena);
    arena_release(&arena);
    arena_release(NULL);
}

static void test_empty_mark(void)
{
    struct arena arena = {0};
    struct arena_mark mark = arena_mark(&arena);
    char *p = arena_alloc(&arena, 10, 1);
    bool is_same = true;

    for (int i = 0; i < 100; i++) {
        arena_rewind(&arena, mark);
        is_same &= arena_alloc(&arena, 10, 1) == p;
    }
    ok(is_same, "a loop that rewinds to the empty arena allocates once");
    arena_rewind(&arena, mark);
    arena_alloc(&arena, 1, (size_t)1 << 20);
    arena_rewind(&arena, mark);
    ok(arena_alloc(&arena, 10, 1) == p, "a large block is not the one kept");
    arena_release(&arena);
}

static void test_buf(void)
{
    struct buf buf = {0};
    char want[4001];

    for (int i = 0; i < 1000; i++)
        buf_printf(&buf, "%04d", i);
    for (int i = 0; i < 1000; i++) {
        char digits[16];

        snprintf(digits, sizeof digits, "%04d", i);
        memcpy(want + (size_t)i * 4, digits, 5);
    }
    is_str(buf.data, want, "a text grows");
    is_i64((int64_t)buf.len, 4000, "and knows its length");
    buf_add(&buf, "\0x", 2);
    ok(buf.len == 4002 && !memcmp(buf.data + 4000, "\0x", 3),
       "a NUL is a byte like others");
    buf_release(&buf);
    ok(!buf.data && !buf.len, "a released text is empty");
    buf_add(&buf, NULL, 0);
    is_str(buf.data, "", "adding nothing makes an empty text");
    buf_release(&buf);
}

/* Runs fn in a child; true if it ended with status 1 and one line on stderr. */
static bool ends(void (*fn)(void))
{
    char line[256] = "";
    int fds[2], status = 0;
    ssize_t n;
    pid_t child;

    if (pipe(fds))
        return false;
    child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(fds[1]);
    n = read(fds[0], line, sizeof line - 1);
    close(fds[0]);
    waitpid(child, &status, 0);
    printf("# %s", n > 0 ? line : "(nothing)\n");
    return WIFEXITED(status) && WEXITSTATUS(status) == 1 &&
           !strncmp(line, "neuroshard: out of memory", 25);
}

static void overflow_product(void)
{
    mem_free(mem_alloc(SIZE_MAX / 2, 3));
}

static void overflow_arena(void)
{
    struct arena arena = {0};

    arena_alloc(&arena, SIZE_MAX / 8, 8);
}

/* A child arena's memory is released with the child, both by a rewind and by
 * the release of the parent. Sanitizers report leaks. */
static void check_children(void)
{
    struct arena arena = {0};
    char *last = NULL;

    (void)arena_alloc(&arena, 100, 1);
    for (unsigned round = 0; round < 100; round++) {
        const struct arena_mark mark = arena_mark(&arena);
        struct arena *first = arena_child(&arena);
        struct arena *second = arena_child(&arena);

        (void)arena_alloc(first, 1000 * round, 1);
        last = arena_strdup(second, "second");
        if (round < 99)
            arena_rewind(&arena, mark);
    }
    is_str(last, "second", "a child keeps its allocations");
    arena_release(&arena);
    ok(!arena.head, "children go with all else");
}

/* An arena that adopts another keeps all its memory: above its own earlier
 * allocations and below its later ones. */
static void check_adoption(void)
{
    struct arena arena = {0}, from = {0}, none = {0};
    const char *before = arena_strdup(&arena, "before"), *within, *behind;
    const struct arena_mark mark = arena_mark(&arena);

    within = arena_strdup(&from, "within");
    (void)arena_alloc(&from, 1 << 20, 1);
    arena_adopt(&arena, &from);
    arena_adopt(&arena, &none);
    ok(!from.head && !none.head, "who is adopted is empty");
    behind = arena_strdup(&arena, "behind");
    is_str(within, "within", "adopted memory is unchanged");
    is_str(behind, "behind", "more is added behind it");
    arena_rewind(&arena, mark);
    is_str(before, "before", "a mark from before is before it");
    arena_release(&arena);
}

int main(void)
{
    test_blocks();
    test_arena();
    test_empty_mark();
    test_buf();
    ok(ends(overflow_product), "an overflowing product ends the program");
    ok(ends(overflow_arena), "in an arena too");
    check_children();
    check_adoption();
    return tap_done();
}
