-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_token (
  name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'who calls, for people and logs',
  hash BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the token, which is stored nowhere',
  tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'JSON array: the tags it may use, each exact or a prefix that ends in *',
  verbs LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'JSON array: what it may do with them',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  expire_time DATETIME(6) NULL
    COMMENT 'UTC; from then on it is refused; NULL: never',
  PRIMARY KEY (name),
  UNIQUE KEY delay_task_token_hash (hash)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: bearer tokens of the HTTP API';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_token;
