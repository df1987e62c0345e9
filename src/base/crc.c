/* SPDX-License-Identifier: MIT */
#include "base/crc.h"

#define POLYNOMIAL 0xedb88320u

void crc_init(struct crc *crc)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;

        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ POLYNOMIAL : sum >> 1;
        crc->table[0][byte] = sum;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t sum = crc->table[k - 1][byte];

            crc->table[k][byte] = sum >> 8 ^ crc->table[0][sum & 255];
        }
}

uint32_t crc_add(const struct crc *crc, uint32_t sum, const void *data,
                 size_t len)
{
    const unsigned char *pos = data;

    sum = ~sum;
    for (; len >= 8; len -= 8, pos += 8)
        sum = crc->table[7][(sum ^ pos[0]) & 255] ^
              crc->table[6][(sum >> 8 ^ pos[1]) & 255] ^
              crc->table[5][(sum >> 16 ^ pos[2]) & 255] ^
              crc->table[4][sum >> 24 ^ pos[3]] ^ crc->table[3][pos[4]] ^
              crc->table[2][pos[5]] ^ crc->table[1][pos[6]] ^
              crc->table[0][pos[7]];
    while (len--)
        sum = sum >> 8 ^ crc->table[0][(sum ^ *pos++) & 255];
    return ~sum;
}
