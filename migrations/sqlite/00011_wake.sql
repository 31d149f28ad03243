-- +goose Up
-- SQLite has no ADD COLUMN IF NOT EXISTS. Its manual allows to append a column with a constant default in this way, too.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ', wake TEXT)'
WHERE type = 'table' AND name = 'delay_task_node' AND instr(sql, ', wake TEXT') = 0;

PRAGMA writable_schema = RESET;

-- Connections that are open read the schema anew when something was created, and not because of the update above.
CREATE VIEW delay_task_schema AS SELECT 1;
DROP VIEW delay_task_schema;

-- +goose Down
-- The column stays: versions that know it do not start without it.
SELECT 1;
