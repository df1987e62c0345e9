/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_SAMPLES_H
#define NEUROSHARD_EXEC_EXEC_SAMPLES_H

#include "exec/exec.h"
#include "exec/rank_work.h"

/*
 * Samples of timed ranks. A timed rank is stored as a SAMPLE_EXECUTED, like a
 * microbenchmark case. Its tables are the rank's pieces, as they were looked
 * up. Pooling factors are averages over the whole batch, so a piece of rows and
 * a replica have only their share of the lookups. Reuse is measured on the
 * drawn indices.
 *
 * A rank of a given plan has one case number in every run. The sample is
 * flagged SAMPLE_THROTTLED if the rank was timed on a disturbed machine.
 *
 * Between processes a sample travels as a record: bytes that the same build
 * reads.
 */

/* Describes a rank that is timed elsewhere, from the plan alone. Fills the
 * sample's tables, kind and case number (in the arena), and the setting's
 * precision, optimizer and batch. Pooling factors and reuse are expected
 * values. Returns false if the rank holds nothing that is looked up, or several
 * precisions or optimizers. */
bool exec_samples_planned(struct sample *sample, struct sample_setting *setting,
                          const struct plan *plan, uint32_t rank,
                          struct arena *arena);

/* Describes the exchange of a plan's outputs: number of ranks, number of hosts
 * or NVLink domains, and bytes. Returns false if nothing is exchanged. */
bool exec_samples_exchange(struct comm_sample *sample, const struct plan *plan,
                           struct arena *arena);

/* Adds the rank's record, unless the rank is empty or mixes precisions. */
void exec_samples_add(struct buf *records, const struct rank_work *work,
                      const struct exec_rank *timing);
/* Puts the records into the sink, except those that the sink already has. Adds
 * the number of new samples to *n_stored. */
int exec_samples_put(const struct exec_options *options, struct buf *records,
                     uint32_t *n_stored, struct err *err) MUST_CHECK;

#endif
