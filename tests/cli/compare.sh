#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares planners on one list, on several lists, and on drawn tasks. Times
# are left out.
set -u
export COLUMNS=999 # keeps lines unbroken

ns=$NEUROSHARD
tables=$ROOT/data/tables
dcn=$tables/mlperf_dlrm_dcnv2_multihot.csv

echo "# TorchRec's costs, and TorchRec's own plan"
"$ns" compare "$dcn" --gpus 8 --memory 80GiB --reserve 0 \
    --cost torchrec --json |
    grep -A 2 '"planner": "torchrec"' | grep -oE '"total_ms": [0-9]*\.[0-9]{3}'

echo "# several lists: solved and paired"
"$ns" compare "$dcn" "$tables/criteo_kaggle_26.csv" --gpus 2 \
    --memory 60GiB --reserve 0 --effort 1000 | awk 'NF == 8 && $2 ~ /^[0-9]/ {print $1, $2, $4}'

echo "# drawn tasks depend on the seed alone"
for seed in 1 1 2; do
    "$ns" compare "$tables/meta_torchrec_1935.csv" --gpus 4 --tasks 3 \
        --seed $seed --effort 1000 --json | grep -v -e search_ms | cksum
done | uniq -c | awk '{print $1}'

echo "# no plan, and why"
"$ns" compare "$dcn" --gpus 2 --memory 10GiB | sed -n '4,$p' |
    grep -v -e '^parts' -e '^+-' | cut -c 1-30

echo "# a plan that is given"
"$ns" plan "$dcn" --gpus 2 --memory 1TiB --effort 0 --shard table -o given.json \
    >/dev/null 2>&1
"$ns" compare "$dcn" --gpus 2 --memory 1TiB --plan given.json --effort 0 --json |
    grep -A 1 '"given"'
"$ns" compare "$dcn" --gpus 2 --memory 60GiB --plan given.json --effort 0 \
    --json | grep -A 2 '"given"'
"$ns" compare "$tables/criteo_kaggle_26.csv" --gpus 2 --plan given.json \
    --effort 0 2>&1

echo "# refused"
for options in "--memory 1KiB --tasks 1" "--cost torchrec:hbm=fast"; do
    # shellcheck disable=SC2086 # options are several words
    "$ns" compare "$dcn" --gpus 2 $options 2>message
    echo "$?: $(sed "s|$ROOT/||" message)"
done
