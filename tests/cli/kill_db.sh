#!/bin/sh
# SPDX-License-Identifier: MIT
# Merges and imports are killed at 6 moments (400 in the full size, 4 in the
# tiny one). A new file is absent or complete. A database has all rows or only
# the old ones. The next run completes the work and cleans up.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
case ${TEST_SIZE-} in
full) wanted=400 ;;
tiny) wanted=4 ;;
*) wanted=6 ;;
esac
pid=
trap 'kill -9 $pid 2>/dev/null || :' EXIT

fail()
{
    echo "not ok: round $round: $*"
    ls -la
    exit 1
}

content()
{
    "$ns" db check "$1" >out 2>&1 || fail "$(cat out)"
    sed 's/.*content //' out
}

cp "$ROOT/data/measurements/fbgemm-nvidia-h100-plans.db" first.db
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" second.db
chmod u+w first.db second.db
sqlite3 second.db 'DELETE FROM sample_table WHERE sample_id > 400;
    DELETE FROM sample WHERE id > 400;
    DELETE FROM comm_sample WHERE id % 16 != 0; VACUUM'
round=0
"$ns" db export second.db -o second.csv
begin_ns=$(date +%s%N)
"$ns" db merge first.db second.db -o whole.db >out
merge_ns=$(($(date +%s%N) - begin_ns))
before=$(content first.db)
after=$(content whole.db)
[ "$before" != "$after" ] || echo "not ok: nothing to add"

# moment PID FILE: waits for a random part of the time of a merge, or until
# FILE exists.
moment()
{
    if [ $((round % 3)) != 0 ]; then
        a_part_of "$merge_ns"
    else
        until_there "$1" "$2"
    fi
}

end()
{
    kill -9 "$pid" 2>/dev/null || :
    status=0
    wait "$pid" 2>/dev/null || status=$?
    case $status in
    0) ;;
    137) n_kills=$((n_kills + 1)) ;;
    *) fail "it ended by itself with status $status: $(cat out)" ;;
    esac
    pid=
}

n_kills=0
while [ $n_kills -lt $wanted ]; do
    round=$((round + 1))
    rm -f new.db
    "$ns" db merge first.db second.db -o new.db >out 2>&1 &
    pid=$!
    moment $pid '.neuroshard-*'
    end
    if [ -e new.db ]; then
        cmp -s new.db whole.db || fail "half a file is there"
    else
        [ $status != 0 ] || fail "it is done and there is nothing"
        "$ns" db merge second.db first.db -o new.db >out 2>&1 ||
            fail "$(cat out)"
    fi
    cmp -s new.db whole.db || fail "the next one made another file"
    for file in .neuroshard-*; do
        [ ! -e "$file" ] || fail "$file is left"
    done

    cp first.db into.db
    "$ns" db import second.csv --db into.db >out 2>&1 &
    pid=$!
    moment $pid into.db-wal
    end
    [ "$(sqlite3 into.db 'PRAGMA integrity_check')" = ok ] ||
        fail "the database is damaged"
    now=$(content into.db)
    [ "$now" = "$after" ] || [ "$status" != 0 ] || fail "it is done, but is not"
    [ "$now" = "$after" ] || [ "$now" = "$before" ] || fail "some rows are there"
    "$ns" db import second.csv --db into.db >out 2>&1 || fail "$(cat out)"
    [ "$(content into.db)" = "$after" ] || fail "rows are lost"
    [ ! -e into.db-wal ] || fail "a log is left"
done
echo ok
