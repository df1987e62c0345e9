#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/pages.sh PROGRAM STAGE
#
# Checks the manual pages: they are free of lint, each command of PROGRAM has a
# page, and the page names exactly the options of the command. The pages are
# copied to the folder STAGE, so that they find each other.
set -eu

program=$1
stage=$2
rm -rf "$stage"
for page in man/*.[1-9]; do
    mkdir -p "$stage/man${page##*.}"
    cp "$page" "$stage/man${page##*.}/"
done
makewhatis "$stage"

# options: prints the long options in a --help on standard input.
options()
{
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' | sort -u
}

# documented PAGE: prints the long options that the page's lists explain.
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
            # page of all commands with the same first word
            if [ ! -f "$page" ]; then
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
