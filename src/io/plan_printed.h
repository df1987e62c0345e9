/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_PRINTED_H
#define NEUROSHARD_IO_PLAN_PRINTED_H

#include "base/json.h"

/*
 * Reader of a TorchRec ShardingPlan as Python prints it. The printed plan may
 * be part of a job's log. There are two forms.
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
 * repr(plan.plan) gives:
 *
 *     {'model.sparse_arch': {'t_0': ParameterSharding(sharding_type='row_wise',
 *     compute_kernel='fused', ranks=[0, 1], sharding_spec=
 *     EnumerableShardingSpec(shards=[ShardMetadata(shard_offsets=[0, 0],
 *     shard_sizes=[50, 64], placement=rank:0/cuda:0), ...]))}}
 *
 * The reader converts each of the two forms to a JSON object {module: {table:
 * {sharding_type, compute_kernel, ranks, shards, line}}}. TorchRec's
 * _serialize() writes the same members, except for the table's line in the
 * text.
 */
bool plan_printed_is(const char *text);

/* Finds the last complete plan of a text. A plan is complete if each table has
 * as many shards as ranks, no table is listed twice, and every shard belongs to
 * a listed table. The caller owns *modules. *doubt is a message about an
 * incomplete plan that comes later in the text, or NULL. ERR_INPUT messages
 * have the form "source:line: what is wrong". */
int plan_printed_read(json_t **modules, const char **doubt, const char *text,
                      size_t len, const char *source, struct arena *arena,
                      struct err *err) MUST_CHECK;

#endif
