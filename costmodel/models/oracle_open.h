/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELS_ORACLE_OPEN_H
#define NEUROSHARD_COSTMODEL_MODELS_ORACLE_OPEN_H

#include "core/plan.h"

/*
 * Opens cost models by name. Each opened oracle is for one problem and lives in
 * the arena. costmodel/models/oracles.h lists the cost models.
 */

/* Opens a cost model from a text that a user writes: "model:FILE",
 * "roofline:NAME", "reference:DIR", "torchrec", "torchrec:KEY=VALUE,...". The
 * name of an opened oracle is also a text of this form; it opens the same cost
 * model again. */
int oracle_open(struct oracle **out, const char *spec,
                const struct problem *problem, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Returns the mask of the options that the cost model named by the text `spec`
 * heeds. The mask leaves out options that a setting in the text overrides. */
unsigned oracle_heeds(const char *spec);

/* Finds the GPU of the cost model named by the text `spec`. *gpu is a name for
 * gpu_spec_get, or NULL if the GPU is unknown. */
int oracle_gpu(const char **gpu, const char *spec, struct arena *arena,
               struct err *err) MUST_CHECK;

/* Prices a plan by the cost model named by the text `spec`: calls oracle_open,
 * then plan_price. */
int oracle_price_plan(struct plan *plan, const char *spec, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* Opens the default cost model for a GPU. It is the GPU's shipped model under
 * data/models/. If there is no shipped model, or if figures of lookups were
 * changed (struct gpu_spec), it is the GPU's roofline; its warning then names
 * the model that is not used. */
int oracle_open_for_gpu(struct oracle **out, const char *gpu,
                        const struct problem *problem, struct arena *arena,
                        struct err *err) MUST_CHECK;

#endif
