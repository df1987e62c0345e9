/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_GEMM_BUFFERS_H
#define NEUROSHARD_DEVICE_GEMM_BUFFERS_H

#include "base/err.h"

#include <stdbool.h>

/* Prepares gemm_host for up to *n_threads threads that call it at the same
 * time. If there is too little address space, lowers *n_threads, to 1 at least.
 * Fails like gemm_init, which it calls. */
int gemm_reserve(unsigned *n_threads, struct err *err) MUST_CHECK;

/* Returns true if there is address space for a further buffer. */
bool openblas_has_room(void);
/* Reports that address space is missing, and ends the program. */
void openblas_no_room(void) __attribute__((noreturn));

#endif
