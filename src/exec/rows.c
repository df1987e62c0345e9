/* SPDX-License-Identifier: MIT */
#include "exec/rows.h"

#include <string.h>

/* Number of bytes that a download transfers in the time that it takes to start
 * a download. If the gap between two rows is at most this large, they are
 * downloaded together. Not used if the device's memory is host memory. */
#define GAP_BYTES ((uint64_t)64 << 10)
/* largest number of bytes that are downloaded together */
#define SPAN_BYTES ((uint64_t)4 << 20)

/* Returns the index of the first of rows[n] that is at least `row`. */
static size_t first_from(const uint64_t *rows, size_t n, uint64_t row)
{
    size_t begin = 0;

    while (begin < n) {
        size_t middle = begin + (n - begin) / 2;

        if (rows[middle] < row)
            begin = middle + 1;
        else
            n = middle;
    }
    return begin;
}

size_t rows_of_piece(const struct piece *piece, const uint64_t *rows, size_t n,
                     size_t *first)
{
    *first = first_from(rows, n, piece->row_begin);
    return first_from(rows, n, piece->row_end) - *first;
}

/* Downloads rows of `row_bytes` bytes to `to`, one row after the other. d_rows
 * holds all rows of the piece. */
static int download(const struct placement *placement,
                    const struct piece *piece, const uint64_t *rows, size_t n,
                    const void *d_rows, size_t row_bytes, char *to,
                    struct err *err)
{
    bool is_far = !device_is_host(placement->device);
    uint64_t gap = is_far ? GAP_BYTES / row_bytes + 1 : 1;
    uint64_t span = SPAN_BYTES / row_bytes + 1;
    char *together = mem_grow(NULL, (size_t)span, row_bytes);
    size_t begin = 0, end;
    int rc = 0;

    for (; !rc && begin < n; begin = end) {
        uint64_t first = rows[begin];

        for (end = begin + 1; end < n && rows[end] - rows[end - 1] <= gap &&
                              rows[end] - first < span;)
            end++;
        rc = device_download(
            placement->device, together,
            (const char *)d_rows + (first - piece->row_begin) * row_bytes,
            (size_t)(rows[end - 1] - first + 1) * row_bytes, err);
        for (size_t i = begin; !rc && i < end; i++, to += row_bytes)
            memcpy(to, together + (rows[i] - first) * row_bytes, row_bytes);
    }
    mem_free(together);
    return rc;
}

int rows_download(const struct placement *placement, const struct piece *piece,
                  const uint64_t *rows, size_t n, void *weights, float *states,
                  struct err *err)
{
    size_t row_bytes = piece->width * precision_bytes(piece->table->precision);

    if (download(placement, piece, rows, n, piece->d_weight, row_bytes, weights,
                 err))
        return -1;
    return piece->d_state ? download(placement, piece, rows, n, piece->d_state,
                                     sizeof(float), (char *)states, err)
                          : 0;
}
