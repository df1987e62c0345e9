-- SPDX-License-Identifier: MIT
-- The cost database of neuroshard, see neuroshard-costs(5). The program holds
-- this very file and runs it in one transaction when it makes a database;
-- data/schema_upgrade.sql brings one of version 1 here. Times are milliseconds.

PRAGMA application_id = 0x4e534831; -- "NSH1"
PRAGMA user_version = 2;

-- Everything that makes two measurements comparable.
CREATE TABLE setting (
    id        INTEGER PRIMARY KEY,
    device    TEXT NOT NULL,    -- "cpu:AMD EPYC 9575F", "cuda:NVIDIA H200"
    n_threads INTEGER NOT NULL, -- 0 on an accelerator
    precision TEXT NOT NULL,    -- of the weights: fp32, fp16 ...
    optimizer TEXT NOT NULL,
    batch     INTEGER NOT NULL, -- samples looked up on the device
    isa       TEXT NOT NULL,    -- "avx512", "sm_90"
    UNIQUE (device, n_threads, precision, optimizer, batch, isa)
) STRICT;

-- One measurement of fused tables. seed names a list of cases, case_idx a case
-- in it, part one of its tables (1 and up) or all of them (0).
CREATE TABLE sample (
    id                 INTEGER PRIMARY KEY,
    setting_id         INTEGER NOT NULL REFERENCES setting (id),
    seed               INTEGER NOT NULL, -- unsigned, kept as two's complement
    case_idx           INTEGER NOT NULL CHECK (case_idx >= 0),
    kind               TEXT NOT NULL CHECK (kind IN
        ('fused', 'single', 'executed', 'repeat', 'sentinel')),
    part               INTEGER NOT NULL CHECK (part >= 0),
    n_tables           INTEGER NOT NULL CHECK (n_tables BETWEEN 0 AND 1000000),
    forward_median_ms  REAL NOT NULL,
    forward_p10_ms     REAL NOT NULL,
    forward_p90_ms     REAL NOT NULL,
    backward_median_ms REAL NOT NULL,
    backward_p10_ms    REAL NOT NULL,
    backward_p90_ms    REAL NOT NULL,
    total_median_ms    REAL NOT NULL,    -- forward and backward of one step
    total_p10_ms       REAL NOT NULL,
    total_p90_ms       REAL NOT NULL,
    n_iterations       INTEGER NOT NULL,
    flags              INTEGER NOT NULL, -- 1: clocks were lowered meanwhile
    version            TEXT NOT NULL,    -- of the program
    started_at         TEXT NOT NULL,    -- UTC, "2026-11-21T04:05:06Z"
    -- The parts of backward, each alone; 0 where they were not timed apart.
    linearise_median_ms REAL NOT NULL DEFAULT 0,
    linearise_p10_ms    REAL NOT NULL DEFAULT 0,
    linearise_p90_ms    REAL NOT NULL DEFAULT 0,
    sort_median_ms      REAL NOT NULL DEFAULT 0,
    sort_p10_ms         REAL NOT NULL DEFAULT 0,
    sort_p90_ms         REAL NOT NULL DEFAULT 0,
    update_median_ms    REAL NOT NULL DEFAULT 0,
    update_p10_ms       REAL NOT NULL DEFAULT 0,
    update_p90_ms       REAL NOT NULL DEFAULT 0,
    -- The device meanwhile; 0 where it does not say.
    sm_mhz              REAL NOT NULL DEFAULT 0, -- lower of before and after
    memory_mhz          REAL NOT NULL DEFAULT 0, -- so too
    temperature_c       REAL NOT NULL DEFAULT 0, -- higher of both
    power_w             REAL NOT NULL DEFAULT 0, -- so too
    throttle_reasons    INTEGER NOT NULL DEFAULT 0, -- NVML's bits of both
    UNIQUE (setting_id, seed, case_idx, kind, part)
) STRICT;

-- The tables of a sample, as they were measured.
CREATE TABLE sample_table (
    sample_id      INTEGER NOT NULL REFERENCES sample (id) ON DELETE CASCADE,
    table_idx      INTEGER NOT NULL,
    n_rows         INTEGER NOT NULL CHECK (n_rows >= 1),
    dim            INTEGER NOT NULL CHECK (dim >= 1),
    pooling_factor REAL NOT NULL,
    zipf_alpha     REAL,             -- NULL where a reuse histogram was drawn
    n_unique       REAL NOT NULL,    -- mean unique rows a batch
    bins           BLOB NOT NULL CHECK (length(bins) = 136),
                                     -- 17 doubles, little-endian: the reuse
                                     -- histogram that came out
    PRIMARY KEY (sample_id, table_idx)
) STRICT, WITHOUT ROWID;

-- All-to-all between ranks; a size pattern is kept once, the newest wins.
CREATE TABLE comm_sample (
    id           INTEGER PRIMARY KEY,
    setting_id   INTEGER NOT NULL REFERENCES setting (id),
    kind         TEXT NOT NULL,    -- "copy", "mpi", "nccl"
    n_ranks      INTEGER NOT NULL,
    n_hosts      INTEGER NOT NULL DEFAULT 1, -- that the ranks are on
    total_bytes  INTEGER NOT NULL, -- of all blocks, those that stay included
    max_bytes    INTEGER NOT NULL, -- largest max(sent, received) of a rank
    median_ms    REAL NOT NULL,
    p10_ms       REAL NOT NULL,
    p90_ms       REAL NOT NULL,
    n_iterations INTEGER NOT NULL,
    UNIQUE (setting_id, kind, n_ranks, n_hosts, total_bytes, max_bytes)
) STRICT;

-- What a device does at best, by the plainest code; a probe is kept once, the
-- newest wins. What a kind has no use for is 0.
CREATE TABLE ceiling (
    id           INTEGER PRIMARY KEY,
    device       TEXT NOT NULL,    -- these three as in setting
    n_threads    INTEGER NOT NULL,
    isa          TEXT NOT NULL,
    kind         TEXT NOT NULL,    -- "read", "copy", "gather", "sort", "launch"
    n_bytes      INTEGER NOT NULL, -- read, copied, or gathered from
    n            INTEGER NOT NULL, -- rows gathered, pairs sorted
    row_bytes    INTEGER NOT NULL,
    key_bits     INTEGER NOT NULL,
    median_ms    REAL NOT NULL,
    p10_ms       REAL NOT NULL,
    p90_ms       REAL NOT NULL,
    moved_bytes  REAL NOT NULL,    -- what the bandwidth is made of
    n_iterations INTEGER NOT NULL,
    flags        INTEGER NOT NULL, -- as of a sample
    measured_at  TEXT NOT NULL,    -- UTC
    UNIQUE (device, n_threads, isa, kind, n_bytes, n, row_bytes, key_bits)
) STRICT;

-- What `neuroshard train` and `retrain` did with these measurements.
CREATE TABLE training_log (
    id         INTEGER PRIMARY KEY,
    logged_at  TEXT NOT NULL,    -- UTC
    version    TEXT NOT NULL,    -- of the program
    model_path TEXT NOT NULL,
    model_hash TEXT NOT NULL,
    verdict    TEXT NOT NULL,    -- "replaced", "kept" ...
    old_mape   REAL,             -- fractions on held-out samples; NULL: none
    new_mape   REAL,
    n_samples  INTEGER NOT NULL
) STRICT;
