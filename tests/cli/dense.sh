#!/bin/sh
# SPDX-License-Identifier: MIT
# Dense part of a model: its time, its memory, and its place in plans.
set -u

# Prints the lines of the dense part in a report.
dense() {
    "$NEUROSHARD" "$@" --details --cost roofline:h100 2>/dev/null |
        sed -n '/^dense /,/activations/p'
}
refused() {
    echo "== $*"
    if "$NEUROSHARD" plan --details --cost roofline:h100 "$@" --gpus 8 >/dev/null; then
        echo accepted
    else
        echo "status $?"
    fi 2>&1
}
{
    echo 'name,num_embeddings,dim,pooling_factor'
    for i in 0 1 2 3 4 5 6 7; do
        echo "t$i,${i}00001,128,$i"
    done
} >tables.csv
sed 's/t3,300001,128/t3,300001,64/' tables.csv >mixed.csv
{
    echo 'name,num_embeddings,dim,pooling_factor,output'
    echo 'a,1000,128,3,pooled'
    echo 'b,1000,128,3,sequence'
} >sequence.csv

echo '== a model'
dense plan tables.csv --gpus 8 --effort 2000 --dense 'dcnv2;dtype:bf16' \
    -o plan.json
echo '== the plan keeps it'
grep -o '"dense": "[^"]*"' plan.json
dense cost plan.json | head -1
dense plan tables.csv --gpus 8 --effort 2000 --from plan.json | head -2
echo '== layers, another optimizer'
dense plan tables.csv --gpus 8 --effort 2000 --dense-optimizer sgd \
    --dense 'bottom:13-64-128;interaction:dot;top:256-1'
echo '== one GPU has no all-reduce'
dense cost plan.json --dense 'interaction:cat;top:256-1;dtype:tf32'
dense plan tables.csv --gpus 1 --effort 2000 --dense 'interaction:pool:4;top:1'
echo '== a given time'
dense cost plan.json --dense-ms 1,2.5 | head -1
echo '== by an estimator that has no dense part'
"$NEUROSHARD" cost --details plan.json --cost torchrec --dense dlrm |
    sed -n '/^dense /,/^ /p' | head -1
echo '== its memory counts'
"$NEUROSHARD" plan --details tables.csv --gpus 8 --cost roofline:h100 --memory 2GiB \
    --reserve 0 --dense 'interaction:cat;top:200000-1' >/dev/null
echo "status $?"

refused tables.csv --dense dcnv3
refused tables.csv --dense 'dlrm;dtype:fp8'
refused tables.csv --dense 'bottom:13-64;interaction:dot;top:1'
refused mixed.csv --dense dlrm
refused sequence.csv --dense dcnv2
refused tables.csv --dense 'dlrm;dtype:bf16' --cost roofline:t4
