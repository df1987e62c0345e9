#!/bin/sh
# SPDX-License-Identifier: MIT
# Bad inputs: each gives one sentence and the right exit status, and leaves the
# output untouched. A line of output is "status: message"; the file `out` must
# keep its content.

tables=$ROOT/data/tables/criteo_kaggle_26.csv
echo old >out
newline='
'

# message FILE: prints the error without warnings and progress. A list of names
# that will grow is cut after its first name.
message()
{
    sed -e '/^neuroshard: warning: /d; /^neuroshard: /!d; s///' \
        -e "s|$ROOT|ROOT|g" -e 's/\(; known are model:FILE\), .*/\1, .../
            s/\(figures for a GPU .*known are\) .*/\1 .../
            s/\(is one of torchrec\)|[a-z|-]*/\1|.../
            s/\(is one of cpu\)|[a-z|-]*/\1|.../' "$1"
}

# bad NAME COMMAND...: runs the command; prints its status and message.
bad()
{
    label=$1
    shift
    "$NEUROSHARD" "$@" >stdout 2>stderr </dev/null
    status=$?
    said=$(message stderr)
    printf '%-24s %d: %s\n' "$label" "$status" "$said"
    [ "$status" -ne 0 ] || echo "# accepted: $*"
    case $said in
    '' | *"$newline"*) echo "# not one sentence" ;;
    esac
    [ -s stdout ] && echo "# printed a result: $(head -n 1 stdout)"
    if ! { read -r kept && ! read -r _ && [ "$kept" = old ]; } <out; then
        echo "# touched the output file"
    fi
    set -- ./*.tmp* ./.*.tmp*
    [ -e "$1" ] && echo "# left $1 behind"
    echo old >out
}

# lines NAME OPTIONS: plans the table list on standard input.
lines()
{
    label=$1
    shift
    cat >list.csv
    bad "$label" plan list.csv --gpus 2 --pooling 1 -o out "$@"
}

echo "== command line"
bad no-command
bad unknown-command frobnicate
bad no-tables plan --gpus 2
bad two-tables plan a.csv b.csv --gpus 2
bad near-command compaer a.csv
bad help-unknown help frobnicate
bad second-file diff a.json
bad unknown-option plan "$tables" --gpus 2 --frob
bad ambiguous-option plan "$tables" --gpus 2 --s 8
bad option-needs-value plan "$tables" --gpus
bad option-not-value compare "$tables" --gpus 2 --csv --wide
bad letter-not-value plan "$tables" --gpus 2 -o --from
bad flag-with-value plan "$tables" --gpus 2 --json=1
bad no-gpus plan "$tables"
bad needs-two train
bad needs-one-more train --db x.db
bad needs-choice emit plan.json
bad zero-gpus plan "$tables" --gpus 0
bad negative-gpus plan "$tables" --gpus=-1
bad gpus-not-a-number plan "$tables" --gpus eight
bad gpus-huge plan "$tables" --gpus 99999999999999999999
bad gpus-falling plan "$tables" --gpus 8..4 -o out
bad gpus-from-zero plan "$tables" --gpus 0..4 -o out
bad gpus-to-many plan "$tables" --gpus 1..100000 -o out
bad gpus-half-range plan "$tables" --gpus 4.. -o out
bad gpus-range-to-stdout plan "$tables" --gpus 1..2 -o -
bad gpus-no-whole-host plan "$tables" --gpus 9..15 --gpus-per-host 8 -o out
bad gpus-range-compared compare "$tables" --gpus 1..2
bad unknown-gpu plan "$tables" --gpus 2 --gpu potato
bad near-gpu plan "$tables" --gpus 2 --gpu H100-NVL
bad near-roofline plan "$tables" --gpus 2 --cost roofline:h10
bad no-such-gpu-file plan "$tables" --gpus 2 --gpu ./none.json
bad memory-no-unit plan "$tables" --gpus 2 --memory 80
bad memory-none run plan.json --memory 0
bad memory-nan plan "$tables" --gpus 2 --memory nan
bad memory-negative plan "$tables" --gpus 2 --memory=-1GiB
bad memory-huge plan "$tables" --gpus 2 --memory 99999999TiB
bad reserve-above-100 plan "$tables" --gpus 2 --reserve 150%
bad batch-zero plan "$tables" --gpus 2 --batch 0
bad batch-huge plan "$tables" --gpus 2 --batch-per-gpu 1000000000000 -o out
bad bandwidth-zero plan "$tables" --gpus 2 --inter-gbps 0
bad bandwidth-text plan "$tables" --gpus 2 --intra-gbps fast
bad bandwidth-and-nets plan "$tables" --gpus 2 --cost reference:none \
    --inter-gbps 10
bad unknown-kind plan "$tables" --gpus 2 --shard diagonal
bad min-width-odd plan "$tables" --gpus 2 --min-width 6 -o out
bad min-width-narrow plan "$tables" --gpus 2 --min-width 0 -o out
bad min-width-wide compare "$tables" --gpus 2 --min-width 1048580
bad uneven-hosts plan "$tables" --gpus 8 --gpus-per-host 3
bad no-hosts-of-13 plan "$tables" --gpus 13 -o out
bad no-hosts-of-121 compare "$tables" --gpus 121
bad uneven-domains plan "$tables" --gpus 12 --gpus-per-host 4 \
    --hosts-per-domain 2
bad domains-of-no-hosts plan "$tables" --gpus 16 --hosts-per-domain 2
bad domains-in-no-range plan "$tables" --gpus 20..28 --gpus-per-host 4 \
    --hosts-per-domain 4
bad unknown-cost plan "$tables" --gpus 2 --cost magic:x
bad unknown-roofline plan "$tables" --gpus 2 --cost roofline:abacus
bad no-such-model plan "$tables" --gpus 2 --cost model:none.nsm
bad no-such-reference plan "$tables" --gpus 2 --cost reference:none
bad unknown-format emit plan.json --format yaml

echo "== table lists"
bad no-such-file plan none.csv --gpus 2 -o out
bad a-folder plan . --gpus 2 -o out
lines empty-file </dev/null
echo 'name,num_embeddings,dim,pooling_factor' | lines header-only
printf 'name,num_embeddings,dim\na,10\n' | lines missing-field
printf 'name,num_embeddings,dim\na,10,4,4\n' | lines extra-field
printf 'name,dim\na,4\n' | lines missing-column
printf 'name,rows,hash_size,dim\na,1,1,4\n' | lines two-aliases
printf 'name,rows,dim\na,0,4\n' | lines zero-rows
printf 'name,rows,dim\na,-5,4\n' | lines negative-rows
printf 'name,rows,dim\na,1e400,4\n' | lines huge-rows
printf 'name,rows,dim\na,99999999999999999999,4\n' | lines rows-over-64-bits
printf 'name,rows,dim\na,10,0\n' | lines zero-dim
printf 'name,rows,dim\na,10,\n' | lines empty-dim
printf 'name,rows,dim,pooling_factor\na,10,4,nan\n' | lines nan-pooling
printf 'name,rows,dim,pooling_factor\na,10,4,inf\n' | lines infinite-pooling
printf 'name,rows,dim,pooling_factor\na,10,4,-1\n' | lines negative-pooling
printf 'name,rows,dim,pooling_factor\na,10,4,0x10\n' | lines hexadecimal-pooling
printf 'name,rows,dim\na,10,4\nb,10,4\na,10,4\n' | lines same-name-twice
printf 'name,rows,dim,precision\na,10,4,fp7\n' | lines unknown-precision
printf 'name,rows,dim,optimizer\na,10,4,magic\n' | lines unknown-optimizer
printf 'name,rows,dim,sharding\na,10,4,diagonal\n' | lines unknown-sharding
printf 'name,rows,dim,device\na,10,4,7\n' | lines pin-outside
printf 'name,rows,dim,bin_0\na,10,4,1\n' | lines some-bins
printf 'name,rows,dim,zipf_alpha\na,10,4,-2\n' | lines negative-zipf
printf 'name,rows,dim\n"a,10,4\n' | lines open-quote
printf 'name,rows,dim\na\000b,10,4\n' | lines nul-byte
printf 'name,rows,dim\n\377\376,10,4\n' | lines not-utf-8
printf '{"a": {"num_embeddings": 10}}' | lines json-missing-key
printf '{"a": {"num_embeddings": 10, "embedding_dim": 4' | lines json-cut
printf 'name,rows,dim\na,9000000000000000000,1000000\n' | lines no-plan
printf 'name,rows,dim\na,9000000,64\n' |
    lines no-plan-of-what-is-left --memory 1GiB --batch 1000000

echo "== GPUs"

# gpu NAME SED: plans for the shipped GPU description edited by a sed script.
gpu()
{
    sed "$2" "$ROOT/data/gpus/h100.json" >gpu.json
    bad "$1" plan "$tables" --gpus 2 --gpu gpu.json -o out
}

gpu gpu-empty d
gpu gpu-cut 20q
gpu gpu-no-figure '/"l2_gbps"/,+1d'
gpu gpu-mistyped 's/"dram_gbps"/"dram_gb"/'
# shellcheck disable=SC2016 # $d is sed's
gpu gpu-bare-number 's/"nic_gbps": {"value": 50.*/"nic_gbps": 50}/;$d'
gpu gpu-other-unit 's/1\.755/1755/'
gpu gpu-text 's/85520809984/"79.6GiB"/'
gpu gpu-no-source '/"intra_alpha_us"/{N;s/,\n.*}/}/;}'
gpu gpu-another-key 's/"source": "that of/"from": "that of/'
gpu gpu-empty-source 's/"that of.*"/""/'
gpu gpu-no-basis 's/"basis": "fitted", //'
gpu gpu-other-basis 's/"fitted"/"guessed"/'
gpu gpu-no-date 's/2024-09-24/last year/'
gpu gpu-other-exchange 's/"port"/"ring"/'

