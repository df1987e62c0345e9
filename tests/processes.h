/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_PROCESSES_H
#define NEUROSHARD_TESTS_PROCESSES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/*
 * Lets a test start itself again as several processes, as a launcher does. The
 * processes print no TAP. A process that finds an error describes it on stderr
 * and exits with 1. Include in one file only.
 */

/* NULL unless the program was linked with MPI. */
extern int MPI_Initialized(int *flag) __attribute__((weak));

static inline bool processes_know_mpi(void)
{
    return MPI_Initialized != NULL;
}

/* Returns NULL, or the reason why no processes can be started. */
static inline const char *processes_missing(void)
{
    if (!processes_know_mpi())
        return "this build has no MPI";
    if (system("command -v mpirun >/dev/null 2>&1"))
        return "there is no mpirun";
    return NULL;
}

/* Returns the status of `mpirun -n N PROGRAM ARGUMENTS`: 0 if all processes
 * succeeded. The shell parses the arguments. It works as root and with more
 * processes than processors. Leaks of Open MPI itself at exit are not
 * reported. */
static inline int processes_run(unsigned n, const char *program,
                                const char *arguments)
{
    char command[2048];
    int status;

    snprintf(command, sizeof command,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "OMPI_MCA_rmaps_base_oversubscribe=1 "
             "OMPI_MCA_hwloc_base_binding_policy=none "
             "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 "
             "mpirun -n %u '%s' %s </dev/null",
             n, program, arguments);
    fflush(stdout);
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
