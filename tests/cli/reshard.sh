#!/bin/sh
# SPDX-License-Identifier: MIT
# diff --format reshard: each reason why a table needs a checkpoint, and the
# time of the moves if a bandwidth is known.
set -u
ns=$NEUROSHARD
options="--tables tables.csv --batch 1024 --format reshard"

# plan NAME RANKS TABLE...: a plan of TorchRec; a TABLE is NAME:TYPE:PIECES with
# RANK-BEGIN-END for each piece
plan()
{
    file=$1
    ranks=$2
    shift 2
    python3 - "$file" "$ranks" "$@" <<'PY'
import json, sys
file, ranks, *tables = sys.argv[1:]
plan = {}
for text in tables:
    name, kind, pieces = text.split(":")
    pieces = [list(map(int, p.split("-"))) for p in pieces.split(",")]
    plan[name] = {
        "sharding_type": kind, "compute_kernel": "fused",
        "ranks": [p[0] for p in pieces],
        "shards": [{"shard_offsets": [0, a], "shard_sizes": [1000, b - a],
                    "placement": f"rank:{r}/cuda:{r}"} for r, a, b in pieces]}
    if kind == "data_parallel":
        plan[name].pop("shards")
json.dump({"world_size": int(ranks), "local_world_size": int(ranks),
           "plan": {"m": plan}}, open(file, "w"))
PY
}

compare()
{
    # shellcheck disable=SC2086 # options are words
    "$ns" diff old.json new.json $options "$@"
}

cw=column_wise
tw=table_wise
{
    echo name,num_embeddings,dim,pooling_factor,output,optimizer
    echo moved,1000,64,1,pooled,sgd
    echo cut,1000,64,1,pooled,rowwise_adagrad
    echo widths,1000,64,1,pooled,sgd
    echo shared,1000,64,1,pooled,sgd
    echo stays,1000,64,1,pooled,sgd
} >tables.csv
plan old.json 4 moved:$cw:0-0-64 cut:$cw:0-0-32,1-32-64 \
    widths:$cw:0-0-32,1-32-64 shared:$cw:2-0-32,2-32-64 stays:$cw:3-0-64
plan new.json 4 moved:$cw:2-0-64 cut:$cw:0-0-16,3-16-64 \
    widths:$cw:0-0-16,1-16-64 shared:$cw:3-0-32,2-32-64 stays:$cw:3-0-64
compare
compare --inter-gbps 10 --intra-gbps 10 | grep GB/s
plan new.json 4 moved:$tw:2-0-64 cut:$tw:0-0-64 \
    widths:$tw:0-0-64 shared:$tw:3-0-64 stays:$tw:3-0-64
compare
plan new.json 8 moved:$cw:2-0-64 cut:$cw:0-0-64 \
    widths:$cw:0-0-64 shared:$cw:3-0-64 stays:$cw:3-0-64
compare | head -3
sed 's/moved,1000,64,1,pooled/moved,1000,64,1,sequence/' tables.csv >other
mv other tables.csv
plan new.json 4 moved:$cw:2-0-64 cut:$cw:0-0-32,1-32-64 \
    widths:$cw:0-0-32,1-32-64 shared:$cw:2-0-32,2-32-64 stays:$cw:3-0-64
compare
