#!/bin/sh
# SPDX-License-Identifier: MIT
# bench: what it stores, that it goes on instead of starting again, what it
# refuses. Times and the machine's name are taken out of the summaries.

bench()
{
    "$NEUROSHARD" bench --batch 16 --max-tables 3 --memory 16MiB --threads 1 \
        "$@" >stdout 2>stderr </dev/null
    status=$?
    sed -e 's/^device .*/device/' -e 's/^time .*/time/' \
        -e 's/[-+0-9.]* %/P %/g' stdout
    sed 's/^neuroshard: /error: /' stderr
    [ "$status" -eq 0 ] || echo "status $status"
}

echo "== the first ten cases; the last is measured table by table, too"
bench --db costs.db --samples 10 --verbose
echo "== again: nothing is left to do"
bench --db costs.db --samples 10
echo "== two more"
bench --db costs.db --samples 12 --verbose
echo "== another list in the same file"
bench --db costs.db --samples 1 --seed 1 --verbose
echo "== the same cases again"
bench --db costs.db --samples 12 --repeat
echo "== weights and optimizer are another setting"
bench --db costs.db --samples 1 --precision fp16 --optimizer sgd
echo "== exchanges"
bench --db costs.db --samples 3 --alltoall 4
echo "== as JSON"
bench --db costs.db --samples 12 --json | sed -e 's/"name": .*/"name",/' \
    -e 's/"isa": .*/"isa",/' -e 's/\([a-z]\{4\}_frac\|seconds\)": .*/\1"/'
echo "== refused"
bench
bench --db costs.db --max-tables 65
bench --db costs.db --memory 1MiB
bench --db costs.db --precision int8
bench --db costs.db --repeat --alltoall 4
bench --db no/such/folder.db
echo "no database" >text.db
bench --db text.db
[ "$(cat text.db)" = "no database" ] || echo "touched text.db"
