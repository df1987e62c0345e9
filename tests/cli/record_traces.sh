#!/bin/sh
# SPDX-License-Identifier: MIT
# Records synthetic traces of a GPU. A sort belongs to the lookups that launch
# it; a kernel of an exchange belongs to its range.

# event NAME CATEGORY OP BEGIN MICROSECONDS: prints an event of a trace
event()
{
    echo "{\"ph\": \"X\", \"name\": \"$1\", \"cat\": \"$2\","
    echo "\"args\": {\"External id\": $3}, \"ts\": $4, \"dur\": $5},"
}
for rank in 0 1; do
    echo '{"traceEvents": ['
    for step in 0 1 2 3; do
        at=$((step * 1000))
        event "ProfilerStep#$step" user_annotation 0 $at 1
        event "ProfilerStep#$step" gpu_user_annotation 0 $at 999
        event fbgemm::split_embedding_codegen_forward_x cpu_op 1 $at 9
        event fbgemm::split_embedding_backward_x cpu_op 2 $at 9
        event split_embedding_codegen_forward_kernel kernel 1 $((at + 50)) 99
        event '## All2All_Pooled_fwd ##' gpu_user_annotation 3 \
            $((at + 200)) $((100 + 50 * rank))
        event ncclDevKernel_SendRecv kernel 4 $((at + 210)) 80
        event DeviceRadixSortOnesweepKernel kernel 2 $((at + 500)) 30
        event split_embedding_backward_kernel kernel 2 $((at + 540)) 160
        event ampere_sgemm kernel 5 $((at + 800)) 100
    done
    echo "{}], \"distributedInfo\": {\"rank\": $rank}}"
done | awk '/^{"traceEvents/ {n++} {print >("trace_" n ".json")}'

printf 'name,rows,dim,hotness\na,1000,64,2\nb,1000,64,3\n' >list.csv
"$NEUROSHARD" plan list.csv --gpus 2 --shard table --batch 64 --effort 10 \
    -o plan.json >/dev/null 2>&1
"$NEUROSHARD" record plan.json trace_2.json --times trace_1.json \
    --db costs.db --warm-up 0 --insist | sed -n '/^rank/,/^all/p' |
    cut -c 1-41
echo "== traces that cannot be recorded"
for text in "$ROOT"/tests/fuzz/corpus/times_trace/*; do
    cp "$text" trace.json
    "$NEUROSHARD" record plan.json --times trace.json --db none.db --warm-up 0 \
        --insist 2>&1 | sed -n "s/^neuroshard: trace.json/$(basename "$text")/p"
done
