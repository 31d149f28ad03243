-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_node (
  number INT UNSIGNED NOT NULL
    COMMENT 'leased node number: part of the ids that the process makes',
  token VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'drawn when the process starts; guards every write to the row',
  name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  host VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'machine and pid namespace that pid belongs to',
  pid BIGINT NOT NULL DEFAULT 0,
  started_at BIGINT NOT NULL DEFAULT 0
    COMMENT 'start time of the process as its kernel counts it',
  address VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  version VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'of delaytask',
  tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'JSON array: the tags that the process serves',
  leaving TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: the process is stopping',
  heartbeat DATETIME(6) NOT NULL
    COMMENT 'UTC',
  PRIMARY KEY (number)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: one row per process';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_node;
