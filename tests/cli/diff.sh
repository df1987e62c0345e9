#!/bin/sh
# SPDX-License-Identifier: MIT
# diff, explain and plan --from, on plans that can be checked by hand: three
# tables of 4 MiB with row-wise Adagrad state, 4 B per row.
set -eu

ns=$NEUROSHARD

# plan GPUS SHARDS: prints a plan of tables a, b and c
plan()
{
    memory=$(yes 225443840 | head -n "$1" | paste -sd, -)
    printf '{"neuroshard_plan": 1, "batch": 65536,
 "step": {"pipeline": "sdd", "chunks": 1, "dense_ms": [0, 0], "host_ms": 0},
 "cluster": {"gpus": %s, "memory_bytes": [%s]}, "tables": [' "$1" "$memory"
    for name in a b c; do
        [ $name = a ] || printf ','
        printf '{"name": "%s", "num_embeddings": 65536, "dim": 16,
            "pooling_factor": 20, "zipf_alpha": 1}' $name
    done
    printf '], "shards": [%s]}\n' "$2"
}

# shard TABLE COL_BEGIN COL_END GPU: prints a shard of all rows
shard()
{
    printf '{"table": %s, "row_begin": 0, "row_end": 65536,
        "col_begin": %s, "col_end": %s, "device": %s}' "$@"
}

whole="$(shard 0 0 16 0), $(shard 1 0 16 0), $(shard 2 0 16 1)"
cut="$(shard 0 0 16 0), $(shard 1 0 8 0), $(shard 1 8 16 2), $(shard 2 0 16 2)"
plan 2 "$whole" >old.json
plan 3 "$cut" >new.json
cat >tables.csv <<'END'
name,num_embeddings,dim,pooling_factor,zipf_alpha
a,65536,16,60,1
b,65536,16,20,1
c,65536,16,20,1
d,65536,16,20,1
END

echo "== diff"
"$ns" diff old.json new.json
"$ns" diff old.json old.json --cost roofline:h100
"$ns" diff old.json new.json --cost model:h100 | grep ^work
"$ns" diff old.json new.json --cost torchrec --json
# A host that binds hides the GPU work; a plan that pays names what it changes.
plan 2 "$(shard 0 0 16 0), $(shard 1 0 16 0), $(shard 2 0 16 0)" >one.json
gain()
{
    "$ns" diff "$@" --cost roofline:h100 |
        sed -n '/^step/,/^work/p; /^keep/,/^$/p; /^the new/,/^$/p'
}
for plan in one old new; do
    sed 's/_factor": 20/_factor": 15/' $plan.json >fit_$plan.json
    sed 's/, "host_ms": 0//; s/_factor": 20/_factor": 5/' $plan.json >at_$plan.json
done
gain at_one.json at_old.json
gain fit_one.json fit_new.json
gain fit_new.json fit_one.json

echo "== explain"
"$ns" explain old.json --cost roofline:h100
"$ns" explain old.json b --cost roofline:h100
"$ns" explain old.json c --cost roofline:h100
"$ns" explain new.json b --cost torchrec --json

echo "== of 600 GPUs, 256 are tried, the idle ones first"
rows="$(seq 0 299 | awk '{printf "%s{\"table\": 2, \"row_begin\": %d, " \
    "\"row_end\": %d, \"col_begin\": 0, \"col_end\": 16, \"device\": %d}",
    ($1 ? "," : ""), $1 * 200, ($1 < 299 ? $1 * 200 + 200 : 65536), $1}')"
plan 600 "$(shard 0 0 16 0), $(shard 1 0 16 0), $rows" |
    sed 's/"gpus": 600/&, "gpus_per_host": 2/' >many.json
"$ns" explain many.json b --cost roofline:h100 | sed -n '/^all/,$p'
"$ns" explain many.json c --cost roofline:h100 | sed -n '/^all/,$p'

