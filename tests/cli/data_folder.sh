#!/bin/sh
# SPDX-License-Identifier: MIT
# The data lie beside the program, wherever its prefix was moved; a model that
# is not there, or not of the machine, is said.

tables=$ROOT/data/tables/criteo_kaggle_26.csv
unset NEUROSHARD_DATA

# plan PROGRAM: the cost model of a plan for a CPU, and warnings of data.
plan()
{
    "$1" plan "$tables" --gpus 2 --gpu cpu --effort 100 >report 2>messages
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
"$NEUROSHARD" plan "$tables" --gpus 2 --gpu h100 --effort 100 \
    --cost model:cpu-amd-epyc-2t.nsm 2>&1 >plan.txt | grep warning
