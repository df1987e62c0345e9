#!/bin/sh
# SPDX-License-Identifier: MIT
# Trainings, pairs of retrainings, and re-plans are killed at random moments or
# as soon as they start to write. Each file is the old or the new one, byte for
# byte, and the database is intact. The next writer takes over the lock and
# cleans up after the killed ones.
# shellcheck disable=SC2086 # commands are several words
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
what=nothing
round=0
pid=
other=
trap 'kill -9 $pid $other 2>/dev/null || :' EXIT
# Number of processes to kill. A round tries four; some of them have ended
# before their moment.
case ${TEST_SIZE-} in
full) wanted=480 ;;
tiny) wanted=4 ;;
*) wanted=24 ;;
esac

fail()
{
    echo "not ok: round $round of $what: $*"
    ls -la
    exit 1
}

# A small part of the measurements of the shipped model.
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" costs.db
sqlite3 costs.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 120); DELETE FROM sample WHERE case_idx >= 120;
    DELETE FROM comm_sample; VACUUM'
head -n 13 "$ROOT/data/tables/criteo_kaggle_26.csv" >tables.csv

# The three commands; both retrainings make a better model than the first one.
train='train --db costs.db -o model --kind net --epochs 4 --force'
retrain='retrain --db costs.db --model model --kind net --min-gain 0% --force
    --epochs'
plan='plan tables.csv --memory 2GiB --batch 4096 --cost roofline:a100
    --effort 2000'
replan="$plan --gpus 3 --from old.json -o plan.json"

# Makes the old and the new version of each file.
"$ns" train --db costs.db -o old --kind roofline >out
begin_ns=$(date +%s%N)
"$ns" $train >out
train_ns=$(($(date +%s%N) - begin_ns))
mv model new
cp old model
"$ns" $retrain 12 >out
mv model new12
cp old model
"$ns" $retrain 16 >out
mv model new16
rm -f model.1
! cmp -s old new12 && ! cmp -s old new16 && ! cmp -s new12 new16 ||
    echo "not ok: the models are alike"
"$ns" $plan --gpus 2 -o old.json >out 2>&1
"$ns" $replan >out 2>&1
mv plan.json new.json

# one_of FILE NAME...: FILE is identical to one of the others.
one_of()
{
    file=$1
    shift
    for name; do
        ! cmp -s "$file" "$name" || return 0
    done
    fail "$file is none of $*"
}

# moment PID FILE: waits for a random part of the time of a training, or until
# FILE shows that a process writes.
moment()
{
    if [ $((round % 2)) = 0 ]; then
        a_part_of "$train_ns"
    else
        until_there "$1" "$2"
    fi
}

end()
{
    kill -9 "$@" 2>/dev/null || :
    for killed; do
        status=0
        wait "$killed" 2>/dev/null || status=$?
        case $status in
        0) ;;
        137) n_kills=$((n_kills + 1)) ;;
        *) fail "it ended by itself with status $status: $(cat out)" ;;
        esac
    done
    pid=
    other=
}

# clean: the next writer must have removed all temporary files and locks.
clean()
{
    for file in .neuroshard-* ./*.lock; do
        [ ! -e "$file" ] || fail "$file is left"
    done
}

n_kills=0
round=0
while [ $n_kills -lt $wanted ]; do
    round=$((round + 1))

    what=train
    cp old model
    "$ns" $train >out 2>&1 &
    pid=$!
    moment $pid 'model.lock .neuroshard-*'
    end $pid
    one_of model old new
    "$ns" $train >out 2>&1 || fail "$(cat out)"
    one_of model new
    clean

    what=retrain
    cp old model
    rm -f model.1
    "$ns" $retrain 12 >out 2>&1 &
    pid=$!
    "$ns" $retrain 16 >out 2>&1 &
    other=$!
    moment $pid 'model.lock .neuroshard-*'
    end $pid $other
    one_of model old new12 new16
    [ ! -e model.1 ] || one_of model.1 old new12 new16
    [ "$(sqlite3 costs.db 'PRAGMA integrity_check')" = ok ] ||
        fail "the database is damaged"
    "$ns" $retrain 12 >out 2>&1 || fail "$(cat out)"
    "$ns" $retrain 16 >out 2>&1 || fail "$(cat out)"
    one_of model new12 new16
    clean
    [ ! -e costs.db-wal ] || fail "a log is left"

    what='plan --from'
    cp old.json plan.json
    "$ns" $replan >out 2>&1 &
    pid=$!
    moment $pid '.neuroshard-*'
    end $pid
    one_of plan.json old.json new.json
    "$ns" $replan >out 2>&1 || fail "$(cat out)"
    one_of plan.json new.json
    clean
done
[ "$(sqlite3 costs.db 'PRAGMA foreign_key_check')" = '' ] ||
    echo "not ok: the database refers to nothing"
echo ok
