/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_IMPORT_H
#define NEUROSHARD_COSTMODEL_MODEL_IMPORT_H

#include "costmodel/model_file.h"

/* The compute net of a folder of reference nets (DIR/net_compute.json) as a
 * model of the published features: modelled, at the published batch of 65,536
 * fp32 samples with exact SGD. Lives in the arena. ERR_IO, or ERR_INPUT where
 * it is no such net. */
int model_import(struct model *model, const char *dir, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
