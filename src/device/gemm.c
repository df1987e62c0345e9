/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "base/mem.h"
#include "device/cublas.h"

/* Device memory for cuBLAS: the size that NVIDIA recommends for an H100. With
 * memory of its own, cuBLAS gives the same result in each run. */
#define WORKSPACE_BYTES ((size_t)32 << 20)

struct gemm_library {
    struct device *device; /* not owned */
    /* cuBLAS and its context; both are zero on a CPU */
    struct cublas cublas;
    struct cublas_context *context;
    void *d_workspace;
};

/* Creates the context of cuBLAS, which queues its work like the device. */
static int open_context(struct gemm_library *library, struct err *err)
{
    const struct cublas *cublas = &library->cublas;

    if (cublas_check(cublas, cublas->create(&library->context), "cublasCreate",
                     err) ||
        device_alloc(library->device, &library->d_workspace, WORKSPACE_BYTES,
                     err) ||
        cublas_check(
            cublas,
            cublas->set_stream(library->context, library->device->queue),
            "cublasSetStream", err))
        return -1;
    /* cublasSetStream resets the workspace, so this call comes last. */
    return cublas_check(cublas,
                        cublas->set_workspace(library->context,
                                              library->d_workspace,
                                              WORKSPACE_BYTES),
                        "cublasSetWorkspace", err);
}

int gemm_open(struct gemm_library **out, struct device *device, struct err *err)
{
    struct gemm_library *library;

    *out = NULL;
    if (device_is_host(device) && gemm_init(err))
        return -1;
    library = mem_alloc(1, sizeof *library);
    library->device = device;
    if (!device_is_host(device) && (cublas_load(&library->cublas, NULL, err) ||
                                    open_context(library, err))) {
        gemm_close(library);
        return -1;
    }
    *out = library;
    return 0;
}

void gemm_close(struct gemm_library *library)
{
    if (!library)
        return;
    if (library->context)
        library->cublas.destroy(library->context);
    device_free(library->device, library->d_workspace);
    cublas_unload(&library->cublas);
    mem_free(library);
}

/* Queues a batch. cuBLAS stores matrices by columns, so a row-major matrix is a
 * transposed one, and c' = op(b)' op(a)' is computed. */
static int queue_cublas(struct gemm_library *library, const struct gemm *gemm,
                        const void *d_a, const void *d_b, void *d_c,
                        struct err *err)
{
    const float one = 1, beta = gemm->adds ? 1 : 0;
    const int type = gemm->math == GEMM_BF16 ? CUBLAS_BF16 : CUBLAS_FP32;
    const int math =
        gemm->math == GEMM_TF32 ? CUBLAS_MATH_TF32 : CUBLAS_MATH_FP32;
    const int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;

    return cublas_check(
        &library->cublas,
        library->cublas.gemm_strided_batched(
            library->context, gemm->transpose_b ? CUBLAS_T : CUBLAS_N,
            gemm->transpose_a ? CUBLAS_T : CUBLAS_N, n, m, k, &one, d_b, type,
            gemm->transpose_b ? k : n, (long long)gemm->stride_b, d_a, type,
            gemm->transpose_a ? m : k, (long long)gemm->stride_a, &beta, d_c,
            CUBLAS_FP32, n, (long long)gemm->stride_c, (int)gemm->n_batch, math,
            CUBLAS_DEFAULT_ALGORITHM),
        "cublasGemmStridedBatchedEx", err);
}

int gemm_queue(struct gemm_library *library, const struct gemm *gemm,
               const void *d_a, const void *d_b, void *d_c, struct err *err)
{
    if (!device_is_host(library->device))
        return queue_cublas(library, gemm, d_a, d_b, d_c, err);
    if (gemm->math != GEMM_FP32)
        return err_set(err, ERR_DEVICE,
                       "matrix products of a CPU are computed in fp32 only");
    gemm_host(gemm, d_a, d_b, d_c);
    return 0;
}
