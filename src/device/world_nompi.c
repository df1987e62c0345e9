/* SPDX-License-Identifier: MIT */
#include "device/comm_private.h"

int world_open_mpi(struct world **out, uint32_t launched, struct err *err)
{
    (void)out;
    return err_usage(
        err,
        "%u processes were started together, but this build has no MPI body; "
        "one process alone can be every rank, or build it with 'make MPI=1'",
        launched);
}
