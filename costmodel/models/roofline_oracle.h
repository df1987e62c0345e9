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
/* Adds the price of the dense part to an oracle of roofline_oracle, if the
 * problem has one. oracle_roofline_open does so; roofline_oracle does not. */
int roofline_add_dense(struct oracle *oracle, struct err *err) MUST_CHECK;

#endif
