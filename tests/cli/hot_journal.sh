#!/bin/sh
# SPDX-License-Identifier: MIT
# Every command that reads a cost database can read one whose writer was killed
# after writing its pages and before removing its journal. The command rolls
# back and continues.
set -eu
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
few_samples whole.db 200
"$ns" train --db whole.db -o model.nsm --kind net --epochs 1 --force \
    >/dev/null 2>&1
"$ns" db check whole.db | sed 's/.*content //' >content

# Makes a copy in the middle of a transaction. Its pages are already in the
# file, as they do not fit the cache, and the journal has the old pages.
rm -f torn.db torn.db-journal
sqlite3 whole.db "PRAGMA cache_size = 1" "BEGIN IMMEDIATE" \
    "UPDATE sample SET total_p90_ms = 99 WHERE total_p90_ms < 99" \
    ".shell cp whole.db torn.db" ".shell cp whole.db-journal torn.db-journal" \
    "ROLLBACK"
! cmp -s whole.db torn.db || echo "not ok: nothing of it was written"

# reads NAME COMMAND...: runs it on a copy that needs a rollback, and checks
# the result
reads()
{
    name=$1
    shift
    cp torn.db hot.db
    cp torn.db-journal hot.db-journal
    cp model.nsm hot.nsm
    status=0
    "$ns" "$@" >out 2>err || status=$?
    [ $status = 0 ] || cat err
    [ ! -e hot.db-journal ] || echo "$name: the journal is still there"
    "$ns" db check hot.db | sed 's/.*content //' | cmp -s - content &&
        echo "$name: status $status, as before the change"
}

reads 'db info' db info hot.db
reads 'db check' db check hot.db
reads 'db export' db export hot.db -o hot.csv
reads 'db merge' db merge hot.db -o merged.db
reads 'bench --samples 0' bench --samples 0 --db hot.db --csv hot.csv
reads train train --db hot.db -o new.nsm --kind net --epochs 1 --force
reads eval eval --model hot.nsm --db hot.db
