/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_DEVICE_WORLDS_H
#define NEUROSHARD_TESTS_UNIT_DEVICE_WORLDS_H

#include "device/world.h"
#include "device/world_fork.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>

/* Worlds of tests that run in several processes. These processes print no TAP.
 * A process that finds an error describes it on stderr and exits with 1. */

/* Ends a process if a condition does not hold. */
#define CHECK(cond)                                            \
    do                                                         \
        if (!(cond)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #cond); \
            exit(1);                                           \
        }                                                      \
    while (0)

/* Opens the world. Ends the process if that fails. */
static inline struct world *test_world_open(void)
{
    struct world *world;
    struct err err = {0};

    if (world_open(&world, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    return world;
}

/* Main function of each of several processes. Closes the world. Returns the
 * exit status. */
typedef int process_fn(struct world *world, const char *argument);

/* Forks n processes, and tests the error that the forking process gets: its
 * code, ERR_NONE if all processes succeed, and its message. */
static inline void test_world_fork(process_fn *be_process, uint32_t n,
                                   const char *argument, enum err_code code,
                                   const char *message)
{
    struct world *world;
    struct err err = {0};
    int rc;

    fflush(stdout);
    rc = world_fork(&world, n, &err);
    if (!rc && world)
        exit(be_process(world, argument));
    ok(!rc == !code && err.code == code && !world, "%u processes: %s", n,
       argument);
    is_str(err.msg, message, "error message");
}

#endif
