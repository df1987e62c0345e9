#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tests/check/includes.sh FILE...
#
# Checks the order of includes. A source file x.c first includes its own header
# x.h (or x_private.h), if there is one. Then come the project's headers, then
# the system's, each group sorted. The include of a *_body.h is exempt: it is
# at the place of its code.
set -eu

for file; do
    own=${file%.*}
    own=${own#src/}
    [ -e "${file%.*}.h" ] || own=
    LC_ALL=C awk -v file="$file" -v own="$own" '
        function say(what) { print file ":" FNR ": " what; bad = 1; exit }
        !/^#include [<"]/ || /_body\.h"$/ { next }
        { is_system = $2 ~ /^</; n++ }
        n == 1 && file !~ /h$/ {
            if (own != "" && $2 != "\"" own ".h\"" &&
                $2 != "\"" own "_private.h\"")
                say("include \"" own ".h\" first")
            next
        }
        was_system && !is_system { say("include " $2 " before the headers of the system") }
        last != "" && is_system == was_system && $2 < last {
            say("include " $2 " before " last)
        }
        { was_system = is_system; last = $2 }
        END { exit bad }' "$file" || n_bad=$((${n_bad-0} + 1))
done
[ "${n_bad-0}" = 0 ]
