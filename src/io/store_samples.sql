-- SPDX-License-Identifier: MIT
-- Selects the samples for a text that has one line per sample.
-- neuroshard-costs(5) describes the columns. If a column's name ends in a dot
-- and a number, this number is the number of decimals with which the column is
-- printed. Numbers of the other columns have six significant digits.

SELECT
    device, n_threads AS threads, isa, batch, precision, optimizer,
    printf('%016x', seed) AS seed, case_idx AS "case", kind, part, n_tables,
    coalesce(sum(dim), 0) AS dims,
    coalesce(sum(n_rows), 0) AS rows,
    coalesce(sum(pooling_factor * batch), 0) AS "lookups.0",
    coalesce(sum(n_unique), 0) AS "unique_rows.0",
    forward_median_ms AS forward_ms, forward_p10_ms, forward_p90_ms,
    backward_median_ms AS backward_ms, backward_p10_ms, backward_p90_ms,
    total_median_ms AS total_ms, total_p10_ms, total_p90_ms,
    linearise_median_ms AS linearise_ms, sort_median_ms AS sort_ms,
    update_median_ms AS update_ms,
    sm_mhz AS "sm_mhz.0", memory_mhz AS "memory_mhz.0",
    temperature_c AS "temperature_c.0", power_w AS "power_w.1",
    printf('%u', throttle_reasons) AS throttle_reasons,
    n_iterations AS iterations, flags, version, started_at
FROM setting
JOIN sample ON setting_id = setting.id
LEFT JOIN sample_table ON sample_id = sample.id
GROUP BY sample.id
ORDER BY setting_id, sample.seed < 0, sample.seed, case_idx,
    instr('fused single executed repeat sentinel', kind), part;
