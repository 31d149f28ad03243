-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_token (
  name TEXT PRIMARY KEY NOT NULL,       -- who calls, for people and logs
  hash BLOB NOT NULL UNIQUE,            -- SHA-256 of the token, which is stored nowhere
  tags TEXT NOT NULL,                   -- JSON array: the tags it may use, each exact or a prefix that ends in *
  verbs TEXT NOT NULL,                  -- JSON array: what it may do with them
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NULL                 -- UTC; from then on it is refused; NULL: never
) WITHOUT ROWID;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_token;
