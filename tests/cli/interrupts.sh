#!/bin/sh
# SPDX-License-Identifier: MIT
# One interrupt ends a command, even if it waits on a pipe. A command that has
# a best result so far writes it and exits with 130. With little address space
# a command ends with a message and never hangs.

. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

tables=$ROOT/data/tables/criteo_kaggle_26.csv

# Standard input of the commands, and the process id of the running one.
exec 3</dev/null
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null' EXIT

# waits: whether the process sleeps, in three samples in a row. With one thread
# it does not sleep while it works.
waits()
{
    for _ in 1 2 3; do
        sleep 0.03
        grep -q '^State:.S' /proc/"$pid"/status || return 1
    done
}

# works: whether the process has used 0.3 seconds of CPU time.
works()
{
    [ "$(sed 's/.*) //' /proc/"$pid"/stat | cut -d ' ' -f 12)" -ge 30 ]
}

# interrupted waits|works COMMAND...: sends one SIGINT once the condition
# holds; prints the status and the messages. Finally kills a command that does
# not end.
interrupted()
{
    moment=$1
    shift
    "$NEUROSHARD" "$@" <&3 >stdout 2>stderr &
    pid=$!
    while kill -0 $pid && ! { heeds $pid && $moment; }; do
        sleep 0.01
    done
    kill -INT $pid
    left=6000
    while kill -0 $pid 2>/dev/null && [ $left -gt 0 ]; do
        sleep 0.02
        left=$((left - 1))
    done
    kill -9 $pid 2>/dev/null
    wait $pid
    echo "status $?: $(tail -n 1 stderr)"
    pid=
}

mkfifo pipe
echo "== a pipe that nobody writes"
interrupted waits plan pipe --gpus 2
interrupted waits tables pipe
interrupted waits cost pipe
exec 3<>pipe
interrupted waits plan - --gpus 2
exec 3</dev/null
echo "== a pipe that nobody reads"
interrupted waits plan "$tables" --gpus 2 --effort 100 --threads 1 -o pipe
echo "== a pipe that is read and written"
"$NEUROSHARD" plan "$tables" --gpus 2 --effort 100 -o plan.json >report 2>&1
cat plan.json >pipe &
"$NEUROSHARD" emit pipe --format text | wc -l
cat pipe >copy.json &
"$NEUROSHARD" plan "$tables" --gpus 2 --effort 100 -o pipe >report 2>&1
wait
cmp copy.json plan.json && echo "the same plan"

echo "== the best so far"
interrupted works plan "$tables" --gpus 2 --effort 1000000000000 -o best.json
grep '"stopped"' best.json
"$NEUROSHARD" cost best.json >/dev/null && echo "it is whole"
# Without host time: at its lower bound the search would stop on its own.
interrupted works plan "$tables" --gpus 2 --from plan.json --json \
    --host-ms 0 --effort 1000000000000
grep -o -e '^  "movement"' -e '^  "error"' stdout

echo "== several networks at once"
few_samples many.db
# They are undisturbed, so that there are enough to train on.
sqlite3 many.db 'UPDATE sample SET flags = 0'
for threads in 1 3; do
    interrupted works train --db many.db -o model --force --epochs 1000000 \
        --threads $threads
    "$NEUROSHARD" model info model | grep '^kind'
done

echo "== a short address space"
# Sanitizers reserve more address space than any limit here.
limits=
[ -z "$FAULT_SO" ] || limits="30 50 70 90 120 160 200 250 310 400"
few_samples few.db 100
# All samples count, so that there are enough to train networks on.
sqlite3 few.db 'UPDATE sample SET flags = 0'
for command in "plan $tables --gpus 2 --effort 10" \
    "train --db few.db -o short --kind net --epochs 1 --force --threads 2" \
    "eval --db few.db
    --model $ROOT/data/models/cpu-amd-epyc-2t.nsm"; do
    for mb in $limits; do
        # shellcheck disable=SC2086 # options are several words
        (
            # shellcheck disable=SC3045 # dash has it
            ulimit -v $((mb * 1024))
            timeout -k 5 300 "$NEUROSHARD" $command >stdout 2>stderr
        )
        status=$?
        # 127: the system could not even load the program.
        case $status in
        0 | 1 | 127) ;;
        *) echo "$mb MB: status $status: $(tail -n 1 stderr)" ;;
        esac
        [ "${command%% *}$mb$status" != eval300 ] || echo "no limit holds"
    done
    echo "${command%% *}: no limit makes it wait"
done
