#!/bin/sh
# SPDX-License-Identifier: MIT
# What a room may have: lines of code, which are neither blank nor comments,
# and files. Lower a figure when its room has become smaller. No file has more
# than 600 lines; that no function has more than 60 is clang-tidy's to say.
set -eu

budgets="
src/base     3447  39
src/core     4734  35
src/device   6267  59
src/io       5194  34
src/emit     2710  15
src/exec     3977  28
src/cli      4532  25
costmodel    7418  57
search       6597  30
microbench   1524  13
"

# count FOLDER: its lines of code and its files.
count()
{
    n_files=0 n_lines=0
    for file in "$1"/*.[ch] "$1"/*.cu "$1"/*.cuh; do
        [ -e "$file" ] || continue
        n_files=$((n_files + 1))
        n=$(${CC:-gcc} -fpreprocessed -dD -E -P -x c "$file" 2>/dev/null |
            grep -c '[^[:space:]]' || true)
        n_lines=$((n_lines + n))
        [ "$(wc -l <"$file")" -le 600 ] || echo "$file has more than 600 lines"
    done
    echo "$n_lines $n_files"
}

broken=$(
    echo "$budgets" | while read -r folder most_lines most_files; do
        [ "$folder" ] || continue
        found=$(count "$folder")
        echo "$found" | sed '$d'
        found=$(echo "$found" | tail -n 1)
        [ "${found% *}" -le "$most_lines" ] ||
            echo "$folder: ${found% *} lines of code, of $most_lines"
        [ "${found#* }" -le "$most_files" ] ||
            echo "$folder: ${found#* } files, of $most_files"
    done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
