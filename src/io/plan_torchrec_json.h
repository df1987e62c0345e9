/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_JSON_H
#define NEUROSHARD_IO_PLAN_TORCHREC_JSON_H

#include "io/plan_torchrec_shards.h"

/* Readers of TorchRec's plans as JSON, and as Python prints them. */

/* torchrec_read_json reads a plan as JSON; torchrec_read_printed reads a plan
 * as Python prints it. ERR_INPUT messages have the form "source:line: ...". */
int torchrec_read_json(struct torchrec_reader *reader, const char *text,
                       size_t len, struct err *err) MUST_CHECK;
int torchrec_read_printed(struct torchrec_reader *reader, const char *text,
                          size_t len, struct err *err) MUST_CHECK;

#endif
