/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_GATHER_H
#define NEUROSHARD_EXEC_REFERENCE_GATHER_H

#include "base/err.h"

#include <stddef.h>

/* Exchange of large blocks between the processes of a reference, over the
 * control functions of device/world.h. Both functions are collective, and fail
 * as world_all_gather does. */

struct world;

/* Gathers one part of each process in parts[world size]. On entry each process
 * has filled the part of its own rank. Part r has n_bytes[r] bytes, >= 0; all
 * processes give the same n_bytes[world size]. */
int reference_gather(struct world *world, char *const *parts,
                     const size_t *n_bytes, struct err *err) MUST_CHECK;

/* Replaces numbers[n] by their sums over all processes, added in the order of
 * ranks. */
int reference_add_up(struct world *world, double *numbers, size_t n,
                     struct err *err) MUST_CHECK;

#endif
