#!/bin/sh
# SPDX-License-Identifier: MIT
# Rows over all GPUs, or over the GPUs of one host, as a table's row of the
# list asks for.

cat >tables.csv <<'LIST'
name,num_embeddings,dim,pooling_factor,sharding,rows_over
wide,10000000,64,10,row,all
near,10000000,64,10,row,host
few,3,64,10,row,all
fewer,3,64,10,row,host
LIST

# planned OPTION...: prints the number of GPUs of each table's rows.
planned()
{
    "$NEUROSHARD" plan --details tables.csv --effort 3000 "$@" -o plan.json \
        >/dev/null 2>&1
    "$NEUROSHARD" emit plan.json --format torchrec -o torchrec.json &&
        grep -o '"[a-z]*": {"sharding_type": "[a-z_]*"' torchrec.json
}

echo "== two hosts"
planned --gpus 8 --gpus-per-host 4
echo "== one host"
planned --gpus 4
echo "== blocks of any number of GPUs"
"$NEUROSHARD" plan --details tables.csv --gpus 8 --row-cut any 2>&1
echo "== a plan that does not keep to it"
"$NEUROSHARD" plan --details tables.csv --gpus 8 --gpus-per-host 4 --effort 3000 \
    -o plan.json >/dev/null 2>&1
sed 's/"rows_over": "all"/"rows_over": "host"/' plan.json >other.json
"$NEUROSHARD" cost --details other.json 2>&1
sed 's/"rows_over": "host"/"rows_over": "all"/' plan.json >other.json
"$NEUROSHARD" cost --details other.json 2>&1
echo "== and what explain says of it"
"$NEUROSHARD" explain plan.json wide --wide | grep 'rows over GPUs'
echo "== and of a sequence, which TorchRec does not cut so"
cat >one.csv <<'LIST'
name,num_embeddings,dim,pooling_factor,output
wide,10000000,64,10,sequence
LIST
"$NEUROSHARD" plan --details one.csv --gpus 8 --gpus-per-host 4 --effort 3000 \
    -o plan.json >/dev/null 2>&1
"$NEUROSHARD" explain plan.json wide --wide | grep '^rows over GPUs' ||
    echo "no way over one host's"
echo "== a table that may be a grid alone, new on one host"
sed -n '1p; 2s/,row,all$/,,/p' tables.csv >old.csv
(cat old.csv && echo b,1000,64,1,grid,) >new.csv
"$NEUROSHARD" plan --details old.csv --gpus 3 --effort 0 -o old.json >/dev/null 2>&1
"$NEUROSHARD" plan --details new.csv --gpus 3 --effort 0 --from old.json -o plan.json \
    >/dev/null 2>&1 && "$NEUROSHARD" emit plan.json --format text | cut -f 1,2,7 | grep b
