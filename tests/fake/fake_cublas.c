/* SPDX-License-Identifier: MIT */
#include "device/cublas.h"

#include "tests/fake/fake_runtime.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * A stand-in for cuBLAS. It lets machines without GPUs test our side of cuBLAS:
 * a plain product of column-major matrices, after the stream's queued work. It
 * rejects what cuBLAS rejects: leading dimensions below the number of rows,
 * combinations of types that do not exist, and a call without a context. Inputs
 * are rounded to the precision that is asked for. With beta 0 it never reads c.
 * If $FAKE_CUBLAS_REFUSES is set, no context can be made.
 */

enum { ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15, FAILED = 13 };

struct cublas_context {
    void *stream;
    bool has_workspace;
};

/* A matrix of a batch in host memory: rows x columns, column-major. */
struct matrix {
    const void *d_data; /* as the caller passed it */
    int type, ld;
    size_t n_rows, n_cols;
    long long stride;
};

int cublasCreate_v2(struct cublas_context **context);
int cublasDestroy_v2(struct cublas_context *context);
int cublasSetStream_v2(struct cublas_context *context, void *stream);
int cublasSetWorkspace_v2(struct cublas_context *context, void *d_workspace,
                          size_t n_bytes);
int cublasGemmStridedBatchedEx(struct cublas_context *context, int op_a,
                               int op_b, int m, int n, int k, const void *alpha,
                               const void *d_a, int type_a, int ld_a,
                               long long stride_a, const void *d_b, int type_b,
                               int ld_b, long long stride_b, const void *beta,
                               void *d_c, int type_c, int ld_c,
                               long long stride_c, int n_batch, int math,
                               int algorithm);
const char *cublasGetStatusString(int status);

int cublasCreate_v2(struct cublas_context **context)
{
    if (getenv("FAKE_CUBLAS_REFUSES"))
        return ALLOC_FAILED;
    *context = calloc(1, sizeof **context);
    return *context ? CUBLAS_SUCCESS : ALLOC_FAILED;
}

int cublasDestroy_v2(struct cublas_context *context)
{
    free(context);
    return CUBLAS_SUCCESS;
}

int cublasSetStream_v2(struct cublas_context *context, void *stream)
{
    context->stream = stream;
    context->has_workspace = false;
    return CUBLAS_SUCCESS;
}

int cublasSetWorkspace_v2(struct cublas_context *context, void *d_workspace,
                          size_t n_bytes)
{
    if (!d_workspace || (uintptr_t)d_workspace % 256 || !n_bytes)
        return INVALID_VALUE;
    context->has_workspace = true;
    return CUBLAS_SUCCESS;
}

