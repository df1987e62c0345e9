/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_OPENBLAS_PRIVATE_H
#define NEUROSHARD_DEVICE_OPENBLAS_PRIVATE_H

/* Returns OpenBLAS's cblas_sgemm, which gemm_init has loaded or which is linked
 * into the program. The caller converts it to the type of that function. */
void (*openblas_sgemm(void))(void);

#endif
