#!/bin/sh
# SPDX-License-Identifier: MIT
# plan --from --reshardable: only pieces that TorchRec's reshard can move go to
# other ranks, and jobs that it cannot change are refused.
set -u
ns=$NEUROSHARD

# plan LIST OPTION...
plan()
{
    list=$1
    shift
    "$ns" plan "$list" --gpus 4 --batch 4096 --cost torchrec --no-rivals \
        --effort 4000 "$@"
}

list()
{
    echo name,num_embeddings,dim,pooling_factor,sharding,output
    echo "rows,900000,64,$1,row,pooled"
    echo "copies,2000,64,4,replicate,pooled"
    echo "seq,50000,64,3,table,sequence"
    echo "cut,400000,128,$2,column,pooled"
    for i in 1 2 3 4 5 6; do
        echo "w$i,300000,64,$((i * $3)),table,pooled"
    done
}

list 20 30 8 >old.csv
list 10 60 3 | sed 's/w1,300000,64,3/w1,300000,64,90/' >new.csv
plan old.csv -o old.json >/dev/null 2>&1
plan new.csv --from old.json --reshardable -o new.json 2>/dev/null |
    sed -n '/^from/,$p'
"$ns" diff old.json new.json --format reshard
"$ns" diff old.json new.json --format reshard --checkpoint-gbps 2 \
    --cost roofline:h100 | grep GB/s
for plan in old new; do
    "$ns" emit $plan.json --format torchrec -o $plan.torchrec \
        --sequence-module m.ec >/dev/null 2>&1
done
"$ns" diff old.torchrec new.torchrec --tables new.csv --batch 4096 \
    --intra-gbps 100 --cost torchrec --format reshard | tail -n 4
"$ns" diff old.json new.json --checkpoint-gbps 2 2>&1 || echo "status $?"
plan new.csv --from old.json --reshardable --move-limit 0 2>/dev/null |
    sed -n '/^from/,$p'
echo "== refused"
plan new.csv --reshardable 2>&1 || echo "status $?"
plan new.csv --from old.json --reshardable --simplest-within 1% 2>&1 ||
    echo "status $?"
plan new.csv --from old.json --reshardable --target hugectr 2>&1 ||
    echo "status $?"
plan new.csv --from old.json --reshardable --gpus 8 2>&1 || echo "status $?"
sed /^w1/d new.csv >fewer.csv
plan fewer.csv --from old.json --reshardable 2>&1 || echo "status $?"
sed s/w2,300000/w2,300001/ new.csv >grown.csv
plan grown.csv --from old.json --reshardable 2>&1 || echo "status $?"
sed 's/,row,pooled/,table,pooled/' new.csv >other.csv
plan other.csv --from old.json --reshardable 2>&1 || echo "status $?"
plan new.csv --from old.json --reshardable --memory 200MiB --reserve 0 2>&1 ||
    echo "status $?"
