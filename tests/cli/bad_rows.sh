#!/bin/sh
# SPDX-License-Identifier: MIT
# Impossible rows in a database whose own schema allows them. Each is refused
# by name before any training, and no model changes.
. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

ns=$NEUROSHARD
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" good.db
sqlite3 good.db 'DELETE FROM sample_table WHERE sample_id IN (SELECT id FROM
    sample WHERE case_idx >= 400); DELETE FROM sample WHERE case_idx >= 400;
    DELETE FROM comm_sample WHERE id > 100; VACUUM'
cp "$ROOT/data/models/cpu-amd-epyc-2t.nsm" model
echo "an old model" >other

# bad SQL: tries eval and train on a copy of the database, damaged by the SQL.
bad()
{
    echo "# $1"
    cp good.db bad.db
    sqlite3 bad.db "PRAGMA ignore_check_constraints = 1; $1"
    "$ns" eval --db bad.db --model model >/dev/null
    echo "eval: $?"
    "$ns" train --db bad.db -o other --epochs 1 --force >/dev/null 2>&1
    echo "train: $?"
    "$ns" retrain --db bad.db --model model --epochs 1 --min-gain 0% \
        >/dev/null 2>&1
    echo "retrain: $?"
    cmp -s model "$ROOT/data/models/cpu-amd-epyc-2t.nsm" &&
        [ "$(cat other)" = "an old model" ] || echo "a model has changed"
}

first='sample_id = (SELECT min(sample_id) FROM sample_table)'
{
    bad "UPDATE sample_table SET pooling_factor = 1e300 WHERE $first"
    bad "UPDATE sample_table SET n_unique = -5 WHERE $first"
    bad "UPDATE sample_table SET n_unique = 9e999 WHERE $first"
    bad "UPDATE sample_table SET zipf_alpha = -1 WHERE $first"
    bad "UPDATE sample_table SET bins =
        CAST(zeroblob(128) || x'000000000000f8ff' AS BLOB) WHERE $first"
    bad "UPDATE sample SET total_median_ms = 1e300 WHERE id = 61"
    bad "UPDATE sample SET n_tables = -1 WHERE id = 61"
    bad "UPDATE comm_sample SET median_ms = -1"
    bad "UPDATE setting SET batch = 0"
    bad "UPDATE setting SET device = device || printf('%.*c', 3000000, 'x')"
} 2>&1

echo "# the same rows in a new file are not let in"
"$ns" bench --db new.db --samples 1 --batch 16 --memory 16MiB >/dev/null 2>&1
sqlite3 new.db "UPDATE sample_table SET pooling_factor = 1e300" 2>&1 |
    grep -o 'CHECK constraint failed'
