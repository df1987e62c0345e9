/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_MPI_H
#define NEUROSHARD_DEVICE_WORLD_MPI_H

#include "device/world.h"

/*
 * The MPI body of a world. In a build without MPI, world_nompi.c replaces
 * world_mpi.c.
 */

/* Opens a world over MPI. launched: number of processes according to the
 * launcher's variables in the environment, > 1. */
int world_open_mpi(struct world **out, uint32_t launched,
                   struct err *err) MUST_CHECK;

#endif
