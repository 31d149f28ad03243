CREATE OR REPLACE SQL SECURITY INVOKER VIEW delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) / 1000 AS lateness_ms,
  attempt, status,
  ELT(late_reason, 'slot', 'tag_limit', 'retry', 'paused', 'unserved', 'database', 'clock', 'locked', 'found_late',
    'receiver', 'process') AS late_reason
FROM delay_task_message
WHERE execution_time IS NOT NULL;
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
  bulk TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'what a bulk change is, in JSON; NULL: its process does not tell',
  stop_time DATETIME(6) NULL
    COMMENT 'UTC; when a caller has asked to stop a bulk change',
  seen_time DATETIME(6) NULL
    COMMENT 'UTC; when the process of a bulk change was last seen at it; NULL: it does not tell',
  PRIMARY KEY (id),
  KEY delay_task_audit_action (action, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what people have changed; rows are kept for retention.audit';
CREATE TABLE IF NOT EXISTS delay_task_goose_lock (
			id TINYINT NOT NULL PRIMARY KEY, holder VARCHAR(32) NOT NULL, ends DATETIME(6) NOT NULL
		) ENGINE=InnoDB COMMENT='delaytask: which process migrates';
CREATE TABLE IF NOT EXISTS delay_task_goose_version (
			id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
			version_id BIGINT NOT NULL,
			is_applied BOOLEAN NOT NULL,
			tstamp TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,
			PRIMARY KEY (id),
			UNIQUE KEY (version_id)
		) ENGINE=InnoDB;
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
  message_body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'what the processor is handed; NULL: nothing',
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
  ip_address BIGINT UNSIGNED NULL DEFAULT 0
    COMMENT 'IPv4 address of the last executor; INET_NTOA shows it; 0 or NULL: none yet',
  process BIGINT NOT NULL DEFAULT 0
    COMMENT 'which process claimed last: delay_task_process has its host and pid, HEX shows the token of its node; 0: none yet',
  claim BIGINT NOT NULL DEFAULT 0
    COMMENT 'number of that claim in its process; negative: handed out by a pop',
  delay_time BIGINT NOT NULL DEFAULT 0
    COMMENT 'the delay asked for, in milliseconds',
  expected_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6) + INTERVAL delay_time * 1000 MICROSECOND)
    COMMENT 'UTC; when the task was promised to start; changes only by reschedule',
  -- Never NULL, as process and claim, so that a row keeps its size from its insert on, and is changed where it lies.
  start_time DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000'
    COMMENT 'UTC; execution_time, or 1970 where that is NULL',
  execution_time DATETIME(6) GENERATED ALWAYS AS (
    CASE WHEN start_time > TIMESTAMP'1970-01-01 00:00:00' THEN start_time END) VIRTUAL
    COMMENT 'UTC; when the processor of the first attempt really started; minus expected_time: the lateness',
  due_time DATETIME(6) NULL DEFAULT (expected_time)
    COMMENT 'UTC; when the row next needs attention: next attempt if pending, end of the lease if executing, finish time if final',
  finish_time DATETIME(6) GENERATED ALWAYS AS (CASE WHEN status IN (1, 2, 4) THEN due_time END) VIRTUAL
    COMMENT 'UTC; when a final status was reached',
  error_stack LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'the last error, with the stack of a panic',
  errors LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'JSON array: the last 10 unsuccessful attempts',
  create_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC; written by delaytask, not by the server',
  late_reason TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'why the first start was over 100 ms late; the view delay_task_lateness has the names',
  schedule VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'the name of the schedule whose run the task is; NULL: of none',
  tick DATETIME(6) NULL
    COMMENT 'UTC; the tick whose run it is',
  cause TINYINT UNSIGNED NULL
    COMMENT 'why the run exists: 0 planted in time, 1 late, 2 triggered by hand, 3 backfill',
  retry_before DATETIME(6) NULL
    COMMENT 'UTC; no attempt begins from then on; NULL: no bound',
  tick_context LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'JSON object: the ticks before and after, the tick of the last success, and how many were missed',
  PRIMARY KEY (id),
  -- Descending, so that rows without a key are added at the end: an INSERT that waits for the holder of a key locks the gap
  -- before that key, and they must not fall into it.
  UNIQUE KEY delay_task_message_active_key (active_key DESC),
  KEY delay_task_message_due (tag, status, due_time),
  KEY delay_task_message_expected (expected_time)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: one row per delayed task; the table is the queue';
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
  wake LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'JSON object: where the process is told of new tasks, and with what key',
  schedules LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'JSON object: which set of schedules the program declares',
  PRIMARY KEY (number)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: one row per process';
