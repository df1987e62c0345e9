/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_GPU_FILE_H
#define NEUROSHARD_COSTMODEL_MODELFILE_GPU_FILE_H

#include "costmodel/formulas/gpu_spec.h"

/*
 * Reads the figures of GPUs from JSON files, in which each figure has its
 * source. There is one file for each GPU; shipped files are in data/gpus. The
 * format is specified in neuroshard-gpu(5). All results live in the arena.
 */

/* Parses the whole text of a GPU file. `source` names the file in error
 * messages and becomes the name of the GPU. Errors are ERR_INPUT with the
 * message "source:line: what is wrong". */
int gpu_spec_from_json(struct gpu_spec *spec, const char *text, size_t len,
                       const char *source, struct arena *arena,
                       struct err *err) MUST_CHECK;

/* Returns the names of the shipped GPUs, sorted and NULL-terminated. */
const char *const *gpu_names(struct arena *arena) NEVER_NULL;

/*
 * Finds the figures of a GPU by name. The name may be
 *
 *   - the name of a shipped GPU or one of its aliases, whatever the case,
 *     blanks, '-' and '_',
 *   - the name of a device, which contains a blank or a colon
 *     (see gpu_spec_of_device),
 *   - the path of a file, which contains a '/' or a '.',
 *   - the name of a shipped model, if no GPU file has this name: the figures
 *     are those of the GPU that the model was measured on.
 *
 * Changes of figures may follow the name, as in "l40s:memory=24GiB"
 * (costmodel/modelfile/gpu_changes.h). They are then part of spec->name.
 *
 * An unknown name is ERR_USAGE; the message suggests the nearest names and
 * lists all names. If a file cannot be read, the errors are those of file_read
 * or gpu_spec_from_json.
 */
int gpu_spec_get(const struct gpu_spec **out, const char *name,
                 struct arena *arena, struct err *err) MUST_CHECK;

/* Finds the shipped GPU that a device name such as "cuda:NVIDIA H100 PCIe"
 * belongs to. All words of a name or alias of the GPU must occur in the
 * device's name. If several names qualify, the one with the most words is
 * chosen. A device "cpu:..." belongs to the shipped CPU host. *out is NULL if
 * no GPU matches. */
int gpu_spec_of_device(const struct gpu_spec **out, const char *device,
                       struct arena *arena, struct err *err) MUST_CHECK;

#endif
