/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_SAMPLES_H
#define NEUROSHARD_EXEC_EXEC_SAMPLES_H

#include "exec/exec_options.h"
#include "exec/exec_result.h"
#include "exec/rank_work.h"

/*
 * Samples of timed ranks.
 *
 * A timed rank is stored as a SAMPLE_EXECUTED, like a case of the
 * microbenchmark. The tables of the sample are the pieces of the rank, as they
 * were looked up. Pooling factors are averages over the whole batch, so for a
 * row-wise piece and for a replica they count only the lookups that the piece
 * serves. Reuse is measured on the drawn indices.
 *
 * A rank of a given plan has the same case number in every run. The sum of the
 * case numbers of all ranks is the number of the plan. The seed of a sample is
 * the seed of the run plus this number. So the ranks of a plan have a seed of
 * their own, and the time of each plan is known from its samples. The sample is
 * flagged SAMPLE_THROTTLED if the rank was timed on a disturbed machine.
 *
 * Samples are sent between processes as records, whose binary format is the
 * same only within one build.
 */

/*
 * Describes a rank from the plan alone, for ranks that are timed elsewhere.
 * Fills the sample's tables, kind and case number (in the arena), and the
 * setting's precision, optimizer and batch. Pooling factors and reuse are
 * expected values. Returns false if the rank holds no piece with lookups, or
 * pieces of several precisions or optimizers.
 */
bool exec_samples_planned(struct sample *sample, struct sample_setting *setting,
                          const struct plan *plan, uint32_t rank,
                          struct arena *arena);

/* Describes the exchange of a plan's outputs: number of ranks, number of hosts
 * or NVLink domains, and bytes. Returns false if the plan exchanges no
 * outputs. */
bool exec_samples_exchange(struct comm_sample *sample, const struct plan *plan,
                           struct arena *arena);

/* Appends the record of the rank's sample to `records`. Does nothing if the
 * rank has no lookups or its pieces differ in precision. */
void exec_samples_add(struct buf *records, const struct rank_work *work,
                      const struct exec_rank *timing);
uint64_t exec_samples_plan_number(const struct placement *placement);
/* Puts the samples of the records into the sink. Skips samples that the sink
 * already has. Adds the number of new samples to *n_stored. */
int exec_samples_put(const struct exec_options *options, uint64_t plan_number,
                     struct buf *records, uint32_t *n_stored,
                     struct err *err) MUST_CHECK;

#endif
