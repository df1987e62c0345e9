#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the architecture; run it in the repository's root. A file includes
# headers of its own folder and of lower ones only. Foreign headers and malloc
# occur only in their assigned places. A file name occurs once. No other files
# are at the top.
set -eu

rooms="src/base src/core src/device src/io src/emit src/exec src/explain src/cli
costmodel/formulas costmodel/modelfile costmodel/models costmodel/learning
search microbench"
top=".ci .clang-format .clang-tidy .gitignore CHANGES.md CONTRIBUTING.md LICENSE
Makefile README.md VERSION costmodel data man microbench search src tests"

# Prints the folders that a folder may include.
allowed()
{
    case $1 in
    base) echo base ;;
    core) echo base core ;;
    device) echo base core device ;;
    costmodel/modelfile) echo "$(allowed costmodel/formulas) $1" ;;
    costmodel/models) echo "$(allowed costmodel/modelfile) $1" ;;
    costmodel/learning) echo "$(allowed costmodel/models) $1" ;;
    explain) echo base core search emit explain ;;
    cli)
        echo "$(allowed costmodel/learning) io emit exec search microbench" \
            explain cli
        ;;
    *) echo "base core device $1" ;;
    esac
}

# bounded WHAT REGEX PLACES: reports files outside PLACES that match REGEX.
bounded()
{
    # shellcheck disable=SC2086 # a list of folders
    grep -rlE "$2" $rooms 2>/dev/null | grep -vE "$3" |
        while read -r file; do
            echo "$file: $1 has no place here, only in $3"
        done
}

broken=$(
    for folder in $rooms; do
        room=${folder#src/}
        law=$(allowed "$room")
        grep -HnE '^#[[:space:]]*include "' "$folder"/*.[ch]* 2>/dev/null |
            sed -E 's|^([^:]*:[0-9]+):.*"([^"]*)".*|\1 \2|' |
            while read -r place header; do
                case " $law " in
                *" ${header%/*} "*) ;;
                *) echo "$place: $room must not include \"$header\"" ;;
                esac
            done
    done
    bounded '<cuda*.h>' '^# *include <(cuda|cub/|nccl|mpi)' \
        '^src/device/|_cublas\.|_cuda\.'
    bounded '<sqlite3.h>' '^# *include <sqlite3' '^src/io/'
    bounded '<cblas.h>' '^# *include <(cblas|openblas)' '_openblas\.c$'
    bounded 'malloc' '\b(malloc|calloc|realloc|aligned_alloc) ?\(' '^src/base/'
    # shellcheck disable=SC2086 # a list of folders
    find $rooms tests -name '*.c' -o -name '*.h' -o -name '*.cu' |
        sed 's|.*/||' | sort | uniq -d |
        sed 's|$|: this name occurs more than once|'
    # The check is skipped in a source archive, which has no git and no
    # additions.
    git ls-files 2>/dev/null | cut -d/ -f1 | sort -u |
        while read -r name; do
            case " $(echo "$top" | tr '\n' ' ') " in
            *" $name "*) ;;
            *) echo "$name: has no place at the top" ;;
            esac
        done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
