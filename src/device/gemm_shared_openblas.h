/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_GEMM_SHARED_OPENBLAS_H
#define NEUROSHARD_DEVICE_GEMM_SHARED_OPENBLAS_H

/* Access to the functions of OpenBLAS. There are two bodies. A program that
 * loads OpenBLAS when it runs has gemm_shared_openblas.c. A program that is
 * linked with OpenBLAS has gemm_static_openblas.c. */

/* Returns OpenBLAS's cblas_sgemm, which gemm_init has loaded or which is linked
 * into the program. The caller converts it to the type of that function. */
void (*openblas_sgemm(void))(void);

/* Functions of OpenBLAS that take and give back one of its buffers; NULL if
 * OpenBLAS does not export them. The argument of `take` is not used. */
struct openblas_buffers {
    void *(*take)(int position);
    void (*give)(void *buffer);
};
struct openblas_buffers openblas_buffers(void);

#endif
