# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What bash completes of neuroshard's command lines; the program knows.
_neuroshard()
{
    mapfile -t COMPREPLY < <(
        "$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
    [[ ${COMPREPLY-} != *: ]] || compopt -o nospace
}
complete -o default -F _neuroshard neuroshard
