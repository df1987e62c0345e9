/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_NPY_H
#define NEUROSHARD_IO_NPY_H

#include "base/mem.h"

/*
 * Where whole numbers lie in NumPy's files. A .npy file is 6 bytes "\x93NUMPY",
 * the version (1, 2 or 3, and 0), the length of the header (2 bytes, from
 * version 2 on 4), the header as Python writes a dictionary of descr,
 * fortran_order and shape, and the numbers. A .npz file is a zip archive, in
 * which such files stand one after the other, each behind a header with its
 * name, its sizes and its CRC-32, and then their directory, which says the same
 * again. Taken are
 * arrays of int32 or int64, little-endian, of one or two dimensions, row by
 * row, that are stored as they are, which np.save and np.savez do.
 *
 * Both take the beginning of what may go on in the file, NPY_HEAD_MAX bytes or
 * all that there is; longer headers are refused. ERR_INPUT is a sentence
 * without the file's name.
 */
#define NPY_HEAD_MAX 4096

struct npy {
    unsigned width;             /* bytes of a number: 4 or 8 */
    uint64_t n_rows, n_columns; /* of one dimension: rows of 1 column */
    uint64_t begin, end; /* of the numbers, from the text on, <= INT64_MAX */
};
int npy_parse(struct npy *npy, const char *text, size_t len,
              struct err *err) MUST_CHECK;

struct npz_member {
    const char *name; /* without ".npy", in the arena; NULL behind the last */
    uint64_t begin, end; /* of the array's file, from the text on, likewise */
    uint32_t crc;        /* CRC-32 of that file */
    const char *header;  /* the first NPZ_HEADER bytes, in the arena */
    const char *file;    /* the name with its suffix, in the arena */
    uint64_t at; /* of the header in the archive: for the caller to fill */
};
#define NPZ_HEADER 30
int npz_parse(struct npz_member *member, const char *text, size_t len,
              struct arena *arena, struct err *err) MUST_CHECK;
/* Compares the archive's directory, which is its text from `at` on to its end,
 * with the n members that stand before it. */
int npz_check_directory(const struct npz_member *members, size_t n,
                        const char *text, size_t len, uint64_t at,
                        struct err *err) MUST_CHECK;

#endif
