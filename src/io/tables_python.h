/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_PYTHON_H
#define NEUROSHARD_IO_TABLES_PYTHON_H

#include "io/tables_reader.h"

/*
 * Imports the tables that Python code or its printed objects name:
 *
 *   EmbeddingBagConfig(name="t", num_embeddings=10, embedding_dim=8, ...)
 *   EmbeddingConfig(...)
 *   hugectr.EmbeddingTableConfig(name="t", max_vocabulary_size=10, ev_size=8)
 *   hugectr.SparseEmbedding(slot_size_array=[10, 20], embedding_vec_size=8,
 * ...)
 *
 * Constants of the program are used. A value that only the running program
 * knows is an error.
 */
bool tables_is_python(const char *text);
tables_reader tables_from_python MUST_CHECK;

#endif