echo "== imports"

# import NAME OPTIONS: imports standard input.
import()
{
    label=$1
    shift
    cat >source.txt
    bad "$label" tables import source.txt -o out "$@"
}

bad import-nothing tables import
bad import-missing tables import none.csv -o out
printf 'my_name,total,dim\na,1,4\n' >foreign.csv
import csv-no-name <foreign.csv
import csv-no-rows --columns name=table_name <foreign.csv
import csv-no-dim <<'EOF'
name,rows,wide
a,1,4
EOF
import csv-mistyped --columns name=my_name,rows=totals <foreign.csv
import csv-no-such-column --columns title=table_name <foreign.csv
import csv-no-pair --columns table_name <foreign.csv
import csv-twice --columns rows=a,hash_size=b <foreign.csv
import csv-empty </dev/null
import csv-bad-cell --pooling 1 <<'EOF'
table_name,num_rows,dim
a,1,4
b,1.5,4
EOF
import csv-a-name-twice --pooling 1 <<'EOF'
table_name,num_rows,dim
a,1,4
a,2,4
EOF
import no-names --names none.txt <<'EOF'
--num_embeddings_per_feature 1,2
EOF
import few-names --names a,b <<'EOF'
--num_embeddings_per_feature 1,2,3
EOF
import a-name-twice --names a,a <<'EOF'
--num_embeddings_per_feature 1,2
EOF
bad dlrm-words tables import -o out -- python dlrm_main.py --num_embeddings 0
bad dlrm-no-rows tables import -o out -- train.py --embedding_dim 64
bad dlrm-other-words tables import -o out -- python train.py --lr 0.1
import dlrm-shell <<'EOF'
python dlrm_main.py \
    --num_embeddings $((1 << BITS))
