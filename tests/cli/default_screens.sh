#!/bin/sh
# SPDX-License-Identifier: MIT
# First screens of two default searches, which take seconds. The manual shows
# one of them, and the explanation of its plan.
set -u
. "$ROOT/tests/cli/common"

ns=$NEUROSHARD

# default_screen LIST OPTION...: prints the first screen
default_screen()
{
    echo "--- $*"
    shown "$@"
    cat printed
}

# in_manual PAGE: prints the lines of standard input that the page lacks
in_manual()
{
    grep -vxFf "$ROOT/man/neuroshard-$1.1" | sed "s/^/not in $1(1): /"
}

default_screen criteo_kaggle_26 --gpus 8
default_screen mlperf_dlrm_dcnv2_multihot --gpus 8 -o plan.json
in_manual plan <printed
"$ns" explain plan.json --device 0 >explained
sed '/^$/,$d' explained | in_manual explain
grep -A 2 '^table on GPU 0' explained | in_manual explain
