/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_INTERFERENCE_PROBE_H
#define NEUROSHARD_DEVICE_INTERFERENCE_PROBE_H

#include "core/sample.h"
#include "device/device.h"

/*
 * Interference probe: a small fixed lookup benchmark that runs before and after
 * each measurement that is to be kept. If it takes longer than its best time,
 * other load disturbs the machine, and the measurement is not reliable. The
 * median of one measurement cannot reveal a disturbance, because disturbances
 * on shared machines last for seconds and slow all work down alike.
 */
struct interference_probe; /* opaque */

/* Bytes of device memory that the interference probe takes. */
#define INTERFERENCE_PROBE_BYTES ((uint64_t)60 << 20)
int interference_probe_open(struct interference_probe **out,
                            struct device *device, struct err *err) MUST_CHECK;
void interference_probe_close(
    struct interference_probe *interference); /* NULL is fine */

/* interference_probe_learn gets from a sink the best time that the setting's
 * device has ever needed for the interference probe. Without this time, a
 * machine that is busy from the start would look quiet.
 * interference_probe_teach stores a better time in the sink. Both functions do
 * nothing if the sink does not keep such times. */
int interference_probe_learn(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err) MUST_CHECK;
int interference_probe_teach(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err) MUST_CHECK;

/* Sets the time, on clock_ms(), from which on patience has run out. */
void interference_probe_limit(struct interference_probe *interference,
                              double end_ms);

/*
 * Judges the measurement that began at begin_ms (clock_ms) and has just ended.
 * The verdict depends on two runs of the interference probe ("checks"), one
 * before and one after the measurement. Two checks are needed because a busy
 * machine may look quiet for a moment. Usage:
 *
 *     do {
 *         begin_ms = clock_ms();
 *         measure();
 *         if (interference_probe_judge(interference, begin_ms, &verdict, err))
 *             return -1;
 *     } while (verdict == PROBE_AGAIN);
 *
 * A check takes about 3 ms. Its time is compared with the fastest check since
 * interference_probe_open, or with the time that interference_probe_learn got
 * from the sink if that is faster.
 *
 *   PROBE_QUIET      Keep the measurement.
 *   PROBE_AGAIN      Repeat the measurement. interference_probe_judge has
 *                    already paused for a while.
 *   PROBE_DISTURBED  Keep the measurement and flag it: the machine is disturbed
 *                    and patience has run out.
 *
 * Patience runs out when discarded measurements and pauses have taken 2 s plus
 * a tenth of the time since interference_probe_open, at the end of
 * interference_probe_limit, or when the user wants to stop. So a machine that
 * stays busy is measured for most of the time.
 */
enum interference_verdict { PROBE_QUIET, PROBE_AGAIN, PROBE_DISTURBED };
int interference_probe_judge(struct interference_probe *interference,
                             double begin_ms,
                             enum interference_verdict *verdict,
                             struct err *err) MUST_CHECK;

#endif
