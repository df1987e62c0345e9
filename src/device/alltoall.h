/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_ALLTOALL_H
#define NEUROSHARD_DEVICE_ALLTOALL_H

#include "device/comm.h"

/*
 * Exchange between the lookup and the dense layers: an all-to-all-v over
 * whatever connects the ranks (device/comm.h). Before it, every rank has looked
 * up its own tables for the whole batch. After it, every rank has all outputs
 * of its own samples. Backward is the reverse. A block that stays on its rank
 * is copied, and counted, like the others.
 *
 * Forward: rank r sends from element[batch][dims[r]], row-major. Rank p owns
 * the B_p samples [alltoall_begin(p), alltoall_begin(p + 1)). It receives
 * n_ranks consecutive blocks; block r is element[B_p][dims[r]].
 */

struct alltoall {
    uint32_t n_ranks; /* >= 1 */
    uint32_t batch;   /* samples of all ranks together */
    /* Elements per sample that each rank outputs, [n_ranks]. Owned by the
     * caller. 0 is fine. */
    const uint32_t *dims;
    uint32_t element_bytes; /* 4, or 2 for fp16 */
    /* A forward exchange may be of one part of each rank's samples. Part c of
     * n_parts has the samples [B_p c / n, B_p (c + 1) / n) of each rank p. The
     * sender's buffer then has one part after the other, and within a part one
     * p after the other. n_parts 0: all samples in one exchange. */
    uint32_t part, n_parts;
};

/* Returns the first sample of a rank: floor(rank * batch / n_ranks); rank <=
 * n_ranks. */
uint32_t alltoall_begin(const struct alltoall *alltoall, uint32_t rank);
/* Returns the elements that a rank receives in a forward exchange (and sends in
 * a backward one). */
size_t alltoall_recv_elements(const struct alltoall *alltoall, uint32_t rank);
/* Returns where the block from rank `from` starts in the receive buffer of rank
 * `to`, in elements. */
size_t alltoall_block(const struct alltoall *alltoall, uint32_t from,
                      uint32_t to);

/* Starts the exchange; it is done when comm_finish has returned. Forward:
 * d_src[r] has batch * dims[r] elements, and d_dst[p] gets
 * alltoall_recv_elements(p). Backward is the reverse: d_src[p] has the layout
 * of the forward d_dst[p], and goes back into d_dst[r][batch][dims[r]]. Buffers
 * of ranks in other processes are ignored. Buffers must not overlap. */
int alltoall_start(struct comm *comm, const struct alltoall *alltoall,
                   bool is_backward, const void *const *d_src,
                   void *const *d_dst, struct err *err) MUST_CHECK;

/* Returns a sample of the exchange without its time and iterations. */
struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall);

#endif
