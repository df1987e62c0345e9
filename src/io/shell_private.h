/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SHELL_PRIVATE_H
#define NEUROSHARD_IO_SHELL_PRIVATE_H

#include "io/shell_commands.h"

/* Reads commands up to the end of the text. */
int shell_read_commands(struct shell_reader *reader,
                        struct err *err) MUST_CHECK;

#endif
