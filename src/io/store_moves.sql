-- SPDX-License-Identifier: MIT
-- Generates the statements that upgrade a database to the current schema. The
-- statements copy the rows of each old table, old_TABLE, to the new table
-- TABLE, column by column. A column that the old table lacks gets its default.
-- Then the statements drop the old tables. An old table is dropped before the
-- tables that its rows refer to.

WITH
new AS (
    SELECT rowid AS at, name FROM sqlite_schema
    WHERE type = 'table' AND rowid >= (
        SELECT rowid FROM sqlite_schema WHERE name = 'setting'))
SELECT group_concat(statement, '') FROM (
    SELECT 0 AS step, at, printf('INSERT INTO %s (%s) SELECT %s FROM old_%s;',
        name, columns, columns, name) AS statement
    FROM (
        SELECT at, new.name, group_concat(printf('"%w"', old.name), ', ')
            AS columns
        FROM new JOIN pragma_table_info('old_' || new.name) AS old
        GROUP BY new.name)
    UNION ALL
    SELECT 1, -at, printf('DROP TABLE IF EXISTS old_%s;', name) FROM new
    ORDER BY step, at);
