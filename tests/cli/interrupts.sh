#!/bin/sh
# SPDX-License-Identifier: MIT
# One interrupt ends a command, also one that waits on a pipe; what has a best
# so far writes it and ends with 130. Short address spaces end in a sentence,
# never in a wait.

tables=$ROOT/data/tables/criteo_kaggle_26.csv

# interrupted COMMAND...: SIGINT after a second; the status and what was said. In
# the foreground: else timeout sends a second one, to its group.
interrupted()
{
    timeout --foreground --preserve-status -k 20 -s INT 1 "$NEUROSHARD" "$@" \
        >stdout 2>stderr
    echo "status $?: $(tail -n 1 stderr)"
}

mkfifo pipe
echo "== a pipe that nobody writes"
interrupted plan pipe --gpus 2
interrupted tables pipe
interrupted cost pipe
exec 3<>pipe
interrupted plan - --gpus 2 <&3
exec 3>&-
echo "== a pipe that nobody reads"
interrupted plan "$tables" --gpus 2 --effort 100 -o pipe
echo "== a pipe that is read and written"
"$NEUROSHARD" plan "$tables" --gpus 2 --effort 100 -o plan.json >report 2>&1
cat plan.json >pipe &
"$NEUROSHARD" emit pipe --format text | wc -l
cat pipe >copy.json &
"$NEUROSHARD" plan "$tables" --gpus 2 --effort 100 -o pipe >report 2>&1
wait
cmp copy.json plan.json && echo "the same plan"

echo "== the best so far"
interrupted plan "$tables" --gpus 2 --effort 1000000000000 -o best.json
grep '"stopped"' best.json
"$NEUROSHARD" cost best.json >/dev/null && echo "it is whole"

echo "== a short address space"
# Sanitizers reserve more than any limit here.
limits=
[ -z "$FAULT_SO" ] || limits="30 40 50 60 70 80 90 100 120 140 160 180 200 220 250 280 310 340 370
400"
for command in "plan $tables --gpus 2 --effort 10" \
    "eval --db $ROOT/data/measurements/cpu-amd-epyc-2t.db
    --model $ROOT/data/models/cpu-amd-epyc-2t.nsm"; do
    for mb in $limits; do
        # shellcheck disable=SC2086 # options are several words
        (
            # shellcheck disable=SC3045 # dash has it
            ulimit -v $((mb * 1024))
            timeout -k 5 30 "$NEUROSHARD" $command >stdout 2>stderr
        )
        status=$?
        # 127: the system could not even load the program.
        case $status in
        0 | 1 | 127) ;;
        *) echo "$mb MB: status $status: $(tail -n 1 stderr)" ;;
        esac
    done
    echo "${command%% *}: no limit makes it wait"
done
