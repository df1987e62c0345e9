/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CRC_H
#define NEUROSHARD_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of zip archives (ISO 3309, polynomial 0xedb88320 reflected), computed
 * eight bytes at a time (Kounavis and Berry 2005). */
struct crc {
    uint32_t table[8][256];
};
void crc_init(struct crc *crc);
/* Continues a checksum with the next len bytes, and returns the new checksum.
 * `sum` is the checksum of all bytes before them; it is 0 at the start. */
uint32_t crc_add(const struct crc *crc, uint32_t sum, const void *data,
                 size_t len);

#endif
