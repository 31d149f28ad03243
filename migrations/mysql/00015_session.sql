-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_session (
  hash BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the cookie, which is stored nowhere',
  token VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'name of the access token that was given at the login',
  token_hash BINARY(32) NOT NULL
    COMMENT 'hash of that token: another one by its name does not revive the session',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  expire_time DATETIME(6) NOT NULL
    COMMENT 'UTC; from then on the session is over, and the row is deleted',
  PRIMARY KEY (hash),
  KEY delay_task_session_expires (expire_time)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: who is signed in to the dashboard';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_session;
