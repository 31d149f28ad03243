-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_worker (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app TEXT NOT NULL,                    -- the application that the address belongs to
  address TEXT NOT NULL,                -- URL that tasks are posted to
  address_hash BLOB NOT NULL,           -- SHA-256 of the address
  tags TEXT NOT NULL,                   -- JSON array: the tags whose tasks it takes
  secret BLOB NULL,                     -- signs the calls; sealed with DELAYTASK_SECRET; NULL: they are not signed
  ttl INTEGER NOT NULL,                 -- milliseconds that it lives without a heartbeat
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NOT NULL,            -- UTC; no task is posted from then on; a heartbeat moves it
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  UNIQUE (app, address_hash)
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_worker;