EOF
import dlrm-hot-sizes <<'EOF'
dlrm_main.py --num_embeddings_per_feature 1,2,3 \
    --multi_hot_sizes 1,2
EOF
import dlrm-two-commands <<'EOF'
dlrm_main.py --num_embeddings 10
dlrm_main.py --num_embeddings 20
EOF
echo '--arch-embedding-size=4-3-a' | import dlrm-no-number
echo '--arch-embedding-size=4 --arch-sparse-feature-size=0' | import dlrm-no-dim
echo '--arch-embedding-size=4 --qr-flag' | import dlrm-quotients
echo '--arch-embedding-size=4 --data-generation=dataset' | import dlrm-data-set
printf -- '--num_embeddings 3\0' | import dlrm-nul

echo 'model_config { feature_names: "a" }' | import no-format
printf 'import os\nx = "a, b"\n' | import no-format-python
printf 'name;rows;dim\na;3;4\n' | import semicolons
printf 'name\trows\tdim\na\t3\t4\n' | import tabs
printf '\223NUMPY\1\0' | import an-array
printf 'x: 1\ny: 2\n' | lines no-format-planned
printf 'name,rows,dim,pooling_factor\na,3,4,\n' >list.csv
bad no-pooling plan list.csv --gpus 2 -o out
printf 'name,rows,dim\na,3,4\n' >list.csv
bad no-pooling-column plan list.csv --gpus 2 -o out
# tbe NAME MEMBERS: imports a report of FBGEMM with these JSON members.
tbe()
{
    printf '{"E": 40, "D": 8,\n%s,\n"batch_params": {"B": 4}}\n' "$2" |
        import "tbe-$1"
}

