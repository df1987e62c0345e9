#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/words.sh FILE...
#
# Fails if the code of a C or CUDA file uses a word that CONTRIBUTING.md bans:
# a name that the glossary replaced, a preposition as an identifier, or a struct
# tag that another file defines as well. Comments and strings are not looked at.
set -eu

# Parts of identifiers that the glossary replaced.
banned='tryout|tryouts|homes|lessons|toll|laps|rig|canary|quantum|quanta|heaviness'
prepositions='of|at|on|than'

awk -v banned="$banned" -v prepositions="$prepositions" '
FNR == 1 { within = 0 }
{
    line = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    code = ""
    while (line != "") {
        end = index(line, within ? "*/" : "/*")
        piece = end ? substr(line, 1, end - 1) : line
        if (!within)
            code = code piece " "
        line = end ? substr(line, end + 2) : ""
        if (end)
            within = !within
    }
    sub(/\/\/.*/, "", code)
    if (match(code, /(struct|union|enum) [a-z_0-9]+ *\{/)) {
        split(substr(code, RSTART, RLENGTH), tag, " ")
        if (tag[2] in defined && defined[tag[2]] != FILENAME) {
            print FILENAME ":" FNR ": struct " tag[2] " is also defined in " \
                defined[tag[2]]
            failed = 1
        }
        defined[tag[2]] = FILENAME
    }
    n = split(code, words, /[^A-Za-z_0-9]+/)
    for (i = 1; i <= n; i++) {
        word = tolower(words[i])
        if (word ~ "^(" prepositions ")$" ||
            word ~ "(^|_)(" banned ")(_|$)") {
            print FILENAME ":" FNR ": \"" words[i] "\": use the word of " \
                "CONTRIBUTING.md"
            failed = 1
        }
    }
}
END { exit failed }' "$@" >&2
