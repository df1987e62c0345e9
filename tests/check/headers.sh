#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: CC=gcc tests/check/headers.sh FLAG... -- HEADER...
#
# Checks that each header compiles alone. Headers of the lower layers that a
# .cu may include must also compile as C++17. A *_body.h is the body of a
# function, not a header.
set -eu

flags=
while [ "$1" != -- ]; do
    flags="$flags '$1'"
    shift
done
shift

n_bad=0
for header; do
    case $header in
    *_body.h) continue ;;
    esac
    eval "${CC:-gcc} $flags" -std=c11 -Wall -Wextra -Wpedantic -Werror \
        -Wno-unused-function -fsyntax-only -x c - <<EOF || n_bad=$((n_bad + 1))
#include "$header"
EOF
    case $header in
    src/core/* | src/device/* | src/base/err.h | src/base/mem.h) ;;
    *) continue ;;
    esac
    eval "${CXX:-g++} $flags" -std=c++17 -Wall -Wextra -Werror \
        -fsyntax-only -x c++ - <<EOF || n_bad=$((n_bad + 1))
#include "$header"
EOF
done
[ $n_bad = 0 ]
