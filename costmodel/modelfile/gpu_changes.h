/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_GPU_CHANGES_H
#define NEUROSHARD_COSTMODEL_MODELFILE_GPU_CHANGES_H

#include "costmodel/formulas/gpu_spec.h"

/*
 * Figures of a GPU that the user changes by its name:
 *
 *     l40s:memory=24GiB,dram=1008
 *
 * The text after the colon is a list of KEY=VALUE. A key is a member of the GPU
 * file that is a figure, in full or, if no other figure begins like it, without
 * the unit at its end: "dram_gbps" or "dram". A value is a number in the unit
 * of the member, or a number with a unit: 24GiB, 1.008TB/s, 2520MHz, 3us,
 * 82.6TFLOPS. Values have the ranges of the file.
 */

/* Returns the position of the colon before the changes in the name of a GPU, or
 * NULL if the name has no changes. */
const char *gpu_changes_find(const char *name);
/* Splits a list of names at its commas: "h100,l40s:memory=24GiB,dram=1008,a100"
 * has three. A part such as "dram=1008" belongs to the name before it. The
 * result ends with NULL. */
const char *const *gpu_changes_split(const char *list,
                                     struct arena *arena) NEVER_NULL;
/* Changes figures of a GPU by the text after the colon, of `len` bytes. If
 * figures of lookups change, sets spec->has_own_lookups, adds the changes to
 * the full name, and takes the error of a GPU of which nothing was measured.
 * Errors are ERR_USAGE. */
int gpu_changes_apply(struct gpu_spec *spec, const char *text, size_t len,
                      struct arena *arena, struct err *err) MUST_CHECK;

#endif
