#!/bin/sh
# SPDX-License-Identifier: MIT
# Imports the tables of a web shop from CSV files with foreign headers.

cat >rows.csv <<'EOF'
user_id,200000000,64,1
item_id,40000000,64,1.5
last_clicked,40000000,64,50
"search, terms",5000000,32,8
EOF
# The list that every header must give, with rows.csv below it.
{
    echo name,num_embeddings,dim,pooling_factor
    cat rows.csv
} >want.csv

echo "== 30 headers"
while read -r header; do
    { echo "$header"; cat rows.csv; } >shop.csv
    "$NEUROSHARD" tables import shop.csv -o tables.csv 2>said.txt ||
        echo "# refused: $header"
    sed 's/^neuroshard: warning: shop.csv:1: //' said.txt
    grep -v '^#' tables.csv | cmp -s - want.csv || echo "# wrong: $header"
done <<'EOF'
name,num_embeddings,dim,pooling_factor
table name,cardinality,emb dim,avg ids per sample
Table,Rows,Width,Hotness
feature,vocab_size,embedding_dim,avg_length
Feature Name,Vocabulary Size,Embedding Size,Mean Length
featureName,vocabSize,embDim,avgIds
feature_name,hash_size,emb_dim,pooling
slot,num_buckets,vec_size,nnz
FQN,Hash Size,Embedding Dim,Pooling Factor
table_name,num_rows,emb_size,lookups_per_sample
Table_Name,Row_Count,Vector_Dim,Avg_Lookups
"embedding name","hash bucket size","embedding dim","ids per sample"
embedding_table,n_rows,n_dims,hot
sparse feature,# of rows,embedding width,# lookups
categorical_feature,unique_ids,d,mean_ids_per_example
TABLE,CARDINALITY,DIM,HOTNESS
tbl,number of rows,dims,mean bag size
param,num_emb,dimension,multi-hot size
variable,vocab,output_dim,avg_nnz
table.name,num.embeddings,embedding.dim,pooling.factor
Field,No. of categories,Latent dim,Avg. no. of ids
Embedding Table Name,Num Embeddings,Embedding Length,Multihot
slot name,max_vocabulary_size,ev_size,avg hotness
column_name,distinct_values,embedding_vec_size,values_per_sample
name,Number of Entries,Vector Length,Average Sequence Length
Table,Unique IDs,Embed Dim,Indices per Lookup
tableName,numEmbeddings,embeddingDim,poolingFactor
table,bucket_size,dimensionality,avg_num_lookups
sparse_feature_name,feature cardinality,vector width,average number of ids
parameter,rows_,size of embedding,look-ups per sample
EOF

echo "== columns that a header lacks, all in one line"
printf 'thing,big,wide\na,10,8\n' >shop.csv
"$NEUROSHARD" tables import shop.csv 2>&1
printf "the shop's name,rows (M),size,hotness\na,10,8,2\n" >shop.csv
"$NEUROSHARD" tables import shop.csv 2>said.txt
cat said.txt
words=$(sed 's/.*; add //
s/num_embeddings=NAME/num_embeddings=rows (M)/
s/dim=NAME/dim=size/' said.txt)
eval "\"\$NEUROSHARD\" tables import shop.csv $words" 2>&1

echo "== two columns that mean the same"
printf 'table,vocab,unique ids,dim,hotness\na,10,9,8,2\n' >shop.csv
"$NEUROSHARD" tables import shop.csv 2>&1
"$NEUROSHARD" tables import shop.csv --columns num_embeddings=vocab 2>&1

echo "== no lookups"
printf 'name,rows,dim\na,10,8\n' >shop.csv
"$NEUROSHARD" tables import shop.csv 2>&1
"$NEUROSHARD" plan shop.csv --gpus 1 2>&1
"$NEUROSHARD" tables import shop.csv --pooling 2
echo '{"a": [10, 8]}' | "$NEUROSHARD" tables import - 2>&1 || echo "exit $?"
