-- SPDX-License-Identifier: MIT
-- Generates the statements that print a database as text: each row of their
-- results is a line of the text. The first statement gives the header, which
-- has the column names of all tables, each name once. Each of the other
-- statements gives the rows of one table, with an empty cell for each column
-- that the table lacks.

WITH
tables AS (
    SELECT rowid AS at, name FROM sqlite_schema WHERE type = 'table'),
columns AS MATERIALIZED (
    SELECT c.name AS name FROM tables AS t JOIN pragma_table_info(t.name) AS c
    GROUP BY c.name ORDER BY min(1000 * at + cid))
SELECT group_concat(statement, ' ') FROM (
    SELECT 0 AS at,
        'SELECT ''table'', ''' || group_concat(name, ''', ''') || ''';'
        AS statement
    FROM columns
    UNION ALL
    SELECT at,
        'SELECT ''' || t.name || ''', ' || (
            SELECT group_concat(coalesce(own.name, 'NULL'), ', ')
            FROM columns AS c
            LEFT JOIN pragma_table_info(t.name) AS own USING (name)) ||
        ' FROM ' || t.name || ' ORDER BY ' || (
            SELECT group_concat(name, ', ') FROM (
                SELECT name FROM pragma_table_info(t.name)
                WHERE pk ORDER BY pk)) || ';'
    FROM tables AS t
    ORDER BY at);
