#!/bin/sh
# SPDX-License-Identifier: MIT
# One of four processes is killed in mid-run: the others end too, mpirun says
# so by its status, nothing is printed by halves, and the database is intact.
set -eu

ns=$NEUROSHARD

skip()
{
    echo "$*" >&2
    exit 77
}

command -v mpirun >/dev/null || skip "no mpirun"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"
many=mpirun
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    many="mpirun --allow-run-as-root --oversubscribe --bind-to none"
fi
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS

"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 256 \
    -o plan.json >/dev/null 2>&1

# Each process leaves its id. $many is several words.
# shellcheck disable=SC2016
run()
{
    $many -n 4 sh -c 'echo $$ >pid.$$; exec "$0" "$@"' "$ns" run plan.json \
        --scale-rows 0.001 --threads 1 --db costs.db "$@"
}

# For the database to hold something, and to see that MPI is there.
if ! run --iterations 12 --seed 1 >out 2>err; then
    grep -q 'has no MPI body' err && skip "built without MPI"
    cat err
    exit 1
fi
before=$(sqlite3 costs.db 'SELECT count(*) FROM sample')
echo "$before samples"

# Whether any process whose id is in the file still runs.
any_left()
{
    while read -r id; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' \
            "/proc/$id/status" 2>/dev/null) || continue
        [ "$state" = Z ] || return 0
    done <"$1"
    return 1
}

# wait_until COMMAND...: at most 20 seconds
wait_until()
{
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || return 1
        sleep 0.2
    done
}

all_started()
{
    cat pid.* >pids 2>/dev/null || return 1
    [ "$(wc -l <pids)" = 4 ]
}

none_left()
{
    ! any_left pids
}

pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null' EXIT
for round in 1 2 3; do
    rm -f pid.*
    run --iterations 100000 --seed 2 >out 2>err &
    pid=$!
    wait_until all_started || echo "not all have started"
    sleep "$round"
    kill -9 "$(sed -n "${round}p" pids)"
    status=0
    wait $pid || status=$?
    pid=
    [ $status != 0 ] && echo "round $round: mpirun fails"
    [ ! -s out ] && echo "nothing is printed"
    wait_until none_left && echo "no process is left"
    sqlite3 costs.db 'PRAGMA integrity_check'
    [ "$(sqlite3 costs.db 'SELECT count(*) FROM sample')" = "$before" ] &&
        echo "nothing is stored by halves"
done
run --iterations 12 --seed 2 >out 2>err
echo "$(sqlite3 costs.db 'SELECT count(*) FROM sample') samples"
