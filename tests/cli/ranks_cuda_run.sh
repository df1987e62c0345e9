#!/bin/sh
# SPDX-License-Identifier: MIT
# Four processes, each with an emulated GPU, communicate through a stand-in for
# NCCL. Their results equal those of one process on a CPU bit for bit, for a
# plan with every shard kind and uneven ranks; ids use the same path. The
# processes are started by the program and, if available, by mpirun.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
nccl=$(dirname "$ns")/fake

grep -q emulated_enqueue "$ns" || skip "not built with CUDA=emulated"
many=$(launcher)
keep_mpi_quiet
export COLUMNS=999 # keeps lines unbroken
LD_LIBRARY_PATH=$nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# pieces: prints JSON of pieces, given as lines "table rows columns GPU kind".
pieces()
{
    comma=
    while read -r table row_begin row_end col_begin col_end gpu kind; do
        printf '%s{"table": %s, "row_begin": %s, "row_end": %s, ' \
            "$comma" "$table" "$row_begin" "$row_end"
        printf '"col_begin": %s, "col_end": %s, "device": %s, "kind": "%s"}' \
            "$col_begin" "$col_end" "$gpu" "$kind"
        comma=,
    done
}

gib=1073741824
{
    cat <<END
{"neuroshard_plan": 1, "version": "hand", "seed": 0, "batch": 9,
"cluster": {"gpus": 4, "gpus_per_host": 4,
"memory_bytes": [$gib, $gib, $gib, $gib]}, "tables": [
{"name": "columns", "num_embeddings": 300, "dim": 32, "pooling_factor": 4},
{"name": "rows", "num_embeddings": 500, "dim": 16, "pooling_factor": 3.5},
{"name": "half", "num_embeddings": 200, "dim": 24, "pooling_factor": 5,
 "comm_precision": "fp16"},
{"name": "copies", "num_embeddings": 70, "dim": 8, "pooling_factor": 2},
{"name": "turns", "num_embeddings": 90, "dim": 16, "pooling_factor": 6.4,
 "num_outputs": 2, "output": "sequence"},
{"name": "halves", "num_embeddings": 60, "dim": 16, "pooling_factor": 5,
 "output": "sequence"}
], "shards": [
END
    pieces <<END
0 0 300 0 20 0 column
0 0 300 20 32 1 column
1 0 100 0 16 0 row
1 100 500 0 16 1 row
2 0 200 0 24 3 table
3 0 70 0 8 0 replicate
3 0 70 0 8 1 replicate
3 0 70 0 8 2 replicate
3 0 70 0 8 3 replicate
4 0 30 0 16 0 row
4 30 60 0 16 2 row
4 60 90 0 16 3 row
5 0 60 0 8 1 column
5 0 60 8 16 2 column
END
    echo ']}'
} >plan.json

hashes()
{
    grep -oE '"(output|weight)_hash": "[0-9a-f]+"|"passed": [a-z]+' "$1"
}

"$ns" run plan.json --iterations 12 --threads 1 --dedup ids --json >cpu.json
"$ns" run plan.json --ranks 4 --iterations 12 --device cuda --dedup ids \
    --json >four.json 2>err || cat err
if [ "$many" ]; then
    if $many -n 4 "$ns" run plan.json --iterations 12 --device cuda \
        --dedup ids --json \
        >mpi.json 2>err; then
        hashes four.json >four
        hashes mpi.json | cmp four -
    else
        grep -q 'has no MPI support' err || cat err
    fi
fi
hashes cpu.json >cpu
hashes four.json | cmp cpu - && echo "four GPUs have the bits of a CPU:"
grep -c _hash cpu
grep -oE '"processes": [0-9]+|"kind": "nccl"|"passed": true' four.json
echo "a plan that predicts none has that input:"
grep -oE '"input": [0-9.e-]+' four.json | grep -vc ': 0\.0$'
"$ns" run plan.json --ranks 4 --iterations 12 --device cuda 2>/dev/null |
    sed -n '/^exchange of ids/s/[0-9][0-9.]*/N/gp'

# A training on four GPUs, with a stand-in for cuBLAS, has the bits of one GPU
# that is all ranks.
printf 'name,num_embeddings,dim,pooling_factor\na,900,16,3\nb,400,16,2\n' >t.csv
"$ns" plan t.csv --gpus 4 --batch 61 --effort 2000 \
    --dense 'bottom:5-16;interaction:dot;top:8-1' -o train.json >/dev/null 2>&1
for ranks in "" "--ranks 4"; do
    # shellcheck disable=SC2086 # no argument, or two
    "$ns" run train.json --device cuda $ranks --steps 3 --pipeline none --json \
        2>/dev/null | grep -oE '"(dense|weight)_hash": .*|"passed": true' \
        >"trained$(echo "$ranks" | tr -d ' -')"
done
cmp trained trainedranks4 && echo "a training on four GPUs, too:"
cut -d: -f1 trained
