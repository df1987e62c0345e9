/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_SHIPPED_GPU_H
#define NEUROSHARD_TESTS_SHIPPED_GPU_H

#include <stdlib.h>
#include <unistd.h>

#include "costmodel/modelfile/gpu_file.h"

/* Returns the figures of a shipped GPU, or NULL if the file is missing. */
__attribute__((unused)) static const struct gpu_spec *
shipped_gpu(const char *name, struct arena *arena)
{
    const struct gpu_spec *spec;
    struct err err = {0};

    return gpu_spec_get(&spec, name, arena, &err) ? NULL : spec;
}

/* Makes an empty folder the data folder and puts the shipped GPUs into it. */
__attribute__((unused)) static int move_data(const char *folder,
                                             struct arena *arena)
{
    const char *gpus =
        arena_printf(arena, "%s/gpus", getenv("NEUROSHARD_DATA"));

    return symlink(gpus, arena_printf(arena, "%s/gpus", folder)) ||
           setenv("NEUROSHARD_DATA", folder, 1);
}

#endif
