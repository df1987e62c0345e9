-- SPDX-License-Identifier: MIT
-- The cost database of neuroshard, see neuroshard-costs(5). The program holds
-- this very file and runs it in one transaction when it makes a database, or
-- brings one of an older version here. Times are milliseconds.

PRAGMA application_id = 0x4e534831; -- "NSH1"
PRAGMA user_version = 6;

-- Everything that makes two measurements comparable. What was measured before
-- version 3 has no driver, cuda and host.
CREATE TABLE setting (
    id        INTEGER PRIMARY KEY,
    device    TEXT NOT NULL     -- "cpu:AMD EPYC 9575F", "cuda:NVIDIA H200"
        CHECK (length(device) BETWEEN 1 AND 200),
    n_threads INTEGER NOT NULL  -- 0 on an accelerator
        CHECK (n_threads BETWEEN 0 AND 1000000),
    precision TEXT NOT NULL     -- of the weights
        CHECK (precision IN ('fp32', 'fp16', 'bf16', 'int8')),
    optimizer TEXT NOT NULL
        CHECK (optimizer IN ('sgd', 'rowwise_adagrad', 'adagrad', 'adam')),
    batch     INTEGER NOT NULL  -- samples looked up on the device
        CHECK (batch BETWEEN 1 AND 4294967295),
    isa       TEXT NOT NULL     -- "avx512", "sm_90"
        CHECK (length(isa) BETWEEN 1 AND 200),
    driver    TEXT NOT NULL DEFAULT '' -- "570.86.15"; of a CPU "Linux 6.1.0"
        CHECK (length(driver) BETWEEN 0 AND 200),
    cuda      TEXT NOT NULL DEFAULT '' -- "12.8"; of a CPU ""
        CHECK (length(cuda) BETWEEN 0 AND 200),
    host      TEXT NOT NULL DEFAULT '' -- its name
        CHECK (length(host) BETWEEN 0 AND 200),
    UNIQUE (device, n_threads, precision, optimizer, batch, isa, driver, cuda,
        host)
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
    part               INTEGER NOT NULL CHECK (part BETWEEN 0 AND 1000000),
    n_tables           INTEGER NOT NULL CHECK (n_tables BETWEEN 0 AND 1000000),
    forward_median_ms  REAL NOT NULL
        CHECK (forward_median_ms BETWEEN 0 AND 1e9),
    forward_p10_ms     REAL NOT NULL CHECK (forward_p10_ms BETWEEN 0 AND 1e9),
    forward_p90_ms     REAL NOT NULL CHECK (forward_p90_ms BETWEEN 0 AND 1e9),
    backward_median_ms REAL NOT NULL
        CHECK (backward_median_ms BETWEEN 0 AND 1e9),
    backward_p10_ms    REAL NOT NULL CHECK (backward_p10_ms BETWEEN 0 AND 1e9),
    backward_p90_ms    REAL NOT NULL CHECK (backward_p90_ms BETWEEN 0 AND 1e9),
    -- Forward and backward of one step.
    total_median_ms    REAL NOT NULL CHECK (total_median_ms BETWEEN 0 AND 1e9),
    total_p10_ms       REAL NOT NULL CHECK (total_p10_ms BETWEEN 0 AND 1e9),
    total_p90_ms       REAL NOT NULL CHECK (total_p90_ms BETWEEN 0 AND 1e9),
    n_iterations       INTEGER NOT NULL
        CHECK (n_iterations BETWEEN 0 AND 4294967295),
    flags              INTEGER NOT NULL -- 1: clocks were lowered meanwhile
        CHECK (flags BETWEEN 0 AND 4294967295),
    version            TEXT NOT NULL    -- of the program
        CHECK (length(version) BETWEEN 0 AND 200),
    started_at         TEXT NOT NULL    -- UTC, "2026-11-21T04:05:06Z"
        CHECK (length(started_at) BETWEEN 0 AND 200),
    -- The parts of backward, each alone; 0 where they were not timed apart.
    linearise_median_ms REAL NOT NULL DEFAULT 0
        CHECK (linearise_median_ms BETWEEN 0 AND 1e9),
    linearise_p10_ms    REAL NOT NULL DEFAULT 0
        CHECK (linearise_p10_ms BETWEEN 0 AND 1e9),
    linearise_p90_ms    REAL NOT NULL DEFAULT 0
        CHECK (linearise_p90_ms BETWEEN 0 AND 1e9),
    sort_median_ms      REAL NOT NULL DEFAULT 0
        CHECK (sort_median_ms BETWEEN 0 AND 1e9),
    sort_p10_ms         REAL NOT NULL DEFAULT 0
        CHECK (sort_p10_ms BETWEEN 0 AND 1e9),
    sort_p90_ms         REAL NOT NULL DEFAULT 0
        CHECK (sort_p90_ms BETWEEN 0 AND 1e9),
    update_median_ms    REAL NOT NULL DEFAULT 0
        CHECK (update_median_ms BETWEEN 0 AND 1e9),
    update_p10_ms       REAL NOT NULL DEFAULT 0
        CHECK (update_p10_ms BETWEEN 0 AND 1e9),
    update_p90_ms       REAL NOT NULL DEFAULT 0
        CHECK (update_p90_ms BETWEEN 0 AND 1e9),
    -- The device meanwhile, clocks the lower of before and after, the rest the
    -- higher; 0 where it does not say.
    sm_mhz              REAL NOT NULL DEFAULT 0
        CHECK (sm_mhz BETWEEN 0 AND 1e6),
    memory_mhz          REAL NOT NULL DEFAULT 0
        CHECK (memory_mhz BETWEEN 0 AND 1e6),
    temperature_c       REAL NOT NULL DEFAULT 0
        CHECK (temperature_c BETWEEN 0 AND 1e6),
    power_w             REAL NOT NULL DEFAULT 0
        CHECK (power_w BETWEEN 0 AND 1e6),
    throttle_reasons    INTEGER NOT NULL DEFAULT 0, -- NVML's bits of both
    UNIQUE (setting_id, seed, case_idx, kind, part)
) STRICT;

