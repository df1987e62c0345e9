/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_H
#define NEUROSHARD_IO_PLAN_TORCHREC_H

#include "core/plan.h"
#include "io/tables_io.h"

/*
 * Plans as TorchRec has them. None says all that a plan of ours does.
 *
 *   - JSON: {"plan": {module: {table: {sharding_type, compute_kernel, ranks,
 *     shards}}}} as its _serialize() writes it, with world_size and
 *     local_world_size where `emit --format torchrec` does;
 *   - JSON of TorchEasyRec's checkpoints: the modules alone, without shards,
 *     which are equal blocks;
 *   - a plan as Python prints it, io/plan_printed.h;
 *   - the report of its planner, io/planner_report.h, which lists the tables,
 *     too.
 */

/* Whether the text is one of them, by its content. */
bool plan_is_torchrec(const char *text);
/* Whether such a text says how many ranks there are. */
bool plan_says_ranks(const char *text);

/* Where the pieces of such a plan lie. problem.tables are a list's, or none
 * where the text lists them itself, with what it says of them; those that the
 * plan does not place are left out, and the others move up. Also sets
 * n_devices, devices_per_host and hosts_per_domain of the cluster, and the
 * global batch: 0 where the text does not say. A text that does not say how
 * many ranks there are keeps the cluster that it is given; n_devices 0 becomes
 * the number that its ranks need. Shards have no kinds yet and
 * nothing is judged. options->warn gets a sentence about a log whose last
 * report is not whole, so that an earlier one is read. ERR_INPUT is
 * "source:line: what is wrong". text[len] must be a NUL. */
int plan_from_torchrec(struct plan *plan, const char *text, size_t len,
                       const char *source, const struct tables_options *options,
                       struct arena *arena, struct err *err) MUST_CHECK;

/* Of an import: the tables that the planner has printed. */
bool tables_is_stats(const char *text);
tables_reader tables_from_stats MUST_CHECK;

#endif
