-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_node (
  number INTEGER PRIMARY KEY,           -- leased node number: part of the ids that the process makes
  token TEXT NOT NULL,                  -- drawn when the process starts; guards every write to the row
  name TEXT NOT NULL DEFAULT '',
  host TEXT NOT NULL DEFAULT '',        -- machine and pid namespace that pid belongs to
  pid INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL DEFAULT 0, -- start time of the process as its kernel counts it
  address TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',     -- of delaytask
  tags TEXT NOT NULL,                   -- JSON array: the tags that the process serves
  leaving INTEGER NOT NULL DEFAULT 0,   -- 1: the process is stopping
  heartbeat TEXT NOT NULL               -- UTC
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_node;
