# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What bash completes of neuroshard's command lines; the program lists the words
# that may follow a key, which is made of the words before.
_neuroshard()
{
    local word list line key command last words=() tab=$'\t'

    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do # of --NAME=VALUE bash
        [[ $word = = ]] || words+=("$word")         # makes three words
    done
    [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=("")
    word=${words[-1]}
    unset 'words[-1]'
    list=$'\n'$("$1" complete 2>/dev/null)
    key="${words[*]}" last="${words[*]: -1}" command=${words-}
    [[ $list != *$'\n'"$command$tab${words[1]-}$tab"* ]] ||
        command+=" ${words[1]}"
    if [[ $list = *$'\n'"$command=$last$tab"* ]]; then
        key="$command=$last"
    elif [[ $word = -* ]]; then
        key="$command="
    elif [[ $command = help ]]; then
        key="${words[*]:1}"
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        [[ $line = "$key$tab$word"*"$tab"* ]] || continue
        line=${line#*"$tab"}
        COMPREPLY+=("${line%%"$tab"*}")
    done <<<"$list"
    [[ ${COMPREPLY-} != *: ]] || compopt -o nospace
}
complete -o default -F _neuroshard neuroshard
