/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELS_ROOFLINE_ORACLE_H
#define NEUROSHARD_COSTMODEL_MODELS_ROOFLINE_ORACLE_H

#include "core/oracle.h"
#include "costmodel/formulas/gpu_spec.h"

/* Opens the same oracle as oracle_roofline_open, for the figures in `spec`.
 * `spec` must live longer than the oracle, which lives in the arena. */
struct oracle *roofline_oracle(const struct gpu_spec *spec,
                               const struct problem *problem,
                               struct arena *arena);

#endif
