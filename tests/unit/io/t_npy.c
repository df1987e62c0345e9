/* SPDX-License-Identifier: MIT */
#include "io/npy.h"

#include <stdbool.h>

#include "tests/tap.h"

#define HEADER(type, order, shape) \
    "{'descr': " type ", 'fortran_order': " order ", 'shape': " shape ", }"

/* Makes a file of this version and header. The size of the header's length
 * field depends on the version. */
static size_t make_npy(char text[NPY_HEAD_MAX], int version, const char *header)
{
    const size_t n = strlen(header), n_length = version == 1 ? 2 : 4;

    memset(text, 0, 12);
    memcpy(text, "\x93NUMPY", 6);
    text[6] = (char)version;
    text[8] = (char)(n & 255);
    text[9] = (char)(n >> 8);
    memcpy(text + 8 + n_length, header, n + 1);
    return 8 + n_length + n;
}

static const struct {
    int version;
    const char *header;
    unsigned width;
    uint64_t n_rows, n_columns;
} arrays[] = {
    {1, HEADER("'<i8'", "False", "(5,)"), 8, 5, 1},
    {1, HEADER("'<i4'", "False", "(5, 3)") "      \n", 4, 5, 3},
    {1, HEADER("'<i4'", "True", "(7,)"), 4, 7, 1},
    {2, HEADER("'<i8'", "False", "(0,)"), 8, 0, 1},
    {3, HEADER("'<i8'", "False", "(4, 0)"), 8, 4, 0},
    {1, "{'descr':'<i8','fortran_order':False,'shape':(2,2)}", 8, 2, 2},
};

static const struct {
    int version;
    const char *header, *want;
} bad_arrays[] = {
    {4, HEADER("'<i8'", "False", "(5,)"),
     "unknown version 4.0 of NumPy's format"},
    {1, "", "the array's header has no valid 'descr'"},
    {1, HEADER("[('a', '<i4')]", "False", "(5,)"),
     "the array's header has no valid 'descr'"},
    {1, HEADER("'<f4'", "False", "(5,)"),
     "the array's type is '<f4', not int32 ('<i4') or int64 ('<i8')"},
    {1, HEADER("'>i8'", "False", "(5,)"),
     "the array's type is '>i8', not int32 ('<i4') or int64 ('<i8')"},
    {1, HEADER("'|O", "False", "(5,)"),
     "the array's type is '|O, ', not int32 ('<i4') or int64 ('<i8')"},
    {1, "{'descr': '<i8', 'shape': (5,), }",
     "the array's header has no valid 'fortran_order'"},
    {1, HEADER("'<i8'", "Maybe", "(5,)"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "5"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "(5"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "(-5,)"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "(5 4)"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "(,)"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "(18446744073709551616,)"),
     "the array's header has no valid 'fortran_order' or 'shape'"},
    {1, HEADER("'<i8'", "False", "()"),
     "the array has 0 dimensions, not one or two"},
    {1, HEADER("'<i8'", "False", "(1, 2, 3)"),
     "the array has 3 dimensions, not one or two"},
    {1, HEADER("'<i8'", "True", "(5, 4)"),
     "the array is in column-major order; np.ascontiguousarray makes it "
     "row-major"},
    {1, HEADER("'<i8'", "False", "(4611686018427387904,)"),
     "the array has more than 2^62 bytes"},
    {1, HEADER("'<i8'", "False", "(4294967296, 4294967296)"),
     "the array has more than 2^62 bytes"},
};

static void check_arrays(void)
{
    char text[NPY_HEAD_MAX];
    struct npy npy;
    struct err err = {0};

    for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
        size_t len = make_npy(text, arrays[i].version, arrays[i].header);

        if (!ok(!npy_parse(&npy, text, len, &err), "%s", arrays[i].header))
            continue;
        ok(npy.width == arrays[i].width && npy.n_rows == arrays[i].n_rows &&
               npy.n_columns == arrays[i].n_columns,
           "its type and shape");
        ok(npy.begin == len &&
               npy.end - npy.begin == npy.width * npy.n_rows * npy.n_columns,
           "where its numbers are");
        ok(npy_parse(&npy, text, len - 1, &err) &&
               strstr(err.msg, "is truncated"),
           "a byte less is refused: %s", err.msg);
    }
    for (size_t i = 0; i < sizeof(bad_arrays) / sizeof(*bad_arrays); i++) {
        size_t len =
            make_npy(text, bad_arrays[i].version, bad_arrays[i].header);

        ok(npy_parse(&npy, text, len, &err), "%s", bad_arrays[i].header);
        is_str(err.msg, bad_arrays[i].want, "is refused");
    }
    ok(npy_parse(&npy, "\x93NUMP", 6, &err), "too short");
    is_str(err.msg, "not a NumPy array", "is refused");
    make_npy(text, 1, HEADER("'<i8'", "False", "(5,)"));
    text[9] = 120;
    ok(npy_parse(&npy, text, sizeof(text), &err), "a header of 30,000 bytes");
    is_str(err.msg,
           "the array's header of 30777 bytes is truncated or too long",
           "is refused");
}

