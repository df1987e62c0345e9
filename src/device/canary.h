/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CANARY_H
#define NEUROSHARD_DEVICE_CANARY_H

#include "core/sample.h"
#include "device/device.h"

/*
 * A small fixed case that is measured beside each measurement that counts.
 * Where it takes longer than it has taken before, something else disturbs the
 * machine, and what was measured just now is not to be trusted. Disturbances
 * on shared machines last for seconds and slow everything down alike, which no
 * median within one measurement can see.
 */
struct canary; /* opaque */

/* Bytes of the device's memory that it takes. */
#define CANARY_BYTES ((uint64_t)60 << 20)
int canary_open(struct canary **out, struct device *device,
                struct err *err) MUST_CHECK;
void canary_close(struct canary *canary); /* NULL is fine */

/* Asks a sink for the best time that the setting's device has ever had: without
 * it a machine that is busy from the start seems quiet. And tells it a better
 * one. Nothing, where the sink keeps none. */
int canary_learn(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting,
                 struct err *err) MUST_CHECK;
int canary_teach(struct canary *canary, const struct sample_sink *sink,
                 const struct sample_setting *setting,
                 struct err *err) MUST_CHECK;

/*
 * What to do with the measurement that began at begin_ms (clock_ms) and has
 * ended now, by the checks before and after it, as a busy machine may seem
 * quiet for a moment:
 *
 *     do {
 *         begin_ms = clock_ms();
 *         measure();
 *         if (canary_judge(canary, begin_ms, &verdict, err))
 *             return -1;
 *     } while (verdict == CANARY_AGAIN);
 *
 * A check takes about 3 ms. It compares with the quietest moment since
 * canary_open, or ever, as far as the canary has learned.
 * CANARY_AGAIN comes after a pause. Patience is bounded: once measurements
 * that did not count and pauses have taken 2 s and half of the time since
 * canary_open, or the user wants to stop, a disturbed measurement is
 * CANARY_DISTURBED: it is kept, and has to be flagged.
 */
enum canary_verdict { CANARY_QUIET, CANARY_AGAIN, CANARY_DISTURBED };
int canary_judge(struct canary *canary, double begin_ms,
                 enum canary_verdict *verdict, struct err *err) MUST_CHECK;

#endif
