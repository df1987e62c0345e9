#!/bin/sh
# SPDX-License-Identifier: MIT
# Every cost model prices a plan or a cluster that has bandwidths. A model that
# ignores bandwidths refuses the options that set them.
set -u
export COLUMNS=999 # keeps lines unbroken

if [ ! -e "${SHARED-}/data/golden/net_compute.json" ]; then
    echo "no ../shared" >&2
    exit 77
fi
ns=$NEUROSHARD
list=$ROOT/data/tables/criteo_kaggle_26.csv
ln -s "$SHARED/data/golden" nets

"$ns" plan --details "$list" --gpus 4 --gpus-per-host 2 --shard table,column \
    --intra-gbps 200 --inter-gbps 20 --effort 1000 -o plan.json >report 2>messages
cat >cluster.json <<EOF
{"intra_gbps": 200, "inter_gbps": 20, "hosts": [{"count": 2, "gpus": 2}]}
EOF
for cost in roofline:a100 model:cpu-amd-epyc-2t.nsm torchrec \
    torchrec:intra=100 reference:nets; do
    echo "# $cost"
    "$ns" cost --details plan.json --cost $cost -o priced.json 2>messages |
        grep -o 'communication: .*'
    "$ns" cost --details priced.json -o again.json >report 2>messages
    echo "again $?"
    "$ns" explain plan.json C3 --cost $cost >report 2>messages
    echo "explain $?"
    "$ns" plan --details "$list" --gpus 4 --gpus-per-host 2 --from plan.json \
        --shard table,column --cost $cost --effort 1000 >report 2>messages
    echo "plan --from $?"
    "$ns" diff plan.json priced.json --cost $cost >report 2>messages
    echo "diff $?"
    "$ns" compare "$list" --cluster cluster.json --shard table,column \
        --cost $cost --effort 1000 >report 2>messages
    echo "compare $?"
done

echo "# refused"
for command in "plan $list --gpus 4" "compare $list --gpus 4" \
    "cost plan.json" "explain plan.json"; do
    # shellcheck disable=SC2086 # options are several words
    "$ns" $command --cost reference:nets --inter-gbps 20 2>&1
    echo "exit $?"
done
"$ns" cost --details priced.json --intra-gbps 100 2>&1
echo "exit $?"
