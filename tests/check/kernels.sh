#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/kernels.sh NVCC-RELEASE LOG...
#
# Prints a table of our kernels from the output of `nvcc -Xptxas -v` and the
# PTX that follows it. Registers and static shared memory limit the number of
# warps on a multiprocessor. The check fails if a kernel spills, if a lookup
# kernel has more than 80 registers, or if a lookup kernel has generic loads or
# stores (of an unknown memory space). CUB's kernels are left out.
set -eu

release=$1
shift

echo "# Kernels as nvcc $release makes them: \`make kernel-table\`"
echo "# registers, bytes of spill stores and loads, bytes of shared memory, generic"
echo "# loads and stores"
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
        figures[name " " arch] = registers " " stores " " loads " " shared
    }
    $1 == ".target" { arch = substr($2, 1, 5) }
    /\.(entry|func) / { name = $NF; sub(/\(.*/, "", name) }
    /^[ \t]*(@!?%p[0-9]+ )?(ld|st)\./ && !/\.(global|shared|local|param|const)/ {
        generic[name " " arch]++
    }
    END {
        for (kernel in figures)
            print kernel, figures[kernel], generic[kernel] + 0
    }' "$@" |
    c++filt |
    sed -E -e '/^(void )?(cub|thrust)::/d' -e 's/^void //' \
        -e 's/(<[^(]*>)?\(.*\) (sm_)/\1 \2/' |
    LC_ALL=C sort |
    awk '{
        printf "%-28s %s %4d %4d %4d %6d %4d\n", $1, $2, $3, $4, $5, $6, $7
        if ($4 + $5 > 0) {
            print $1 " spills on " $2 >"/dev/stderr"
            n_bad++
        }
        if ($1 ~ /^lookup_/ && ($3 > 80 || $7 > 0)) {
            print $1 " has too many registers, or generic accesses, on " $2 \
                >"/dev/stderr"
            n_bad++
        }
    }
    END { exit n_bad > 0 }'
