#!/bin/sh
# SPDX-License-Identifier: MIT
# One of four processes is killed during a run. The others end too, mpirun
# reports it by its status, no partial output is printed, and the database is
# intact.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD

command -v mpirun >/dev/null || skip "no mpirun"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"
many=$(launcher)
keep_mpi_quiet

"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 256 \
    -o plan.json >/dev/null 2>&1

# Each process leaves its id in a file. $many is several words.
# shellcheck disable=SC2016
run()
{
    $many -n 4 sh -c 'echo $$ >pid.$$; exec "$0" "$@"' "$ns" run plan.json \
        --scale-rows 0.001 --threads 1 --db costs.db "$@"
}

# Stores the first samples, and finds out whether the program has MPI.
if ! run --iterations 12 --seed 1 >out 2>err; then
    grep -q 'has no MPI support' err && skip "built without MPI"
    cat err
    exit 1
fi
before=$(sqlite3 costs.db 'SELECT count(*) FROM sample')
echo "$before samples"

# any_left FILE: whether any process whose id is in the file still runs.
any_left()
{
    while read -r id; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' \
            "/proc/$id/status" 2>/dev/null) || continue
        [ "$state" = Z ] || return 0
    done <"$1"
    return 1
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
