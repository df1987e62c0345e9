/* SPDX-License-Identifier: MIT */
#include "device/cublas.h"

#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* The constants of our interface are those of the installed toolkit. */
#if __has_include(<cublas_api.h>)
#    include <cublas_api.h>
#    define SAME(ours, theirs) \
        _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(CUBLAS_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_N, CUBLAS_OP_N);
SAME(CUBLAS_T, CUBLAS_OP_T);
SAME(CUBLAS_FP32, CUDA_R_32F);
SAME(CUBLAS_BF16, CUDA_R_16BF);
SAME(CUBLAS_MATH_FP32, CUBLAS_COMPUTE_32F);
SAME(CUBLAS_MATH_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CUBLAS_DEFAULT_ALGORITHM, CUBLAS_GEMM_DEFAULT);
#    define HAS_TOOLKIT true
#else
#    define HAS_TOOLKIT false
#endif

static void test_missing(void)
{
    struct cublas cublas;
    struct err err = {0};

    ok(cublas_load(&cublas, "libno-such-cublas.so", &err) &&
           err.code == ERR_DEVICE,
       "no cuBLAS");
    is_str(err.msg,
           "cannot load cuBLAS, which the dense part needs on a GPU: "
           "libno-such-cublas.so: cannot open shared object file: No such file "
           "or directory",
           "is one sentence");
    ok(cublas_load(&cublas, "libm.so.6", &err) && err.code == ERR_DEVICE,
       "another library");
    is_str(err.msg,
           "'libm.so.6' lacks 'cublasCreate_v2': it is not cuBLAS 11.4 or "
           "later",
           "is another one");
    cublas_unload(&cublas);
}

/* The installed library has all functions. It needs no GPU for that. It
 * allocates memory when it is loaded, and never frees it, which a leak
 * sanitizer reports. */
static void test_installed(void)
{
    struct cublas cublas;
    struct err err = {0};

#ifdef __SANITIZE_ADDRESS__
    tap_skip("the installed one", "the program is built with sanitizers");
    return;
#endif
    if (cublas_load(&cublas, NULL, &err)) {
        if (strstr(err.msg, " lacks "))
            ok(0, "%s", err.msg);
        else
            tap_skip("the installed one", "there is no cuBLAS");
        return;
    }
    ok(1, "the installed one has all functions");
    cublas_unload(&cublas);
}

/* Calls of the stand-in that it must reject, as cuBLAS does. */
static void test_rejects(const char *path)
{
    static const struct {
        const char *what;
        int n, ld_a, ld_b, ld_c, type_a, type_b, math;
    } calls[] = {
        {"n 0", 0, 2, 4, 2, CUBLAS_FP32, CUBLAS_FP32, CUBLAS_MATH_FP32},
        {"a short a", 3, 1, 4, 2, CUBLAS_FP32, CUBLAS_FP32, CUBLAS_MATH_FP32},
        {"a short b", 3, 2, 3, 2, CUBLAS_FP32, CUBLAS_FP32, CUBLAS_MATH_FP32},
        {"a short c", 3, 2, 4, 1, CUBLAS_FP32, CUBLAS_FP32, CUBLAS_MATH_FP32},
        {"two types", 3, 2, 4, 2, CUBLAS_FP32, CUBLAS_BF16, CUBLAS_MATH_FP32},
        {"bf16 as tf32", 3, 2, 4, 2, CUBLAS_BF16, CUBLAS_BF16,
         CUBLAS_MATH_TF32},
    };
    float a[8] = {0}, b[12] = {0}, c[6] = {0}, one = 1, zero = 0;
    static _Alignas(256) char d_workspace[256];
    struct cublas_context *context = NULL;
    struct cublas cublas;
    struct err err = {0};

    if (cublas_load(&cublas, path, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    ok(!cublas.create(&context) && !cublas.set_stream(context, a) &&
           !cublas.set_workspace(context, d_workspace, 256),
       "a context");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ok(cublas.gemm_strided_batched(
               context, CUBLAS_N, CUBLAS_N, 2, calls[i].n, 4, &one, a,
               calls[i].type_a, calls[i].ld_a, 0, b, calls[i].type_b,
               calls[i].ld_b, 0, &zero, c, CUBLAS_FP32, calls[i].ld_c, 0, 1,
               calls[i].math, CUBLAS_DEFAULT_ALGORITHM),
           "rejects %s", calls[i].what);
    ok(cublas_check(&cublas, 7, "cublasGemm", &err) &&
           !strcmp(err.msg,
                   "cublasGemm failed: an unsupported value or parameter"),
       "%s", err.msg);
    ok(!cublas.destroy(context), "closes the context");
    setenv("FAKE_CUBLAS_REFUSES", "1", 1);
    ok(cublas.create(&context), "refuses a context");
    cublas_unload(&cublas);
}

int main(int argc, char **argv)
{
    char path[1024];

    (void)argc;
    if (HAS_TOOLKIT)
        ok(1, "the constants are those of the toolkit (compiled)");
    else
        tap_skip("the constants", "there is no CUDA Toolkit");
    snprintf(path, sizeof path, "%.*s/../../../fake/libcublas.so.13",
             (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
    test_missing();
    test_installed();
    test_rejects(path);
    return tap_done();
}
