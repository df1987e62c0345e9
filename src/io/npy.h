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
 * A .npz file is a zip archive. Its .npy files follow each other, each behind a
 * header with its name, its sizes and its CRC-32. A directory at the end
 * repeats the headers.
 *
 * Supported arrays: int32 or int64, little-endian, one or two dimensions, in
 * row order, uncompressed. np.save and np.savez write this form.
 *
 * Both parsers get the beginning of the remaining file: NPY_HEAD_MAX bytes, or
 * all there are. Longer headers are refused. ERR_INPUT messages lack the file's
 * name.
 */
#define NPY_HEAD_MAX 4096

struct npy {
    unsigned width;             /* bytes of a number: 4 or 8 */
    uint64_t n_rows, n_columns; /* one dimension: n_rows x 1 */
    /* offsets of the numbers, from the start of the text; <= INT64_MAX */
    uint64_t begin, end;
};
int npy_parse(struct npy *npy, const char *text, size_t len,
              struct err *err) MUST_CHECK;

struct npz_member {
    const char *name; /* without ".npy", in the arena; NULL at the directory */
    /* offsets of the .npy file, from the start of the text; <= INT64_MAX */
    uint64_t begin, end;
    uint32_t crc;       /* CRC-32 of the .npy file */
    const char *header; /* first NPZ_HEADER bytes of the member, in the arena */
    const char *file;   /* name with its suffix, in the arena */
    uint64_t pos; /* offset of the header in the archive; the caller sets it */
};
#define NPZ_HEADER 30
int npz_parse(struct npz_member *member, const char *text, size_t len,
              struct arena *arena, struct err *err) MUST_CHECK;
/* Compares the archive's directory with the n members before it. `text` is the
 * archive from offset `at` to its end. */
int npz_check_directory(const struct npz_member *members, size_t n,
                        const char *text, size_t len, uint64_t pos,
                        struct err *err) MUST_CHECK;

#endif
