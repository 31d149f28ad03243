-- +goose Up
-- SQLite has no ADD COLUMN IF NOT EXISTS. Its manual allows to append a column with a constant default in this way, too.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ', bulk TEXT NULL, stop_time TEXT NULL, seen_time TEXT NULL)'
WHERE type = 'table' AND name = 'delay_task_audit' AND instr(sql, 'seen_time') = 0;

PRAGMA writable_schema = RESET;

-- Connections that are open read the schema anew when something was created, and not because of the update above.
CREATE INDEX IF NOT EXISTS delay_task_audit_action ON delay_task_audit (action, id);

-- +goose Down
-- The columns stay: versions that know them read them.
DROP INDEX IF EXISTS delay_task_audit_action;
