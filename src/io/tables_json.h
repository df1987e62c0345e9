/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_JSON_H
#define NEUROSHARD_IO_TABLES_JSON_H

#include "io/tables_reader.h"

/*
 * Reader of table lists as JSON, in the form of TorchRec:
 *   {name: {num_embeddings, embedding_dim, pooling_factor}}
 */

tables_reader tables_from_json MUST_CHECK;

#endif
