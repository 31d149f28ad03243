-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_request (
  hash BLOB PRIMARY KEY NOT NULL,       -- SHA-256 of the caller and the Idempotency-Key
  content BLOB NOT NULL,                -- SHA-256 of the request: the same key with another request is refused
  task_id INTEGER NOT NULL,             -- the task that the request saves, or met
  saved INTEGER NOT NULL DEFAULT 0,     -- 1: the task is stored; 0: nobody has said so yet
  duplicate INTEGER NOT NULL DEFAULT 0, -- 1: the key of the task was taken, and task_id is the task that has it
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) -- UTC; the row is deleted 24 hours later
) WITHOUT ROWID;
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS delay_task_request_created ON delay_task_request (create_time);

-- +goose Down
DROP TABLE IF EXISTS delay_task_request;
