#!/bin/sh
# SPDX-License-Identifier: MIT
# A wide table may be cut into columns over many GPUs, as other planners do.

cat >tables.csv <<'LIST'
name,num_embeddings,dim,pooling_factor,sharding
a,1000000,4096,10,column
LIST
"$NEUROSHARD" plan tables.csv --gpus 256 --effort 2000 --cost roofline:h100 \
    --host-ms 0 -o plan.json >/dev/null 2>&1
"$NEUROSHARD" emit plan.json --format text | tail -n +2 | wc -l
