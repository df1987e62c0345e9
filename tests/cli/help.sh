#!/bin/sh
# SPDX-License-Identifier: MIT
# Help fits 80 columns, and "help COMMAND" prints the same as COMMAND --help.
set -u

"$NEUROSHARD" help >usage.txt || exit 1
cmp usage.txt - <<EOF
$("$NEUROSHARD" --help)
EOF
sed -n '/^commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p' usage.txt >commands.txt
while read -r command; do
    # shellcheck disable=SC2086 # "tables import" is two words
    {
        "$NEUROSHARD" help $command >help.txt || exit 1
        "$NEUROSHARD" $command --help | cmp - help.txt
    }
    cat help.txt >>usage.txt
done <commands.txt
echo "$(grep -c plan commands.txt) command plans"
awk 'length > 80 {
    print "wider than 80 columns: " $0
}' usage.txt
# headings of the options, and the example
"$NEUROSHARD" plan --help | sed -n '/^[a-z ]*:$/p; /^example:$/{n; p;}'
# options of several tables share a heading
"$NEUROSHARD" cost --help | sed -n '/^cluster:$/,/^$/s/^.\{6\}\(--[^ ]*\).*/\1/p'
