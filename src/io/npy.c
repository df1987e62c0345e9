/* SPDX-License-Identifier: MIT */
#include "io/npy.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t little_endian(const char *at, unsigned n_bytes)
{
    uint64_t value = 0;

    while (n_bytes--)
        value = value << 8 | (unsigned char)at[n_bytes];
    return value;
}

/* The dictionary, whose members NumPy sorts. */
static int parse_header(struct npy *npy, const char *text, struct err *err)
{
    char type[24], order[8], shape[64] = "", *rest = shape;
    uint64_t sizes[3] = {1, 1}, bytes;
    int n = 0, end = 0;
    const int n_found =
        sscanf(text,
               " { 'descr' : '%23[^']' , 'fortran_order' : %7[A-Za-z] , "
               "'shape' : %63[(0-9, ])%n",
               type, order, shape, &end);

    if (n_found < 1)
        return err_input(err, "the array has no type that is a word");
    if (strcmp(type, "<i4") != 0 && strcmp(type, "<i8") != 0)
        return err_input(
            err,
            "the array is of '%s', neither int32 ('<i4') nor int64 ('<i8')",
            type);
    if (n_found < 2)
        return err_input(err, "the array does not say its order");
    for (char *size; (size = strtok_r(rest, "(,", &rest)); n++)
        if (!text_to_u64(size + (*size == ' '), &sizes[n < 2 ? n : 2]))
            end = 0;
    if (!end || strrchr(shape, '(') != shape || (!n && shape[1]) ||
        (strcmp(order, "True") && strcmp(order, "False")))
        return err_input(err, "the array does not say its shape");
    if (n < 1 || n > 2)
        return err_input(
            err, "the array has %d dimensions; one or two are taken", n);
    if (!strcmp(order, "True") && n == 2)
        return err_input(err, "the array lies column by column; "
                              "np.ascontiguousarray turns it");
    npy->width = type[2] == '4' ? 4 : 8;
    npy->n_rows = sizes[0];
    npy->n_columns = sizes[1];
    if (__builtin_mul_overflow(sizes[0], sizes[1], &bytes) ||
        __builtin_mul_overflow(bytes, npy->width, &bytes) || bytes >> 62)
        return err_input(err, "the array has more than 2^62 bytes");
    npy->end = npy->begin + bytes;
    return 0;
}

int npy_parse(struct npy *npy, const char *text, size_t len, struct err *err)
{
    char header[NPY_HEAD_MAX + 1];
    const unsigned n_length = len > 6 && text[6] == 1 ? 2 : 4;
    uint64_t n;

    if (len < 8 + n_length || memcmp(text, "\x93NUMPY", 6) != 0)
        return err_input(err, "no array of NumPy begins here");
    if (text[6] < 1 || text[6] > 3 || text[7])
        return err_input(err, "NumPy's format %d.%d is not known", text[6],
                         text[7]);
    n = little_endian(text + 8, n_length);
    npy->begin = 8 + n_length + n;
    if (npy->begin > len || n >= sizeof(header))
        return err_input(
            err, "the array's header of %" PRIu64 " bytes is cut, or too long",
            n);
    memcpy(header, text + 8 + n_length, n);
    header[n] = '\0';
    return parse_header(npy, header, err);
}

/* --- archives: PKWARE's APPNOTE 6.3.10, 4.3.7 and 4.5.3 --- */

#define HEADER_BYTES 30
#define HAS_NO_SIZES 8u /* a flag: they stand behind the data */
#define ZIP64 1         /* the extra field of sizes that need 64 bits */

/* The size of what is stored, which may stand in an extra field. */
static uint64_t stored_bytes(const char *header, const char *extra,
                             const char *end)
{
    const uint64_t bytes = little_endian(header + 22, 4);

    while (bytes == UINT32_MAX && end - extra >= 12) {
        if (little_endian(extra, 2) == ZIP64)
            return little_endian(extra + 4, 8);
        extra += 4;
        extra += little_endian(extra - 2, 2) < (uint64_t)(end - extra)
                     ? (ptrdiff_t)little_endian(extra - 2, 2)
                     : end - extra;
    }
    return bytes;
}

int npz_parse(struct npz_member *member, const char *text, size_t len,
              struct arena *arena, struct err *err)
{
    uint64_t name_end, bytes;
    char *name;

    *member = (struct npz_member){0};
    if (len >= 4 && (!memcmp(text, "PK\1\2", 4) || !memcmp(text, "PK\5\6", 4)))
        return 0;
    if (len < HEADER_BYTES || memcmp(text, "PK\3\4", 4) != 0)
        return err_input(err, "neither a member of the archive nor its "
                              "directory begins here");
    name_end = HEADER_BYTES + little_endian(text + 26, 2);
    member->begin = name_end + little_endian(text + 28, 2);
    if (member->begin > len)
        return err_input(err, "the member's header is cut, or too long");
    name = arena_strndup(arena, text + HEADER_BYTES, name_end - HEADER_BYTES);
    if (little_endian(text + 8, 2))
        return err_input(
            err, "%s: it is compressed; np.savez writes what is read", name);
    if (little_endian(text + 6, 2) & HAS_NO_SIZES)
        return err_input(err,
                         "%s: its size stands behind it; np.savez writes what "
                         "is read to a file",
                         name);
    bytes = stored_bytes(text, text + name_end, text + member->begin);
    if (bytes >> 62)
        return err_input(err, "%s: it has more than 2^62 bytes", name);
    member->end = member->begin + bytes;
    name_end = strlen(name);
    if (name_end > 4 && !strcmp(name + name_end - 4, ".npy"))
        name[name_end - 4] = '\0';
    member->name = name;
    return 0;
}
