/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NPY_H
#define NEUROSHARD_IO_NPY_H

#include "base/mem.h"

/*
 * Locates the integers in NumPy's files.
 *
 * A .npy file consists of:
 *   6 bytes       "\x93NUMPY"
 *   2 bytes       version: 1, 2 or 3, then 0
 *   2 or 4 bytes  length of the header; 4 from version 2 on
 *   the header    a Python dictionary of descr, fortran_order and shape
 *   the numbers
 *
 * A .npz file is a zip archive of .npy files. Before each .npy file stands a
 * zip header with its name, its sizes and its CRC-32. A directory at the end of
 * the archive repeats the zip headers.
 *
 * Supported arrays: int32 or int64, little-endian, one or two dimensions, in
 * row order, uncompressed. np.save and np.savez write this form.
 *
 * npy_parse and npz_parse get the beginning of the unread part of the file:
 * NPY_HEAD_MAX bytes, or all bytes if fewer are left. Longer headers are
 * refused. ERR_INPUT messages lack the file's name.
 */
#define NPY_HEAD_MAX 4096

struct npy {
    unsigned width; /* bytes of a number: 4 or 8 */
    /* an array with one dimension counts as n_rows x 1 */
    uint64_t n_rows, n_columns;
    /* `text` offsets at which the numbers begin and end; <= INT64_MAX */
    uint64_t begin, end;
};
int npy_parse(struct npy *npy, const char *text, size_t len,
              struct err *err) MUST_CHECK;

struct npz_member {
    /* member's name without ".npy", in the arena; NULL if the directory begins
     * here */
    const char *name;
    /* `text` offsets at which the .npy file begins and ends; <= INT64_MAX */
    uint64_t begin, end;
    uint32_t crc; /* CRC-32 of the .npy file */
    /* first NPZ_HEADER bytes of the zip header, in the arena */
    const char *header;
    const char *file; /* member's name with its suffix, in the arena */
    /* offset of the zip header in the archive; the caller sets it */
    uint64_t pos;
};
#define NPZ_HEADER 30
int npz_parse(struct npz_member *member, const char *text, size_t len,
              struct arena *arena, struct err *err) MUST_CHECK;
/* Compares the archive's directory with the n members that precede it. `text`
 * holds the archive's bytes from file offset `pos` to the end. */
int npz_check_directory(const struct npz_member *members, size_t n,
                        const char *text, size_t len, uint64_t pos,
                        struct err *err) MUST_CHECK;

#endif
