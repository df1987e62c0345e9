#!/bin/sh
# SPDX-License-Identifier: MIT
# Matrix products of the cost database go into a model, which prices the dense
# part of plans by them. Made-up products of a device of 50 GFLOP/s are used.

. "$ROOT/tests/cli/common"
command -v sqlite3 >/dev/null || skip "no sqlite3 tool"

few_samples old.db 60
"$NEUROSHARD" db merge old.db -o costs.db >/dev/null
sqlite3 costs.db "WITH side(x) AS (VALUES (32), (256), (2048)),
    form(f) AS (VALUES ('nn'), ('nt'), ('tn'))
    INSERT INTO product (device, n_threads, isa, type, form, m, n, k, n_batch,
        median_ms, p10_ms, p90_ms, n_iterations, flags, measured_at)
    SELECT device, n_threads, isa, 'fp32', f, a.x, b.x, c.x, 1,
        0.01 + a.x * b.x * c.x / 25e6, 0, 0, 5, a.x * b.x * c.x = 32 * 32 * 32,
        '2026-11-30T00:00:00Z'
    FROM (SELECT * FROM setting LIMIT 1), form, side a, side b, side c"
echo "== three products of a disturbed device are left out"
"$NEUROSHARD" train --db costs.db -o cpu.nsm --kind roofline |
    sed -n '/^products/,/^held-out/p' | sed '$d'
"$NEUROSHARD" train --db costs.db -o all.nsm --kind roofline --disturbed |
    sed -n '/^products/,/^held-out/p' | sed '$d'
"$NEUROSHARD" model info cpu.nsm | sed -n '/^products/p'
cat >tables.csv <<'END'
name,num_embeddings,dim,pooling_factor
a,1000,64,1
b,2000,64,2
END
plan()
{
    "$NEUROSHARD" plan tables.csv --gpus 2 --batch 512 --effort 100 \
        --details "$@" 2>stderr | grep -A 1 '^dense  '
    grep 'no price' stderr || true
}
echo "== priced by them"
plan --cost model:cpu.nsm --dense 'bottom:13-256;interaction:cat;top:256-1'
"$NEUROSHARD" plan tables.csv --gpus 2 --batch 512 --effort 100 -o plan.json \
    --cost model:cpu.nsm --dense 'bottom:13-256;interaction:cat;top:256-1' \
    >/dev/null 2>&1
grep -o '"is_measured": [a-z]*' plan.json
"$NEUROSHARD" cost plan.json --cost model:cpu.nsm --details 2>/dev/null |
    grep '^dense  '
echo "== a type that was not measured, and the GPU's figures"
plan --cost model:cpu.nsm \
    --dense 'bottom:13-256;interaction:cat;top:256-1;dtype:bf16'
plan --cost roofline:cpu --dense 'bottom:13-256;interaction:cat;top:256-1'
