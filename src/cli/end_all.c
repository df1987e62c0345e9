/* SPDX-License-Identifier: MIT */
#include "cli/end_all.h"

#include <stdio.h>
#include <time.h>

void end_all(struct world *world, const struct err *err)
{
    const struct timespec moment = {.tv_sec = 2};

    if (world_size(world) == 1)
        return;
    if (world_rank(world) != 0)
        nanosleep(&moment, NULL);
    fflush(stdout);
    fprintf(stderr, "neuroshard: %s\n", err->msg);
    world_abort(world, err_exit_status(err->code));
}
