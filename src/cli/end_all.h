/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_END_ALL_H
#define NEUROSHARD_CLI_END_ALL_H

#include "device/world.h"

/* A process that fails must not leave the others waiting: says why, as main
 * would, and ends all of them. Often all fail alike; so that one sentence is
 * enough, the others give process 0 a moment to say it. A world of one returns
 * without a word. */
void end_all(struct world *world, const struct err *err);

#endif
