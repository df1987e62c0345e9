/* SPDX-License-Identifier: MIT */
#include "io/npy.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t little_endian(const char *pos, unsigned n_bytes)
{
    uint64_t value = 0;

    while (n_bytes--)
        value = value << 8 | (unsigned char)pos[n_bytes];
    return value;
}

/* Parses the Python dictionary in a .npy file's header. NumPy writes the keys
 * in sorted order. */
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
        return err_input(err, "the array's header has no valid 'descr'");
    if (strcmp(type, "<i4") != 0 && strcmp(type, "<i8") != 0)
        return err_input(
            err, "the array's type is '%s', not int32 ('<i4') or int64 ('<i8')",
            type);
    if (n_found < 2)
        return err_input(err,
                         "the array's header has no valid 'fortran_order'");
    for (char *size; (size = strtok_r(rest, "(,", &rest)); n++)
        if (!text_to_u64(size + (*size == ' '), &sizes[n < 2 ? n : 2]))
            end = 0;
    if (!end || strrchr(shape, '(') != shape || (!n && shape[1]) ||
        (strcmp(order, "True") && strcmp(order, "False")))
        return err_input(
            err, "the array's header has no valid 'fortran_order' or 'shape'");
    if (n < 1 || n > 2)
        return err_input(err, "the array has %d dimensions, not one or two", n);
    if (!strcmp(order, "True") && n == 2)
        return err_input(err, "the array is in column-major order; "
                              "np.ascontiguousarray makes it row-major");
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
        return err_input(err, "not a NumPy array");
    if (text[6] < 1 || text[6] > 3 || text[7])
        return err_input(err, "unknown version %d.%d of NumPy's format",
                         text[6], text[7]);
    n = little_endian(text + 8, n_length);
    npy->begin = 8 + n_length + n;
    if (npy->begin > len || n >= sizeof(header))
        return err_input(err,
                         "the array's header of %" PRIu64
                         " bytes is truncated or too long",
                         n);
    memcpy(header, text + 8 + n_length, n);
    header[n] = '\0';
    return parse_header(npy, header, err);
}

/* --- archives: PKWARE's APPNOTE 6.3.10, 4.3.7 and 4.5.3 --- */

#define ENTRY_BYTES 46    /* bytes of a directory entry before its name */
#define WIDE_END_BYTES 56 /* bytes of the directory's 64-bit end record */
#define LOCATOR_BYTES 20  /* bytes of the record that locates the 64-bit end */
#define END_BYTES 22
#define HAS_NO_SIZES 8u /* flag of a member: its sizes follow its data */
#define ZIP64 1         /* id of the extra field with 64-bit sizes */

/* Replaces each number that does not fit into 32 bits by its 64-bit value from
 * the extra field. 0xffffffff marks such a number. The extra field holds only
 * the values of the marked numbers, in the order of `numbers`. */
static void widen(uint64_t numbers[3], const char *extra, const char *end)
{
    for (uint64_t n; end - extra >= 4; extra += n) {
        const bool is_wide = little_endian(extra, 2) == ZIP64;

        n = little_endian(extra + 2, 2);
        extra += 4;
        if (n > (uint64_t)(end - extra))
            return;
        for (uint64_t i = 0, pos = 0; is_wide && i < 3 && pos + 8 <= n; i++)
            if (numbers[i] == UINT32_MAX) {
                numbers[i] = little_endian(extra + pos, 8);
                pos += 8;
            }
    }
}

int npz_parse(struct npz_member *member, const char *text, size_t len,
              struct arena *arena, struct err *err)
{
    uint64_t name_end, sizes[3] = {0};
    char *name;

    *member = (struct npz_member){0};
    if (len >= 4 && (!memcmp(text, "PK\1\2", 4) || !memcmp(text, "PK\5\6", 4)))
        return 0;
    if (len < NPZ_HEADER || memcmp(text, "PK\3\4", 4) != 0)
        return err_input(err, "neither a member of the archive nor its "
                              "directory begins here");
    name_end = NPZ_HEADER + little_endian(text + 26, 2);
    member->begin = name_end + little_endian(text + 28, 2);
    if (member->begin > len)
        return err_input(err, "the member's header is truncated or too long");
    name = arena_strndup(arena, text + NPZ_HEADER, name_end - NPZ_HEADER);
    if (strlen(name) < name_end - NPZ_HEADER)
        return err_input(err, "the member's name has a NUL byte");
    if (little_endian(text + 8, 2))
        return err_input(
            err, "%s: it is compressed; save it with np.savez instead", name);
    if (little_endian(text + 6, 2) & HAS_NO_SIZES)
        return err_input(err,
                         "%s: its size comes after its data; save it with "
                         "np.savez to a file instead",
                         name);
    sizes[0] = little_endian(text + 22, 4);
    sizes[1] = little_endian(text + 18, 4);
    widen(sizes, text + name_end, text + member->begin);
    if (sizes[0] >> 62)
        return err_input(err, "%s: it has more than 2^62 bytes", name);
    if (sizes[0] != sizes[1])
        return err_input(err,
                         "%s: it is stored in %" PRIu64
                         " bytes, but its size is %" PRIu64,
                         name, sizes[1], sizes[0]);
    member->end = member->begin + sizes[0];
    member->crc = (uint32_t)little_endian(text + 14, 4);
    member->file = arena_strdup(arena, name);
    member->header =
        memcpy(arena_alloc(arena, NPZ_HEADER, 1), text, NPZ_HEADER);
    name_end = strlen(name);
    if (name_end > 4 && !strcmp(name + name_end - 4, ".npy"))
        name[name_end - 4] = '\0';
    member->name = name;
    return 0;
}