/* Rounds to a mantissa of n_bits, to the nearest, ties to even. */
static float round_mantissa(float value, unsigned n_bits)
{
    const unsigned n_lost = 23 - n_bits;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits += ((1u << (n_lost - 1)) - 1) + (bits >> n_lost & 1);
    bits &= ~((1u << n_lost) - 1);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Copies a matrix into fp32 host memory without padding. Returns NULL if that
 * fails. The caller frees it. */
static float *fetch(const struct matrix *matrix, int i, int math)
{
    const struct runtime runtime = runtime_of_program();
    const size_t size = matrix->type == CUBLAS_BF16 ? 2 : 4;
    const char *d_data =
        (const char *)matrix->d_data + size * (size_t)(i * matrix->stride);
    float *copy = malloc(matrix->n_rows * matrix->n_cols * sizeof *copy);
    uint16_t *column = calloc(matrix->n_rows, sizeof *column);
    /* A copy opens the memory of the emulated GPU, which takes long, so a
     * matrix without padding is copied at once. */
    const bool is_whole = size == 4 && (size_t)matrix->ld == matrix->n_rows;
    bool fails =
        !copy || !column ||
        (is_whole && runtime_copy(&runtime, copy, d_data,
                                  matrix->n_rows * matrix->n_cols * size));

    for (size_t col = 0; col < matrix->n_cols && !fails; col++) {
        float *to = copy + col * matrix->n_rows;
        const char *d_from = d_data + size * col * (size_t)matrix->ld;

        if (!is_whole)
            fails = runtime_copy(&runtime, size == 2 ? (void *)column : to,
                                 d_from, matrix->n_rows * size);
        for (size_t row = 0; row < matrix->n_rows && !fails; row++) {
            if (size == 2)
                to[row] = from_bf16(column[row]);
            else if (math == CUBLAS_MATH_TF32)
                to[row] = round_mantissa(to[row], 10);
        }
    }
    free(column);
    if (fails) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* Multiplies matrices i of a batch, and stores the result in c: at once, or
 * column by column if c has padding. */
static int multiply(const struct matrix *a, const struct matrix *b,
                    const struct matrix *c, bool transposes_a,
                    bool transposes_b, const float *scales, int i, int math)
{
    const struct runtime runtime = runtime_of_program();
    const size_t m = c->n_rows, n = c->n_cols;
    const size_t k = transposes_a ? a->n_rows : a->n_cols;
    float *x = fetch(a, i, math), *y = fetch(b, i, math);
    float *z = scales[1] != 0 ? fetch(c, i, CUBLAS_MATH_FP32)
                              : calloc(m * n, sizeof *z);
    char *d_c =
        (char *)(uintptr_t)c->d_data + sizeof *z * (size_t)(i * c->stride);
    const bool is_whole = (size_t)c->ld == m;
    bool fails = !x || !y || !z;

    for (size_t col = 0; col < n && !fails; col++) {
        for (size_t row = 0; row < m; row++) {
            float sum = 0;

            for (size_t l = 0; l < k; l++)
                sum += x[transposes_a ? row * k + l : l * m + row] *
                       y[transposes_b ? l * n + col : col * k + l];
            z[col * m + row] = scales[0] * sum + scales[1] * z[col * m + row];
        }
        if (!is_whole)
            fails =
                runtime_copy(&runtime, d_c + sizeof *z * col * (size_t)c->ld,
                             z + col * m, m * sizeof *z);
    }
    if (!fails && is_whole)
        fails = runtime_copy(&runtime, d_c, z, n * m * sizeof *z);
    free(x);
    free(y);
    free(z);
    return fails ? FAILED : CUBLAS_SUCCESS;
}

int cublasGemmStridedBatchedEx(struct cublas_context *context, int op_a,
                               int op_b, int m, int n, int k, const void *alpha,
                               const void *d_a, int type_a, int ld_a,
                               long long stride_a, const void *d_b, int type_b,
                               int ld_b, long long stride_b, const void *beta,
                               void *d_c, int type_c, int ld_c,
                               long long stride_c, int n_batch, int math,
                               int algorithm)
{
    const bool transposes_a = op_a == CUBLAS_T, transposes_b = op_b == CUBLAS_T;
    const int rows_a = transposes_a ? k : m, rows_b = transposes_b ? n : k;
    const struct runtime runtime = runtime_of_program();
    const struct matrix a = {
        d_a,     type_a, ld_a, (size_t)rows_a, (size_t)(transposes_a ? m : k),
        stride_a};
    const struct matrix b = {
        d_b,     type_b, ld_b, (size_t)rows_b, (size_t)(transposes_b ? k : n),
        stride_b};
    const struct matrix c = {d_c, type_c, ld_c, (size_t)m, (size_t)n, stride_c};
    float scales[2];
    int status = CUBLAS_SUCCESS;

    if (!context || !context->has_workspace || m < 1 || n < 1 || k < 1 ||
        n_batch < 1 || ld_a < rows_a || ld_b < rows_b || ld_c < m ||
        (op_a != CUBLAS_N && !transposes_a) ||
        (op_b != CUBLAS_N && !transposes_b) ||
        (n_batch > 1 && stride_c < (long long)ld_c * (n - 1) + m) ||
        algorithm != CUBLAS_DEFAULT_ALGORITHM)
        return INVALID_VALUE;
    if (type_a != type_b || type_c != CUBLAS_FP32 ||
        (type_a != CUBLAS_FP32 && type_a != CUBLAS_BF16) ||
        (math != CUBLAS_MATH_FP32 &&
         (math != CUBLAS_MATH_TF32 || type_a != CUBLAS_FP32)))
        return NOT_SUPPORTED;
    memcpy(&scales[0], alpha, sizeof scales[0]);
    memcpy(&scales[1], beta, sizeof scales[1]);
    if (runtime.wait && runtime.wait(context->stream))
        return FAILED;
    for (int i = 0; i < n_batch && !status; i++)
        status =
            multiply(&a, &b, &c, transposes_a, transposes_b, scales, i, math);
    return status;
}

const char *cublasGetStatusString(int status)
{
    return status == ALLOC_FAILED    ? "the resource allocation failed"
           : status == INVALID_VALUE ? "an unsupported value or parameter"
           : status == NOT_SUPPORTED ? "the functionality is not supported"
                                     : "the execution failed";
}
