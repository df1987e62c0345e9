#!/bin/sh
# SPDX-License-Identifier: MIT
# The command bench stores samples, continues instead of starting again, and
# refuses bad options. Times and the machine's name are removed from the
# summaries.

. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

bench()
{
    "$NEUROSHARD" bench --batch 16 --max-tables 3 --memory 16MiB --threads 1 \
        "$@" >stdout 2>stderr </dev/null
    status=$?
    sed -e 's/^device .*/device/' -e 's/^time .*/time/' -e '/^flagged/{N;d;}' \
        -e 's/[-+0-9.]* %/P %/g' -e 's/of [0-9]* cases$/of N cases/' stdout
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
bench --db costs.db --samples 12 --repeat | sed '/^repeat error/d'
echo "== how well they repeat"
# A busy machine may flag all samples; here all flags are cleared.
sqlite3 costs.db 'UPDATE sample SET flags = 0'
bench --db costs.db --samples 12 --repeat
echo "== weights and optimizer are another setting"
bench --db costs.db --samples 1 --precision fp16 --optimizer sgd
echo "== each case with a setting of its own"
bench --db mixed.db --mixed --samples 4 --batch 64 --verbose
echo "== exchanges"
bench --db costs.db --samples 3 --alltoall 4
echo "== exchanges of given sizes"
bench --db sizes.db --samples 8 --alltoall 4 --min-bytes 1KiB --max-bytes 2KiB |
    sed '/^held-out/,$d'
sqlite3 sizes.db 'SELECT count(*), min(total_bytes) >= 768,
    max(total_bytes) <= 2048 FROM comm_sample'
echo "== as JSON"
bench --db costs.db --samples 12 --json | sed -e 's/"name": .*/"name",/' \
    -e 's/"isa": .*/"isa",/' -e '/"flagged"/d' \
    -e '/"repeat"/,$s/"cases": .*/"cases"/' \
    -e 's/\([a-z]\{4\}_frac\|seconds\)": .*/\1"/'
echo "== as text: all that is there, without measuring"
bench --db costs.db --samples 0 --csv costs.csv
head -n 1 costs.csv
cut -d, -f2,4-12 costs.csv | sed 1d
bench --db costs.db --samples 10 --csv again.csv >/dev/null
cmp costs.csv again.csv
echo "== until the time is over"
bench --db timed.db --time-limit 0.3 | sed '/^cases/s/[0-9][0-9]*/N/' |
    sed '/^samples/s/[0-9][0-9]*/N/'
[ "$(sqlite3 timed.db 'SELECT count(*) > 0 FROM sample')" = 1 ] ||
    echo "nothing was measured"
echo "== ceilings: kinds and units; those that are there stay"
bench --db ceilings.db --ceilings >table
sed -n 1p table
cut -d' ' -f1 table | sed 1d | sort | uniq -c | sed 's/^ *//'
bench --db ceilings.db --ceilings >again
cmp table again
echo "== refused"
bench
bench --db costs.db --max-tables 65
bench --db costs.db --memory 1MiB
bench --db costs.db --precision int8
bench --db costs.db --repeat --alltoall 4
bench --db costs.db --min-bytes 1MiB
bench --db costs.db --alltoall 4 --min-bytes 9MiB
bench --db costs.db --alltoall 4 --min-bytes 2KiB --max-bytes 1KiB
bench --db costs.db --mixed --optimizer sgd
bench --db costs.db --samples 0
bench --db costs.db --samples 0 --csv no/such/folder.csv
bench --db absent.db --samples 0 --csv costs.csv
bench --db no/such/folder.db
echo "no database" >text.db
bench --db text.db
[ "$(cat text.db)" = "no database" ] || echo "touched text.db"
