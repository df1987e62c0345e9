#!/bin/sh
# SPDX-License-Identifier: MIT
# No line of a report or a message is wider than the terminal, of 80, 100 and
# 132 columns: of the lists that ship, and of every command.
set -u

if [ "${TEST_SIZE-}" = tiny ]; then
    echo "it takes minutes with sanitizers" >&2
    exit 77
fi

ns=$NEUROSHARD
lists=$ROOT/data/tables
db=$ROOT/data/measurements/cpu-amd-epyc-2t.db
model=$ROOT/data/models/cpu-amd-epyc-2t.nsm

n_lines=0
# fits COMMAND... : what it says, and that it says something
fits()
{
    "$ns" "$@" >said 2>&1 </dev/null
    status=$?
    [ $status != 1 ] || [ "${fails-}" ] || echo "failed: $*: $(cat said)"
    awk -v most="$COLUMNS" -v what="$*" '
        length > most {print "wider than " most ": " what ": " $0}' said |
        sed "s|$ROOT/||g"
    n_lines=$((n_lines + $(wc -l <said)))
}

while read -r list gpus; do
    for COLUMNS in 80 100 132; do
        export COLUMNS
        if [ $COLUMNS = 80 ]; then
            fits plan "$lists/$list.csv" --gpus "$gpus" --effort 1 -o plan.json
        else
            fits cost plan.json
        fi
    done
    export COLUMNS=80
    fits explain plan.json
    fits tables "$lists/$list.csv"
done <<EOF
criteo_1tb_torchrec_26 8
criteo_kaggle_26 4
deeprecsys_dlrm_rm1 2
deeprecsys_dlrm_rm2 4
deeprecsys_dlrm_rm3 2
hugectr_200table_100B_hotness20 32
hugectr_7table_470B_hotness20 64
meta_tbe_eeg_example_5 2
meta_torchrec_1935 96
mlperf_dlrm_dcnv2_multihot 8
mlperf_dlrm_v1_onehot 8
nvidia_synthetic_large_v3 64
nvidia_synthetic_medium_v3 16
nvidia_synthetic_small_v3 8
nvidia_synthetic_tiny_v3 4
EOF
echo "the lists that ship: $(find "$lists" -name '*.csv' | wc -l)"

dcn=$lists/mlperf_dlrm_dcnv2_multihot.csv
small=$lists/criteo_kaggle_26.csv
"$ns" plan "$small" --gpus 4 --batch 256 --effort 1 -o old.json >/dev/null 2>&1
"$ns" plan "$small" --gpus 4 --batch 256 --effort 9000 --seed 3 -o new.json \
    >/dev/null 2>&1
cp "$db" ceilings.db
for COLUMNS in 80 100 132; do
    export COLUMNS
    fits compare "$dcn" --gpus 8 --effort 1
    fits compare "$dcn" "$small" --gpus 2 --effort 1 --memory 60GiB
    fits compare "$dcn" --gpus 8 --effort 1 --cost torchrec
    fits plan "$small" --gpus 1..4 --effort 1 --memory 1GiB
    fits plan "$dcn" --gpus 2..3 --effort 1 --memory 10GiB
    fits plan "$small" --gpus 4 --from old.json --effort 1 --batch 256
    fits explain new.json C3
    fits diff old.json new.json
    fits run new.json --device cpu --iterations 2
    for file in "$ROOT"/data/models/*.nsm; do
        fits model info "$file"
    done
    fits eval --db "$db" --model "$model"
    fits eval --drift --db "$db" --model "$model"
    fits db info "$db"
    fits bench --device cpu --ceilings --db ceilings.db
    fits bench --device cpu --cases 2 --batch 64 --memory 1MiB \
        --db bench$COLUMNS.db
    fits --help
    # Refused.
    fails=1
    fits plan "$dcn" --gpus 2 --memory 10GiB
    fits plan "$dcn" --gpus 8 --memory 13GiB --shard table
    fits plan "$small" --gpus 13
    fits plan "$small" --gpus 4 --cost "model:/a/path/that/is/longer/than/one/line/of/a/terminal/has/room/for/if/it/has/eighty/columns.nsm"
    fits plan "$small" --gpus 4 --gpu b2oo
    fits explain new.json no-such-table
    fails=
done
[ $n_lines -gt 1000 ] && echo "more than 1000 lines"
