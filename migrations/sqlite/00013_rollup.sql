-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_rollup (
  span INTEGER NOT NULL,                -- minutes that the row is about: 1 or 60; 0: a mark
  bucket TEXT NOT NULL,                 -- UTC; when these begin, and the moment of a mark
  tag TEXT NOT NULL,                    -- empty: all tags together; (other): those that the process does not count apart
  node TEXT NOT NULL,                   -- token of the process that has counted
  completed INTEGER NOT NULL DEFAULT 0, -- tasks
  retried INTEGER NOT NULL DEFAULT 0,   -- failed attempts that another one follows
  failed INTEGER NOT NULL DEFAULT 0,    -- tasks, for good
  lost INTEGER NOT NULL DEFAULT 0,      -- leases whose executor was gone
  late TEXT NOT NULL DEFAULT '',        -- lateness of first attempts, as pairs class:number
  late_max INTEGER NOT NULL DEFAULT 0,  -- microseconds; the latest first attempt
  mark TEXT NOT NULL DEFAULT '',        -- joined, left, lost, paused, resumed or failover, and the name of the node
  PRIMARY KEY (span, bucket, tag, node)
) WITHOUT ROWID;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_rollup;