tbe no-features '"T": 0'
tbe text '"T": "two"'
tbe no-pooling '"T": 2'
tbe short-list '"T": 2, "Es": [3]'
tbe no-rows '"T": 2, "pooling_params": {"L": 1}, "Es": [3, 0]'
tbe part-of-a-row '"T": 2, "pooling_params": {"L": 1}, "Es": [3, 1.5]'
tbe wide '"T": 1, "Es": [40], "Ds": [1e9]'
tbe negative '"T": 1, "pooling_params": {"L": -1}'
tbe no-such-table '"T": 2, "feature_table_map": [0, 2]'
tbe gap '"T": 2, "pooling_params": {"L": 1}, "feature_table_map": [1, 1]'
tbe no-law '"T": 1, "pooling_params": {"L": 1}, "indices_params": {"zipf_q": 1}'
tbe hitters '"T": 1, "pooling_params": {"L": 1}, "indices_params": {"zipf_s": 1, "zipf_q": 1, "heavy_hitters": 3}'

echo "== clusters"

# cluster NAME OPTIONS: plans for the cluster on standard input.
cluster()
{
    label=$1
    shift
    cat >cluster.json
    bad "$label" plan "$tables" --cluster cluster.json -o out "$@"
}

bad no-such-cluster plan "$tables" --cluster none.json -o out
cluster cluster-empty </dev/null
cluster cluster-is-a-list <"$tables"
echo '{"hosts": []}' | cluster cluster-no-hosts
printf '{"hosts": [\n{"gpus": 2},\n{"gpus": 3}]}' | cluster cluster-uneven-hosts
printf '{"hosts": [\n{"gpus": 2, "memroy": 3}]}' | cluster cluster-mistyped
echo '{"hosts": [{"gpus": 2, "memory": "lots"}]}' | cluster cluster-no-size
echo '{"hosts": [{"gpus": 2, "memory": [1]}]}' | cluster cluster-short-list
echo '{"hosts": [{"gpus": 2, "used": "90GiB"}]}' | cluster cluster-used-up
echo '{"hosts": [{"gpus": 65537}]}' | cluster cluster-too-large
echo '{"gpu": "potato", "hosts": [{"gpus": 2}]}' | cluster cluster-unknown-gpu
echo '{"hosts": [{"gpus": 2}], "inter_gbps": -1}' | cluster cluster-bandwidth
echo '{"hosts": [{"gpus": 2}]}' | cluster cluster-and-gpus --gpus 2
printf '{"pod_size": 2,\n"hosts": [{"gpus": 2, "count": 3}]}' |
    cluster cluster-half-a-domain
echo '{"hosts": [{"gpus": 2}], "reserve": "x"}' | cluster cluster-no-reserve
echo '{"hosts": [{"gpus": 2}], "reserve": "90GiB"}' | cluster cluster-all-free
echo '{"hosts": [{"gpus": 2}], "reserve": 0}' | cluster cluster-and-reserve \
    --reserve 0
echo '{"hosts": [{"gpus": 2}]}' | cluster cluster-and-memory --memory 80GiB
echo '{"gpu": "h100", "hosts": [{"gpus": 2}]}' | cluster cluster-and-gpu --gpu a100

echo "== plans"
printf 'name,rows,dim,hotness\na,10,8,1\nb,20,8,1\n' >list.csv
"$NEUROSHARD" plan list.csv --gpus 2 --search reference -o good.json >/dev/null 2>&1 ||
    echo "# no good plan"
sed -i '/^  "build": /d' good.json # its length differs from build to build
for option in effort time-limit; do
    bad "$option-of-another-search" plan list.csv --gpus 2 --search reference \
        --$option 9
