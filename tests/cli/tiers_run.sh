#!/bin/sh
# SPDX-License-Identifier: MIT
# `run` of a plan with tables in caches and in host memory: its report, its
# JSON, and that tiers and processes change no bit.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD

# table NAME ROWS DIM POOLING: prints a table
table()
{
    printf '%s{"name": "%s", "num_embeddings": %s, "dim": %s,' \
        "$comma" "$1" "$2" "$3"
    printf ' "pooling_factor": %s, "zipf_alpha": 1.05}\n' "$4"
    comma=,
}

# piece TABLE ROWS COLUMNS GPU KIND TIER, ranges as "begin:end": prints a shard,
# whose tier is left out for the plan "hbm"
piece()
{
    printf '%s{"table": %s, "row_begin": %s, "row_end": %s, "col_begin": %s,' \
        "$comma" "$1" "${2%:*}" "${2#*:}" "${3%:*}"
    printf ' "col_end": %s, "device": %s, "kind": "%s"' "${3#*:}" "$4" "$5"
    if [ "$plan" = tiers ]; then
        printf ', "tier": "%s"' "$6"
        [ "$6" != cached ] || printf ', "load_factor": 0.1'
    fi
    echo '}'
    comma=,
}

make_plan()
{
    plan=$1
    gib=1073741824
    echo '{"neuroshard_plan": 1, "version": "hand", "seed": 0, "batch": 200,'
    echo '"cluster": {"gpus": 2, "gpus_per_host": 2,'
    echo "\"memory_bytes\": [$gib, $gib], \"host_bytes\": $gib}, \"tables\": ["
    comma=
    table users 6000 32 4
    table items 5000 16 8
    table shops 900 16 1
    table cold 40000 8 2
    echo '], "shards": ['
    comma=
    piece 0 0:6000 0:16 0 column cached
    piece 0 0:6000 16:32 1 column cached
    piece 1 0:2500 0:16 0 row cached
    piece 1 2500:5000 0:16 1 row cached
    piece 2 0:900 0:16 1 table hbm
    piece 3 0:40000 0:8 0 table host
    echo ']}'
}

# run_plan PLAN [OPTIONS]: prints the JSON
run_plan()
{
    "$ns" run "$@" --iterations 12 --threads 1 --json 2>/dev/null
}

# caches FILE: prints the figures of caches that do not depend on the number of
# series that were timed
caches()
{
    python3 -c '
import json, sys
for c in json.load(sys.stdin)["caches"]:
    assert c["batches"] >= 12 and c["full_frac"] == 1
    assert abs(c["bytes"] / c["fills"] - 128) < 1e-9
    assert abs(c["hit_frac"] - 1 + c["fills"] / c["rows_per_batch"]) < 1e-9
    print(c["device"], c["pool"], c["slots"], c["slot_width"],
          c["predicted_fills"], c["warm_up_batches"],
          "hits" if 0.25 < c["hit_frac"] < 0.5 else c["hit_frac"])
' <"$1"
}

hashes()
{
    grep -oE '"(output|weight)_hash": "[0-9a-f]+"|"passed": [a-z]+' "$1"
}

make_plan tiers >tiers.json
make_plan hbm >hbm.json
"$ns" run tiers.json --iterations 12 --threads 1 2>/dev/null |
    sed -n '/^caches/,/^$/p' |
    sed -E -e 's/in [0-9]+ batches/in N batches/' -e 's/^[0-9.]+ %/P/' \
        -e 's/adagrad +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$/adagrad .../'
run_plan tiers.json >tiers
caches tiers
hashes tiers >want
grep passed want
run_plan hbm.json >hbm
hashes hbm | cmp - want && echo "without tiers: the same bits"
grep -c '"caches"' hbm || :
run_plan tiers.json --ranks 2 >two
hashes two | cmp - want && echo "two processes: the same bits"
caches two
"$ns" run tiers.json --chunks 2 2>&1 || :
