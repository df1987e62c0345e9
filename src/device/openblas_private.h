/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_OPENBLAS_PRIVATE_H
#define NEUROSHARD_DEVICE_OPENBLAS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

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

/* Returns true if there is address space for a further buffer. */
bool openblas_has_room(void);
/* Reports that there is not, and ends the program. */
void openblas_no_room(void) __attribute__((noreturn));

#endif