done
bad beam-of-another-search plan list.csv --gpus 2 --beam 9
bad depth-of-another-search plan list.csv --gpus 2 --search grid --depth 9
bad plan-not-json cost "$tables"
head -c 200 good.json >cut.json
bad plan-cut cost cut.json -o out
sed 's/"neuroshard_plan": 1/"neuroshard_plan": 99/' good.json >other.json
bad plan-other-version cost other.json -o out
sed 's/"gpus": 2/"gpus": 3/' good.json >other.json
bad plan-other-cluster cost other.json -o out
sed 's/"gpus": 2/"intra_gbps": 0, "gpus": 2/' good.json >other.json
bad plan-no-bandwidth cost other.json -o out
sed 's/"device": 1/"device": 7/' good.json >other.json
bad plan-device-outside cost other.json -o out
sed 's/"num_embeddings": 20/"num_embeddings": 21/' good.json >other.json
bad plan-other-tables emit other.json --format torchrec -o out
sed 's/"col_end": 8/"col_end": 4/' good.json >other.json
bad plan-not-tiled emit other.json --format torchrec -o out
sed 's/"batch": 65536/"batch": NaN/' good.json >other.json
bad plan-nan cost other.json -o out
sed 's/"batch": 65536/"batch": 1e999/' good.json >other.json
bad plan-huge-number cost other.json -o out
sed 's/"gpus": 2/"gpus": 2000000/' good.json >other.json
bad plan-too-many-gpus cost other.json -o out
sed 's/"alone_ms": [0-9.e-]*/"alone_ms": -1/' good.json >other.json
bad plan-negative-cost emit other.json --format text -o out
sed 's/"inputs_hash": "[^"]*"/"inputs_hash": "; id"/' good.json >other.json
bad plan-no-hash emit other.json --format dlrm -o out
for name in magic:x roofline:abacus model:/dev/zero model:none.nsm; do
    sed "s|\"name\": \"model:h100.nsm\"|\"name\": \"$name\"|" good.json >other.json
    bad "plan-of-${name%%:*}" cost other.json -o out
    bad "plan-of-${name%%:*}" explain other.json
done
bad database-is-no-pipe bench --db - --samples 1
bad endless-input plan /dev/zero --gpus 2 -o out
truncate -s 1G huge.csv
bad huge-input plan huge.csv --gpus 2 -o out
rm huge.csv
NEUROSHARD_ISA=bogus
export NEUROSHARD_ISA
bad unknown-instructions plan list.csv --gpus 2 -o out
unset NEUROSHARD_ISA
bad cost-unknown-model cost good.json --cost model:list.csv -o out
bad unwritable-folder plan list.csv --gpus 2 -o none/plan.json
bad output-is-folder plan list.csv --gpus 2 -o .

echo "== plans of TorchRec"
printf 'name,rows,dim,hotness\na,10,8,1\nb,20,8,1\n' >list.csv
"$NEUROSHARD" emit good.json --format torchrec -o good_torchrec.json

# torchrec NAME SED OPTIONS: prices a good plan edited by a sed script.
torchrec()
{
    label=$1
    sed "$2" good_torchrec.json >other.json
    shift 2
    bad "$label" cost other.json "$@" -o out
}

set -- --tables list.csv --batch 64
torchrec torchrec-no-list '' --batch 64
torchrec torchrec-no-batch '' --tables list.csv
torchrec torchrec-other-gpus '' "$@" --gpus 4
torchrec torchrec-no-world 's/"world_size": 2, //' "$@"
torchrec torchrec-mistyped 's/"world_size"/"wrold_size": 2, &/' "$@"
torchrec torchrec-rank 's/"ranks": \[[01]\]/"ranks": [2]/' "$@"
torchrec torchrec-kernel 's/"fused"/"key_value"/' "$@"
torchrec torchrec-rows 's/"shard_sizes": \[20/"shard_sizes": [21/' "$@"
torchrec torchrec-not-tiled 's/"shard_sizes": \[20/"shard_sizes": [19/' "$@"
torchrec torchrec-other-table 's/"b": {/"c": {/' "$@"
torchrec torchrec-no-shards 's/, "shards": .*\]}/}/' "$@"
# shellcheck disable=SC2016 # the last line, of sed
torchrec torchrec-cut '$d' "$@"
torchrec torchrec-memory '' "$@" --memory 2KiB --reserve 0
printf 'name,rows,dim,hotness\na,10,8,1\n' >short.csv
torchrec torchrec-short-list '' --tables short.csv --batch 64
bad torchrec-options-of-ours cost good.json --tables list.csv
bad torchrec-from plan short.csv --gpus 2 --from good_torchrec.json -o out
bad compare-two-lists compare list.csv list.csv --gpus 2 --plan good.json
bad compare-other-gpus compare list.csv --gpus 4 --plan good.json
bad emit-module emit good.json --format torchrec-constraints --module m -o out

