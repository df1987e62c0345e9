#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of tables affect neither costs nor the random ids of run, because a
# plan stores the seed of each table's rows. Older plans have no seed; they use
# the hash of the name.
set -eu

ns=$NEUROSHARD

# says TEXT COMMAND...: prints the text if the command succeeds
says()
{
    text=$1
    shift
    if "$@"; then echo "$text"; else echo "not: $text"; fi
}

# step PLAN: prints its price
step()
{
    "$ns" cost "$1" --json | sed -n 's/.*"total_ms": \([0-9.]*\),.*/\1/p' |
        head -n 1
}

# seeds PLAN: prints the seeds of its tables, in order
seeds()
{
    sed -n 's/.*"row_seed": "\([0-9a-f]*\)".*/\1/p' "$1"
}

# older PLAN: prints it without seeds and prices, as prices depend on seeds
older()
{
    sed -e 's/, "row_seed": "[0-9a-f]*"//' -e '/"devices": \[/,/^  \]/d' \
        -e 's/"total_ms": .*,/"total_ms": null,/' "$1"
}

# drawn PLAN: prints the hashes of the outputs of run
drawn()
{
    "$ns" run "$1" --ranks 2 --scale-rows 0.01 -n 12 2>/dev/null |
        grep '^hashes:'
}

cat >list.csv <<END
name,num_embeddings,dim,pooling_factor,sharding
a,100000,16,20,row
b,100000,16,20,row
c,50000,32,5,row
END
sed 's/^b,/zeta,/; s/^a,/alpha,/; s/^c,/gamma,/' list.csv >renamed.csv
"$ns" plan list.csv --gpus 2 --batch 512 --gpu h100 --host-ms 0 --effort 20000 \
    --no-rivals -o plan.json >/dev/null 2>&1
"$ns" plan renamed.csv --gpus 2 --batch 512 --gpu h100 --host-ms 0 \
    --effort 20000 --no-rivals -o other.json >/dev/null 2>&1
echo "== seeds: by contents, two of one kind apart"
seeds plan.json
says "of other names too" test "$(seeds plan.json)" = "$(seeds other.json)"
says "and the price" test "$(step plan.json)" = "$(step other.json)"

echo "== a plan whose tables get other names"
sed 's/"name": "\([abc]\)"/"name": "\1_new"/' plan.json >named.json
says "costs the same" test "$(step plan.json)" = "$(step named.json)"
says "draws the same" test "$(drawn plan.json)" = "$(drawn named.json)"

echo "== a plan from before there were seeds"
older plan.json >old.json
older named.json >old_named.json
says "costs as its names say" test "$(step old.json)" != "$(step old_named.json)"
says "draws as they say" test "$(drawn old.json)" != "$(drawn old_named.json)"

echo "== from it: tables that keep their rows keep their seeds"
sed 's/50000/60000/' list.csv >grown.csv
"$ns" plan list.csv --gpus 2 --batch 512 --gpu h100 --host-ms 0 --effort 2000 \
    --no-rivals --from old.json --move-limit 0 -o kept.json >/dev/null 2>&1
says "priced as it was" test "$(step old.json)" = "$(step kept.json)"
seeds kept.json
"$ns" plan grown.csv --gpus 2 --batch 512 --gpu h100 --host-ms 0 --effort 2000 \
    --no-rivals --from old.json -o grown.json >/dev/null 2>&1
"$ns" plan grown.csv --gpus 2 --batch 512 --gpu h100 --host-ms 0 --effort 2000 \
    --no-rivals -o fresh.json >/dev/null 2>&1
says "two of three kept" test "$(seeds grown.json | head -n 2)" = \
    "$(seeds kept.json | head -n 2)"
says "a grown one drawn" test "$(seeds grown.json | tail -n 1)" = \
    "$(seeds fresh.json | tail -n 1)"