-- The tables of a sample, as they were measured.
CREATE TABLE sample_table (
    sample_id      INTEGER NOT NULL REFERENCES sample (id) ON DELETE CASCADE,
    table_idx      INTEGER NOT NULL CHECK (table_idx BETWEEN 0 AND 1000000),
    n_rows         INTEGER NOT NULL
        CHECK (n_rows BETWEEN 1 AND 9007199254740992),
    dim            INTEGER NOT NULL CHECK (dim BETWEEN 1 AND 1048576),
    pooling_factor REAL NOT NULL CHECK (pooling_factor BETWEEN 0 AND 1e6),
    zipf_alpha     REAL              -- NULL where a reuse histogram was drawn
        CHECK (zipf_alpha BETWEEN 0 AND 100),
    n_unique       REAL NOT NULL     -- mean unique rows a batch
        CHECK (n_unique BETWEEN 0 AND 9007199254740992),
    bins           BLOB NOT NULL CHECK (length(bins) = 136),
                                     -- 17 doubles, little-endian: the reuse
                                     -- histogram that came out
    PRIMARY KEY (sample_id, table_idx)
) STRICT, WITHOUT ROWID;

-- All-to-all between ranks; a size pattern is kept once, the newest wins.
CREATE TABLE comm_sample (
    id           INTEGER PRIMARY KEY,
    setting_id   INTEGER NOT NULL REFERENCES setting (id),
    kind         TEXT NOT NULL    -- "copy", "mpi", "shm", "nccl"
        CHECK (length(kind) BETWEEN 1 AND 200),
    n_ranks      INTEGER NOT NULL CHECK (n_ranks BETWEEN 1 AND 1000000),
    n_hosts      INTEGER NOT NULL DEFAULT 1 -- that the ranks are on
        CHECK (n_hosts BETWEEN 1 AND 1000000),
    total_bytes  INTEGER NOT NULL -- of all blocks, those that stay included
        CHECK (total_bytes BETWEEN 0 AND 9007199254740992),
    max_bytes    INTEGER NOT NULL -- largest max(sent, received) of a rank
        CHECK (max_bytes BETWEEN 0 AND 9007199254740992),
    median_ms    REAL NOT NULL CHECK (median_ms BETWEEN 0 AND 1e9),
    p10_ms       REAL NOT NULL CHECK (p10_ms BETWEEN 0 AND 1e9),
    p90_ms       REAL NOT NULL CHECK (p90_ms BETWEEN 0 AND 1e9),
    n_iterations INTEGER NOT NULL
        CHECK (n_iterations BETWEEN 0 AND 4294967295),
    -- Largest max(sent, received) of a host, to and from other hosts. 0: one
    -- host, or measured before version 5.
    host_bytes   INTEGER NOT NULL DEFAULT 0
        CHECK (host_bytes BETWEEN 0 AND 9007199254740992),
    UNIQUE (setting_id, kind, n_ranks, n_hosts, total_bytes, max_bytes)
) STRICT;

-- What a device does at best, by the plainest code; a probe is kept once, the
-- newest wins. What a kind has no use for is 0.
CREATE TABLE ceiling (
    id           INTEGER PRIMARY KEY,
    device       TEXT NOT NULL    -- these three as in setting
        CHECK (length(device) BETWEEN 1 AND 200),
    n_threads    INTEGER NOT NULL CHECK (n_threads BETWEEN 0 AND 1000000),
    isa          TEXT NOT NULL CHECK (length(isa) BETWEEN 1 AND 200),
    kind         TEXT NOT NULL CHECK (kind IN
        ('read', 'copy', 'gather', 'sort', 'launch')),
    n_bytes      INTEGER NOT NULL -- read, copied, or gathered from
        CHECK (n_bytes BETWEEN 0 AND 9007199254740992),
    n            INTEGER NOT NULL -- rows gathered, pairs sorted
        CHECK (n BETWEEN 0 AND 9007199254740992),
    row_bytes    INTEGER NOT NULL CHECK (row_bytes BETWEEN 0 AND 4294967295),
    key_bits     INTEGER NOT NULL CHECK (key_bits BETWEEN 0 AND 64),
    median_ms    REAL NOT NULL CHECK (median_ms BETWEEN 0 AND 1e9),
    p10_ms       REAL NOT NULL CHECK (p10_ms BETWEEN 0 AND 1e9),
    p90_ms       REAL NOT NULL CHECK (p90_ms BETWEEN 0 AND 1e9),
    moved_bytes  REAL NOT NULL    -- what the bandwidth is made of
        CHECK (moved_bytes BETWEEN 0 AND 1e18),
    n_iterations INTEGER NOT NULL
        CHECK (n_iterations BETWEEN 0 AND 4294967295),
    flags        INTEGER NOT NULL -- as of a sample
        CHECK (flags BETWEEN 0 AND 4294967295),
    measured_at  TEXT NOT NULL,   -- UTC
    UNIQUE (device, n_threads, isa, kind, n_bytes, n, row_bytes, key_bits)
) STRICT;

