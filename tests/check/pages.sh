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
makewhatis "$stage"

# options: the long options that a --help on standard input lists.
options()
{
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' | sort -u
}

# documented PAGE: the long options that the page's lists explain.
documented()
{
    grep '^\.It Fl ' "$1" | grep -oE ' -[a-z][a-z0-9-]*' | sed 's/^ /-/' |
        sort -u
}

commands()
{
    "$program" --help | sed -n '/^commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p'
}

broken=$(
    MANPATH="$stage:" mandoc -T lint -W style man/*.[1-9] 2>&1 || true
    commands | while read -r command; do
            page=man/neuroshard-$(echo "$command" | tr ' ' -).1
            alike=$command
            if [ ! -f "$page" ]; then # one of all that begin alike
                page=man/neuroshard-${command%% *}.1
                alike="${command%% *} .*"
            fi
            if [ ! -f "$page" ]; then
                echo "$command: has no page $page"
                continue
            fi
            # shellcheck disable=SC2086 # "tables import" is two words
            commands | grep -x "$alike" | while read -r one; do
                "$program" $one --help
            done | options | grep -vx -e --help >"$stage/help" || true
            documented "$page" >"$stage/page"
            comm -23 "$stage/help" "$stage/page" |
                sed "s|^|$page: does not explain |"
            comm -13 "$stage/help" "$stage/page" |
                sed "s|^|$page: explains what $command lacks: |"
        done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
