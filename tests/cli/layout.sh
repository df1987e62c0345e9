#!/bin/sh
# SPDX-License-Identifier: MIT
# Optimizer state and rows as FBGEMM allocates them, for each optimizer,
# precision and shard kind. A plan without its layout is judged by the older
# rule, which is the same for fp32.
set -u

ns=$NEUROSHARD
for precision in fp32 fp16 bf16 int8; do
    for optimizer in sgd rowwise_adagrad adagrad adam adama lamb \
        partial_rowwise_adam partial_rowwise_lamb; do
        printf 'name,num_embeddings,dim,pooling_factor,precision,optimizer\na,1000,64,2,%s,%s\n' \
            $precision $optimizer >list.csv
        for kind in table column row replicate; do
            "$ns" plan list.csv --gpus 2 --shard $kind --cost roofline:h100 \
                --effort 100 -o plan.json >report 2>messages ||
                echo "$kind: exit $?, $(cat messages)"
            "$ns" cost plan.json -o again.json >report 2>messages
            cmp plan.json again.json
            echo "$precision $optimizer $kind:" "$(grep -o \
                '"weights": [0-9]*, "optimizer": [0-9]*' plan.json | tr '\n' ';')"
            grep -v '"layout"' plan.json >old.json
            "$ns" cost old.json >report 2>messages || echo "    older: exit $?"
        done
    done
done

# Overhead bytes per row of each piece.
printf 'name,num_embeddings,dim,pooling_factor,row_overhead_bytes\na,1000,64,2,24\n' >list.csv
for kind in table column row replicate; do
    "$ns" plan list.csv --gpus 2 --shard $kind --cost roofline:h100 \
        --effort 100 -o plan.json >report 2>messages
    "$ns" cost plan.json -o again.json >report 2>messages
    cmp plan.json again.json
    echo "overhead $kind: $(grep -o '"weights": [0-9]*' plan.json | tr '\n' ';')" \
        "$(grep -c row_overhead_bytes plan.json)"
done
for bytes in -1 1000001 nan x; do
    printf 'name,num_embeddings,dim,pooling_factor,row_overhead_bytes\na,1000,64,1,%s\n' $bytes >list.csv
    "$ns" plan list.csv --gpus 2 2>&1 || echo "exit $?"
done
"$ns" plan list.csv --gpus 2 -o p.json >/dev/null 2>&1
sed 's/"layout": "fbgemm"/"layout": "other"/' plan.json >bad.json
"$ns" cost bad.json
echo "exit $?"
