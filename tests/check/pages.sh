#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/pages.sh PROGRAM STAGE
#
# The manual pages are clean, each command of PROGRAM has one, and it names
# each option of the command and no other. The pages are staged in the folder
# STAGE, so that they find each other.
set -eu

program=$1
stage=$2
rm -rf "$stage"
for page in man/*.[1-9]; do
    mkdir -p "$stage/man${page##*.}"
    cp "$page" "$stage/man${page##*.}/"
done

# options: the long options in a --help on standard input, one a line.
options()
{
    grep -oE -e '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u
}

# documented PAGE: the long options that the page's lists explain.
documented()
{
    grep -E '^\.It .*Fl -' "$1" | grep -oE 'Fl -[a-z][a-z0-9-]*' |
        sed 's/^Fl -/--/' | sort -u
}

broken=$(
    MANPATH="$stage:" mandoc -T lint -W style man/*.[1-9] 2>&1 || true
    "$program" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
        while read -r command; do
            page=man/neuroshard-$command.1
            if [ ! -f "$page" ]; then
                echo "$command: has no page $page"
                continue
            fi
            "$program" "$command" --help | options >"$stage/help"
            documented "$page" >"$stage/page"
            comm -23 "$stage/help" "$stage/page" |
                sed "s|^|$page: does not explain |"
            comm -13 "$stage/help" "$stage/page" | grep -vx -e --help |
                sed "s|^|$page: explains what $command lacks: |"
        done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
