/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_TBE_H
#define NEUROSHARD_IO_TABLES_TBE_H

#include "io/tables_reader.h"

/* Reader of TBEDataConfig, the JSON of FBGEMM's TBE reporter, for imports. */

/* True if the text is a report of FBGEMM. */
bool tables_is_tbe(const char *text);
/* text[len] must be a NUL. */
tables_reader tables_from_tbe MUST_CHECK;

#endif
