#!/bin/sh
# SPDX-License-Identifier: MIT
# Two processes that measure one list into one database share its cases. A case
# that one has stored is not measured by the other. If a process is killed, the
# next one measures its unfinished case. No other file is left next to the
# database.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

# Options of every run.
set -- bench --batch 16 --max-tables 3 --memory 16MiB --threads 1 --verbose

fail()
{
    echo "not ok: $*"
    tail -n 3 one two
    exit 1
}

one=
two=
trap 'kill -9 $one $two 2>/dev/null || :' EXIT
mkdir folder
ln -s ../costs.db folder/link.db

n_stored()
{
    grep -c '^stored' "$1" || :
}

# Start both by different names of the file and stop them once each has stored
# 6 samples.
for rounds in 1 2 3; do
    : >one
    : >two
    "$NEUROSHARD" "$@" --db costs.db --samples 1000000 >one 2>&1 &
    one=$!
    "$NEUROSHARD" "$@" --db folder/link.db --samples 1000000 >two 2>&1 &
    two=$!
    while [ "$(n_stored one)" -lt 6 ] || [ "$(n_stored two)" -lt 6 ]; do
        kill -0 $one || fail "the first ended by itself"
        kill -0 $two || fail "the second ended by itself"
        sleep 0.02
    done
    if [ $rounds = 3 ]; then
        kill $one
        kill -9 $two
        status=0
        wait $one || status=$?
        [ $status = 130 ] || fail "status $status"
    else
        kill -9 $one $two
    fi
    wait $one $two 2>/dev/null || :
    one=
    two=
    sed -n 's/^stored \([a-z]* [0-9]* [0-9]*\)$/\1/p' one two >>acknowledged
done
sort acknowledged >sorted
[ -z "$(uniq -d sorted)" ] || fail "measured twice: $(uniq -d sorted)"
sqlite3 -separator ' ' costs.db \
    'SELECT kind, case_idx, part FROM sample' | sort >there
[ -z "$(comm -23 sorted there)" ] || fail "lost: $(comm -23 sorted there)"

# Measure the rest together; either process does the cases that the other
# leaves.
n=$(sqlite3 costs.db "SELECT 8 + max(case_idx) FROM sample WHERE kind = 'fused'")
"$NEUROSHARD" "$@" --db costs.db --samples "$n" >one 2>&1 &
one=$!
"$NEUROSHARD" "$@" --db costs.db --samples "$n" >two 2>&1 &
two=$!
wait $one || fail "the first failed"
wait $two || fail "the second failed"
one=
two=
[ "$(sqlite3 costs.db "SELECT count(*) FROM sample WHERE kind = 'fused' AND
    case_idx < $n")" = "$n" ] || fail "cases are missing"
cat one two | sed -n 's/^stored \([a-z]* [0-9]* [0-9]*\)$/\1/p' |
    sort >again
[ -z "$(uniq -d again)" ] || fail "measured twice: $(uniq -d again)"
[ -z "$(comm -12 again there)" ] || fail "measured again: $(comm -12 again there)"

# The next run, of any list, removes the files that a killed run left.
until [ -e costs.db.lock ]; do
    "$NEUROSHARD" "$@" --db costs.db --seed 5 --samples 1000000 >one 2>&1 &
    one=$!
    until_there $one costs.db.lock
    kill -9 $one || fail "it ended by itself"
    wait $one 2>/dev/null || :
    one=
done
"$NEUROSHARD" "$@" --db costs.db --seed 6 --samples 1 >two 2>&1 ||
    fail "$(cat two)"
for file in costs.db?* folder/?*.db?*; do
    [ ! -e "$file" ] || fail "$file is left"
done
"$NEUROSHARD" db check costs.db >out || fail "not whole"
echo ok
