-- SPDX-License-Identifier: MIT
-- The statements of an upgrade: they move the rows of each old_TABLE to the new
-- one, column by column, where what the old one lacks gets its default, and
-- then drop the old ones, each before those that its rows refer to.

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
