/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_GPU_FILE_H
#define NEUROSHARD_COSTMODEL_GPU_FILE_H

#include "costmodel/gpu_spec.h"

/*
 * Figures of a GPU as JSON, each with its source: a file a GPU, of which those
 * that are shipped lie in data/gpus. Specified in neuroshard-gpu(5). All that
 * is read lives in the arena.
 */

/* The whole text of such a file; `source` is what errors call it, and the
 * GPU. ERR_INPUT is "source:line: what is wrong". */
int gpu_spec_from_json(struct gpu_spec *spec, const char *text, size_t len,
                       const char *source, struct arena *arena,
                       struct err *err) MUST_CHECK;

/* The names of those that are shipped, sorted, the last one NULL. */
const char *const *gpu_names(struct arena *arena) NEVER_NULL;

/* By the name of a shipped one, in any case, by that of a device, which has a
 * blank or a colon in it (as gpu_spec_of_device), or by the path of a
 * file, which has a '/' or a '.' in it. The name of a shipped model, where
 * there is no file of it, has the figures of the GPU that the model was
 * measured on. ERR_USAGE for an unknown name, with the nearest and all there
 * are; a file that cannot be read fails as file_read or gpu_spec_from_json. */
int gpu_spec_get(const struct gpu_spec **out, const char *name,
                 struct arena *arena, struct err *err) MUST_CHECK;

/* The shipped one that a device's name, "cuda:NVIDIA H100 PCIe", is of: all
 * words of its own are among the device's, and no other has more such; for
 * "cpu:..." the CPU host. NULL where there is none. */
int gpu_spec_of_device(const struct gpu_spec **out, const char *device,
                       struct arena *arena, struct err *err) MUST_CHECK;

#endif
