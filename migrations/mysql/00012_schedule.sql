-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_schedule (
  id BIGINT UNSIGNED NOT NULL
    COMMENT 'made by delaytask',
  name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'by which people and programs name the schedule; letter case counts',
  owner VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'the application whose code declares it; empty: it was saved at runtime',
  parent VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'of a backfill: the schedule whose past ticks it runs',
  revision DATETIME(6) NULL
    COMMENT 'UTC; of the code that declared it last',
  definition BINARY(32) NOT NULL
    COMMENT 'SHA-256 of the whole definition',
  grammar INT UNSIGNED NOT NULL DEFAULT 1
    COMMENT 'the version of the grammar that spec needs',
  spec TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'when it runs: one line each for cron expressions, intervals, single times, exclusions and zone',
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'of the tasks that it makes',
  message_body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'of the tasks',
  headers JSON NULL
    COMMENT 'of the tasks: object of strings',
  max_attempts INT UNSIGNED NULL
    COMMENT 'of the tasks; NULL: no limit',
  ttr INT UNSIGNED NOT NULL DEFAULT 15000
    COMMENT 'of the tasks: length of a lease in milliseconds',
  priority SMALLINT NOT NULL DEFAULT 0
    COMMENT 'of the tasks',
  overlap TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'for a tick while max_open runs are open: 0 skip, 1 queue the latest, 2 replace the open run, 3 allow',
  missed TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'which ticks run that were not decided in time: 0 the latest, 1 the latest if at most a minute late, 2 all',
  max_open INT UNSIGNED NOT NULL DEFAULT 1
    COMMENT 'how many runs may be open together',
  start_within BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'milliseconds after which a tick is dropped; 0: never',
  jitter BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'milliseconds below which the runs of the schedule are put off, always by the same',
  pause_after INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'failed runs in a row after which it is paused; 0: never',
  max_runs INT UNSIGNED NULL
    COMMENT 'runs after which it ends; NULL: never',
  keep_runs INT UNSIGNED NOT NULL DEFAULT 100
    COMMENT 'how many rows delay_task_schedule_run keeps of it',
  retry_past_next TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: attempts of a run also begin after the next tick',
  state TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '0 active, 1 paused, 2 ended, 3 retired: its code declares it no more, 4 retired while paused',
  reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'why it is in that state',
  version BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'grows by 1 at every change, and guards it; add 1 when you change something by hand',
  zone_data VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'version of the time zone data that next_time was computed by',
  next_time DATETIME(6) NULL
    COMMENT 'UTC; the first tick that is not decided; NULL: there is none',
  look_time DATETIME(6) NULL
    COMMENT 'UTC; when a process looks at it next; NULL: never',
  last_time DATETIME(6) NULL
    COMMENT 'UTC; the last tick that was decided',
  run_id BIGINT UNSIGNED NULL
    COMMENT 'the task of the open run, or of the newest',
  runs BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'those that count against max_runs',
  missed_ticks BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'ticks since the newest run that did not run',
  failures INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'failed runs in a row',
  success_time DATETIME(6) NULL
    COMMENT 'UTC; the tick of the last run that completed',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; written by delaytask, not by the server',
  PRIMARY KEY (id),
  UNIQUE KEY delay_task_schedule_name (name),
  KEY delay_task_schedule_look (look_time, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: one row per periodic schedule';
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_schedule_run (
  schedule_id BIGINT UNSIGNED NOT NULL,
  tick DATETIME(6) NOT NULL
    COMMENT 'UTC; the first tick that the row is about',
  cause TINYINT UNSIGNED NOT NULL
    COMMENT '0 planted in time, 1 late, 2 triggered by hand, 3 backfill',
  until_tick DATETIME(6) NOT NULL
    COMMENT 'UTC; the last tick that the row is about',
  ticks BIGINT UNSIGNED NOT NULL DEFAULT 1
    COMMENT 'how many ticks these are',
  outcome TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '0 open, 1 completed, 2 failed, 4 cancelled, 5 skipped, 6 missed, 7 unknown: the task was deleted',
  task_id BIGINT UNSIGNED NULL
    COMMENT 'the run; NULL: there was none',
  note LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'why',
  start_time DATETIME(6) NULL
    COMMENT 'UTC; when the task first started',
  finish_time DATETIME(6) NULL
    COMMENT 'UTC; when the task ended',
  PRIMARY KEY (schedule_id, tick, cause),
  KEY delay_task_schedule_run_outcome (outcome, schedule_id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what became of the ticks of the schedules';
-- +goose StatementEnd

-- MySQL has no ADD COLUMN IF NOT EXISTS. Both servers add such columns without touching a row.
-- +goose StatementBegin
SET @add_tick = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_message' AND column_name = 'tick_context'),
  'DO 0',
  'ALTER TABLE delay_task_message
    ADD COLUMN schedule VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
      COMMENT ''the name of the schedule whose run the task is; NULL: of none'',
    ADD COLUMN tick DATETIME(6) NULL
      COMMENT ''UTC; the tick whose run it is'',
    ADD COLUMN cause TINYINT UNSIGNED NULL
      COMMENT ''why the run exists: 0 planted in time, 1 late, 2 triggered by hand, 3 backfill'',
    ADD COLUMN retry_before DATETIME(6) NULL
      COMMENT ''UTC; no attempt begins from then on; NULL: no bound'',
    ADD COLUMN tick_context LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
      COMMENT ''JSON object: the ticks before and after, that of the last success, and how many were missed''');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_tick FROM @add_tick;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_tick;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_tick;
-- +goose StatementEnd

-- +goose StatementBegin
SET @add_schedules = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_node' AND column_name = 'schedules'),
  'DO 0',
  'ALTER TABLE delay_task_node ADD COLUMN schedules LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT ''JSON object: which set of schedules the program declares''');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_schedules FROM @add_schedules;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_schedules;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_schedules;
-- +goose StatementEnd

-- +goose Down
-- The columns stay: versions that know them do not start without them.
DROP TABLE IF EXISTS delay_task_schedule_run, delay_task_schedule;
