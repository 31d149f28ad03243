-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_request (
  hash BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the caller and the Idempotency-Key',
  content BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the request: the same key with another request is refused',
  task_id BIGINT UNSIGNED NOT NULL
    COMMENT 'the task that the request saves, or met',
  saved TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: the task is stored; 0: nobody has said so yet',
  duplicate TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: the key of the task was taken, and task_id is the task that has it',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; the row is deleted 24 hours later',
  PRIMARY KEY (hash),
  KEY delay_task_request_created (create_time)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: requests with an Idempotency-Key, and what became of them';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_request;