CREATE TABLE IF NOT EXISTS delay_task_process (
  id BIGINT NOT NULL
    COMMENT 'as process of a task; in hexadecimal digits the token of its node',
  name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'of the host',
  pid BIGINT NOT NULL DEFAULT 0,
  seen_time DATETIME(6) NOT NULL
    COMMENT 'UTC; written about once a minute; the row is deleted when no task is kept for so long',
  PRIMARY KEY (id),
  KEY delay_task_process_seen (seen_time)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what people call the processes that have claimed tasks';
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
CREATE TABLE IF NOT EXISTS delay_task_schedule (
  id BIGINT UNSIGNED NOT NULL
    COMMENT 'made by delaytask',
  name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'what people and programs call the schedule; letter case counts',
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
  state_time DATETIME(6) NULL
    COMMENT 'UTC; since when it is in that state',
  state_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'who has brought it there; empty: a program, or itself',
  version BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'grows by 1 at every change, and guards it; add 1 when you change something by hand',
  definition_version BIGINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'the version that the last save of another definition has made',
  zone_data VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'version of the time zone data that next_time was computed by',
  next_time DATETIME(6) NULL
    COMMENT 'UTC; the first tick that is not decided; NULL: no tick follows',
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
CREATE TABLE IF NOT EXISTS delay_task_tag (
  tag VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  paused TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT '1: no task of the tag starts',
  reason VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''
    COMMENT 'why it is paused, for people',
  update_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
    COMMENT 'UTC',
  PRIMARY KEY (tag)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='delaytask: what is set for all tasks of a tag';
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
DELETE FROM delay_task_goose_version WHERE version_id=?;
DO RELEASE_LOCK(CONCAT('delay.', SHA2(DATABASE(), 224)));
DROP TABLE IF EXISTS delay_task_message, delay_task_node, delay_task_process, delay_task_tag, delay_task_schedule, delay_task_schedule_run,
  delay_task_rollup, delay_task_audit, delay_task_request, delay_task_token, delay_task_session, delay_task_worker;
DROP VIEW IF EXISTS delay_task_lateness;
INSERT IGNORE INTO delay_task_goose_lock VALUES (1, '', '2000-01-01');
INSERT INTO delay_task_goose_version (version_id, is_applied)
		SELECT v, 1 FROM (SELECT ? AS v) n WHERE NOT EXISTS (SELECT 1 FROM delay_task_goose_version WHERE version_id = ?);
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?;
SELECT GET_LOCK(CONCAT('delay.', SHA2(DATABASE(), 224)), 1);
SELECT MAX(version_id) FROM delay_task_goose_version;
SELECT VERSION() AS version, @@version_comment AS comment;
SELECT version_id, is_applied from delay_task_goose_version ORDER BY id DESC;
SET @delaytask_sql_mode = @@SESSION.sql_mode, @delaytask_lock_wait = @@SESSION.lock_wait_timeout,
		SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', SESSION lock_wait_timeout = 20;
SET SESSION sql_mode = @delaytask_sql_mode, SESSION lock_wait_timeout = @delaytask_lock_wait;
SHOW ENGINES;
SHOW VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_single_primary_mode');
UPDATE delay_task_goose_lock SET ends = '2000-01-01' WHERE id = 1 AND holder = ?;
UPDATE delay_task_goose_lock SET holder = ?, ends = UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE WHERE id = 1 AND ends < UTC_TIMESTAMP(6);
