/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CANARY_H
#define NEUROSHARD_DEVICE_CANARY_H

#include "core/sample.h"
#include "device/device.h"

/*
 * Interference probe: a small fixed case that is measured before and after each
 * measurement that counts. If it takes longer than at its best, something else
 * is disturbing the machine, and the measurement is not to be trusted.
 * Disturbances on shared machines last for seconds and slow all work down
 * alike, so the median within one measurement cannot reveal them.
 */
struct canary; /* opaque */

/* Bytes of device memory that the probe takes. */
#define CANARY_BYTES ((uint64_t)60 << 20)
int canary_open(struct canary **out, struct device *device,
                struct err *err) MUST_CHECK;
void canary_close(struct canary *canary); /* NULL is fine */

/* canary_learn gets from a sink the best time that the setting's device has
 * ever had. Without it, a machine that is busy from the start would look quiet.
 * canary_teach stores a better time in the sink. Both do nothing if the sink
 * does not keep such times. */
int canary_learn(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting,
                 struct err *err) MUST_CHECK;
int canary_teach(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting,
                 struct err *err) MUST_CHECK;

/*
 * Judges the measurement that began at begin_ms (clock_ms) and has just ended,
 * by the checks before and after it. Two checks are needed because a busy
 * machine may look quiet for a moment. Usage:
 *
 *     do {
 *         begin_ms = clock_ms();
 *         measure();
 *         if (canary_judge(canary, begin_ms, &verdict, err))
 *             return -1;
 *     } while (verdict == CANARY_AGAIN);
 *
 * A check takes about 3 ms. It is compared with the fastest check since
 * canary_open, or with the best time that canary_learn got if that is better.
 *
 *   CANARY_QUIET      Keep the measurement.
 *   CANARY_AGAIN      Repeat the measurement. canary_judge has paused before.
 *   CANARY_DISTURBED  Keep the measurement and flag it: the machine is
 *                     disturbed and patience has run out. Patience runs out
 *                     when discarded measurements and pauses have taken 2 s
 *                     plus half of the time since canary_open, or when the
 *                     user wants to stop.
 */
enum canary_verdict { CANARY_QUIET, CANARY_AGAIN, CANARY_DISTURBED };
int canary_judge(struct canary *canary, double begin_ms,
                 enum canary_verdict *verdict, struct err *err) MUST_CHECK;

#endif
