/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_ALLTOALL_H
#define NEUROSHARD_DEVICE_ALLTOALL_H

#include "device/comm.h"

/*
 * Exchange of embeddings between the lookup and the dense layers. It is an
 * all-to-all-v over whatever connects the ranks (device/comm.h). Before the
 * exchange, every rank has looked up its own tables for the whole batch. After
 * it, every rank has all outputs of its own samples. In backward, gradients go
 * the opposite way. A block that stays on its rank is copied, and counted, like
 * the others.
 *
 * Forward: rank r sends from a buffer element[batch][dims[r]], row-major. Rank
 * p owns the B_p samples [alltoall_begin(p), alltoall_begin(p + 1)). It
 * receives n_ranks consecutive blocks; block r is element[B_p][dims[r]].
 */

struct alltoall {
    uint32_t n_ranks; /* >= 1 */
    /* The exchange is between the ranks first_rank .. first_rank + n_ranks - 1
     * of the comm. All other numbers of ranks here count from first_rank. */
    uint32_t first_rank;
    uint32_t batch; /* number of samples of all ranks together */
    /* Number of elements per sample that each rank outputs, [n_ranks]. Owned by
     * the caller. Numbers may be 0. */
    const uint32_t *dims;
    uint32_t element_bytes; /* 4 for fp32, 2 for fp16 */
    /* A forward exchange can be limited to one part of each rank's samples.
     * Part c of n parts has the samples [B_p c / n, B_p (c + 1) / n) of each
     * rank p, where n is n_parts. The sender's buffer is then ordered by part,
     * and within a part by rank p. n_parts 0: all samples in one exchange. */
    uint32_t part, n_parts;
};

/* Returns the number of the first sample that `rank` owns: floor(rank * batch /
 * n_ranks). rank may be n_ranks: the result is then batch. */
uint32_t alltoall_begin(const struct alltoall *alltoall, uint32_t rank);
/* Returns the number of elements that a rank receives in a forward exchange.
 * This is also the number that it sends in a backward exchange. */
size_t alltoall_recv_elements(const struct alltoall *alltoall, uint32_t rank);
/* Returns the offset, in elements, at which the block from rank `from` starts
 * in the receive buffer of rank `to`. */
size_t alltoall_block(const struct alltoall *alltoall, uint32_t from,
                      uint32_t to);

/*
 * Starts the exchange. It is done when comm_finish has returned.
 *
 *   Forward:   d_src[r] has batch * dims[r] elements, and d_dst[p] gets
 *              alltoall_recv_elements(p) elements.
 *   Backward:  d_src[p] has the layout of d_dst[p] in forward. The data go into
 *              d_dst[r][batch][dims[r]].
 *
 * Pointers to buffers of ranks in other processes are ignored. Buffers must not
 * overlap.
 */
int alltoall_start(struct comm *comm, const struct alltoall *alltoall,
                   bool is_backward, const void *const *d_src,
                   void *const *d_dst, struct err *err) MUST_CHECK;

/* Returns a sample (struct comm_sample) that describes the exchange. The hosts
 * of the sample are groups of hosts_per_domain (>= 1) consecutive hosts. The
 * caller fills in its time and number of iterations. */
struct comm_sample alltoall_sample(const struct comm *comm,
                                   const struct alltoall *alltoall,
                                   uint32_t hosts_per_domain);

#endif
