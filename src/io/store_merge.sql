-- SPDX-License-Identifier: MIT
-- Adds the rows of the database "other" to the database "main". If both
-- databases have a row with the same key, the row with the smaller rank is
-- kept. The rank of a row is a tuple of columns; below, a "<" compares the
-- tuples of two rows.

INSERT INTO main.setting ({setting})
SELECT {setting} FROM other.setting WHERE true ORDER BY {setting}
ON CONFLICT DO NOTHING;

-- Copies the samples and exchanges of "other". The copies have the setting ids
-- of "main".
CREATE TABLE other.merged_setting AS
SELECT t.id AS theirs, m.id AS ours
FROM other.setting AS t JOIN main.setting AS m USING ({setting});
CREATE TABLE other.merged_sample AS
SELECT t.id AS id, ours AS setting_id, {sample} FROM other.sample AS t
JOIN other.merged_setting ON setting_id = theirs;
CREATE TABLE other.merged_comm AS
SELECT ours AS setting_id, {comm} FROM other.comm_sample AS t
JOIN other.merged_setting ON setting_id = theirs;

DELETE FROM main.sample WHERE id IN (
    SELECT m.id FROM other.merged_sample AS o
    JOIN main.sample AS m USING (setting_id, {sample_key})
    WHERE (
        SELECT flags, started_at, {sample}, (
            SELECT group_concat(n_rows || ' ' || dim || ' ' ||
                quote(pooling_factor) || quote(zipf_alpha) ||
                quote(n_unique) || hex(bins))
            FROM other.sample_table WHERE sample_id = id)
        FROM other.sample WHERE id = o.id
    ) < (
        SELECT flags, started_at, {sample}, (
            SELECT group_concat(n_rows || ' ' || dim || ' ' ||
                quote(pooling_factor) || quote(zipf_alpha) ||
                quote(n_unique) || hex(bins))
            FROM main.sample_table WHERE sample_id = id)
        FROM main.sample WHERE id = m.id));
INSERT INTO main.sample (setting_id, {sample})
SELECT setting_id, {sample} FROM other.merged_sample WHERE true
ORDER BY setting_id, {sample_key}
ON CONFLICT DO NOTHING;
-- Adds the tables of those samples that were inserted above.
INSERT INTO main.sample_table ({table_key}, {table})
SELECT m.id, table_idx, {table} FROM other.merged_sample AS o
JOIN main.sample AS m USING (setting_id, {sample_key})
JOIN other.sample_table AS t ON t.sample_id = o.id
WHERE m.n_tables = o.n_tables AND NOT EXISTS (
    SELECT 1 FROM main.sample_table AS u WHERE u.sample_id = m.id)
ORDER BY 1, 2;

DELETE FROM main.comm_sample WHERE id IN (
    SELECT m.id FROM other.merged_comm AS o
    JOIN main.comm_sample AS m USING (setting_id, {comm_key})
    WHERE (o.median_ms, o.p10_ms, o.p90_ms, o.n_iterations)
        < (m.median_ms, m.p10_ms, m.p90_ms, m.n_iterations));
INSERT INTO main.comm_sample (setting_id, {comm})
SELECT setting_id, {comm} FROM other.merged_comm WHERE true
ORDER BY setting_id, {comm_key}
ON CONFLICT DO NOTHING;

DELETE FROM main.ceiling WHERE id IN (
    SELECT m.id FROM other.ceiling AS o
    JOIN main.ceiling AS m USING ({device}, {probe})
    WHERE (o.flags, o.median_ms, o.p10_ms, o.p90_ms, o.n_iterations,
            o.moved_bytes, o.measured_at)
        < (m.flags, m.median_ms, m.p10_ms, m.p90_ms, m.n_iterations,
            m.moved_bytes, m.measured_at));
INSERT INTO main.ceiling ({device}, {ceiling}, {moved}, measured_at)
SELECT {device}, {ceiling}, {moved}, measured_at FROM other.ceiling WHERE true
ORDER BY {device}, {probe}
ON CONFLICT DO NOTHING;

DELETE FROM main.product WHERE id IN (
    SELECT m.id FROM other.product AS o
    JOIN main.product AS m USING ({product_device}, {shape})
    WHERE (o.flags, o.median_ms, o.p10_ms, o.p90_ms, o.n_iterations,
            o.measured_at)
        < (m.flags, m.median_ms, m.p10_ms, m.p90_ms, m.n_iterations,
            m.measured_at));
INSERT INTO main.product ({product_device}, {product}, measured_at)
SELECT {product_device}, {product}, measured_at FROM other.product WHERE true
ORDER BY {product_device}, {shape}
ON CONFLICT DO NOTHING;

DELETE FROM main.canary WHERE id IN (
    SELECT m.id FROM other.canary AS o
    JOIN main.canary AS m USING ({machine}, version)
    WHERE (o.best_ms, o.measured_at) < (m.best_ms, m.measured_at));
INSERT INTO main.canary ({machine}, version, {canary}, measured_at)
SELECT {machine}, version, {canary}, measured_at FROM other.canary WHERE true
ORDER BY {machine}, version
ON CONFLICT DO NOTHING;

INSERT INTO main.training_log
    (logged_at, {verdict}, verdict, model_hash, version)
SELECT logged_at, {verdict}, verdict, model_hash, version
FROM other.training_log
EXCEPT SELECT logged_at, {verdict}, verdict, model_hash, version
FROM main.training_log
ORDER BY logged_at, {verdict}, verdict, model_hash, version;
