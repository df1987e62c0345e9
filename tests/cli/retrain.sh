#!/bin/sh
# SPDX-License-Identifier: MIT
# train and retrain as a timer runs them: exit statuses, the model files
# afterwards, and the verdicts in the database.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" costs.db
sqlite3 costs.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 400); DELETE FROM sample WHERE case_idx >= 400;
    DELETE FROM comm_sample; VACUUM'

# try NAME COMMAND...: prints the exit status and the first two words.
try()
{
    name=$1
    shift
    status=0
    "$ns" "$@" >out 2>err || status=$?
    echo "$name: $status $(sed -n 's/^\([a-z]* [^ :]*\).*/\1/p' out | head -n 1)"
}

try 'first model' train --db costs.db -o model --kind net --epochs 1 --force
cp model old
try replaced retrain --db costs.db --model model --kind net --epochs 30 --exit-code
cmp old model.1 && cp model better
try kept retrain --db costs.db --model model --kind net --epochs 30 --exit-code
try 'kept, not asked' retrain --db costs.db --model model --kind net --epochs 30
cmp better model
cmp old model.1
try 'no such gain' retrain --db costs.db --model model --min-gain 1
cat err
try 'few samples' retrain --db costs.db --model model --since 2030-01-01
try 'no date' retrain --db costs.db --model model \
    --epochs 1 --since 2026-13-45
cat err

echo "# verdicts"
sqlite3 costs.db "SELECT id, model_path, verdict, n_samples, n_held_out,
    old_hash = lag(model_hash) OVER (ORDER BY id),
    model_hash = iif(verdict = 'replaced', new_hash, old_hash),
    verdict = 'kept' OR old_mape - new_mape >= min_gain, gain_se >= 0, setting FROM training_log"

# interrupt COMMAND...: interrupts it after 0.8 seconds of CPU time, when it is
# well into the training. Prints the exit status and the messages.
interrupt()
{
    "$ns" "$@" --epochs 1000000 >out 2>err &
    pid=$!
    while kill -0 $pid &&
        [ "$(sed 's/.*) //' /proc/$pid/stat | cut -d ' ' -f 12)" -lt 80 ]; do
        sleep 0.02
    done
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    echo "$1: $status"
    sed 's/[0-9][0-9]*/N/g' err
}

echo "# interrupted, the best until then is kept"
interrupt train --db costs.db -o cut --kind net --force
try eval eval --db costs.db --model cut
interrupt retrain --db costs.db --model model
cmp better model

echo "# a machine that is never quiet"
"$ns" train --db costs.db -o quiet --kind roofline >quiet.out
sqlite3 costs.db 'UPDATE sample SET flags = 1'
try 'all disturbed' train --db costs.db -o never --kind roofline
cat err
try counted train --db costs.db -o never --kind roofline --disturbed
cmp quiet never
try judged eval --db costs.db -m never --disturbed
try 'not judged' eval --db costs.db -m never
cat err
