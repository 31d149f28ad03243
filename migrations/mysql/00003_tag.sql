-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_tag (
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  paused TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: no task of the tag starts',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  PRIMARY KEY (tag)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what is set for all tasks of a tag';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_tag;
