/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_GEMM_HOST_OPENBLAS_H
#define NEUROSHARD_DEVICE_GEMM_HOST_OPENBLAS_H

#include "device/gemm.h"

/* Part of a batch: the rows [m_begin, m_end) and columns [n_begin, n_end) of
 * the results [batch_begin, batch_end). */
struct gemm_part {
    uint32_t batch_begin, batch_end;
    uint32_t m_begin, m_end;
    uint32_t n_begin, n_end;
};

/* Computes one part as gemm_host computes the whole batch. Several threads may
 * compute different parts at the same time. */
void gemm_host_part(const struct gemm *gemm, const struct gemm_part *part,
                    const float *a, const float *b, float *c);

#endif
