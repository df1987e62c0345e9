#!/bin/sh
# SPDX-License-Identifier: MIT
# MLPerf's DLRM-v4, whose tables have sequence output: plans for 8 and 16 H100,
# and the executed step of a plan with few rows and samples.

ns=$NEUROSHARD
list=$ROOT/data/tables/mlperf_dlrm_v4_yambda.csv

# place GPUS OPTION...: plans the list
place()
{
    echo "== $*"
    "$ns" plan "$list" --gpu h100 --effort 100 -o plan.json --gpus "$@" \
        2>err | grep -o '^11 tables on [^:]*\|^cut: [0-9]* by rows'
    sed -n 's/.*: no plan/no plan/p' err
}

place 8 --batch-per-gpu 64 --reserve 3%
place 16 --batch-per-gpu 256
echo "== MLPerf's batch needs more memory"
place 8 --batch-per-gpu 1024
place 16 --batch-per-gpu 1024

sed 's/,2830,/,8,/' "$list" >short.csv
for options in "--gpus 4 --shard row" \
    "--gpus 3 --shard table,column --dedup ids"; do
    echo "== $options"
    # shellcheck disable=SC2086 # options with values
    "$ns" plan short.csv $options --batch 24 --memory 1TiB --effort 500 \
        -o plan.json >/dev/null 2>&1
    "$ns" run plan.json --scale-rows 1e-6 -n 12 --threads 1 2>/dev/null |
        grep -A 2 'largest error' | tr -s ' \n' '  ' | sed 's/hashes.*/\n/'
done
