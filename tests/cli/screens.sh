#!/bin/sh
# SPDX-License-Identifier: MIT
# First screens of the shipped lists, at 80 columns: at most 14 lines each.
# The plans follow the order of plans in neuroshard-plan(1). The searches are
# short; the full size tests the lines of default searches, too.
# default_screens.sh prints two of those.
set -u
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
data=$ROOT/data/tables

# screen LIST OPTION...: prints the first screen of a short search
screen()
{
    echo "--- $*"
    shown "$@" --effort 100000
    cat printed
    [ "${TEST_SIZE-}" != full ] || shown "$@"
}

screen criteo_1tb_torchrec_26 --gpus 8
screen mlperf_dlrm_v1_onehot --gpus 8
screen mlperf_dlrm_dcnv2_multihot --gpus 8 --batch 32768
screen deeprecsys_dlrm_rm1 --gpus 8
screen deeprecsys_dlrm_rm2 --gpus 8
screen deeprecsys_dlrm_rm3 --gpus 8 --gpu a100
screen nvidia_synthetic_tiny_v3 --gpus 8 --gpu h200
screen nvidia_synthetic_small_v3 --gpus 8
screen nvidia_synthetic_medium_v3 --gpus 16 --gpus-per-host 8
screen meta_tbe_eeg_example_5 --gpus 4 --dense-ms 1,2

# A cut or a replica needs a gain: these lists stay whole, and no column of a
# small table is cut, even by a short search.
short="--effort 100000"
[ "${TEST_SIZE-}" != full ] || short=
for list in criteo_1tb_torchrec_26 criteo_kaggle_26 mlperf_dlrm_v1_onehot; do
    # shellcheck disable=SC2086 # two words or none
    "$ns" plan "$data/$list.csv" --gpus 8 --no-rivals $short --json 2>messages |
        grep -c '"kind": "table"' | sed "s/^/$list, whole tables: /"
done
"$ns" plan "$data/mlperf_dlrm_dcnv2_multihot.csv" --gpus 8 --effort 100000 \
    --no-rivals --json 2>messages |
    awk '/"kind": "column"/ && /"row_end": [0-9][0-9]?[0-9]?[0-9]?,/ {n++}
        END {print "columns of small tables: " n + 0}'
