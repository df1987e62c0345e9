#!/bin/sh
# SPDX-License-Identifier: MIT
# The program warns once about each option that the cost model ignores.
set -u
export COLUMNS=999 # keeps lines unbroken

ns=$NEUROSHARD
list=$ROOT/data/tables/criteo_kaggle_26.csv

# said COMMAND...: prints its warnings and its exit status
said()
{
    "$ns" "$@" 2>messages >report
    status=$?
    grep warning: messages
    echo "exit $status"
}

"$ns" plan "$list" --gpus 4 --effort 100 -o plan.json >report 2>messages
for command in "plan $list --gpus 4 --effort 100" \
    "plan $list --gpus 2..4 --effort 100" \
    "compare $list --gpus 4 --effort 100" "cost plan.json" \
    "explain plan.json"; do
    echo "# ${command%% *}"
    # shellcheck disable=SC2086 # options are several words
    said $command --cost torchrec --host-ms 5
    # shellcheck disable=SC2086
    said $command --cost torchrec:inter=5 --pipeline prefetch --chunks 2 \
        --dedup ids --dense-ms 1,2 --inter-gbps 4 --intra-gbps 9
    # shellcheck disable=SC2086
    said $command --cost roofline:h100 --pipeline prefetch --chunks 2 \
        --dedup ids --dense-ms 1,2 --host-ms 5 --inter-gbps 4 --intra-gbps 9
    # shellcheck disable=SC2086
    said $command --pipeline semisync --host-ms 5
done
echo "# priced as sdd is"
for pipeline in prefetch sdd; do
    "$ns" cost plan.json --host-ms 0 --pipeline $pipeline --json 2>messages |
        sed -n "s/^  \"total_ms\": //p"
done | uniq | wc -l
