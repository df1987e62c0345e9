/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_DLRM_H
#define NEUROSHARD_IO_TABLES_DLRM_H

#include "io/tables_reader.h"

/*
 * Reader of a command line of dlrm_main.py or dlrm_s_pytorch.py, or of a script
 * that contains one, for imports.
 */

/* True if the text has a command line of dlrm. */
bool tables_is_dlrm(const char *text);
/* text[len] must be a NUL. */
tables_reader tables_from_dlrm MUST_CHECK;

#endif
