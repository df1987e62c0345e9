/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_MODEL_H
#define NEUROSHARD_IO_TABLES_MODEL_H

#include "io/tables_reader.h"

/*
 * Imports the tables of a PyTorch model as print(model) shows it:
 *
 *   DLRM(
 *     (embedding_bags): ModuleDict(
 *       (t_0): EmbeddingBag(1000, 16, mode='sum')
 *       (t_1): Embedding(500, 16)
 *     )
 *   )
 *
 * The model may be part of a log, whose other lines are ignored. If a model is
 * printed several times, all prints must have the same tables. Tables of the
 * same name in several modules have the path of the module in front.
 */
bool tables_is_model(const char *text);
tables_reader tables_from_model MUST_CHECK;

#endif
