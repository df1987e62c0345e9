/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_CANARY_H
#define NEUROSHARD_MICROBENCH_CANARY_H

#include "device/device.h"

/*
 * A small fixed case that is measured beside each sample. Where it takes
 * longer than it has taken before, something else disturbs the machine, and
 * the sample measured just now is not to be trusted. Disturbances on shared
 * machines last for seconds and slow everything down alike, which no median
 * within one sample can see.
 */
struct canary; /* opaque */

/* Takes about 60 MB of the device's memory. */
int canary_open(struct canary **out, struct device *device,
                struct err *err) MUST_CHECK;
void canary_close(struct canary *canary); /* NULL is fine */

/* *slowdown = median of some steps now over the least such median since
 * canary_open: 1 where the machine is as quiet as it has ever been. Takes
 * about 3 ms. */
int canary_check(struct canary *canary, double *slowdown,
                 struct err *err) MUST_CHECK;

#endif
