#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/kernels.sh NVCC-RELEASE LOG...
#
# Prints a table of our kernels from what `nvcc -Xptxas -v` said: registers and
# static shared memory decide how many warps a multiprocessor holds, and a
# kernel that spills fails. CUB's kernels are not ours.
set -eu

release=$1
shift

echo "# Kernels as nvcc $release makes them: \`make kernel-table\`"
echo "# registers, bytes of spill stores and loads, bytes of shared memory"
awk '
    /Compiling entry function/ {
        split($0, quoted, "\047")
        name = quoted[2]
        arch = quoted[4]
    }
    /bytes spill stores/ {
        for (i = 2; i <= NF; i++) {
            if ($i == "spill" && $(i + 1) ~ /^stores/)
                stores = $(i - 2)
            if ($i == "spill" && $(i + 1) ~ /^loads/)
                loads = $(i - 2)
        }
    }
    / Used [0-9]+ registers/ {
        shared = 0
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^registers/)
                registers = $(i - 1)
            if ($i ~ /^smem/)
                shared = $(i - 2)
        }
        print name, arch, registers, stores, loads, shared
    }' "$@" |
    c++filt |
    sed -E -e '/^(void )?(cub|thrust)::/d' -e 's/^void //' \
        -e 's/(<[^(]*>)?\(.*\) (sm_)/\1 \2/' |
    LC_ALL=C sort |
    awk '{
        printf "%-28s %s %4d %4d %4d %6d\n", $1, $2, $3, $4, $5, $6
        if ($4 + $5 > 0) {
            print $1 " spills on " $2 >"/dev/stderr"
            n_spills++
        }
    }
    END { exit n_spills > 0 }'
