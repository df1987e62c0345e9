#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/commits.sh
#
# Checks the subjects of all commits after the one that set VERSION to 0.2.0:
# at most 60 columns, "area: verb ..." with the verb in the imperative, no full
# stop. A commit that changes more than 20 lines needs a body that says why.
# Without git, or without that commit in the history, nothing is checked.
set -eu

MAX_COLUMNS=60
MAX_LINES_WITHOUT_BODY=20

since=$(git log -1 --format=%H -S'0.2.0' -- VERSION 2>/dev/null) || exit 0
[ -n "$since" ] || exit 0

# wrong COMMIT REASON
wrong()
{
    echo "commit $(git log -1 --format='%h "%s"' "$1"): $2" >&2
    failed=1
}

failed=0
for commit in $(git rev-list --no-merges "$since..HEAD"); do
    subject=$(git log -1 --format=%s "$commit")
    body=$(git log -1 --format=%b "$commit")
    lines=$(git show --numstat --format= "$commit" |
        awk '{ n += $1 + $2 } END { print n + 0 }')
    [ ${#subject} -le $MAX_COLUMNS ] ||
        wrong "$commit" "the subject has ${#subject} columns, of $MAX_COLUMNS"
    case $subject in
    [a-zA-Z]*": "[a-zA-Z]*) ;;
    *) wrong "$commit" "the subject is not 'area: verb ...'" ;;
    esac
    verb=${subject#*: }
    case ${verb%% *} in
    embed | feed | need | seed | bring) ;;
    *ed | *ing | the | The | a | A | an | An | more | less | no | words | "")
        wrong "$commit" "'${verb%% *}' is no verb in the imperative" ;;
    esac
    case $subject in
    *.) wrong "$commit" "the subject ends with a full stop" ;;
    esac
    [ -n "$body" ] || [ "$lines" -le $MAX_LINES_WITHOUT_BODY ] ||
        wrong "$commit" "changes $lines lines, and no body says why"
done
exit $failed
