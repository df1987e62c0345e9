/* SPDX-License-Identifier: MIT */
#include "device/gemm.h"

#include "base/mem.h"
#include "device/cublas.h"
#include "device/device_cpu.h"
#include "device/gemm_host_openblas.h"

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

/* Queues a batch. cuBLAS stores matrices by columns. It takes each row-major
 * matrix for its transpose, and computes c' = op(b)' op(a)'. */
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

/* A batch that the threads of a CPU share. */
struct shared_gemm {
    const struct gemm *gemm;
    const float *a, *b;
    float *c;
    unsigned n_parts;
};

/* Number of operations below which a product is not worth sharing: the threads
 * of a pool take some microseconds to start. */
#define LEAST_SHARED_OPERATIONS 1e6
/* Rows or columns of a part are a multiple of this number, so that OpenBLAS
 * computes whole tiles. */
#define PART_MULTIPLE 16

/* Returns the begin of part i of n items. */
static uint32_t begin_of(const struct shared_gemm *shared, uint32_t n,
                         uint64_t i, uint32_t multiple)
{
    const uint64_t begin = n * i / shared->n_parts;

    return i == shared->n_parts ? n : (uint32_t)(begin / multiple * multiple);
}

/* Computes part `task`. A batch of at least n_parts products is cut between
 * products. In a smaller batch each product is cut along its longer side. */
static void multiply_part(void *ctx, size_t task, unsigned thread)
{
    const struct shared_gemm *shared = ctx;
    const struct gemm *gemm = shared->gemm;
    struct gemm_part part = {
        .batch_end = gemm->n_batch, .m_end = gemm->m, .n_end = gemm->n};
    uint32_t *begin = &part.m_begin, *end = &part.m_end, multiple;

    (void)thread;
    if (gemm->n_batch >= shared->n_parts) {
        begin = &part.batch_begin;
        end = &part.batch_end;
    } else if (gemm->n > gemm->m) {
        begin = &part.n_begin;
        end = &part.n_end;
    }
    multiple = begin == &part.batch_begin ? 1 : PART_MULTIPLE;
    *begin = begin_of(shared, *end, task, multiple);
    *end = begin_of(shared, *end, task + 1, multiple);
    if (*begin < *end)
        gemm_host_part(gemm, &part, shared->a, shared->b, shared->c);
}

/* Computes a batch on the threads of a CPU. */
static void multiply_shared(struct device *device, const struct gemm *gemm,
                            const float *a, const float *b, float *c)
{
    struct pool *pool = device_cpu(device)->pool;
    struct shared_gemm shared = {gemm, a, b, c, pool_size(pool)};
    const double operations = 2.0 * gemm->m * gemm->n * gemm->k * gemm->n_batch;

    if (operations < LEAST_SHARED_OPERATIONS)
        gemm_host(gemm, a, b, c);
    else
        pool_run(pool, shared.n_parts, multiply_part, &shared);
}

int gemm_queue(struct gemm_library *library, const struct gemm *gemm,
               const void *d_a, const void *d_b, void *d_c, struct err *err)
{
    if (!device_is_host(library->device))
        return queue_cublas(library, gemm, d_a, d_b, d_c, err);
    if (gemm->math != GEMM_FP32)
        return err_set(err, ERR_DEVICE,
                       "matrix products of a CPU are computed in fp32 only");
    multiply_shared(library->device, gemm, d_a, d_b, d_c);
    return 0;
}
