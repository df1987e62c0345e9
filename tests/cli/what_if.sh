#!/bin/sh
# SPDX-License-Identifier: MIT
# The price of a plan under other settings, and whether a fresh plan is worth
# it.
set -u

list=$ROOT/data/tables/mlperf_dlrm_dcnv2_multihot.csv
cp "$list" list.csv
"$NEUROSHARD" plan list.csv --gpus 8 --effort 4000 --no-rivals \
    -o plan.json >report 2>messages || cat messages

# asks OPTIONS...: prints the tables of what-if questions and the exit status
asks()
{
    echo "== explain $*"
    "$NEUROSHARD" explain plan.json "$@" >report 2>messages
    status=$?
    sed -n '/^memory/,/^ *does not bind/p; /^what if/,$p; /^fresh plan/,$p' \
        report
    sed 's/^/message: /' messages
    echo "status $status"
}

asks --what-if batch=131072 --what-if reserve=30% \
    --what-if gpus=16,batch=131072 --effort 4000
asks --what-if reserve=75% --what-if batch=65536
asks --what-if gpus=2,reserve=70% --effort 4000
asks --anew --effort 4000
asks --reserve 75%

echo "== what is no setting"
for setting in batches=1 batch batch=0 gpus=13 reserve=x reserve=90GiB \
    batch=1,batch=2 ''; do
    "$NEUROSHARD" explain plan.json --what-if "$setting" 2>&1
    echo "status $?"
done
"$NEUROSHARD" explain plan.json cat_0 --what-if gpus=16 2>&1
"$NEUROSHARD" explain plan.json cat_O 2>&1

echo "== another reserve"
"$NEUROSHARD" cost plan.json --reserve 30% 2>&1 | sed -n '/^fits/p'
"$NEUROSHARD" cost plan.json --reserve 75% 2>&1
echo "status $?"
"$NEUROSHARD" cost plan.json --reserve 75% --json 2>messages |
    grep -e '"kind"' -e 'device"' -e _bytes
# the next command finds a plan that fits
"$NEUROSHARD" cost plan.json --reserve 75% 2>&1 |
    sed 's/.*next: neuroshard //' >next.txt
# shellcheck disable=SC2046 # the words of the command
"$NEUROSHARD" $(cat next.txt) --effort 4000 --no-rivals 2>&1 | grep '^fits'

echo "== a search that was cut short"
"$NEUROSHARD" plan list.csv --gpus 8 --time-limit 0.01 --no-rivals \
    -o short.json >report 2>messages
"$NEUROSHARD" explain short.json | grep 'cut short'
"$NEUROSHARD" explain short.json --anew --time-limit 0.01 |
    sed -n 's/^\(the search.*\|.*: the search.*\)/\1/p'

echo "== a plan without a known error"
"$NEUROSHARD" plan list.csv --gpus 8 --cost torchrec --search grid \
    --no-rivals -o old.json >report 2>messages
"$NEUROSHARD" explain old.json --anew --effort 4000 | sed -n '/^fresh/,$p'
