#!/bin/sh
# SPDX-License-Identifier: MIT
# A table's own minimum width of pieces: in searches with every shard kind, in
# other planners, in plans made by hand, and in a list that is written and read
# again.

ns=$NEUROSHARD
cat >tables.csv <<'LIST'
name,num_embeddings,dim,pooling_factor,min_width,output
half,1000000,256,90,128,pooled
free,1000000,256,90,,pooled
third,1000000,192,90,50,pooled
turns,1000000,256,9,100,sequence
LIST
(cat tables.csv && echo whole,1000000,256,90,129,pooled) >more.csv

# narrow PLAN: counts the pieces that are narrower than their tables allow
narrow()
{
    awk '
        function member(key) {
            return match($0, "\"" key "\": [0-9]+") ? substr($0, RSTART + \
                length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0
        }
        /"num_embeddings"/ { dim[n] = member("dim"); least[n++] = member("min_width") }
        /"col_begin"/ {
            t = member("table")
            width = member("col_end") - member("col_begin")
            n_cut += width < dim[t]
            if (width < dim[t] && width < least[t])
                print "too narrow: " $0
        }
        END { print n_cut ? "some pieces, none too narrow" : "no pieces" }' "$1"
}

for shard in column table,column grid,table table,column,row,grid; do
    for more in "" "--min-width 64"; do
        list=more.csv
        [ $shard != column ] || list=tables.csv
        # shellcheck disable=SC2086 # an option and its value
        "$ns" plan $list --gpus 8 --cost roofline:h100 --effort 4000 \
            --shard $shard $more -o plan.json >/dev/null 2>&1
        [ $shard != column ] || narrow plan.json
        narrow plan.json | grep 'too narrow:'
    done
done
"$ns" cost plan.json -o again.json >/dev/null 2>&1
cmp plan.json again.json && "$ns" tables import more.csv 2>/dev/null
echo "== no cut is wide enough"
"$ns" plan more.csv --gpus 8 --shard column 2>&1
echo "== a plan by hand"
"$ns" plan tables.csv --gpus 8 --cost roofline:h100 --shard column \
    --effort 4000 -o plan.json >/dev/null 2>&1
sed 's/"min_width": 128/"min_width": 160/' plan.json >other.json
"$ns" cost other.json 2>&1
echo "== older pieces that are too narrow are cut anew"
sed 's/,50,/,,/; s/,128,/,,/' tables.csv >free.csv
"$ns" plan free.csv --gpus 8 --cost roofline:h100 --shard column \
    --min-width 4 --effort 4000 -o old.json >/dev/null 2>&1
"$ns" plan tables.csv --gpus 8 --shard column --from old.json --effort 4000 \
    -o next.json >/dev/null 2>&1
narrow next.json
echo "== the ways of explain"
"$ns" plan tables.csv --gpus 8 --cost roofline:h100 --shard table,column \
    --effort 4000 -o plan.json >/dev/null 2>&1
for table in half free; do
    "$ns" explain plan.json $table --wide | grep -o '^[0-9]* column pieces' |
        sort | tr '\n' ','
    echo " $table"
done
echo "== the columns of other planners"
"$ns" compare tables.csv --gpus 8 --shard table,column --effort 1 \
    --cost roofline:h100 --json | grep -c '"valid": true'
for width in -1 1048577 x 1.5; do
    printf 'name,num_embeddings,dim,pooling_factor,min_width\na,1000,64,1,%s\n' \
        $width >list.csv
    "$ns" plan list.csv --gpus 2 2>&1
done
echo '{"a": {"num_embeddings": 9, "embedding_dim": 8, "min_width": 8,
    "pooling_factor": 1}}' >list.json
"$ns" tables import list.json
