-- +goose Up
-- What programs insert that give every column a value: no executor yet, no body. SQLite has no statement that takes NOT NULL
-- away; its manual gives this way, which leaves what is stored as it is.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(replace(sql,
  'message_body TEXT NOT NULL', 'message_body TEXT NULL'),
  'ip_address INTEGER NOT NULL DEFAULT 0', 'ip_address INTEGER NULL DEFAULT 0')
WHERE type = 'table' AND name = 'delay_task_message';

PRAGMA writable_schema = RESET;

-- Connections that are open read the schema anew when something was created, and not because of the update above.
CREATE VIEW delay_task_schema AS SELECT 1;
DROP VIEW delay_task_schema;

-- +goose Down
-- The columns stay as they are: rows may hold NULL by now, and versions before read them.
SELECT 1;
