/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CUBLAS_H
#define NEUROSHARD_DEVICE_CUBLAS_H

#include "base/err.h"

#include <stddef.h>

/*
 * The part of cuBLAS that this program calls, through cuBLAS's public binary
 * interface. cublas_load loads the library, so cuBLAS is needed neither to
 * build nor to start the program. Versions 11.4 to 13 fit.
 */

struct cublas_context; /* *cublasHandle_t */

/* Constants of cuBLAS's interface. t_cublas compares them with the header of
 * the CUDA Toolkit, if that is installed. */
enum { CUBLAS_SUCCESS = 0 };                           /* cublasStatus_t */
enum { CUBLAS_N = 0, CUBLAS_T = 1 };                   /* cublasOperation_t */
enum { CUBLAS_FP32 = 0, CUBLAS_BF16 = 14 };            /* cudaDataType_t */
enum { CUBLAS_MATH_FP32 = 68, CUBLAS_MATH_TF32 = 77 }; /* cublasComputeType_t */
enum { CUBLAS_DEFAULT_ALGORITHM = -1 };                /* cublasGemmAlgo_t */

/* The cuBLAS functions that this program calls. They return a status. The
 * parameter `stream` is a cudaStream_t. Matrices are stored by columns, and
 * alpha and beta are fp32 in host memory. */
struct cublas {
    void *library; /* owned */
    int (*create)(struct cublas_context **context);
    int (*destroy)(struct cublas_context *context);
    int (*set_stream)(struct cublas_context *context, void *stream);
    int (*set_workspace)(struct cublas_context *context, void *d_workspace,
                         size_t n_bytes);
    int (*gemm_strided_batched)(struct cublas_context *context, int op_a,
                                int op_b, int m, int n, int k,
                                const void *alpha, const void *d_a, int type_a,
                                int ld_a, long long stride_a, const void *d_b,
                                int type_b, int ld_b, long long stride_b,
                                const void *beta, void *d_c, int type_c,
                                int ld_c, long long stride_c, int n_batch,
                                int math, int algorithm);
    const char *(*get_status_string)(int status);
};

/* Loads cuBLAS and finds its functions. library: NULL for the newest installed
 * version that fits; tests pass another one. Fails with ERR_DEVICE and the
 * loader's message if no library can be loaded or if it lacks a function. */
int cublas_load(struct cublas *cublas, const char *library,
                struct err *err) MUST_CHECK;
void cublas_unload(struct cublas *cublas); /* a zeroed struct is fine */

/* Checks the status that a cuBLAS call returned. Returns 0 if the status is a
 * success. Otherwise returns -1 and sets ERR_DEVICE with the name of the call
 * and cuBLAS's message. */
int cublas_check(const struct cublas *cublas, int status, const char *name,
                 struct err *err) MUST_CHECK;

#endif
