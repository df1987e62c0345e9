#!/bin/sh
# SPDX-License-Identifier: MIT
# --target: plans that obey the rules of what runs them, what the rules cost,
# and combinations that contradict each other.
set -u
ns=$NEUROSHARD

plan()
{
    echo "# $*"
    "$ns" plan "$@" --cost roofline:h100 --effort 2000 2>err >out
    echo "status $?"
    grep -v '^searched\|^lower bound' err
    sed -n 's/\(^target  [^;]*\).*/\1/p' out
}

cat >tables.csv <<'CSV'
name,num_embeddings,dim,pooling_factor
wide,400000,512,20
tall,4000003,64,40
a,50000,128,3
b,60000,128,3
c,100,16,1
CSV
for target in any torchrec torchrec-ec dlrm hugectr; do
    plan tables.csv --gpus 4 --target $target -o $target.json
    sed -n 's/^  "target": "\(.*\)",/the file has \1/p' $target.json
    for format in torchrec dlrm; do
        "$ns" emit $target.json --format $format -o out 2>&1 | cut -c 1-70
    done
done
"$ns" emit hugectr.json --format text | cut -f 1-7
plan tables.csv --gpus 4 --target hugectr --no-rivals
plan tables.csv --gpus 2 --target hugectr --shard table,row,grid,replicate
plan tables.csv --gpus 4 --target hugectr --from any.json
"$ns" plan tables.csv --gpus 4 --target hugectr --search grid 2>&1
plan tables.csv --gpus 4 --target torchrec --row-cut any
plan tables.csv --gpus 4 --target caffe
plan tables.csv --gpus 4 --target 30M
plan tables.csv --gpus 4 --from any.json
sed 's/"col_begin": 256/"col_begin": 252/; s/"col_end": 256/"col_end": 252/
    s/, "memory_bytes": {[^}]*}//' hugectr.json >broken.json
"$ns" cost broken.json 2>&1 | sed 's/.*: table/table/'

# rows that are dealt
printf 'name,num_embeddings,dim,pooling_factor\ntall,4000003,64,40\n' >tall.csv
plan tall.csv --gpus 2 --target hugectr --shard row -o rows.json
{ "$ns" diff rows.json rows.json >out; } 2>&1

# a list that TorchRec cannot run
printf 'name,num_embeddings,dim,pooling_factor\nodd,1000,10,1\n' >odd.csv
plan odd.csv --gpus 2
plan odd.csv --gpus 2 --target torchrec
plan odd.csv --gpus 2 --target hugectr

# sequences have a module of their own
cat >sequences.csv <<'CSV'
name,num_embeddings,dim,pooling_factor,output
p,400000,64,20,pooled
s,400000,32,9,sequence
CSV
plan sequences.csv --gpus 2 --target torchrec-ec -o ec.json
"$ns" emit ec.json --format torchrec | grep -o '^  "[^"]*"'
plan sequences.csv --gpus 2 --target dlrm
