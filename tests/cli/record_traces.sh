#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the lines of neuroshard-record(1) that convert GPU traces to CSV, on
# synthetic traces. A sort belongs to the lookups that launch it; a kernel of
# an exchange belongs to its range.
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }

sed -n '/^import/,/^\.Ed/{/^\.Ed/!p}' "$ROOT/man/neuroshard-record.1" \
    >lines.py
python3 -c 'import ast; ast.parse(open("lines.py").read())'
sed -n '/^import .*json/,$p' lines.py >traces.py
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
python3 traces.py trace_1.json trace_2.json | tr -d '\r' | sort
