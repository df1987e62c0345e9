#!/bin/sh
# SPDX-License-Identifier: MIT
# Table lists from what other programs have.

echo "== CSV in other columns"
cat >report.csv <<'EOF'
table_name,num_rows,width,avg_len,owner
user,40000000,128,1,ads
"a, b",20000,64,7.5,feed
EOF
"$NEUROSHARD" tables import report.csv -o tables.csv \
    --columns name=table_name,rows=num_rows,dim=width,pooling_factor=avg_len
cat tables.csv
"$NEUROSHARD" tables tables.csv | sed -n 3,4p

echo "== each list that ships, as it was"
for list in "$ROOT"/data/tables/*.csv; do
    "$NEUROSHARD" tables import "$list" >copy.csv 2>/dev/null
    "$NEUROSHARD" tables "$list" --json >before.json 2>/dev/null
    "$NEUROSHARD" tables copy.csv --json >after.json
    cmp before.json after.json || echo "# ${list##*/} is another one"
done
