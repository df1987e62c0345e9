/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_PRINTED_H
#define NEUROSHARD_IO_PLAN_PRINTED_H

#include "base/json.h"

/*
 * A ShardingPlan of TorchRec as Python prints it, perhaps in the log of a job.
 *
 * print(plan) gives two tables for each module:
 *
 *     module: model.sparse_arch
 *
 *     param | sharding type | compute kernel | ranks
 *     ----- | ------------- | -------------- | ------
 *     t_0   | row_wise      | fused          | [0, 1]
 *
 *     param | shard offsets | shard sizes | placement
 *     ----- | ------------- | ----------- | -------------
 *     t_0   | [0, 0]        | [50, 64]    | rank:0/cuda:0
 *     t_0   | [50, 0]       | [50, 64]    | rank:1/cuda:1
 *
 * and repr(plan.plan) gives
 *
 *     {'model.sparse_arch': {'t_0': ParameterSharding(sharding_type='row_wise',
 *     compute_kernel='fused', ranks=[0, 1], sharding_spec=
 *     EnumerableShardingSpec(shards=[ShardMetadata(shard_offsets=[0, 0],
 *     shard_sizes=[50, 64], placement=rank:0/cuda:0), ...]))}}
 *
 * Both become {module: {table: {sharding_type, compute_kernel, ranks, shards,
 * line}}}, which is what _serialize() writes and the line of the table.
 */
bool plan_printed_is(const char *text);

/* The last plan of a text that is whole: as many shards as ranks for each
 * table, no table twice, no shard of a table that is not listed. *modules is
 * owned by the caller. *doubt: a sentence about a later plan that is not whole,
 * or NULL. ERR_INPUT is "source:line: what is wrong". */
int plan_printed_read(json_t **modules, const char **doubt, const char *text,
                      size_t len, const char *source, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* The same of one value that Python prints: numbers, strings, lists, dicts, and
 * Name(key=value, ...), which becomes an object, as a dict does. *at moves
 * behind it. ERR_INPUT is a sentence without its place. */
int python_value(json_t **value, const char **at, struct err *err) MUST_CHECK;

#endif
