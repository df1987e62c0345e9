#!/bin/sh
# SPDX-License-Identifier: MIT
# With -v a command that may take minutes logs one line per minute; without -v
# it logs none. The test makes minutes short.
set -u
. "$ROOT/tests/cli/common"
[ "$FAULT_SO" ] || skip "the program is built with sanitizers"

tables=$ROOT/data/tables/criteo_kaggle_26.csv
cp "$ROOT/data/measurements/cpu-amd-epyc-2t.db" costs.db

# logs LABEL COMMAND...: prints its first line of progress, without figures
logs()
{
    label=$1
    shift
    printf '%s: ' "$1"
    FAULT_CLOCK=100000 LD_PRELOAD=$FAULT_SO "$NEUROSHARD" "$@" -v \
        2>log >out </dev/null || echo "status $?: $(cat log)"
    grep "^$label: " log | head -n 1 |
        sed 's/[0-9][0-9,.:]*/N/g; s/, N [a-z]* left//; s/[-+]N/N/
            s/, N disturbed//'
    FAULT_CLOCK=100000 LD_PRELOAD=$FAULT_SO "$NEUROSHARD" "$@" \
        2>log >out </dev/null || echo "status $?: $(cat log)"
    ! grep "^$label: " log
}

perl -e 'my $head = "{\x27descr\x27: \x27<i8\x27, \x27fortran_order\x27: " .
        "False, \x27shape\x27: (1000000,), }\n";
    print "\x93NUMPY\1\0", pack("v", length $head), $head,
        pack("q<*", map { $_ * 7919 % 5003 } 1 .. 1000000)' >user.npy
logs searching plan "$tables" --gpus 4 --batch 256 --effort 20000 -o plan.json
logs plans compare "$tables" --gpus 4 --effort 20000 --rival-limit 0
logs searching explain plan.json --anew
logs 'GPUs timed' run plan.json --iterations 12 --scale-rows 0.01 --no-check
logs ids tables profile user.npy --batch 1000
logs epochs train --db costs.db -o new.nsm --kind net --epochs 3
logs cases bench --db new.db --samples 3 --batch 64 --memory 16MiB
