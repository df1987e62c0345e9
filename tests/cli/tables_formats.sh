#!/bin/sh
# SPDX-License-Identifier: MIT
# Imports the examples of each format: each gives its list, or one sentence.

for format in python model easyrec yaml; do
    for path in "$ROOT/tests/fuzz/corpus/tables_$format"/*; do
        echo "== $format ${path##*/}"
        cp "$path" source
        "$NEUROSHARD" tables import source --pooling 3 2>&1 | head -n 8 |
            sed 's/unknown format, .*/unknown format/'
    done
done