/* Makes a member's zip header. If is_wide, sizes are 64-bit in an extra field,
 * and another extra field precedes it. */
static size_t make_member(char text[256], const char *name, unsigned flags,
                          unsigned method, uint64_t bytes, bool is_wide)
{
    const size_t n = strlen(name);
    char *extra = text + 30 + n;

    memset(text, 0, 256);
    memcpy(text, "PK\3\4", 4);
    text[6] = (char)flags;
    text[8] = (char)method;
    text[26] = (char)n;
    memcpy(text + 30, name, n);
    for (int i = 0; i < 4; i++)
        text[18 + i] = text[22 + i] = (char)(is_wide ? 0xff : bytes >> 8 * i);
    if (!is_wide)
        return 30 + n;
    text[28] = 4 + 3 + 4 + 16;
    extra[0] = 7;
    extra[2] = 3;
    extra[7] = 1;
    extra[9] = 16;
    for (int i = 0; i < 8; i++)
        extra[11 + i] = extra[19 + i] = (char)(bytes >> 8 * i);
    return 30 + n + 4 + 3 + 4 + 16;
}

static void check_bad_member(const char *text, size_t len, const char *want)
{
    struct npz_member member;
    struct arena arena = {0};
    struct err err = {0};

    ok(npz_parse(&member, text, len, &arena, &err), "a bad member");
    is_str(err.msg, want, "is refused");
    arena_release(&arena);
}

static void check_members(void)
{
    char text[256];
    struct npz_member member;
    struct arena arena = {0};
    struct err err = {0};
    size_t len = make_member(text, "a/b.npy", 0, 0, 1000, false);

    ok(!npz_parse(&member, text, sizeof(text), &arena, &err), "a member");
    is_str(member.name, "a/b", "its name without the suffix");
    ok(member.begin == len && member.end == len + 1000, "where its file is");
    check_bad_member(text, len - 1,
                     "the member's header is truncated or too long");
    check_bad_member(text, 29,
                     "neither a member of the archive nor its "
                     "directory begins here");
    len = make_member(text, "0.npy", 0, 0, UINT64_C(78) << 30, true);
    ok(!npz_parse(&member, text, len, &arena, &err), "a large member");
    ok(member.begin == len && member.end == len + (UINT64_C(78) << 30),
       "its size is in the extra field");
    make_member(text, "0.npy", 0, 0, UINT64_MAX, true);
    check_bad_member(text, len, "0.npy: it has more than 2^62 bytes");
    make_member(text, "0.npy", 0, 0, 10, false);
    text[18] = 9;
    check_bad_member(text, len,
                     "0.npy: it is stored in 9 bytes, but its size is 10");
    make_member(text, "0.npy", 0, 0, 10, false);
    text[31] = 0;
    check_bad_member(text, len, "the member's name has a NUL byte");
    make_member(text, "0.npy", 0, 8, 10, false);
    check_bad_member(text, len,
                     "0.npy: it is compressed; save it with np.savez instead");
    make_member(text, "0.npy", 8, 0, 0, false);
    check_bad_member(text, len,
                     "0.npy: its size comes after its data; save it with "
                     "np.savez to a file instead");
    ok(!npz_parse(&member, "PK\1\2....", 8, &arena, &err) && !member.name,
       "the directory ends it");
    ok(!npz_parse(&member, "PK\5\6....", 8, &arena, &err) && !member.name,
       "an archive may be empty");
    arena_release(&arena);
}

int main(void)
{
    check_arrays();
    check_members();
    return tap_done();
}
