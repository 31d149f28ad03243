-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_worker (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  app VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'the application that the address belongs to',
  address VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'URL that tasks are posted to',
  address_hash BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the address, which is too long for an index',
  tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'JSON array: the tags whose tasks it takes',
  secret VARBINARY(4096) NULL
    COMMENT 'signs the calls; sealed with DELAYTASK_SECRET; NULL: they are not signed',
  ttl INT UNSIGNED NOT NULL
    COMMENT 'milliseconds that it lives without a heartbeat',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  expire_time DATETIME(6) NOT NULL
    COMMENT 'UTC; no task is posted from then on; a heartbeat moves it',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; written by delaytask, not by the server',
  PRIMARY KEY (id),
  UNIQUE KEY delay_task_worker_address (app, address_hash)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: addresses that are called back with tasks';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_worker;
