#!/bin/sh
# SPDX-License-Identifier: MIT
# Replicas have the state of the dense part's optimizer. Each of two GPUs has
# 100 rows x 16, which are 6,400 bytes of weights. All commands that read the plan agree on
# it.
set -u

ns=$NEUROSHARD
printf 'name,num_embeddings,dim,pooling_factor\na,100,16,2\n' >list.csv
for optimizer in sgd adagrad adam table; do
    "$ns" plan list.csv --gpus 2 --shard replicate --cost roofline:h100 --effort 100 \
        --dense-optimizer $optimizer -o $optimizer.json >report 2>messages
    echo "$optimizer: exit $?, $(grep -o '"optimizer": [0-9][0-9]*' \
        $optimizer.json | tr '\n' ' ')"
    grep dense_optimizer $optimizer.json
    "$ns" cost $optimizer.json -o again.json >report 2>messages
    echo "read back: exit $?"
    cmp $optimizer.json again.json
    grep -v dense_optimizer $optimizer.json >without.json
    "$ns" cost without.json 2>&1 >report | sed 's/reserve.*//'
done
"$ns" plan list.csv --gpus 2 --shard replicate --cost roofline:h100 --effort 100 \
    -o default.json >report 2>messages
cmp default.json adam.json && echo "adam is the default"
"$ns" plan list.csv --gpus 2 --shard table --cost roofline:h100 --effort 100 \
    -o whole.json >report 2>messages
grep -c dense_optimizer whole.json
exit 0
