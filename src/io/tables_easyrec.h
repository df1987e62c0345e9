/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_EASYREC_H
#define NEUROSHARD_IO_TABLES_EASYREC_H

#include "io/tables_reader.h"

/*
 * Imports the tables of a TorchEasyRec configuration (protocol buffers as
 * text). A feature with an embedding has a table, called embedding_name, or
 * "NAME_emb" after the feature. Features of the same embedding_name share it.
 *
 * A feature of a group of type DEEP is pooled; one of a group whose type has
 * SEQUENCE in its name gives a vector per lookup. A table of both
 * kinds exists twice; the second one is called "sequence.NAME".
 */
bool tables_is_easyrec(const char *text);
tables_reader tables_from_easyrec MUST_CHECK;

#endif
