#!/bin/sh
# SPDX-License-Identifier: MIT
# Imports table lists from the files of other programs.

echo "== CSV in other columns"
cat >report.csv <<'EOF'
table_name,num_rows,width,avg_len,owner
user,40000000,128,1,ads
"a, b",20000,64,7.5,feed
EOF
"$NEUROSHARD" tables import report.csv -o tables.csv \
    --columns name=table_name,rows=num_rows,dim=width,pooling_factor=avg_len
cat tables.csv
"$NEUROSHARD" tables tables.csv | sed -n 3,4p

echo "== MLPerf's command line, as a script and as words"
cat >train.sh <<'EOF'
export GLOBAL_BATCH_SIZE=65536 ;
export WORLD_SIZE=8 ;
torchx run -s local_cwd dist.ddp -j 1x8 --script dlrm_main.py -- \
    --embedding_dim 128 \
    --over_arch_layer_sizes 1024,1024,512,256,1 \
    --num_embeddings_per_feature 40000000,39060,17295,7424,20265,3,7122,1543,63,40000000,3067956,405282,10,2209,11938,155,4,976,14,40000000,40000000,40000000,590152,12973,108,36 \
    --batch_size $((GLOBAL_BATCH_SIZE / WORLD_SIZE)) \
    --multi_hot_distribution_type uniform \
    --multi_hot_sizes=3,2,1,2,6,1,1,1,1,7,3,8,1,6,9,5,1,1,1,12,100,27,10,3,1,1
EOF
"$NEUROSHARD" tables import train.sh -o tables.csv
head -n 6 tables.csv
grep -v '^#' tables.csv | cut -d, -f1-4 >columns.csv
"$NEUROSHARD" tables import "$ROOT"/data/tables/mlperf_dlrm_dcnv2_multihot.csv |
    cut -d, -f1-4 | cmp - columns.csv && echo "the list that ships"
"$NEUROSHARD" tables import --names user,ad -- python dlrm_s_pytorch.py \
    --arch-embedding-size=1000-50 --arch-sparse-feature-size=16 \
    --num-indices-per-lookup=4 --num-indices-per-lookup-fixed=1 \
    --mini-batch-size=2048

echo "== FBGEMM's report of a TBE"
printf 'user\nad\n' >names.txt
"$NEUROSHARD" tables import "$ROOT"/tests/fuzz/corpus/tables_tbe/report \
    --names names.txt -o tables.csv
cut -d, -f1-8 tables.csv

echo "== TorchRec's JSON, on standard input"
echo '{"a": {"num_embeddings": 10, "embedding_dim": 8, "pooling_factor": 2}}' |
    "$NEUROSHARD" tables import -

echo "== each list that ships, as it was"
for list in "$ROOT"/data/tables/*.csv; do
    "$NEUROSHARD" tables import "$list" >copy.csv 2>/dev/null
    "$NEUROSHARD" tables "$list" --json >before.json 2>/dev/null
    "$NEUROSHARD" tables copy.csv --json >after.json
    cmp before.json after.json || echo "# ${list##*/} is another one"
done
