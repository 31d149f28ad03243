-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_session (
  hash BLOB PRIMARY KEY NOT NULL,       -- SHA-256 of the cookie, which is stored nowhere
  token TEXT NOT NULL,                  -- name of the access token that was given at the login
  token_hash BLOB NOT NULL,             -- hash of that token: another one by its name does not revive the session
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NOT NULL             -- UTC; from then on the session is over, and the row is deleted
) WITHOUT ROWID;
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS delay_task_session_expires ON delay_task_session (expire_time);

-- +goose Down
DROP TABLE IF EXISTS delay_task_session;
