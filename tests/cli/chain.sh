#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole chain on a small scale: measure, train, evaluate, retrain, plan
# with the model, execute, price again, emit. Figures differ from run to run,
# so the test only checks that each step accepts the output of the previous
# one.
set -eu

ns=$NEUROSHARD
tables=$ROOT/data/tables/criteo_kaggle_26.csv

"$ns" bench --db costs.db --samples 60 --batch 64 --memory 16MiB \
    --max-tables 4 --seed 5 >bench.txt 2>/dev/null
grep -o 'cases  *60 of 60 (stopped: done)' bench.txt
"$ns" bench --db costs.db --alltoall 4 --samples 6 --batch 64 --memory 16MiB \
    >/dev/null 2>&1
# A busy machine leaves few samples that training accepts; here all count.
sqlite3 costs.db 'UPDATE sample SET flags = 0'
"$ns" train --db costs.db -o cpu.nsm --epochs 20 --force >train.txt 2>/dev/null
grep -cE '^kind .* judged by [0-9]+-fold cross-validation on ' train.txt
"$ns" eval --db costs.db --model cpu.nsm --json >eval.json 2>/dev/null
grep -c '"kendall' eval.json | sed 's/^[1-9].*/judged/'
"$ns" retrain --db costs.db --model cpu.nsm --kind roofline --force \
    >retrain.txt 2>/dev/null
grep -oE 'replaced|kept' retrain.txt | head -n 1 | sed 's/.*/verdict/'
sqlite3 costs.db 'SELECT count(*) FROM training_log'
"$ns" model info cpu.nsm | grep -c '^feature '

"$ns" plan --details "$tables" --gpus 4 --cost model:./cpu.nsm --batch 64 \
    --effort 20000 -o plan.json >report.txt 2>/dev/null
grep -o 'cost    model:./cpu.nsm' report.txt
"$ns" run plan.json --scale-rows 0.001 --iterations 12 --threads 1 --json \
    >run.json 2>/dev/null
grep -c '"output_error"' run.json
"$ns" cost --details plan.json --cost roofline:h100 >cost.txt 2>/dev/null
grep -o 'roofline:h100' cost.txt
"$ns" cost --details plan.json -o again.json >/dev/null 2>&1
cmp plan.json again.json && echo "priced again: the same bytes"
"$ns" plan --details "$tables" --gpus 4 --cost torchrec --batch 64 --effort 20000 \
    -o bound.json >/dev/null 2>&1
"$ns" cost --details bound.json -o again.json >/dev/null 2>&1
cmp bound.json again.json && grep -c '"bound_ms": [0-9]' again.json
for format in torchrec dlrm text; do
    "$ns" emit plan.json --format "$format" -o out.$format
    test -s out.$format && echo "emitted $format"
done
"$ns" compare "$tables" --gpus 4 --cost model:./cpu.nsm --effort 20000 --json \
    2>/dev/null |
    grep -c '"valid": true'
"$ns" tables "$tables" | head -n 1 | sed "s|$ROOT/||"
