#!/bin/sh
# SPDX-License-Identifier: MIT
# gpus: the list, its JSON, and plans for each GPU.
set -eu

ns=$NEUROSHARD

"$ns" gpus | sed 's/sources: .*/sources: .../'
"$ns" gpus --json | sed -n '/"gpu": "h100",/,/}/p'
for gpu in 2080ti rtx4090 h100-sxm A100_80GB rtx4080; do
    "$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 2 --effort 0 \
        --gpu "$gpu" --no-rivals 2>&1 | sed -n 's/.* on \(.*\): .*/\1/p
            s/ known are.*//; /did you mean/p'
done
printf 'name,num_embeddings,dim,pooling_factor\nt,1000,16,1\n' >t.csv
for gpu in $("$ns" gpus --json | sed -n 's/.*"gpu": "\(.*\)",/\1/p'); do
    "$ns" plan t.csv --gpus 2 --gpu "$gpu" --batch 64 --effort 0 --json \
        2>messages >plan.json || cat messages
done
