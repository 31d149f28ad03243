-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_rollup (
  span SMALLINT UNSIGNED NOT NULL
    COMMENT 'minutes that the row is about: 1 or 60; 0: a mark',
  bucket DATETIME(6) NOT NULL
    COMMENT 'UTC; when these begin, and the moment of a mark',
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'empty: all tags together; (other): those that the process does not count apart',
  node VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'token of the process that has counted',
  completed BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'tasks',
  retried BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'failed attempts that another one follows',
  failed BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'tasks, for good',
  lost BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'leases whose executor was gone',
  late VARCHAR(4000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'lateness of first attempts, as pairs class:number; from 4 on four classes each double the microseconds',
  late_max BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'microseconds; the latest first attempt',
  mark VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'joined, left, lost, paused, resumed or failover, and the name of the node or server',
  PRIMARY KEY (span, bucket, tag, node)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: lateness and results over time; minutes are kept 6 hours, the rest 30 days';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_rollup;