echo "== what explain says of a way, cost says of that plan"
# same WAY SHARDS_OF_B: explain and cost predict the same step time
same()
{
    plan 2 "$(shard 0 0 16 0), $2, $(shard 2 0 16 1)" >edited.json
    "$ns" explain old.json b --json --cost roofline:h100 | grep -A 1 "\"$1\"" |
        sed -n 's/.*"total_ms": \([0-9.]*\).*/\1/p' >said
    "$ns" cost --details edited.json --json --cost roofline:h100 |
        sed -n 's/^ *"total_ms": \([0-9.]*\).*/\1/p' | tail -n 1 >priced
    [ -s said ] && cmp said priced && echo "$1: the same"
}
same "whole on GPU 1" "$(shard 1 0 16 1)"
same "2 column pieces on GPUs 0 1" "$(shard 1 0 8 0), $(shard 1 8 16 1)"
same "replicated" "$(shard 1 0 16 0), $(shard 1 0 16 1)"
same "rows over all 2 GPUs" "$(shard 1 0 16 0 | sed 's/65536/32768/'),
    $(shard 1 0 16 1 | sed 's/"row_begin": 0/"row_begin": 32768/')"

echo "== plan --from"
# Uses formulas, so that new measurements do not change the plans found.
searched()
{
    "$ns" plan --details "$@" --cost roofline:h100 --host-ms 0
}

for limit in 0 5MiB; do
    searched tables.csv --gpus 2 --memory 800MiB --shard table \
        --effort 20000 --from old.json --move-limit $limit -o next.json \
        2>/dev/null | tail -n 2
    "$ns" diff old.json next.json | grep -E '^(moves|tables)'
done

echo "== the same plan again, more GPUs, fewer GPUs"
searched tables.csv --gpus 2 --shard table --effort 20000 -o first.json \
    >/dev/null 2>&1
searched tables.csv --gpus 2 --shard table --effort 20000 --from first.json \
    --move-limit 0 -o second.json >/dev/null 2>&1
"$ns" diff first.json second.json | grep -E '^(work|moves|tables)'
searched tables.csv --gpus 4 --shard table --effort 20000 --from first.json \
    --move-limit 5MiB -o more.json 2>/dev/null | tail -n 2
searched tables.csv --gpus 1 --shard table --effort 20000 --from first.json \
    --move-limit 1MiB 2>&1 || echo "status $?"

echo "== a list that grew, uneven columns, and a GPU over its reserve"
uneven="$(shard 0 0 12 0), $(shard 0 12 16 1), $(shard 1 0 16 0),
    $(shard 2 0 16 0)"
plan 2 "$uneven" >uneven.json
sed '/^d/d; s/65536/66846/' tables.csv >grown.csv
searched grown.csv --gpus 2 --memory 800MiB --effort 20000 \
    --from uneven.json 2>/dev/null | sed -n '/^from/,$p'
for limit in 0 1TiB; do
    searched grown.csv --gpus 2 --memory 800MiB --reserve 35.5% --effort 20000 \
        --from uneven.json --move-limit $limit -o next.json 2>/dev/null |
        sed -n '/^from/,$p'
    tr -d ' \n' <next.json | grep -o '"reserve_bytes":[^]]*]'
done
searched grown.csv --gpus 2 --memory 800MiB --reserve 35.5% --effort 20000 \
    --from uneven.json 2>/dev/null | sed -n '/^from/,$p'

echo "== pieces no narrower than the plan's"
sed 's/"batch"/"min_width": 16, "batch"/' old.json >wide.json
for plan in old wide; do
    "$ns" explain $plan.json b --cost roofline:h100 | grep -c 'column pieces' ||
        true
done
# narrowest OPTIONS: prints the plan's width limit and its narrowest piece
narrowest()
{
    searched tables.csv --gpus 5 --shard table,column --effort 20000 "$@" \
        -o next.json >/dev/null 2>&1
    tr -d ' \n' <next.json | grep -o '"min_width":[0-9]*' || echo "any width"
    sed -n 's/.*"col_begin": \([0-9]*\), "col_end": \([0-9]*\).*/\2 \1/p' \
        next.json | awk '{print $1 - $2}' | sort -n | head -n 1
}
narrowest --from new.json
sed 's/"batch"/"min_width": 16, "batch"/' new.json >wide.json
narrowest --from wide.json
narrowest --from wide.json --min-width 4

echo "== refused"
"$ns" plan --details tables.csv --gpus 2 --move-limit 1MiB 2>&1 || echo "status $?"
"$ns" plan --details tables.csv --gpus 2 --from old.json --search grid 2>&1 ||
    echo "status $?"
"$ns" plan --details tables.csv --gpus 4 --memory 5MiB --reserve 0 --batch 64 \
    --shard table --effort 20000 --from old.json --move-limit 1MiB 2>&1 ||
    echo "status $?"
"$ns" explain old.json z 2>&1 || echo "status $?"
