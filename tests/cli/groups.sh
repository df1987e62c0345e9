#!/bin/sh
# SPDX-License-Identifier: MIT
# Sharding groups: options, the table over groups and intervals, plans and their
# reports, emission, and what groups refuse.
set -u
export COLUMNS=80

ns=$NEUROSHARD
cat >list.csv <<END
name,num_embeddings,dim,pooling_factor
a,4000000,128,40
b,3000000,64,20
c,2000000,128,20
d,500000,32,40
e,100000,128,50
f,50000,64,10
END
sed '1s/$/,optimizer/; 2,$s/$/,rowwise_adagrad/; 5s/rowwise_adagrad/adam/' \
    list.csv >adam.csv

plan()
{
    "$ns" plan list.csv --gpus 16 --gpus-per-host 8 --inter-gbps 20 \
        --cost roofline:h100 --effort 2000 --no-rivals "$@"
}

# says OPTION...: prints the message of a failing plan and its exit status
says()
{
    plan "$@" 2>&1 >/dev/null | tail -n 1
}

echo "--- one group is the plan of any other run"
plan -o none.json >/dev/null 2>&1
plan --groups 1 --sync-every 5 -o one.json >/dev/null 2>&1
cmp none.json one.json && echo equal

echo "--- the table"
plan --groups auto 2>/dev/null

echo "--- a plan for an interval"
plan --groups auto --sync-every 1000 -o two.json 2>/dev/null | grep -i group
grep '"groups"' two.json
"$ns" cost two.json --details 2>/dev/null | sed -n '/^plan/p; /groups/,+1p'
"$ns" emit two.json --format torchrec | sed -n 1p

echo "--- syncs in each step"
plan --groups auto --sync-every 1 2>/dev/null -o each.json >/dev/null
grep -c '"groups"' each.json

echo "--- groups in a host"
plan --groups 2 --groups-layout strided --sync-every 100000 -o strided.json \
    >/dev/null 2>&1
"$ns" emit strided.json --format torchrec | sed -n 1p

echo "--- without an interval"
plan --groups 2 --groups-layout contiguous -o free.json 2>/dev/null |
    sed -n '1,6p; /groups of/,+1p'
"$ns" emit free.json --format torchrec 2>&1
"$ns" plan list.csv --gpus 8 --batch 32768 --cost roofline:h100 --effort 2000 \
    --no-rivals -o small.json >/dev/null 2>&1
grep -h '"total_ms"' free.json small.json | tail -n 1
awk '/^  "total_ms"/' free.json small.json | uniq | wc -l

echo "--- the estimate of another plan"
plan 2>/dev/null | grep 'groups pay'
plan --inter-gbps 400 2>/dev/null | grep -c 'groups pay'

echo "--- the next command for a plan that no longer fits"
"$ns" cost two.json --reserve 99% 2>&1 | tail -n 4
echo "--- all groups run"
sed 's/000,/,/' list.csv >tiny.csv
run_plan()
{
    COLUMNS=200 "$ns" run cpu.json --threads 1 "$@" 2>&1 |
        sed -n 's/: [0-9.]* ms measured (.*)\(.*\)/: measured\1/
            s/[0-9.]* ms predicted/predicted/
            s/largest error.* updates, .* averages/updates and averages/
            s/largest error.* averages/averages/
            /GPUs in/p; /^sync/p; /^bytes/p; /^against/p; /^hashes: outputs/p'
}
for layout in contiguous strided; do
    "$ns" plan tiny.csv --gpus 4 --gpus-per-host 4 --batch 64 --groups 2 \
        --groups-layout $layout --sync-every 2 --cost roofline:cpu \
        --dense 'bottom:4-8;interaction:cat;top:8-1' --effort 500 \
        --no-rivals -o cpu.json >/dev/null 2>&1
    run_plan --ranks 4 --iterations 12
    run_plan --steps 4
done
run_plan --ranks 4 --steps 3 --sync-every 5 | grep -c '^sync'
"$ns" run cpu.json --steps 2 --json --no-check 2>/dev/null |
    grep -o '"count": 2\|"sent_bytes": [0-9.]*\|"planned_bytes": [0-9.]*'
"$ns" run cpu.json --ranks 2 2>&1 | head -n 1
echo "--- refused"
says --groups 3
says --groups 0
says --groups two
says --groups 2 --groups-layout strided --gpus-per-host 1
says --sync-every 5
says --groups-layout strided
says --groups auto -o x.json
says --groups 2 --from two.json
says --groups 2 --batch 65537
says --groups 2 --gpus 8..16
says --groups 2 --cost torchrec
says --from two.json
"$ns" plan adam.csv --gpus 16 --groups auto 2>&1 | tail -n 1
"$ns" emit two.json --format dlrm 2>&1
"$ns" emit two.json --format torchrec-constraints 2>&1
"$ns" diff none.json two.json 2>&1
"$ns" diff two.json two.json --format reshard 2>&1
"$ns" run none.json --sync-every 5 2>&1 | tail -n 1
"$ns" explain two.json --what-if gpus=32 2>&1 | tail -n 1
"$ns" explain two.json --what-if batch=65537 2>&1 | tail -n 1
"$ns" explain two.json --anew 2>&1 | tail -n 1
"$ns" cost two.json --gpus-per-host 4 2>&1
"$ns" cost two.json --batch 65537 2>&1
sed 's/"gpus_per_host": 8, "node/"gpus_per_host": 6, "node/' two.json >bad.json
"$ns" cost bad.json 2>&1
exit 0
