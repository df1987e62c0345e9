/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_H
#define NEUROSHARD_IO_PLAN_TORCHREC_H

#include "core/plan.h"
#include "io/tables_reader.h"

/*
 * Reader of TorchRec's plans, which lack some of the contents of a neuroshard
 * plan. A text may have one of these forms:
 *
 *   - JSON: {"plan": {module: {table: {sharding_type, compute_kernel, ranks,
 *     shards}}}} as TorchRec's _serialize() writes it. `emit --format torchrec`
 *     adds world_size and local_world_size.
 *   - JSON of TorchEasyRec's checkpoints: {module: ...} without "plan". Shards
 *     are not listed, because they are equal blocks.
 *   - A plan as Python prints it (io/plan_printed.h).
 *   - The report of TorchRec's planner (io/planner_report.h), which also lists
 *     the tables.
 */

/* True if the text is a TorchRec plan in any form, judged by its content. */
bool plan_is_torchrec(const char *text);
/* True if the text of a TorchRec plan gives the number of ranks. */
bool plan_says_ranks(const char *text);

/* Reads the placement of a TorchRec plan. text[len] must be a NUL.
 *   in   problem.tables: a table list; empty if the text lists its tables
 *   out  shards, without kinds; not checked yet
 *   out  load_factors, if any table is cached; and the job's pipeline if
 *        prefetch_pipeline is set
 *   out  problem.tables: only the tables that the plan places, in their order
 *   out  global batch; 0 if the text does not give it
 *   out  cluster: n_devices, devices_per_host, hosts_per_domain
 * If the text does not give the number of ranks, the cluster stays as it is,
 * except that an n_devices of 0 becomes the highest rank in the text plus 1. If
 * the last report of a log is incomplete and an earlier one is used,
 * options->warn gets a message. ERR_INPUT messages have the form
 * "source:line: what is wrong". */
int plan_from_torchrec(struct plan *plan, const char *text, size_t len,
                       const char *source, const struct tables_options *options,
                       struct arena *arena, struct err *err) MUST_CHECK;

/* Imports a table list: the tables in a report of TorchRec's planner. */
bool tables_is_stats(const char *text);
tables_reader tables_from_stats MUST_CHECK;

#endif
