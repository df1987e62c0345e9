#!/bin/sh
# SPDX-License-Identifier: MIT
# A measurement is killed at 8 random moments (100 in the full size, 4 in the
# tiny one). The database stays intact, every sample that was reported as
# stored is there exactly once, the machine's best time of the interference
# probe stays, and the same command continues where it stopped.

. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

# Options of every run.
set -- bench --db costs.db --batch 16 --max-tables 3 --memory 16MiB --threads 1

fail()
{
    echo "not ok: $*"
    cat moments
    exit 1
}

pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null' EXIT
: >acknowledged
: >moments
best=1e9
case ${TEST_SIZE-} in
full) rounds=100 ;;
tiny) rounds=4 ;;
*) rounds=8 ;;
esac
round=0
while [ $round -lt $rounds ]; do
    round=$((round + 1))
    byte=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
    moment=$(awk "BEGIN { printf \"%.3f\", 0.03 + $byte / 500 }")
    echo "round $round: killed after $moment s" >>moments
    : >out
    "$NEUROSHARD" "$@" --samples 1000000 --verbose >>out 2>&1 &
    pid=$!
    # The random wait before the kill begins at the start of the run in odd
    # rounds, and at the first stored sample in even rounds.
    while [ $((round % 2)) -eq 0 ] && ! grep -q '^stored' out; do
        kill -0 "$pid" 2>/dev/null || fail "it ended by itself: $(cat out)"
        sleep 0.01
    done
    sleep "$moment"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    pid=
    sed -n 's/^stored \([a-z]* [0-9]* [0-9]*\)$/\1/p' out >>acknowledged
    [ -s costs.db ] || continue
    [ "$(sqlite3 costs.db 'PRAGMA integrity_check')" = ok ] ||
        fail "the database is damaged"
    # The run was killed before the tables were made: the database is still
    # empty.
    if [ "$(sqlite3 costs.db 'PRAGMA user_version')" = 0 ]; then
        [ "$best" = 1e9 ] || fail "the tables are gone"
        continue
    fi
    # Every sample comes with an interference probe; its best time never gets
    # worse.
    now=$(sqlite3 costs.db 'SELECT coalesce((SELECT min(best_ms) FROM canary),
        iif((SELECT count(*) FROM sample), 2e9, 1e9))')
    [ "$(echo "SELECT $now <= $best" | sqlite3)" = 1 ] ||
        fail "the best canary was $best and is $now"
    best=$now
done

n=$(wc -l <acknowledged)
[ "$n" -ge $((rounds / 2)) ] || fail "only $n samples were stored in all rounds"
sort acknowledged >sorted
[ -z "$(uniq -d sorted)" ] || fail "stored twice: $(uniq -d sorted)"
sqlite3 -separator ' ' costs.db \
    'SELECT kind, case_idx, part FROM sample' | sort >there
[ -z "$(uniq -d there)" ] || fail "there twice: $(uniq -d there)"
lost=$(comm -23 sorted there)
[ -z "$lost" ] || fail "acknowledged and lost: $lost"

# Reading all samples back also checks the number of tables of each.
"$NEUROSHARD" "$@" --samples 12 --verbose >out 2>err ||
    fail "cannot go on: $(cat err)"
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
    [ "$(sqlite3 costs.db "SELECT count(*) FROM sample WHERE kind = 'fused' \
        AND case_idx = $i")" = 1 ] || fail "case $i is missing"
done
"$NEUROSHARD" "$@" --samples 12 >out 2>err ||
    fail "cannot read: $(cat err)"
grep -q '^samples  *0 measured' out || fail "something was measured again"
[ ! -e costs.db-wal ] || fail "a WAL is left"
echo ok
