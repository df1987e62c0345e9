/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_ALLTOALL_H
#define NEUROSHARD_DEVICE_ALLTOALL_H

#include "device/comm.h"

/*
 * The exchange between lookup and dense layers: an all-to-all-v over whatever
 * connects the ranks (device/comm.h). Every rank has looked up its tables for
 * the whole batch; afterwards every rank has all outputs of its own samples.
 * Backward is the reverse. The block that stays on its rank is copied, and
 * counted, like the others.
 *
 * Forward: rank r sends from element[batch][dims[r]], row-major; rank p owns
 * the samples [alltoall_begin(p), alltoall_begin(p + 1)), B_p of them, and
 * receives n_ranks blocks one behind the other, block r being
 * element[B_p][dims[r]].
 */

struct alltoall {
    uint32_t n_ranks;       /* >= 1 */
    uint32_t batch;         /* samples of all ranks together */
    const uint32_t *dims;   /* [n_ranks] elements a sample that a rank outputs;
                               owned by the caller; 0 is fine */
    uint32_t element_bytes; /* 4, or 2 for fp16 */
    /* A forward one may be of a part of each rank's samples: from r, part c of
     * n_parts, [B_p c / n, B_p (c + 1) / n) of those of each p; the sender has
     * part behind part, and in each p behind p. 0 parts: all. */
    uint32_t part, n_parts;
};

/* First sample of a rank: floor(rank * batch / n_ranks); rank <= n_ranks. */
uint32_t alltoall_begin(const struct alltoall *alltoall, uint32_t rank);
/* Elements that a rank receives in a forward exchange (and sends in backward).
 */
size_t alltoall_recv_elements(const struct alltoall *alltoall, uint32_t rank);
/* Where `from`'s block starts in `to`'s receive buffer, in elements. */
size_t alltoall_block(const struct alltoall *alltoall, uint32_t from,
                      uint32_t to);

/* Forward: d_src[r] has batch * dims[r] elements, d_dst[p] gets
 * alltoall_recv_elements(p). Backward is the reverse: d_src[p], laid out as
 * that, goes back into d_dst[r][batch][dims[r]]. Those of ranks elsewhere are
 * not looked at. Buffers must not overlap. Done when comm_finish has
 * returned. */
int alltoall_start(struct comm *comm, const struct alltoall *alltoall,
                   bool is_backward, const void *const *d_src,
                   void *const *d_dst, struct err *err) MUST_CHECK;

/* What makes a sample of the exchange: all but its time and iterations. */
struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall);

#endif
