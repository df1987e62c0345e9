/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_SAMPLES_H
#define NEUROSHARD_EXEC_EXEC_SAMPLES_H

#include "exec/exec.h"
#include "exec/rank_work.h"

/*
 * A timed rank as a SAMPLE_EXECUTED, like a microbenchmark case: its pieces as
 * they were looked up, pooling over the whole batch (so a row piece and a
 * replica have their share of the look-ups), reuse as it was realised. The
 * same rank of the same plan has the same case number in every run. It is
 * SAMPLE_THROTTLED where the rank was timed on a disturbed machine.
 *
 * Between processes it travels as a record: bytes that the same build reads.
 */

/* The same of a rank that is timed elsewhere: tables, kind and case number of
 * the sample, in the arena, and precision, optimizer and batch of its setting,
 * from the plan; pooling and reuse are expected ones. False where the rank
 * holds nothing that is looked up, or of several precisions or optimizers. */
bool exec_samples_planned(struct sample *sample, struct sample_setting *setting,
                          const struct plan *plan, uint32_t rank,
                          struct arena *arena);

/* The exchange of a plan's outputs, as bytes between ranks and hosts, or NVLink
 * domains; false where nothing is exchanged. */
bool exec_samples_exchange(struct comm_sample *sample, const struct plan *plan,
                           struct arena *arena);

/* Adds the rank's record, unless the rank is empty or mixes precisions. */
void exec_samples_add(struct buf *records, const struct rank_work *work,
                      const struct exec_rank *timing);
/* Puts records into the sink unless that has them; *n_stored counts up where
 * one was put. */
int exec_samples_put(const struct exec_options *options, struct buf *records,
                     uint32_t *n_stored, struct err *err) MUST_CHECK;

#endif
