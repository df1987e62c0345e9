#!/bin/sh
# SPDX-License-Identifier: MIT
# Databases are described, checked, merged, and converted to text and back.
# shellcheck disable=SC2086 # lists of files
set -u
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
for name in cpu-amd-epyc-2t fbgemm-nvidia-h100-plans; do
    cp "$ROOT/data/measurements/$name.db" .
done
# Small parts of one list with some shared cases, and their exchange samples.
for part in 1 2 3; do
    cp cpu-amd-epyc-2t.db part$part.db
    sqlite3 part$part.db "DELETE FROM sample_table WHERE sample_id IN (SELECT id
        FROM sample WHERE case_idx < 20 * $part OR case_idx > 20 * $part + 30);
        DELETE FROM sample
        WHERE case_idx < 20 * $part OR case_idx > 20 * $part + 30;
        DELETE FROM comm_sample WHERE id % 9 <> $part; VACUUM"
done
rm cpu-amd-epyc-2t.db

content()
{
    "$ns" db check "$1" | sed 's/.*content //'
}

echo "== info, of a version of old; the file stays as it was"
cksum fbgemm-nvidia-h100-plans.db >before
"$ns" db info fbgemm-nvidia-h100-plans.db
"$ns" db info part1.db | tail -n 5
"$ns" db check part1.db
cksum fbgemm-nvidia-h100-plans.db | cmp - before

echo "== in any order and twice"
all='part1.db part2.db part3.db fbgemm-nvidia-h100-plans.db'
"$ns" db merge $all -o all.db
"$ns" db merge part3.db fbgemm-nvidia-h100-plans.db part1.db part3.db part2.db \
    -o again.db
"$ns" db merge again.db $all -o thrice.db
cmp all.db again.db && cmp all.db thrice.db
sqlite3 all.db 'PRAGMA integrity_check; PRAGMA foreign_key_check;
    PRAGMA user_version'
echo "cases $(for part in $all; do sqlite3 $part 'SELECT seed, case_idx, kind,
    part FROM sample'; done | sort -u | wc -l)"

echo "== as text and back"
"$ns" db export all.db -o all.csv
"$ns" db import all.csv --db back.db
"$ns" db export part2.db | "$ns" db import - --db back.db
"$ns" db export back.db | cmp - all.csv
"$ns" db import all.csv --db part1.db
wc -l all.csv | sed 's/ .*//'
sqlite3 all.db 'SELECT count(*) FROM sample' 'SELECT count(*) FROM sample_table' \
    'SELECT count(*) FROM comm_sample' 'SELECT count(*) FROM setting'

echo "== an output is not what is read, nor a database"
"$ns" db merge part1.db part2.db -o part1.db
"$ns" db merge part1.db part2.db -o all.db
"$ns" db merge part1.db -o ./part1.db
"$ns" db export part1.db -o part1.db
"$ns" db export part1.db -o all.db
"$ns" db import all.csv --db all.csv
"$ns" db merge part1.db
"$ns" db import all.csv
[ "$(content part2.db)" != "$(content part1.db)" ] || echo "alike"

echo "== what is damaged"
sqlite3 thrice.db 'UPDATE sample SET total_p90_ms = total_p90_ms + 1e-12
    WHERE id = 3'
[ "$(content thrice.db)" != "$(content all.db)" ] && echo "not, but another"
head -c 100000 all.db >half.db
sqlite3 again.db 'DELETE FROM sample_table WHERE sample_id = 7'
cp back.db loose.db
sqlite3 loose.db 'DELETE FROM setting WHERE id = 1'
sqlite3 back.db 'PRAGMA ignore_check_constraints = ON; UPDATE sample SET
    total_p90_ms = -1 WHERE id = 3'
for file in half.db again.db loose.db back.db absent.db all.csv; do
    "$ns" db check $file
    echo "$?"
done
"$ns" db merge part1.db again.db -o new.db
"$ns" db export again.db -o new.csv
"$ns" db info again.db
sed 's/^setting,1,[^,]*/setting,1,/' all.csv >wrong.csv
"$ns" db import wrong.csv --db new.db
ls new.* 2>/dev/null
echo "== words"
"$ns" tables improt x.csv
"$ns" db improt x.csv
"$ns" db
