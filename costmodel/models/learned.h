/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELS_LEARNED_H
#define NEUROSHARD_COSTMODEL_MODELS_LEARNED_H

#include "base/err.h"
#include "base/mem.h"

/* Finds the GPU of a model file. The file is named in the same way as for
 * oracle_learned_open. */
int oracle_learned_gpu(const char **gpu, const char *file, struct arena *arena,
                       struct err *err) MUST_CHECK;

#endif
