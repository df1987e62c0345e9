/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_GEMM_H
#define NEUROSHARD_DEVICE_GEMM_H

#include "device/device.h"

/*
 * Products of dense, row-major matrices:
 *
 *     c[m][n] = op(a)[m][k] * op(b)[k][n]
 *
 * op transposes a matrix if the flag of the matrix is set. A transposed a is
 * stored as [k][m], a transposed b as [n][k].
 *
 * OpenBLAS computes the products of a CPU, and cuBLAS those of a GPU. Both
 * libraries are loaded at their first use, unless OpenBLAS is linked
 * statically.
 */

/* Elements of a and b, and the precision in which they are multiplied. Products
 * are summed up in fp32. */
enum gemm_math {
    GEMM_FP32, /* fp32, multiplied in fp32 */
    GEMM_TF32, /* fp32, rounded to TF32 (10 bits of mantissa) by a GPU */
    GEMM_BF16, /* bf16 */
};

/* A strided batch of products of one shape. Element i of the batch multiplies
 * a + i * stride_a with b + i * stride_b; the unit of a stride is an element. A
 * stride of a or b may be 0. The elements of c are fp32. */
struct gemm {
    bool transpose_a, transpose_b;
    uint32_t m, n, k; /* >= 1 */
    uint32_t n_batch; /* >= 1 */
    uint64_t stride_a, stride_b, stride_c;
    bool adds; /* true: adds to c; false: never reads c */
    enum gemm_math math;
};

/* Prepares OpenBLAS. Call it before gemm_host, and before any function that
 * trains a net, or evaluates a net in its training format (train_fit,
 * evaluate_model, model_predicts). OpenBLAS runs on one thread, so that a
 * machine always gives the same result. Fails with ERR_IO if OpenBLAS cannot be
 * loaded. A second call does nothing, and may come from any thread. */
int gemm_init(struct err *err) MUST_CHECK;
/* Computes a batch in host memory. gemm->math must be GEMM_FP32. */
void gemm_host(const struct gemm *gemm, const float *a, const float *b,
               float *c);

/* The library that computes the products of one device. */
struct gemm_library;
/* Opens the library of a device, which must stay open until gemm_close. Fails
 * with ERR_DEVICE or ERR_IO and the reason if the library cannot be loaded. */
int gemm_open(struct gemm_library **out, struct device *device,
              struct err *err) MUST_CHECK;
void gemm_close(struct gemm_library *library); /* NULL is fine */
/* Computes a batch in the device's memory, after the work that was queued
 * before. A GPU queues the batch. A CPU computes it at once, on all threads of
 * the device; the last bits may depend on their number. Fails with ERR_DEVICE
 * if cuBLAS fails, or on a CPU if gemm->math is not GEMM_FP32. */
int gemm_queue(struct gemm_library *library, const struct gemm *gemm,
               const void *d_a, const void *d_b, void *d_c,
               struct err *err) MUST_CHECK;

#endif
