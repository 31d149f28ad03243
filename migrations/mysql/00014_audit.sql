-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_audit (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; when the act was about to begin',
  who VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'name of the access token, or user@host of the command; empty: the service asked for no token',
  via VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'api, command, dashboard or library',
  action VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'task.cancel, bulk.retry, tag.pause and others',
  target VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'id of the task, or name of the tag, schedule, receiver or token',
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'empty: all tags, several, or none',
  detail VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'filter of a bulk change with its moment; what else was asked for',
  tasks BIGINT UNSIGNED NULL
    COMMENT 'how many were changed; NULL until the act has ended',
  outcome VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'done, refused, failed or unknown; empty: under way, or its process died',
  error VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'why it was not done',
  finish_time DATETIME(6) NULL
    COMMENT 'UTC; when it ended',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what people have changed; rows are kept for retention.audit';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_audit;
