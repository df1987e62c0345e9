# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What bash completes of neuroshard's command lines; the program knows.
_neuroshard()
{
    local word words=()

    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do # of --NAME=VALUE bash
        [[ $word = = ]] || words+=("$word")         # makes three words
    done
    [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=("")
    mapfile -t COMPREPLY < <(
        "$1" complete "${words[@]}" 2>/dev/null | cut -f 1)
    [[ ${COMPREPLY-} != *: ]] || compopt -o nospace
}
complete -o default -F _neuroshard neuroshard