-- The time of a batch of matrix products of one shape, as layers of the dense
-- part of a model have them; the newest wins.
CREATE TABLE product (
    id           INTEGER PRIMARY KEY,
    device       TEXT NOT NULL    -- these three as in setting
        CHECK (length(device) BETWEEN 1 AND 200),
    n_threads    INTEGER NOT NULL CHECK (n_threads BETWEEN 0 AND 1000000),
    isa          TEXT NOT NULL CHECK (length(isa) BETWEEN 1 AND 200),
    type         TEXT NOT NULL CHECK (type IN ('fp32', 'tf32', 'fp16', 'bf16')),
    form         TEXT NOT NULL    -- the transposed factors, or operations on
                                  -- the elements of an m x n matrix
        CHECK (form IN ('nn', 'nt', 'tn', 'relu', 'relu_gradient')),
    m            INTEGER NOT NULL CHECK (m BETWEEN 1 AND 4294967295),
    n            INTEGER NOT NULL CHECK (n BETWEEN 1 AND 4294967295),
    k            INTEGER NOT NULL CHECK (k BETWEEN 1 AND 4294967295),
    n_batch      INTEGER NOT NULL -- products
        CHECK (n_batch BETWEEN 1 AND 4294967295),
    median_ms    REAL NOT NULL    -- of the whole batch
        CHECK (median_ms BETWEEN 0 AND 1e9),
    p10_ms       REAL NOT NULL CHECK (p10_ms BETWEEN 0 AND 1e9),
    p90_ms       REAL NOT NULL CHECK (p90_ms BETWEEN 0 AND 1e9),
    n_iterations INTEGER NOT NULL
        CHECK (n_iterations BETWEEN 0 AND 4294967295),
    flags        INTEGER NOT NULL -- as of a sample
        CHECK (flags BETWEEN 0 AND 4294967295),
    measured_at  TEXT NOT NULL,   -- UTC
    UNIQUE (device, n_threads, isa, type, form, m, n, k, n_batch)
) STRICT;

-- The best time of the canary, a small case beside each measurement, on a
-- machine: what takes longer than that tells that it is disturbed.
CREATE TABLE canary (
    id          INTEGER PRIMARY KEY,
    device      TEXT NOT NULL    -- these six as in setting
        CHECK (length(device) BETWEEN 1 AND 200),
    n_threads   INTEGER NOT NULL CHECK (n_threads BETWEEN 0 AND 1000000),
    isa         TEXT NOT NULL CHECK (length(isa) BETWEEN 1 AND 200),
    driver      TEXT NOT NULL CHECK (length(driver) BETWEEN 0 AND 200),
    cuda        TEXT NOT NULL CHECK (length(cuda) BETWEEN 0 AND 200),
    host        TEXT NOT NULL CHECK (length(host) BETWEEN 0 AND 200),
    version     TEXT NOT NULL,   -- of the program, whose case it is
    best_ms     REAL NOT NULL CHECK (best_ms BETWEEN 0 AND 1e9),
    measured_at TEXT NOT NULL,   -- UTC
    UNIQUE (device, n_threads, isa, driver, cuda, host, version)
) STRICT;

-- The verdicts of `neuroshard retrain`, and what they rest on.
CREATE TABLE training_log (
    id         INTEGER PRIMARY KEY,
    logged_at  TEXT NOT NULL,    -- UTC
    version    TEXT NOT NULL,    -- of the program
    model_path TEXT NOT NULL,
    model_hash TEXT NOT NULL,    -- of the one that stands
    verdict    TEXT NOT NULL,    -- "replaced", "kept" ...
    old_mape   REAL,             -- fractions on held-out samples; NULL: none
    new_mape   REAL,
    n_samples  INTEGER NOT NULL, -- that the new one was trained on
    old_hash   TEXT NOT NULL DEFAULT '', -- the model in use
    new_hash   TEXT NOT NULL DEFAULT '', -- its rival
    n_held_out INTEGER NOT NULL DEFAULT 0, -- that judged both
    gain_se    REAL,             -- standard error of old_mape - new_mape
    min_gain   REAL,             -- that was asked of it
    reason     TEXT NOT NULL DEFAULT '', -- where the gain did not count
    setting    TEXT NOT NULL DEFAULT ''  -- that the new one was trained on
) STRICT;
