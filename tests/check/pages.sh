#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/pages.sh PROGRAM STAGE
#
# Checks the manual pages: they are free of lint, each command of PROGRAM has a
# page, and the page names exactly the options of the command. If --help has
# headings, the page has the same options under the same headings in the same
# order. The example of --help is one of the page's. The page of `tables import`
# has a row for each format that the program reads. The pages are copied to the
# folder STAGE, so that they find each other.
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

# headed: prints "HEADING: OPTION" for each option of a --help on standard
# input, except --help; the options of a heading are sorted.
headed()
{
    awk '/^[a-z ]+:$/ {
        heading = $0
        sub(/:$/, "", heading)
        n++
    }
    /^  (-.,|   ) --/ {
        option = $0
        sub(/^ *(-.,)? */, "", option)
        sub(/ .*/, "", option)
        if (option != "--help")
            print n, heading ": " option
    }' | sort -k1,1n -k2 | sed 's/^[0-9]* //'
}

# documented_headed PAGE: prints the same for the sections "Options: HEADING" of
# a page.
documented_headed()
{
    awk '/^\.S[sh] / {
        heading = ""
    }
    /^\.Ss Options: / {
        heading = $0
        sub(/^\.Ss Options: /, "", heading)
        n++
    }
    /^\.It Fl / && heading != "" {
        count = split($0, words, " ")
        for (i = 1; i <= count; i++)
            if (words[i] ~ /^-[a-z][a-z0-9-]+$/)
                print n, heading ": -" words[i]
    }' "$1" | sort -k1,1n -k2 | sed 's/^[0-9]* //'
}

# example: prints the example of a --help on standard input
example()
{
    sed -n '/^example:$/{n; s/^ *//p;}'
}

# formats: prints the formats of `tables import`, which its message lists
formats()
{
    { echo text | "$program" tables import - 2>&1 || true; } |
        sed -n 's/.*unknown format, none of: //p' | tr ',' '\n' |
        sed 's/^ //' | sort
}

# documented_formats: prints those of the table in its page
documented_formats()
{
    sed -n '/^\.Ss Formats/,/^\.El/s/^\.It //p' \
        man/neuroshard-tables-import.1 | sed 's/ Ta .*//' |
        grep -vx 'Sy format' | sort
}

commands()
{
    "$program" --help | sed -n '/^commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p'
}

broken=$(
    formats >"$stage/help"
    documented_formats | diff "$stage/help" - |
        sed -n 's/^< /tables import: the page lacks the format: /p
            s/^> /tables import: the program lacks the format: /p'
    grep -q . "$stage/help" || echo 'tables import: lists no formats'
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
            # shellcheck disable=SC2086 # "tables import" is two words
            "$program" $command --help >"$stage/text"
            example <"$stage/text" | grep -vxF -f "$page" |
                sed "s|^|$page: lacks the example of --help: |"
            ! grep -qx 'options:' "$stage/text" || continue
            [ "$alike" = "$command" ] || continue
            headed <"$stage/text" >"$stage/help"
            grep -qv '^output: ' "$stage/help" || continue
            documented_headed "$page" | diff "$stage/help" - |
                sed -n "s|^< |$page: has other headings: --help has |p; \
                    s|^> |$page: has other headings: --help lacks |p"
        done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
