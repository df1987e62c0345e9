#!/bin/sh
# SPDX-License-Identifier: MIT
# The program finds its data next to it, wherever its prefix is moved. It warns
# if a model is missing or belongs to another machine.

tables=$ROOT/data/tables/criteo_kaggle_26.csv
unset NEUROSHARD_DATA

# plan PROGRAM: prints the cost model of a plan for a CPU, and warnings about
# data.
plan()
{
    "$1" plan --details "$tables" --gpus 2 --gpu cpu --effort 100 >report 2>messages
    sed -n 's/^cost  *\(model:[^ ]*\|roofline:[^ ]*\).*/\1/p' report
    grep 'no model of' messages | sed "s|$PWD|PREFIX|"
}

mkdir -p first/bin first/share/neuroshard empty
cp "$NEUROSHARD" first/bin/neuroshard
cp -R "$ROOT"/data/models "$ROOT"/data/gpus first/share/neuroshard/
echo "== installed"
plan first/bin/neuroshard
echo "== moved"
mv first second
plan second/bin/neuroshard
echo "== by the environment"
NEUROSHARD_DATA=$PWD/empty
export NEUROSHARD_DATA
mkdir empty/models
mv second/share/neuroshard third
cp -R third/gpus empty/
plan second/bin/neuroshard
NEUROSHARD_DATA=$PWD/third
plan second/bin/neuroshard

echo "== nowhere"
NEUROSHARD_DATA=$PWD/second
second/bin/neuroshard plan "$tables" --gpus 2 --gpu cpu 2>&1

echo "== measured on something else"
"$NEUROSHARD" plan --details "$tables" --gpus 2 --gpu h100 --effort 100 \
    --cost model:cpu-amd-epyc-2t.nsm 2>&1 >plan.txt | grep warning

# about FILE: prints the GPU of a plan and the basis of its price.
about()
{
    grep -o '"gpu": "[^"]*"\|"basis": "[^"]*"\|"lookup_error_frac"' "$1"
}

echo "== and its plan knows that"
"$NEUROSHARD" plan --details "$tables" --gpus 2 --gpu b200 --effort 100 \
    --cost model:h100 -o other.json 2>&1 >report | grep warning
about other.json
"$NEUROSHARD" cost --details other.json --json 2>&1 >priced.json | grep warning
about priced.json
grep '"cost_model"' other.json >wanted
grep '"cost_model"' priced.json | cmp - wanted
echo "== of the GPU that was measured"
"$NEUROSHARD" cost --details other.json --gpu H100 --cost model:h100 --json >priced.json
about priced.json
echo "== without a model"
echo '{"neuroshard_plan": 1, "batch": 64,
    "cluster": {"gpus": 1, "memory_bytes": [1000000], "gpu": "b200"},
    "tables": [{"name": "a", "num_embeddings": 9, "dim": 4,
        "pooling_factor": 1}],
    "shards": [{"table": 0, "row_begin": 0, "row_end": 9, "col_begin": 0,
        "col_end": 4, "device": 0}]}' >by_hand.json
"$NEUROSHARD" cost --details by_hand.json --json | grep -o '"roofline:[^"]*"'
