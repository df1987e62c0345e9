#!/bin/sh
# SPDX-License-Identifier: MIT
# The GPU that a plan is for: named by an option, a file, a cost model or the
# current plan, or else the default.
set -u

ns=$NEUROSHARD
printf 'name,num_embeddings,dim,pooling_factor\na,1000,16,1\nb,9000,8,2\n' >t.csv
echo '{"hosts": [{"gpus": 2}]}' >any.json
echo '{"gpu": "a100", "hosts": [{"gpus": 2}]}' >a100.json

# first COMMAND...: prints the GPUs in the first line of a report, and warnings
first()
{
    "$ns" "$@" >report 2>messages
    echo "exit $?: $(sed -n '1s/.* on \(2 x .*\): .*/\1/p' report)"
    sed -n '/^GPU     /p' report
    grep -v '^searched\|^lower bound\|no model of' messages || :
}

plan()
{
    first plan t.csv --batch 64 --effort 0 --no-rivals "$@"
}

echo "# who names the GPU"
plan --gpus 2 -o default.json
plan --gpus 2 --gpu a100 -o a100_plan.json
plan --gpus 2 --cost roofline:a100
plan --gpus 2 --cost model:h200.nsm
plan --gpus 2 --cost torchrec
plan --cluster any.json
plan --cluster a100.json
first cost a100_plan.json
first cost a100_plan.json --gpu h100
first cost a100_plan.json --cost model:h100.nsm
first cost default.json
grep -o '"gpu": "[^"]*"' a100_plan.json default.json

echo "# the current plan"
plan --gpus 2 --from a100_plan.json
plan --gpus 2 --from a100_plan.json --gpu h200
sed 's/"gpu": "a100", //' a100_plan.json >old.json
plan --gpus 2 --from old.json
first cost old.json

echo "# changed figures"
plan --gpus 2 --gpu l40s:memory=24GiB,dram=1008 -o changed.json
first cost changed.json
"$ns" explain changed.json --json 2>/dev/null | grep -o '"cost_model": "[^"]*"'
grep -o '"gpu": "[^"]*"\|"name": "roofline[^"]*"\|"memory_bytes": \[[^,]*' changed.json
plan --gpus 2 --from changed.json
plan --gpus 2 --gpu h100:memory=40GiB
plan --gpus 2 --gpu h100:dram=1.5TB/s
plan --gpus 2 --gpu h100:frob=3
plan --gpus 2 --gpu h100:dram
plan --gpus 2 --cost roofline:h100:dram=1500 -o changed.json
first cost changed.json --cost model:h100.nsm
