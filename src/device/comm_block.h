/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_BLOCK_H
#define NEUROSHARD_DEVICE_COMM_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* One block of bytes that moves from one rank to another rank or to itself.
 * d_src is NULL if rank `from` is in another process. d_dst is NULL if rank
 * `to` is in another process. */
struct comm_block {
    uint32_t from, to;
    const void *d_src;
    void *d_dst;
    size_t n_bytes;
};

#endif