# printed NAME ROW: prices the printed statistics of TorchRec's planner, with
# one table row.
printed()
{
    printf '%s\n' '# --- Planner Statistics --- #' \
        '#   Rank   HBM (GB)   Shards   #' '#   0   9.9   TW: 1   #' \
        '#   1   9.9   #' '#   #' \
        '#   FQN   Sharding   Compute Kernel   Num Indices   Sum Num Poolings   Output   Emb Dim (CW Dim)   Hash Size   Ranks   #' \
        "#   $2   #" '#   #' '# Batch Size: 64 #' >stats.txt
    bad "printed-$1" cost stats.txt -o out
}

printed nothing ''
printed short 'a   TW   fused'
printed type 'a   XW   fused   1.0   1.0   pooled   8   10   0'
printed rows 'a   TW   fused   1.0   1.0   pooled   8   ten   0'
printed rank 'a   TW   fused   1.0   1.0   pooled   8   10   2'
printed ranks 'a   TW   fused   1.0   1.0   pooled   8   10   None'
printed look-ups 'a   TW   fused   nan   1.0   pooled   8   10   0'
printed pieces 'a   CW   fused   1.0   1.0   pooled   8 (4)   10   0,1,1'
printed kernel 'a   TW   fused_uvm   1.0   1.0   pooled   8   10   0'

echo "== full disk"
"$NEUROSHARD" plan list.csv --gpus 2 --effort 100 --json \
    2>stderr >/dev/full
echo "report-on-full-disk      $?: $(message stderr)"
"$NEUROSHARD" emit good.json --format torchrec 2>stderr >/dev/full
echo "emit-on-full-disk        $?: $(message stderr)"
bad write-to-full-disk plan list.csv --gpus 2 --effort 100 -o /dev/full

echo "== models and databases"
shipped=$ROOT/data/models/cpu-amd-epyc-2t.nsm
head -c 64 /dev/zero >zero.nsm
bad model-zero model info zero.nsm
bad model-is-text model info list.csv
head -c 1000 "$shipped" >cut.nsm
bad model-cut plan list.csv --gpus 2 --cost model:./cut.nsm -o out
{
    head -c 8 "$shipped"
    printf '\006\000\000\000'
    tail -c +13 "$shipped"
} >other.nsm
bad model-other-version plan list.csv --gpus 2 --cost model:./other.nsm -o out
{
    head -c 20000 "$shipped"
    printf 'spoiled'
    tail -c +20008 "$shipped"
} >spoiled.nsm
bad model-spoiled plan list.csv --gpus 2 --cost model:./spoiled.nsm -o out
bad database-is-text eval --db list.csv --model "$shipped"
bad no-such-database train --db none.db -o out
bad train-on-text train --db list.csv -o out
bad train-epochs-zero train --db none.db -o out --epochs 0
cp "$shipped" good.nsm
bad retrain-no-database retrain --db none.db --model good.nsm
cmp -s "$shipped" good.nsm || echo "# touched the model"
bad bench-on-text bench --db list.csv --samples 1
bad bench-unwritable bench --db none/costs.db --samples 1
bad bench-batch-zero bench --db new.db --batch 0
bad bench-unknown-device bench --db new.db --device potato
bad import-nothing model import none -o out

echo "== runs"
printf 'name,rows,dim,pooling_factor\na,10,6,1\n' >odd.csv
"$NEUROSHARD" plan odd.csv --gpus 1 --effort 0 -o odd.json >/dev/null 2>&1
bad run-odd-width run odd.json
bad run-scale-zero run good.json --scale-rows 0
bad run-scale-above-one run good.json --scale-rows 2
bad run-few-iterations run good.json --iterations 0
printf 'name,rows,dim,hotness,optimizer\na,10,4,1,sgd\nb,10,8,1,adam\n' >two.csv
"$NEUROSHARD" plan two.csv --gpus 1 --effort 0 -o two.json >/dev/null 2>&1
bad emit-dlrm-two-rules emit two.json --format dlrm -o out
bad run-no-plan run none.json
