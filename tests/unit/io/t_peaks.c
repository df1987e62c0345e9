/* SPDX-License-Identifier: MIT */
/* Peak memory of a job's ranks: which files are accepted, and the message of
 * each refusal. */
#include "io/peaks.h"
#include "tests/tap.h"

#define HEAD "rank,allocated_bytes,reserved_bytes,used_bytes\n"
#define NEW                                                                    \
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "       \
    "capacity of 79.00 GiB of which 1.00 GiB is free. Including non-PyTorch "  \
    "memory, this process has 77.00 GiB memory in use. Of the allocated "      \
    "memory 70.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by " \
    "PyTorch but unallocated. If reserved\n"
#define OLD                                                                    \
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; "   \
    "4.00 GiB total capacity; 3.00 GiB already allocated; 0 bytes free; 3.10 " \
    "GiB reserved in total by PyTorch)\n"
#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* Texts that are accepted. */
static const struct {
    const char *text;
    size_t n; /* number of ranks with a peak */
    bool is_many_hosts;
    struct peak first; /* peak of the first of these ranks */
} TAKEN[] = {
    {"rank,reserved_bytes\n1,5\n", 1, false, {0, 5, 0, 0}},
    {HEAD "0,1,2,3\n1,4,5,6\n", 2, false, {1, 2, 3, 0}},
    {HEAD "0,,2,\n", 1, false, {0, 2, 0, 0}},
    {"x,used_bytes,rank\nq,7,1\n", 1, false, {0, 0, 7, 0}},
    {HEAD "0,1,1,1125899906842624", 1, false, {1, 1, 1ull << 50, 0}},
    {"[{\"rank\": 1, \"allocated_bytes\": 9}]", 1, false, {9, 0, 0, 0}},
    {"start\n[rank0]: torch.OutOfMemoryError: " NEW,
     1,
     true,
     {70 * GIB, 70 * GIB + 512 * MIB, 78 * GIB, 2 * GIB}},
    {NEW OLD, 2, false, {3 * GIB, 3 * GIB, 4 * GIB, 20 * MIB}},
    /* the message that needed most memory counts */
    {"[rank0]: " NEW OLD,
     1,
     false,
     {70 * GIB, 70 * GIB + 512 * MIB, 78 * GIB, 2 * GIB}},
};

/* Texts that are refused. */
static const struct {
    const char *text, *want;
    bool is_many_hosts;
} REFUSED[] = {
    {HEAD "0,1,1,1125899906842625\n",
     "job:2: used_bytes is 1 to 2^50 bytes, not '1125899906842625'", false},
    {HEAD "0,0,1,1\n", "job:2: allocated_bytes is 1 to 2^50 bytes, not '0'",
     false},
    {HEAD "0,3 GiB,,\n",
     "job:2: allocated_bytes is 1 to 2^50 bytes, not '3 GiB'", false},
    {HEAD "2,1,1,1\n",
     "job:2: rank is 0 to 1, as the plan has 2 ranks, not '2'", false},
    {HEAD "x,1,1,1\n", "job:2: rank is a whole number, not 'x'", false},
    {HEAD "1,1,1,1\n1,1,1,1\n", "job:3: rank 1 occurs twice", false},
    {HEAD "1,,,\n",
     "job:2: rank 1 has none of allocated_bytes, "
     "reserved_bytes and used_bytes",
     false},
    {HEAD "1,3,2,4\n",
     "job:2: allocated_bytes are part of reserved_bytes, and "
     "these of used_bytes, so they cannot be more",
     false},
    {HEAD "1,1,4,3\n",
     "job:2: allocated_bytes are part of reserved_bytes, and "
     "these of used_bytes, so they cannot be more",
     false},
    {HEAD "1,4,,3\n",
     "job:2: allocated_bytes are part of reserved_bytes, and "
     "these of used_bytes, so they cannot be more",
     false},
    {HEAD, "job:2: no peaks of memory", false},
    {"device,used_bytes\n0,5\n", "job:1: the heading lacks 'rank'", false},
    {"[]", "job:1: no peaks of memory", false},
    {"a\n" NEW,
     "job:2: the message does not name its rank, as '[rank3]:' "
     "before it does",
     true},
    {"[rank7]: " NEW,
     "job:1: rank is 0 to 1, as the plan has 2 ranks, not "
     "'7'",
     false},
    {"CUDA out of memory. Tried to allocate 2.00 GiB\n",
     "job:1: the message of a GPU that ran out of memory is incomplete", false},
    {"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
     "capacity of 1.00 GiB of which 2.00 GiB is free. 1 B is allocated by "
     "PyTorch, and 1 B is reserved by PyTorch but\n",
     "job:1: the message of a GPU that ran out of memory is incomplete", false},
    {"[\n{\"rank\": 1}]",
     "job:2: rank 1 has none of allocated_bytes, reserved_bytes and "
     "used_bytes",
     false},
};

static void test_texts(void)
{
    for (size_t i = 0; i < sizeof(TAKEN) / sizeof(*TAKEN); i++) {
        struct peaks peaks = {.n_ranks = 2,
                              .is_one_host = !TAKEN[i].is_many_hosts};
        const struct peak *want = &TAKEN[i].first, *got;
        struct arena arena = {0};
        struct err err = {0};
        const int rc = peaks_read(&peaks, TAKEN[i].text, strlen(TAKEN[i].text),
                                  "job", &arena, &err);

        got = &peaks.ranks[!rc && !peaks.ranks[0].allocated &&
                           !peaks.ranks[0].reserved && !peaks.ranks[0].used];
        ok(!rc && peaks.n == TAKEN[i].n && got->allocated == want->allocated &&
               got->reserved == want->reserved && got->used == want->used &&
               got->failed == want->failed,
           "case %zu is taken %s", i, err.msg);
        arena_release(&arena);
    }
    for (size_t i = 0; i < sizeof(REFUSED) / sizeof(*REFUSED); i++) {
        struct peaks peaks = {.n_ranks = 2,
                              .is_one_host = !REFUSED[i].is_many_hosts};
        struct arena arena = {0};
        struct err err = {0};

        ok(peaks_read(&peaks, REFUSED[i].text, strlen(REFUSED[i].text), "job",
                      &arena, &err) == -1 &&
               err.code == ERR_INPUT,
           "case %zu is refused", i);
        is_str(err.msg, REFUSED[i].want, "and says why");
        arena_release(&arena);
    }
}

/* A log that ends in a NUL byte is no text. */
static void test_nul(void)
{
    static const char text[] = "[rank0]: " NEW "x";
    struct peaks peaks = {.n_ranks = 2};
    struct arena arena = {0};
    struct err err = {0};

    ok(peaks_read(&peaks, text, sizeof(text), "job", &arena, &err) == -1,
       "refused");
    is_str(err.msg, "job:2: the log has a NUL byte", "and says why");
    arena_release(&arena);
}

int main(void)
{
    test_texts();
    test_nul();
    return tap_done();
}
