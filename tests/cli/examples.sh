#!/bin/sh
# SPDX-License-Identifier: MIT
# Every command in the EXAMPLES of the manual pages runs. Each page has its own
# folder with the files that it names. Some commands are left out: measurements
# of thousands of cases, measurements of a GPU, commands that use such
# measurements, and commands that need the published nets. Unless TEST_SIZE is
# full, commands without effort or epochs get small values, one kind of model is
# trained, and GPUs get memory in which plans are found at once.
set -u
. "$ROOT/tests/cli/common"

# files: creates the files that the examples name
files()
{
    ln -s "$ROOT/data" data
    cp "$ROOT/data/tables/criteo_kaggle_26.csv" tables.csv
    few_samples costs.db 150
    cp costs.db sim.db
    for name in cpu sim; do
        cp "$ROOT/data/models/cpu-amd-epyc-2t.nsm" $name.nsm
    done
    cp "$ROOT/tests/fuzz/corpus/nccl_tests/h100_8.txt" alltoall.txt
    cp "$ROOT/tests/fuzz/corpus/npz/job" job.npz
    for day in 0 1; do
        cp "$ROOT/tests/fuzz/corpus/npz/day" day_${day}_sparse_multi_hot.npz
    done
    printf '%s\n' table_name,num_rows,dim,avg_len a,10,64,2 >report.csv
    cp "$ROOT/tests/fuzz/corpus/tables_dlrm/main" train.sh
    cp "$ROOT/tests/fuzz/corpus/tables_tbe/report" \
        tbe-0-config-estimation-100.json
    cp "$ROOT/tests/fuzz/corpus/plan_torchrec/stats" train.log
    printf '%s\n' user ad >names.txt
    echo step,rank,phase,ms >times.csv
    for step in 1 2 3 4; do
        printf '%s,forward,1\n' $step,0 $step,1 $step,2 $step,3 >>times.csv
    done
    echo '{"hosts": [{"gpus": 2, "memory": ["80GiB", "40GiB"]}]}' >cluster.json
    echo 'rank,used_bytes
0,3000000000' >job.log
    "$NEUROSHARD" plan tables.csv --gpus 4 --batch 256 --effort 20000 \
        -o plan.json >/dev/null 2>&1
    "$NEUROSHARD" emit plan.json --format torchrec -o dumped.json
}

# examples PAGE: prints its commands, one per line, continuations joined
examples()
{
    awk '/^\.Sh /{on = /EXAMPLES/} on' "$1" |
        sed -e ':a' -e '/\\e$/{N; s/\\e\n */ /; ta' -e '}' |
        sed -n 's/^\$ //; /^neuroshard /p'
}

mkdir files
(cd files && files)
for page in "$ROOT"/man/*.1; do
    cp -RP files "${page##*/}"
    cd "${page##*/}" || exit 1
    examples "$page" >examples.txt
    while read -r line; do
        case $line in
        *'--db costs.db --samples'* | *'model import'*) continue ;;
        *'--device cuda'* | *h200.db* | *'--dense grid'*) continue ;;
        esac
        # shellcheck disable=SC2086 # a line is split as a shell does it
        set -- $line
        shift
        case ${TEST_SIZE-}:$line in
        full:*) ;;
        *'--memory 500MiB'*)
            # shellcheck disable=SC2046 # a line is split as a shell does it
            set -- $(echo "$*" | sed 's/500MiB/600MiB/') --effort 4000
            ;;
         *--effort* | *--search* | *--epochs*) ;;
        *'neuroshard plan '* | *'neuroshard compare '*)
            set -- "$@" --effort 4000
            ;;
        *--kind*) set -- "$@" --epochs 3 ;;
        *'neuroshard train '* | *'neuroshard retrain '*)
            set -- "$@" --epochs 3 --kind net --force
            ;;
        esac
        "$NEUROSHARD" "$@" >stdout 2>stderr </dev/null
        status=$?
        echo "$status: $line"
        [ "$status" -eq 0 ] || cat stderr
    done <examples.txt
    cd ..
done
