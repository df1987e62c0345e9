#!/bin/sh
# SPDX-License-Identifier: MIT
# A device that changed: the changes that eval --drift shows, and the samples
# that retrain still counts. Later cases take four fifths of the measured
# times.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD

# database NAME CASES: keeps the first CASES cases. From the 400th on they are
# of the changed device.
database()
{
    cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" "$1"
    sqlite3 "$1" "DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
        sample WHERE case_idx >= $2); DELETE FROM sample WHERE case_idx >= $2;
        DELETE FROM comm_sample; VACUUM;
        UPDATE sample SET started_at = '2026-11-01T02:00:' ||
            printf('%02dZ', case_idx / 10) WHERE case_idx < 400;
        UPDATE sample SET started_at = '2026-12-01T02:00:' ||
            printf('%02dZ', case_idx / 10 - 40),
            total_median_ms = 0.8 * total_median_ms WHERE case_idx >= 400"
}

# show COMMAND...: prints the exit status and, without figures, the words of
# the output, the verdict and the lines about drift.
show()
{
    status=0
    "$ns" "$@" >out 2>&1 || status=$?
    echo "$1: $status"
    sed -n -e 's/: mean error .*/: .../' -e '/^kept\|^replaced\|^drift\|^neuroshard/p' \
        -e '/^ *"\(since\|verdict\)":/p' out
    # Per class: number of samples before and now, and whether their times
    # match the prediction.
    awk '/^at promotion/ { on = 1; next }
        on { name = substr($0, 1, 28)
            $0 = substr($0, 29)
            took = $5 < 0.93 ? "less" : $5 > 1.07 ? "more" : "as predicted"
            print name, $1, $3, ($5 == "-" ? $5 : took) }' out
}

database old.db 400
database few.db 500
database costs.db 800
"$ns" train --db old.db -o model --kind net --epochs 30 --force >out
cp model old

echo "# nothing has changed"
show eval --db old.db --model model --drift
echo "# so little of it that it is only seen"
show eval --db few.db --model model --drift
show retrain --db few.db --model model --kind net --epochs 30
cmp old model
echo "# enough of it"
show retrain --db costs.db --model model --kind net --epochs 30 --force
cmp old model.1
show eval --db costs.db --model model --drift
echo "# older samples do not come back"
show retrain --db costs.db --model model --kind net --epochs 30 --json
show retrain --db old.db --model model --kind net --epochs 30
echo "# as JSON"
"$ns" eval --db costs.db --model old --drift --json |
    sed '1,/"drift"/d' | sed -n -e '/"since"/p' -e '/"class": "all"/,/}/s/: [0-9].*,*/: .../p'
echo "# verdicts"
sqlite3 costs.db "SELECT verdict, n_samples, n_held_out FROM training_log"
