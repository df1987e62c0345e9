-- SPDX-License-Identifier: MIT
-- Lists the faults of a database, with one sentence for each fault. A fault is
-- damage to the file, or a reference from one table to a missing row of
-- another.

SELECT replace(replace(integrity_check, '*** in database main ***' || char(10),
    ''), char(10), '; ') || ' (integrity check)'
FROM pragma_integrity_check(1) WHERE integrity_check <> 'ok'
UNION ALL
SELECT "table" || ' ' || coalesce(rowid, '') ||
    ' refers to a row that is not there'
FROM pragma_foreign_key_check;
