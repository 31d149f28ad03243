-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_message (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT
    COMMENT 'made by delaytask; a plain INSERT leaves it out',
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'which processor runs the task; letter case counts',
  task_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'the own name of the caller for the task: at most one unfinished task per tag and key',
  active_key BINARY(32) GENERATED ALWAYS AS (
    CASE WHEN status IN (0, 3) AND task_key IS NOT NULL THEN UNHEX(SHA2(CONCAT(
      CASE WHEN LEFT(task_key, 3) = _utf8mb4's3:' COLLATE utf8mb4_bin THEN _utf8mb4'' COLLATE utf8mb4_bin ELSE tag END,
      CHAR(0 USING utf8mb4), task_key), 256)) END) STORED
    COMMENT 'SHA-256 of tag, NUL and key while pending or executing, else NULL; the tag is left out when the key begins with s3:',
  message_body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'what the processor is handed',
  status TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '0 pending, 1 completed, 2 failed, 3 executing, 4 cancelled',
  version BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'grows by 1 at every transition: the fencing token; add 1 when you change a status by hand',
  attempt INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'number of the current or last attempt',
  max_attempts INT UNSIGNED NULL DEFAULT 20
    COMMENT 'the task fails when an error leaves attempt at this number; NULL: no limit',
  crash_count INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'leases that ended without an answer of their executor',
  ttr INT UNSIGNED NOT NULL DEFAULT 15000
    COMMENT 'length of a lease in milliseconds',
  priority SMALLINT NOT NULL DEFAULT 0
    COMMENT '-100 to 100; larger runs first among tasks that are ready',
  headers JSON NULL
    COMMENT 'object of strings: trace context and metadata of the user',
  max_late_ms BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'late_policy applies when a claim comes later than this many milliseconds; 0: never',
  late_policy TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'what happens to a task that is too late: 0 run anyway, 1 skip (cancelled), 2 fail',
  ip_address BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'IPv4 address of the last executor; INET_NTOA shows it',
  executor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'host:pid:process token:claim number of the last claim',
  delay_time BIGINT NOT NULL DEFAULT 0
    COMMENT 'the delay asked for, in milliseconds',
  expected_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6) + INTERVAL delay_time * 1000 MICROSECOND)
    COMMENT 'UTC; when the task was promised to start; changes only by reschedule',
  execution_time DATETIME(6) NULL
    COMMENT 'UTC; when the processor of the first attempt really started; minus expected_time: the lateness',
  finish_time DATETIME(6) NULL
    COMMENT 'UTC; when a final status was reached',
  due_time DATETIME(6) NULL DEFAULT (expected_time)
    COMMENT 'UTC; when the row next needs attention: next attempt if pending, end of the lease if executing, finish time if final',
  error_stack LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'the last error, with the stack of a panic',
  errors LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'JSON array: the last 10 unsuccessful attempts',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; written by delaytask, not by the server',
  PRIMARY KEY (id),
  -- Descending, so that rows without a key are added at the end: an INSERT that waits for the holder of a key locks the gap
  -- before that key, and they must not fall into it.
  UNIQUE KEY delay_task_message_active_key (active_key DESC),
  KEY delay_task_message_due (status, tag, due_time),
  KEY delay_task_message_expected (expected_time)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: one row per delayed task; the table is the queue';
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_message;
