#!/bin/sh
# SPDX-License-Identifier: MIT
# A search from an old plan stops where a fresh one would: at the lower bound.
# Moves that are not allowed are not searched.

# evaluations OPTIONS...: prints the number of placements searched
evaluations()
{
    "$NEUROSHARD" plan --details "$tables" "$@" --no-rivals --json -o new.json 2>err >out
    sed -n 's/^searched \([0-9]*\) placements.*/\1/p' err
}

# relative FRESH THIS: prints count THIS relative to that of a fresh plan
relative()
{
    if [ "$2" -lt 100 ]; then
        echo "at once"
    elif [ "$2" -le $(($1 * 5 / 2)) ]; then
        echo "at most 2.5 times a fresh plan"
    else
        echo "$2 beside $1"
    fi
}

# from WHAT FRESH FROM OPTIONS...: compares FRESH, the evaluations of a fresh plan,
# with those of a plan made from FROM
from()
{
    what=$1
    fresh=$2
    from=$3
    shift 3
    for limit in "" 0 1GiB; do
        echo "$what, ${limit:-no} limit:" \
            "$(relative "$fresh" "$(evaluations "$@" --from "$from" \
                ${limit:+--move-limit $limit})"),"\
            "$(sed -n 's/^searched.*stopped by: //p' err)"
    done
}

tables=$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv
evaluations --gpus 4 --cost torchrec >plain
cp new.json old.json
from "near the bound" "$(cat plain)" old.json --gpus 4 --cost torchrec
from "the same, another batch" \
    "$(evaluations --gpus 4 --cost torchrec --batch 30000)" \
    old.json --gpus 4 --cost torchrec --batch 30000
echo "neither"
evaluations --gpus 8 --effort 20000 --host-ms 0 >plain
cp new.json old.json
for limit in 0 1GiB; do
    echo "limit $limit: $(relative 40 "$(evaluations --gpus 8 --effort 20000 \
        --host-ms 0 --from old.json --move-limit $limit)")"
done | sed 's/[0-9]* beside/searched, beside/'
