/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_NPZ_H
#define NEUROSHARD_TESTS_NPZ_H

/* Writes archives as np.savez does: stored members, then their directory. */

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

/* Directory of the archive being written; a zeroed one is empty. */
struct npz {
    struct buf directory; /* owned until npz_end */
    uint16_t n_members;
};

/* Returns the CRC-32, computed bit by bit from the zip specification. It does
 * not share the reader's tables. */
static uint32_t npz_sum(const struct buf *data)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < data->len; i++) {
        sum ^= (unsigned char)data->data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

/* Adds the array, a NumPy file, as member NAME.npy. */
static void npz_add(struct npz *npz, struct buf *out, const char *name,
                    const struct buf *array)
{
    const uint32_t n = (uint32_t)array->len, sum = npz_sum(array);
    const uint16_t n_name = (uint16_t)(strlen(name) + 4);
    const uint32_t at = (uint32_t)out->len;
    char head[30] = "PK\3\4\x14", entry[46] = "PK\1\2\x14\3\x14";

    head[12] = 0x21; /* date: the first day that zip can represent */
    memcpy(head + 14, &sum, 4);
    memcpy(head + 18, &n, 4);
    memcpy(head + 22, &n, 4);
    memcpy(head + 26, &n_name, 2);
    memcpy(entry + 8, head + 6, 20);
    memcpy(entry + 28, &n_name, 2);
    memcpy(entry + 42, &at, 4);
    buf_add(&npz->directory, entry, sizeof(entry));
    buf_printf(&npz->directory, "%s.npy", name);
    npz->n_members++;
    buf_add(out, head, sizeof(head));
    buf_printf(out, "%s.npy", name);
    buf_add(out, array->data, array->len);
}

/* Ends the archive and resets `npz` for the next one. */
static void npz_end(struct npz *npz, struct buf *out)
{
    const uint32_t begin = (uint32_t)out->len;
    const uint32_t n = (uint32_t)npz->directory.len;
    char end[22] = "PK\5\6";

    memcpy(end + 8, &npz->n_members, 2);
    memcpy(end + 10, &npz->n_members, 2);
    memcpy(end + 12, &n, 4);
    memcpy(end + 16, &begin, 4);
    if (n)
        buf_add(out, npz->directory.data, n);
    buf_add(out, end, sizeof(end));
    buf_release(&npz->directory);
    *npz = (struct npz){0};
}

#endif
