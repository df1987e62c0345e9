/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/cli_answer.h"
#include "device/world.h"
#include "device/world_fork.h"

#include <stdio.h>
#include <time.h>

int command_open_world(struct world **out, const struct cli *cli,
                       struct err *err)
{
    const uint32_t n = (uint32_t)cli_u64(cli, "ranks");

    return n ? world_fork(out, n, err) : world_open(out, err);
}

void command_end_all(struct world *world, const struct err *err)
{
    const struct timespec moment = {.tv_sec = 2,
                                    .tv_nsec = world->rank % 100 * 10000000L};

    if (world->size == 1)
        return;
    if (world->rank != 0)
        nanosleep(&moment, NULL);
    cli_end_answer(err);
    fflush(stdout);
    cli_say(err->msg);
    world_abort(world, err_exit_status(err->code));
}
