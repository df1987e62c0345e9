#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/sizes.sh FILE...
#
# Fails if a file has more than 600 lines. clang-tidy limits functions to 60.
set -eu

broken=$(wc -l "$@" | awk '$2 != "total" && $1 > 600 {
    print $2 " has " $1 " lines, of 600" }')
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
