#!/bin/sh
# SPDX-License-Identifier: MIT
# Ends of runs with --ranks. If a rank is killed, all end with one message. If
# the main process is killed, its ranks end too. An interrupt reaches the
# ranks. Nothing is left behind: no process, no shared memory, no partially
# stored sample.
set -eu
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD
"$ns" plan "$ROOT/data/tables/criteo_kaggle_26.csv" --gpus 4 --batch 256 \
    --effort 100 --no-rivals -o plan.json >/dev/null 2>&1

# ranks PID: prints the ranks of a process, in order.
ranks()
{
    for task in /proc/[0-9]*; do
        sed -n "s/^\([0-9]*\) ([^)]*) [^Z] $1 .*/\1/p" "$task/stat" \
            2>/dev/null || :
    done | sort -n
}

all_started()
{
    ranks "$pid" >pids
    [ "$(wc -l <pids)" = 4 ]
}

none_left()
{
    while read -r id; do
        ! grep -q '^State:[[:space:]]*[^ZX]' "/proc/$id/status" \
            2>/dev/null || return 1
    done <pids
}

said()
{
    [ -s out ] && echo "something is printed"
    grep '^neuroshard: ' err | grep -v warning || :
    wait_until none_left && echo "no process is left"
    wait_until no_more && echo "no memory is left"
}

# memory: prints shared memory segments, except Open MPI's, which belong to
# other tests that run at the same time.
memory()
{
    { ls /dev/shm && ipcs -m; } 2>/dev/null | grep -v '^vader_segment' | sort
}

# no_more: whether no new segments are left. Segments of other programs may
# also disappear, so only additions count.
no_more()
{
    memory >after
    [ -z "$(comm -13 before after)" ]
}

pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null' EXIT
memory >before

# start: starts a long run and waits until all its ranks exist
start()
{
    "$ns" run plan.json --scale-rows 0.001 --threads 1 --ranks 4 \
        --iterations 100000 --db costs.db >out 2>err &
    pid=$!
    wait_until all_started || echo "not all have started"
}

for rank in 0 3; do
    start
    sleep "0.$rank"
    kill -9 "$(sed -n "$((rank + 1))p" pids)"
    status=0
    wait "$pid" || status=$?
    echo "rank $rank is killed: status $status"
    said
done

echo "the first process is killed"
start
kill -9 "$pid"
wait "$pid" 2>/dev/null || :
said
if [ -e costs.db ] && command -v sqlite3 >/dev/null; then
    sqlite3 costs.db 'PRAGMA integrity_check;
        SELECT count(*) FROM sample' | tr -d '\n' | grep -v '^ok0$' || :
fi

# A stopped rank does not handle an interrupt until it continues.
ends()
{
    ! kill -0 "$pid" 2>/dev/null || zombie "$pid"
}

zombie()
{
    grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null
}

for rank in 0 2; do
    for signal in TERM INT; do
        start
        kill -STOP "$(sed -n "$((rank + 1))p" pids)"
        kill -$signal "$pid"
        wait_until ends || { echo "it goes on" && kill -9 "$pid"; }
        status=0
        wait "$pid" || status=$?
        echo "rank $rank is stopped, then SIG$signal: status $status"
        said
    done
done

# A rank that is stopped again and again is killed.
start
stopped=$(sed -n 2p pids)
while kill -STOP "$stopped" 2>/dev/null; do sleep 0.01; done &
stopper=$!
kill -TERM "$pid"
wait_until ends || { echo "it goes on" && kill -9 "$pid"; }
status=0
wait "$pid" || status=$?
wait "$stopper"
echo "rank 1 is stopped again and again: status $status"
said

echo "exchanges are interrupted"
"$ns" bench --alltoall 4 --ranks 4 --memory 16MiB --threads 1 --db all.db \
    --samples 1000000 --verbose >log 2>err &
pid=$!
wait_until all_started
wait_until grep -q stored log
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
pid=
echo "status $status"
: >out
said
grep -o 'stopped: .*' log
"$ns" bench --alltoall 4 --ranks 4 --memory 16MiB --threads 1 --db all.db \
    --samples 1 --json 2>&1 | grep -E '"(kind|measured|resumed)"'
"$ns" bench --ranks 4 --db all.db 2>&1 || echo "status $?"
