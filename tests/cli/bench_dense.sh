#!/bin/sh
# SPDX-License-Identifier: MIT
# The command bench --dense measures the matrix products of a dense part or of a
# grid, stores them, continues a run, and refuses bad options. Times and the
# machine's name are removed.

. "$ROOT/tests/cli/common"

bench()
{
    "$NEUROSHARD" bench --threads 1 "$@" >stdout 2>stderr </dev/null
    status=$?
    sed -e 's/^device .*/device/' -e 's/^time .*/time/' \
        -e '/^fp32/s/ *[0-9.e+-]* *[0-9.e+-]* *[0-9.e+-]*$//' \
        -e 's/: [0-9.e+-]* ms$/: N ms/' stdout
    sed 's/^neuroshard: /error: /' stderr
    [ "$status" -eq 0 ] || echo "status $status"
}

cat >tables.csv <<'END'
name,num_embeddings,dim,pooling_factor
a,100,16,1
b,200,16,2
END
echo "== the products of a small model"
bench --db costs.db --dense 'bottom:13-16;interaction:dot;top:8-1' \
    --tables tables.csv --batch 64
echo "== again: nothing is left to do"
bench --db costs.db --dense 'bottom:13-16;interaction:dot;top:8-1' \
    --tables tables.csv --batch 64 | sed -n '/^products/p'
echo "== layers alone, one of which is known"
bench --db costs.db --dense 'bottom:13-16;interaction:cat;top:8' --batch 64 \
    --verbose
echo "== the begin of the grid"
bench --db costs.db --dense grid --samples 3
bench --db costs.db --dense grid --samples 3 --repeat --json >out
sed -e 's/"name": .*/"name",/' -e 's/"isa": .*/"isa",/' \
    -e 's/\(_ms\|gflops\|seconds\)": .*/\1"/' out
"$NEUROSHARD" db info costs.db | sed -n '/^products/p'
echo "== as a copy by text"
"$NEUROSHARD" db export costs.db -o costs.csv >/dev/null
"$NEUROSHARD" db import costs.csv --db copy.db >/dev/null
"$NEUROSHARD" db merge costs.db copy.db -o both.db >/dev/null
"$NEUROSHARD" db info both.db | sed -n '/^products/p'
echo "== until the time is over"
bench --db timed.db --dense grid --time-limit 0.001 | sed -n '/^products/p' |
    sed 's/ [0-9]* of [0-9]*/ N of M/; s/[0-9]* measured/N measured/'
echo "== refused"
bench --db costs.db --dense dlrm
bench --db costs.db --dense 'bottom:13-16;interaction:dot;top:1;dtype:tf32' \
    --tables tables.csv
bench --db costs.db --dense 'bottom:4;interaction:cat;top:1;dtype:bf16'
bench --db costs.db --dense 'interaction:cat;top:1'
bench --db costs.db --dense nothing
bench --db costs.db --dense grid --tables tables.csv
bench --db costs.db --tables tables.csv
bench --db costs.db --dense grid --ceilings
bench --db costs.db --dense grid --alltoall 2
bench --db costs.db --dense grid --precision fp16
