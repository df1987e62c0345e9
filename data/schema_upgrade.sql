-- SPDX-License-Identifier: MIT
-- From version 1 of data/schema.sql to version 2. The program runs this in one
-- transaction when it first writes to an old database, and on a copy in memory
-- when it only reads one.

ALTER TABLE sample ADD COLUMN linearise_median_ms REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN linearise_p10_ms    REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN linearise_p90_ms    REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN sort_median_ms      REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN sort_p10_ms         REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN sort_p90_ms         REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN update_median_ms    REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN update_p10_ms       REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN update_p90_ms       REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN sm_mhz              REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN memory_mhz          REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN temperature_c       REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN power_w             REAL NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN throttle_reasons    INTEGER NOT NULL DEFAULT 0;

-- Its unique columns change, which only a new table can do.
ALTER TABLE comm_sample RENAME TO comm_sample_1;
CREATE TABLE comm_sample (
    id           INTEGER PRIMARY KEY,
    setting_id   INTEGER NOT NULL REFERENCES setting (id),
    kind         TEXT NOT NULL,
    n_ranks      INTEGER NOT NULL,
    n_hosts      INTEGER NOT NULL DEFAULT 1,
    total_bytes  INTEGER NOT NULL,
    max_bytes    INTEGER NOT NULL,
    median_ms    REAL NOT NULL,
    p10_ms       REAL NOT NULL,
    p90_ms       REAL NOT NULL,
    n_iterations INTEGER NOT NULL,
    UNIQUE (setting_id, kind, n_ranks, n_hosts, total_bytes, max_bytes)
) STRICT;
INSERT INTO comm_sample (id, setting_id, kind, n_ranks, total_bytes, max_bytes,
    median_ms, p10_ms, p90_ms, n_iterations)
SELECT id, setting_id, kind, n_ranks, total_bytes, max_bytes, median_ms,
    p10_ms, p90_ms, n_iterations FROM comm_sample_1;
DROP TABLE comm_sample_1;

CREATE TABLE ceiling (
    id           INTEGER PRIMARY KEY,
    device       TEXT NOT NULL,
    n_threads    INTEGER NOT NULL,
    isa          TEXT NOT NULL,
    kind         TEXT NOT NULL,
    n_bytes      INTEGER NOT NULL,
    n            INTEGER NOT NULL,
    row_bytes    INTEGER NOT NULL,
    key_bits     INTEGER NOT NULL,
    median_ms    REAL NOT NULL,
    p10_ms       REAL NOT NULL,
    p90_ms       REAL NOT NULL,
    moved_bytes  REAL NOT NULL,
    n_iterations INTEGER NOT NULL,
    flags        INTEGER NOT NULL,
    measured_at  TEXT NOT NULL,
    UNIQUE (device, n_threads, isa, kind, n_bytes, n, row_bytes, key_bits)
) STRICT;

PRAGMA user_version = 2;
