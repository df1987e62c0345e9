#!/bin/sh
# SPDX-License-Identifier: MIT
# `run --steps` trains the whole model: its report, its JSON, the input that it
# refuses, and that processes, pipeline and MPI change no bit.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
many=$(launcher)
keep_mpi_quiet

cat >tables.csv <<'END'
name,num_embeddings,dim,pooling_factor,optimizer
users,5000,16,3,sgd
items,2000,16,5,sgd
shops,900,16,1,sgd
END
dense='bottom:13-32-16;interaction:dot;top:32-1'
"$ns" plan tables.csv --gpus 2 --gpu cpu --batch 300 --effort 2000 \
    --dense "$dense" --dense-optimizer sgd -o plan.json >/dev/null 2>&1

# untimed: hides the times and what depends on the machine
untimed()
{
    sed -E -e 's/ +[0-9]+\.[0-9]{3}\b/ T/g' -e 's/[-+][0-9.]+ %/P/' \
        -e 's/trained on .*;/trained on CPU;/' -e 's/[0-9a-f]{16}/HASH/g' \
        -e 's/error: .*e-[0-9]+ of 10 losses, [0-9.e-]+/error: E of 10 losses, E/'
}

"$ns" run plan.json --steps 10 --threads 1 --pipeline none 2>/dev/null |
    tr '\n' '~' | sed 's/~    */ /g' | tr '~' '\n' | untimed

bits()
{
    grep -oE '"(dense|weight)_hash": "[0-9a-f]+"|"passed": [a-z]+' "$1"
}

# same NAME OPTIONS...: compares the bits with those of one process
same()
{
    name=$1
    shift
    "$@" --steps 10 --threads 1 --json >json 2>err || {
        cat err
        exit 1
    }
    bits json >own
    [ -f first ] || cp own first
    cmp first own && echo "$name: the same bits, $(grep -c true own) passed"
}
same "one process" "$ns" run plan.json --pipeline none
same "pipeline sdd" "$ns" run plan.json --pipeline sdd
same "two processes" "$ns" run plan.json --pipeline none --ranks 2
same "two processes, sdd" "$ns" run plan.json --pipeline sdd --ranks 2
if [ "$many" ] && $many -n 2 "$ns" run plan.json --steps 1 >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # the launcher has options
    same "MPI" $many -n 2 "$ns" run plan.json --pipeline none >said
    # shellcheck disable=SC2086
    same "MPI, sdd" $many -n 2 "$ns" run plan.json --pipeline sdd >>said
    [ "$(grep -c 'same bits' said)" = 2 ] || cat said
fi

for rule in adagrad adam; do
    "$ns" run plan.json --steps 3 --threads 1 --dense-optimizer $rule --json \
        2>/dev/null | grep -E '"(dense_optimizer|passed|weights)"'
done

# refused KIND OPTIONS...
refused()
{
    "$ns" run plan.json --threads 1 "$@" 2>&1 >/dev/null | grep -v warning:
}
refused --steps 5 --iterations 20 || true
refused --steps 5 --db costs.db
refused --dense-optimizer sgd
refused --steps 5 --pipeline semisync
refused --steps 5 --chunks 2
refused --steps 5 --dense "$dense;dtype:tf32"
refused --steps 5 --dense "$dense;grads:fp16"
refused --steps 5 --memory 1MiB |
    sed 's/takes .* can be/takes N of memory, but only M can be/'
"$ns" plan tables.csv --gpus 2 --gpu cpu --batch 300 --effort 2000 \
    -o bare.json >/dev/null 2>&1
"$ns" run bare.json --steps 5 2>&1 >/dev/null | grep -v warning:
