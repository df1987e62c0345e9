#!/bin/sh
# SPDX-License-Identifier: MIT
# Two concurrent retrainings of one model. Both results are better than the
# model in use, and the better of the two remains, whichever ends first.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
rivals="slower faster"
case ${TEST_SIZE-} in
full) rounds=50 ;;
tiny) rounds=1 rivals=slower ;;
*) rounds=2 ;;
esac

# A part of the measurements of the shipped model; few.db has far fewer
# training samples.
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" costs.db
sqlite3 costs.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 600); DELETE FROM sample WHERE case_idx >= 600;
    DELETE FROM comm_sample; VACUUM'
cp costs.db few.db
sqlite3 few.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 100 AND case_idx % 10 <> 9);
    DELETE FROM sample WHERE case_idx >= 100 AND case_idx % 10 <> 9; VACUUM'

# retrain OPTIONS: prints the hash of the final model.
retrain()
{
    "$ns" retrain --model model --min-gain 0% --kind net --json "$@" |
        sed -n 's/^  "hash": "\(.*\)",$/\1/p'
}
better()
{
    retrain --db costs.db --epochs 20
}
slower()
{
    retrain --db few.db --epochs 250
}
faster()
{
    retrain --db few.db --epochs 20
}

"$ns" train --db few.db -o start --kind net --epochs 1 --force >/dev/null
cp start model
want=$(better)
for rival in $rivals; do
    cp start model
    first=$($rival)
    [ "$first" != "$want" ] && [ "$(better)" = "$want" ] &&
        [ "$($rival)" = "$want" ] && ! cmp -s start model.1 ||
        echo "$rival is no rival"
done

round=0
while [ $round -lt $rounds ]; do
    rival=slower
    [ $((round % 2)) -ne 1 ] || rival=faster
    round=$((round + 1))
    cp start model
    $rival >other &
    better >best
    wait
    [ "$("$ns" eval --db costs.db --model model --json |
        sed -n 's/^  "hash": "\(.*\)",*$/\1/p')" = "$want" ] ||
        echo "round $round: $rival left the worse model: $(cat other best)"
    [ ! -e model.lock ] || echo "round $round: a lock is left"
done
[ "$(sqlite3 costs.db 'SELECT count(*) FROM training_log')" = \
    $((1 + $(echo "$rivals" | wc -w) + rounds)) ] || echo "a verdict is missing"
echo "the better model stood each time"
