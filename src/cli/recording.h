/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_RECORDING_H
#define NEUROSHARD_CLI_RECORDING_H

#include "cli/command.h"
#include "io/store.h"

/* What the two ways of `neuroshard record` share: a database and the device
 * that was measured elsewhere. */
struct recording {
    struct cli *cli;
    struct store *store;          /* owned */
    struct sample_setting device; /* of which device, n_threads and isa count */
};

/* Finds the device of --device, or `name`, among those of the database; one
 * that it does not know has to be named with --isa. ERR_USAGE. */
int recording_find_device(struct recording *recording, const char *name,
                          struct err *err) MUST_CHECK;

#endif