/* Compares an entry of the archive's directory with the member that it
 * describes. *text moves behind the entry. */
static int check_entry(const struct npz_member *member, const char **text,
                       const char *end, struct err *err)
{
    const char *entry = *text;
    const uint64_t name_len = strlen(member->file);
    uint64_t sizes[3], rest;

    if (end - entry < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
        return err_input(err, "the directory has no entry of '%s'",
                         member->file);
    rest = little_endian(entry + 28, 2) + little_endian(entry + 30, 2) +
           little_endian(entry + 32, 2);
    if ((uint64_t)(end - entry) - ENTRY_BYTES < rest ||
        little_endian(entry + 28, 2) != name_len ||
        memcmp(entry + ENTRY_BYTES, member->file, name_len) != 0)
        return err_input(err, "the directory has another name for member '%s'",
                         member->file);
    sizes[0] = little_endian(entry + 24, 4);
    sizes[1] = little_endian(entry + 20, 4);
    sizes[2] = little_endian(entry + 42, 4);
    widen(sizes, entry + ENTRY_BYTES + name_len,
          entry + ENTRY_BYTES + name_len + little_endian(entry + 30, 2));
    /* Flags, method, time, date and CRC-32 are adjacent, and have the same
     * layout in the directory entry and in the member's header. */
    if (memcmp(entry + 8, member->header + 6, 12) != 0 ||
        sizes[2] != member->pos || sizes[0] != member->end - member->begin ||
        sizes[0] != sizes[1])
        return err_input(err,
                         "'%s': the directory (byte %" PRIu64 ", %" PRIu64
                         " bytes, CRC-32 %08x) does not agree with the member "
                         "(byte %" PRIu64 ", %" PRIu64 " bytes, CRC-32 %08x)",
                         member->file, sizes[2], sizes[0],
                         (unsigned)little_endian(entry + 16, 4), member->pos,
                         member->end - member->begin, (unsigned)member->crc);
    *text = entry + ENTRY_BYTES + rest;
    return 0;
}

int npz_check_directory(const struct npz_member *members, size_t n,
                        const char *text, size_t len, uint64_t pos,
                        struct err *err)
{
    const char *start = text, *end = text + len;
    uint64_t counts[3], said[3];

    for (size_t i = 0; i < n; i++)
        if (check_entry(&members[i], &text, end, err))
            return -1;
    counts[0] = n;
    counts[1] = (uint64_t)(text - start);
    counts[2] = pos;
    if (end - text >= WIDE_END_BYTES + LOCATOR_BYTES &&
        !memcmp(text, "PK\6\6", 4)) {
        if (little_endian(text + 24, 8) != n ||
            little_endian(text + 32, 8) != n ||
            little_endian(text + 40, 8) != counts[1] ||
            little_endian(text + 48, 8) != pos ||
            little_endian(text + 4, 8) != WIDE_END_BYTES - 12 ||
            memcmp(text + WIDE_END_BYTES, "PK\6\7", 4) != 0 ||
            little_endian(text + WIDE_END_BYTES + 8, 8) != pos + counts[1])
            return err_input(
                err, "the directory's end record does not match the directory");
        text += WIDE_END_BYTES + LOCATOR_BYTES;
    }
    if (end - text < END_BYTES || memcmp(text, "PK\5\6", 4) != 0)
        return err_input(err,
                         "the directory does not list exactly the %zu members "
                         "before it, or has no end record",
                         n);
    said[0] = little_endian(text + 10, 2);
    said[1] = little_endian(text + 12, 4);
    said[2] = little_endian(text + 16, 4);
    if (little_endian(text + 4, 4) || little_endian(text + 8, 2) != said[0] ||
        said[0] != min_u64(n, UINT16_MAX) ||
        said[1] != min_u64(counts[1], UINT32_MAX) ||
        said[2] != min_u64(pos, UINT32_MAX) ||
        little_endian(text + 20, 2) != (uint64_t)(end - text) - END_BYTES)
        return err_input(err,
                         "the directory's end record has %" PRIu64
                         " members, %" PRIu64 " bytes from byte %" PRIu64
                         ", but there are %zu, %" PRIu64 " from byte %" PRIu64,
                         said[0], said[1], said[2], n, counts[1], pos);
    return 0;
}
