#!/bin/sh
# SPDX-License-Identifier: MIT
# Comparisons of GPUs: order, ratios and ties, prices and targets.
set -u

ns=$NEUROSHARD
tables=$ROOT/data/tables/criteo_kaggle_26.csv
printf '%s\n' '# per hour' h100,2.5 'h200 3.5' 'a100-80gb 1.3 # spot' >prices

plan()
{
    echo "# $*"
    "$ns" plan "$tables" --effort 200 "$@" 2>messages
    status=$?
    grep -v '^searched' messages
    [ $status = 0 ] || echo "exit $status"
}

plan --gpus 8 --gpu h100,h200,a100,b200,mi300x,l40s,t4
"$ns" plan "$tables" --effort 200 --gpus 8 \
    --gpu h100,h200,a100,b200,mi300x,l40s,t4 --json >grid.json 2>messages
python3 - <<'P'
import json
rows = json.load(open("grid.json"))["counts"]
order = [(row["step_ms"], row["total_ms"]) for row in rows]
print("ordered by step and GPU work:", order == sorted(order))
print("none is below its host:",
      all(row["step_ms"] >= row["host_ms"] >= 2 for row in rows))
P
"$ns" report grid.json -o page.html
grep -c comparedPage page.html
plan --gpus 8,16 --gpu h100,a100 --price prices --dense-ms 1,2 --target-rate 13M
plan --gpus 8 --gpu h100,l40s:memory=24GiB,dram=1008 --host-ms 0
plan --gpus 8 --gpu h100 --dense-ms 1,2 --target-rate 1.5G
plan --gpus 2 --gpu h100,cpu 2>&1 | grep -A1 "^#\|^speed"
plan --gpus 8 --gpu h100,t4 --batch-per-gpu 1000000
plan --gpus 8..16 --batch-per-gpu 8192 --json | grep fastest_gpus

echo "# refused"
printf 'h100 2\nh100-sxm 3\n' >twice
printf 'h100 free\n' >free
printf 'h100\n' >lone
printf 'h200 2\n' >other
for options in "--target-rate 30M" "--dense-ms 1,2 --target-rate 0" "--price none" \
    "--price twice" "--price free" "--price lone" "--price other" \
    "--gpu h100,H100-sxm" "--gpu h100,a100 --cost torchrec" \
    "--gpu h100,frob" "--gpu h100,a100 -o plan.json"; do
    # shellcheck disable=SC2086
    plan --gpus 8 $options | sed 's/known are.*/known are .../'
done
"$ns" plan "$tables" --effort 0 --gpus 8 -o plan.json >report 2>messages
"$ns" cost plan.json --gpu h100,a100 2>&1
:
