#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/names.sh PROGRAM STAGE
#
# Checks that names in the manual and in comments exist:
#
# - Each option in a page or a comment is an option of PROGRAM.
# - Each default that --help prints is in the option's entry of the page.
# - Each choice that --help prints is in the page.
# - Each file that is named exists.
# - Each name with an underscore in a comment occurs in the code.
#
# Uses the folder STAGE for temporary files.
set -eu

program=$1
stage=$2
mkdir -p "$stage"

commands=$("$program" --help |
    sed -n '/^commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p' | tr ' ' -)

# unwrapped: joins the lines of a --help on standard input, so that each option
# is on one line.
unwrapped()
{
    sed -e ':more' -e 'N' -e 's/\n   *\([^ -]\)/ \1/' -e 't more' -e 'P' -e 'D'
}
for command in $commands; do
    # shellcheck disable=SC2046 # "tables-import" is two words
    "$program" $(echo "$command" | tr - ' ') --help | unwrapped \
        >"$stage/$command.help"
done

# Options of other programs that the text mentions.
foreign_options='--help --version --bind-to --adagrad --md-flag'
{
    for word in $foreign_options; do echo "$word"; done
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' "$stage"/*.help
} | sort -u >"$stage/options"

sources=$(git ls-files 'src/*.[ch]' 'src/*.cu' 'costmodel/*.[ch]' \
    'search/*.[ch]' 'microbench/*.[ch]')
pages='README.md CONTRIBUTING.md search/README.md data/SOURCES.md data/FIGURES.md'
code=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' Makefile 'data/*.sql' \
    'tests/*.py')

# comments WANTED FILE...: prints the comments of C files (WANTED 1) or the
# code between them (WANTED 0), each line after its location.
comments()
{
    wanted=$1
    shift
    awk -v wanted="$wanted" 'FNR == 1 { within = 0 }
    {
        rest = $0
        out = ""
        while (rest != "") {
            at = index(rest, within ? "*/" : "/*")
            part = at ? substr(rest, 1, at - 1) : rest
            if (within == wanted)
                out = out part " "
            rest = at ? substr(rest, at + 2) : ""
            if (at)
                within = !within
        }
        if (out ~ /[^ ]/)
            print FILENAME ":" FNR ": " out
    }' "$@"
}

# shellcheck disable=SC2086 # lists of files
comments 1 $sources >"$stage/comments"
# shellcheck disable=SC2086
comments 0 $code | sed 's/^[^ ]* //' |
    grep -oE '[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+' | sort -u >"$stage/names"
git ls-files | sed 's|.*/||; s|\.[a-z]*$||' | sort -u >>"$stage/names"
# Foreign names: a data set, a library's type, a launcher's variable.
printf '%s\n' dlrm_datasets dlrm_s_pytorch fbgemm_t856_bs65536 ncclComm_t SLURM_NTASKS \
    SQLITE_MISUSE >>"$stage/names"
sort -u -o "$stage/names" "$stage/names"

# words REGEX: prints "WORD PLACE" for each match in lines "PLACE: text".
words()
{
    awk -v regex="$1" '{
        place = $1
        sub(/:$/, "", place)
        text = substr($0, length($1) + 2)
        while (match(text, regex)) {
            print substr(text, RSTART, RLENGTH), place
            text = substr(text, RSTART + RLENGTH)
        }
    }' | sort -u
}

# absent WHAT LIST: reports "WORD PLACE" lines whose word is not in the list.
absent()
{
    join -v 1 - "$2" |
        while read -r word place; do
            echo "$place: there is no $1 '$word'"
        done
}

# page COMMAND: prints its own page, or the page shared by all commands with
# the same first word.
page()
{
    [ -f "man/neuroshard-$1.1" ] && echo "man/neuroshard-$1.1" ||
        echo "man/neuroshard-${1%%-*}.1"
}

# defaults COMMAND: compares the defaults in --help (in brackets) with the
# page.
defaults()
{
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\) .*[^]] \[\([^] ]*\)\]$/\2 \3/p' \
        "$stage/$1.help" | grep -v KEY=VALUE |
        while read -r option value; do
            page=$(page "$1")
            awk -v option=" ${option#-} " '
            /^\.It / || /^\.El/ || /^\.Sh/ {
                within = index($0 " ", option) > 0
                next
            }
            within {
                gsub(/^\.[A-Z][a-z] |\\&| Ns /, "")
                print
            }' "$page" | tr '\n' ' ' |
                grep -qE "$(printf '%s' "$value" | sed 's/[.+]/\\&/g
                    s/.*/[Dd]efault[:,]? "?&([ ,;.]|$)|& ?([a-z ]*),? the default/
                ')" ||
                echo "$page: $option does not say that its default is $value"
        done
}

# choices COMMAND: checks that each choice in --help, written "(ONE|OTHER)" or
# "(ONE:FILE, OTHER)", is in the option's entry of the page. The entry may also
# be in the page of plan, as other pages refer to it.
choices()
{
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\) .*\((.*)\)\( \[.*\]\)\{0,1\}$/\2 \3/p' \
        "$stage/$1.help" |
        while read -r option list; do
            awk -v option=" ${option#-} " '
            FNR == 1 { within = 0 }
            /^\.It Fl / || /^\.S[hs]/ { within = index($0 " ", option) > 0 }
            within' "$(page "$1")" man/neuroshard-plan.1 >"$stage/entry"
            echo "$list" | grep -oE '(^\(|\||, )[a-z][a-z0-9_-]*' |
                sed 's/.*[(| ]//' |
                while read -r choice; do
                    grep -qE "^\.(.* )?Cm (.* )?$choice( |\$)" \
                        "$stage/entry" ||
                        echo "$(page "$1"): $option lacks '$choice'"
                done
        done
}

broken=$(
    # Checks flags in the text of pages; check-pages checks the option lists. A
    # flag with an underscore belongs to a DLRM script.
    grep -HnoE 'Fl -[a-z][a-z0-9_-]*' man/*.[1-9] | grep -v _ |
        sed 's/Fl -/ --/' | words '--[a-z][a-z0-9-]*' | absent option "$stage/options"
    words "'--[a-z][a-z0-9-]*" <"$stage/comments" | sed "s/^'//" | sort |
        absent option "$stage/options"
    for command in $commands; do
        defaults "$command"
        choices "$command"
    done
    # Ignored: index letters (S_r, B_p), numbers (cat_9) and placeholders in
    # capitals (cmd_NAME, net_comm_R_bw).
    words '[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+' <"$stage/comments" |
        grep -vE '^[^ ]*_([a-zA-Z]|[0-9]+) ' | grep -vE '^[A-Z]_[^ ]* ' |
        grep -vE '^([a-z][^ ]*_[A-Z]|[A-Z]+_[a-z])[^ ]* ' |
        absent name "$stage/names"
    # A comment names a file relative to the root, to src or to its own folder.
    words '[a-z_]+/[a-z0-9_/.-]*[a-z0-9_]\.(h|c|cu|sh|sql|csv|md|txt)' \
        <"$stage/comments" |
        while read -r file place; do
            [ -e "$file" ] || [ -e "src/$file" ] ||
                [ -e "$(dirname "$place")/$file" ] ||
                echo "$place: there is no file '$file'"
        done
    # A page names a file relative to the root, and the page of a folder
    # relative to its folder. A C file may be named without its folder, because
    # its name occurs once.
    # shellcheck disable=SC2086 # a list of files
    grep -HnoE '(data|tests|src|man)/[a-z0-9_/.-]*[a-z0-9]|[a-z0-9_/]+\.(c|h|cu)\b' \
        man/*.[1-9] $pages | grep -v '/$' |
        while IFS=: read -r page line file; do
            [ -e "$file" ] || [ -e "src/$file" ] ||
                [ -e "$file.c" ] || # a program that is built
                git ls-files | grep -q "/${file#/}$" ||
                echo "$page:$line: there is no file '$file'"
        done
)
[ -z "$broken" ] || { echo "$broken"; exit 1; } >&2
