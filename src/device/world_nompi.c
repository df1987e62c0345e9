/* SPDX-License-Identifier: MIT */
#include "device/world_mpi.h"

int world_open_mpi(struct world **out, uint32_t launched, struct err *err)
{
    (void)out;
    return err_usage(
        err,
        "%u processes were started together, but this build has no MPI "
        "support: start a single one for all ranks, or build with 'make MPI=1'",
        launched);
}
