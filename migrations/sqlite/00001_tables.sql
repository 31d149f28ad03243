-- +goose Up
CREATE TABLE IF NOT EXISTS delay_task_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- made by delaytask; a plain INSERT leaves it out
  tag TEXT NOT NULL,                    -- which processor runs the task; letter case counts
  task_key TEXT NULL,                   -- the caller's own name for the task: at most one unfinished task per tag and key
  -- Tag, NUL and key while pending or executing, else NULL; the tag is left out when the key begins with s3:
  active_key BLOB GENERATED ALWAYS AS (
    CASE WHEN status IN (0, 3) AND task_key IS NOT NULL THEN CAST(
      CASE WHEN substr(task_key, 1, 3) = 's3:' THEN '' ELSE tag END || char(0) || task_key AS BLOB) END) STORED UNIQUE,
  message_body TEXT NULL,                      -- what the processor is handed; NULL: nothing
  -- 0 pending, 1 completed, 2 failed, 3 executing, 4 cancelled. It and the version guard every write, so they must be numbers.
  status INTEGER NOT NULL DEFAULT 0 CHECK (typeof(status) = 'integer' AND status BETWEEN 0 AND 255),
  -- Grows by 1 at every transition: the fencing token. Add 1 when you change a status by hand.
  version INTEGER NOT NULL DEFAULT 0 CHECK (typeof(version) = 'integer' AND version >= 0),
  attempt INTEGER NOT NULL DEFAULT 0,          -- number of the current or last attempt
  max_attempts INTEGER NULL DEFAULT 20,        -- the task fails when an error leaves attempt at this number; NULL: no limit
  crash_count INTEGER NOT NULL DEFAULT 0,      -- leases that ended without an answer of their executor
  ttr INTEGER NOT NULL DEFAULT 15000,          -- length of a lease in milliseconds
  priority INTEGER NOT NULL DEFAULT 0,         -- -100 to 100; larger runs first among tasks that are ready
  headers TEXT NULL,                           -- JSON object of strings: trace context and metadata of the user
  max_late_ms INTEGER NOT NULL DEFAULT 0,      -- late_policy applies when a claim comes later than this; 0: never
  late_policy INTEGER NOT NULL DEFAULT 0,      -- 0 run anyway, 1 skip (cancelled), 2 fail
  ip_address INTEGER NULL DEFAULT 0,           -- IPv4 address of the last executor; 0 or NULL: none yet
  process INTEGER NOT NULL DEFAULT 0,          -- which process claimed last; delay_task_process has its host and pid
  claim INTEGER NOT NULL DEFAULT 0,            -- number of that claim in its process; negative: handed out by a pop
  delay_time INTEGER NOT NULL DEFAULT 0,       -- the delay asked for, in milliseconds
  -- All times are UTC, written like 2006-01-02 15:04:05.000000. An empty one is filled by the trigger below.
  expected_time TEXT NOT NULL DEFAULT '',      -- when the task was promised to start; changes only by reschedule
  start_time TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000000', -- execution_time, or 1970 where that is NULL
  -- When the processor of the first attempt really started.
  execution_time TEXT GENERATED ALWAYS AS (
    CASE WHEN start_time > '1970-01-01 00:00:00.000000' THEN start_time END) VIRTUAL,
  due_time TEXT NULL DEFAULT '',               -- next attempt if pending, end of the lease if executing, finish time if final
  finish_time TEXT GENERATED ALWAYS AS (CASE WHEN status IN (1, 2, 4) THEN due_time END) VIRTUAL,
  error_stack TEXT NULL,                       -- the last error, with the stack of a panic
  errors TEXT NULL,                            -- JSON array: the last 10 unsuccessful attempts
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  late_reason INTEGER NOT NULL DEFAULT 0,      -- why the first start was over 100 ms late; delay_task_lateness has the names
  schedule TEXT NULL,                          -- the name of the schedule whose run the task is; NULL: of none
  tick TEXT NULL,                              -- the tick whose run it is
  cause INTEGER NULL,                          -- why the run exists: 0 planted in time, 1 late, 2 triggered by hand, 3 backfill
  retry_before TEXT NULL,                      -- no attempt begins from then on; NULL: no bound
  tick_context TEXT NULL                       -- JSON object: the ticks around, the last success, and how many were missed
);

CREATE INDEX IF NOT EXISTS delay_task_message_due ON delay_task_message (tag, status, due_time);

CREATE INDEX IF NOT EXISTS delay_task_message_expected ON delay_task_message (expected_time);

-- A default cannot look at another column, so the trigger computes what MySQL computes in the defaults of these columns.
-- +goose StatementBegin
CREATE TRIGGER IF NOT EXISTS delay_task_message_times AFTER INSERT ON delay_task_message
WHEN NEW.expected_time = '' OR NEW.due_time = ''
BEGIN
  UPDATE delay_task_message SET expected_time = CASE WHEN expected_time = ''
    THEN strftime('%Y-%m-%d %H:%M:%f000', 'now', (delay_time / 1000.0) || ' seconds') ELSE expected_time END
  WHERE id = NEW.id;
  UPDATE delay_task_message SET due_time = expected_time WHERE id = NEW.id AND due_time = '';
END;
-- +goose StatementEnd

CREATE VIEW IF NOT EXISTS delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  round((julianday(execution_time) - julianday(expected_time)) * 86400000.0, 3) AS lateness_ms,
  attempt, status,
  CASE late_reason WHEN 1 THEN 'slot' WHEN 2 THEN 'tag_limit' WHEN 3 THEN 'retry' WHEN 4 THEN 'paused'
    WHEN 5 THEN 'unserved' WHEN 6 THEN 'database' WHEN 7 THEN 'clock' WHEN 8 THEN 'locked' WHEN 9 THEN 'found_late'
    WHEN 10 THEN 'receiver' WHEN 11 THEN 'process' END AS late_reason
FROM delay_task_message
WHERE execution_time IS NOT NULL;

CREATE TABLE IF NOT EXISTS delay_task_node (
  number INTEGER PRIMARY KEY,           -- leased node number: part of the ids that the process makes
  token TEXT NOT NULL,                  -- drawn when the process starts; guards every write to the row
  name TEXT NOT NULL DEFAULT '',
  host TEXT NOT NULL DEFAULT '',        -- machine and pid namespace that pid belongs to
  pid INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL DEFAULT 0, -- start time of the process as its kernel counts it
  address TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',     -- of delaytask
  tags TEXT NOT NULL,                   -- JSON array: the tags that the process serves
  leaving INTEGER NOT NULL DEFAULT 0,   -- 1: the process is stopping
  heartbeat TEXT NOT NULL,              -- UTC
  wake TEXT NULL,                       -- JSON object: where the process is told of new tasks, and with what key
  schedules TEXT NULL                   -- JSON object: which set of schedules the program declares
);

CREATE TABLE IF NOT EXISTS delay_task_process (
  id INTEGER PRIMARY KEY,               -- as process of a task; in hexadecimal digits the token of its node
  name TEXT NOT NULL DEFAULT '',        -- of the host
  pid INTEGER NOT NULL DEFAULT 0,
  seen_time TEXT NOT NULL               -- UTC; written about once a minute
);

CREATE INDEX IF NOT EXISTS delay_task_process_seen ON delay_task_process (seen_time);

CREATE TABLE IF NOT EXISTS delay_task_tag (
  tag TEXT PRIMARY KEY NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,    -- 1: no task of the tag starts
  reason TEXT NOT NULL DEFAULT '',      -- why it is paused, for people
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) -- UTC
);

CREATE TABLE IF NOT EXISTS delay_task_schedule (
  id INTEGER PRIMARY KEY,               -- made by delaytask
  name TEXT NOT NULL,                   -- what people and programs call the schedule; letter case counts
  owner TEXT NOT NULL DEFAULT '',       -- the application whose code declares it; empty: it was saved at runtime
  parent TEXT NOT NULL DEFAULT '',      -- of a backfill: the schedule whose past ticks it runs
  revision TEXT NULL,                   -- UTC; of the code that declared it last
  definition BLOB NOT NULL,             -- SHA-256 of the whole definition
  grammar INTEGER NOT NULL DEFAULT 1,   -- the version of the grammar that spec needs
  spec TEXT NOT NULL,                   -- when it runs: a line for each cron expression, interval, time and so on
  tag TEXT NOT NULL,                    -- of the tasks that it makes
  message_body TEXT NULL,
  headers TEXT NULL,                    -- JSON object of strings
  max_attempts INTEGER NULL,            -- NULL: no limit
  ttr INTEGER NOT NULL DEFAULT 15000,   -- length of a lease in milliseconds
  priority INTEGER NOT NULL DEFAULT 0,
  overlap INTEGER NOT NULL DEFAULT 0,   -- 0 skip, 1 queue the latest, 2 replace the open run, 3 allow
  missed INTEGER NOT NULL DEFAULT 0,    -- 0 the latest runs, 1 if at most a minute late, 2 all run
  max_open INTEGER NOT NULL DEFAULT 1,  -- how many runs may be open together
  start_within INTEGER NOT NULL DEFAULT 0, -- milliseconds after which a tick is dropped; 0: never
  jitter INTEGER NOT NULL DEFAULT 0,    -- milliseconds below which the runs are put off, always by the same
  pause_after INTEGER NOT NULL DEFAULT 0, -- failed runs in a row after which it is paused; 0: never
  max_runs INTEGER NULL,                -- runs after which it ends; NULL: never
  keep_runs INTEGER NOT NULL DEFAULT 100, -- how many rows delay_task_schedule_run keeps of it
  retry_past_next INTEGER NOT NULL DEFAULT 0, -- 1: attempts of a run also begin after the next tick
  state INTEGER NOT NULL DEFAULT 0,     -- 0 active, 1 paused, 2 ended, 3 retired: not declared any more, 4 that and paused
  reason TEXT NULL,                     -- why it is in that state
  state_time TEXT NULL,                 -- since when it is in that state
  state_by TEXT NOT NULL DEFAULT '',    -- who has brought it there; empty: a program, or itself
  version INTEGER NOT NULL DEFAULT 0,   -- grows by 1 at every change, and guards it
  definition_version INTEGER NOT NULL DEFAULT 0, -- the version that the last save of another definition has made
  zone_data TEXT NOT NULL DEFAULT '',   -- version of the time zone data that next_time was computed by
  -- All times are UTC, written like 2006-01-02 15:04:05.000000.
  next_time TEXT NULL,                  -- the first tick that is not decided; NULL: no tick follows
  look_time TEXT NULL,                  -- when a process looks at it next; NULL: never
  last_time TEXT NULL,                  -- the last tick that was decided
  run_id INTEGER NULL,                  -- the task of the open run, or of the newest
  runs INTEGER NOT NULL DEFAULT 0,      -- those that count against max_runs
  missed_ticks INTEGER NOT NULL DEFAULT 0, -- ticks since the newest run that did not run
  failures INTEGER NOT NULL DEFAULT 0,  -- failed runs in a row
  success_time TEXT NULL,               -- the tick of the last run that completed
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now'))
);

CREATE UNIQUE INDEX IF NOT EXISTS delay_task_schedule_name ON delay_task_schedule (name);

CREATE INDEX IF NOT EXISTS delay_task_schedule_look ON delay_task_schedule (look_time, id);

CREATE TABLE IF NOT EXISTS delay_task_schedule_run (
  schedule_id INTEGER NOT NULL,
  tick TEXT NOT NULL,                   -- UTC; the first tick that the row is about
  cause INTEGER NOT NULL,               -- 0 planted in time, 1 late, 2 triggered by hand, 3 backfill
  until_tick TEXT NOT NULL,             -- UTC; the last tick that the row is about
  ticks INTEGER NOT NULL DEFAULT 1,     -- how many ticks these are
  outcome INTEGER NOT NULL DEFAULT 0,   -- 0 open, 1 completed, 2 failed, 4 cancelled, 5 skipped, 6 missed, 7 unknown
  task_id INTEGER NULL,                 -- the run; NULL: there was none
  note TEXT NULL,                       -- why
  start_time TEXT NULL,                 -- UTC; when the task first started
  finish_time TEXT NULL,                -- UTC; when the task ended
  PRIMARY KEY (schedule_id, tick, cause)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS delay_task_schedule_run_outcome ON delay_task_schedule_run (outcome, schedule_id);

CREATE TABLE IF NOT EXISTS delay_task_rollup (
  span INTEGER NOT NULL,                -- minutes that the row is about: 1 or 60; 0: a mark
  bucket TEXT NOT NULL,                 -- UTC; when these begin, and the moment of a mark
  tag TEXT NOT NULL,                    -- empty: all tags together; (other): those that the process does not count apart
  node TEXT NOT NULL,                   -- token of the process that has counted
  completed INTEGER NOT NULL DEFAULT 0, -- tasks
  retried INTEGER NOT NULL DEFAULT 0,   -- failed attempts that another one follows
  failed INTEGER NOT NULL DEFAULT 0,    -- tasks, for good
  lost INTEGER NOT NULL DEFAULT 0,      -- leases whose executor was gone
  late TEXT NOT NULL DEFAULT '',        -- lateness of first attempts, as pairs class:number
  late_max INTEGER NOT NULL DEFAULT 0,  -- microseconds; the latest first attempt
  mark TEXT NOT NULL DEFAULT '',        -- joined, left, lost, paused, resumed or failover, and the name of the node
  PRIMARY KEY (span, bucket, tag, node)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS delay_task_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  create_time TEXT NOT NULL,        -- UTC; when the act was about to begin
  who TEXT NOT NULL DEFAULT '',     -- name of the access token, or user@host of the command
  via TEXT NOT NULL DEFAULT '',     -- api, command, dashboard or library
  action TEXT NOT NULL,             -- task.cancel, bulk.retry, tag.pause and others
  target TEXT NOT NULL DEFAULT '',  -- id of the task, or name of the tag, schedule, receiver or token
  tag TEXT NOT NULL DEFAULT '',     -- empty: all tags, several, or none
  detail TEXT NOT NULL DEFAULT '',  -- filter of a bulk change with its moment; what else was asked for
  tasks INTEGER NULL,               -- how many were changed; NULL until the act has ended
  outcome TEXT NOT NULL DEFAULT '', -- done, refused, failed or unknown; empty: under way, or its process died
  error TEXT NOT NULL DEFAULT '',   -- why it was not done
  finish_time TEXT NULL,            -- UTC; when it ended
  bulk TEXT NULL,                   -- what a bulk change is, in JSON; NULL: its process does not tell
  stop_time TEXT NULL,              -- UTC; when a caller has asked to stop a bulk change
  seen_time TEXT NULL               -- UTC; when the process of a bulk change was last seen at it; NULL: it does not tell
);

CREATE INDEX IF NOT EXISTS delay_task_audit_action ON delay_task_audit (action, id);

CREATE TABLE IF NOT EXISTS delay_task_request (
  hash BLOB PRIMARY KEY NOT NULL,       -- SHA-256 of the caller and the Idempotency-Key
  content BLOB NOT NULL,                -- SHA-256 of the request: the same key with another request is refused
  task_id INTEGER NOT NULL,             -- the task that the request saves, or met
  saved INTEGER NOT NULL DEFAULT 0,     -- 1: the task is stored; 0: nobody has said so yet
  duplicate INTEGER NOT NULL DEFAULT 0, -- 1: the key of the task was taken, and task_id is the task that has it
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) -- UTC; the row is deleted 24 hours later
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS delay_task_request_created ON delay_task_request (create_time);

CREATE TABLE IF NOT EXISTS delay_task_token (
  name TEXT PRIMARY KEY NOT NULL,       -- who calls, for people and logs
  hash BLOB NOT NULL UNIQUE,            -- SHA-256 of the token, which is stored nowhere
  tags TEXT NOT NULL,                   -- JSON array: the tags it may use, each exact or a prefix that ends in *
  verbs TEXT NOT NULL,                  -- JSON array: what it may do with them
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NULL                 -- UTC; from then on it is refused; NULL: never
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS delay_task_session (
  hash BLOB PRIMARY KEY NOT NULL,       -- SHA-256 of the cookie, which is stored nowhere
  token TEXT NOT NULL,                  -- name of the access token that was given at the login
  token_hash BLOB NOT NULL,             -- hash of that token: another one by its name does not revive the session
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NOT NULL             -- UTC; from then on the session is over, and the row is deleted
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS delay_task_session_expires ON delay_task_session (expire_time);

CREATE TABLE IF NOT EXISTS delay_task_worker (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app TEXT NOT NULL,                    -- the application that the address belongs to
  address TEXT NOT NULL,                -- URL that tasks are posted to
  address_hash BLOB NOT NULL,           -- SHA-256 of the address
  tags TEXT NOT NULL,                   -- JSON array: the tags whose tasks it takes
  secret BLOB NULL,                     -- signs the calls; sealed with DELAYTASK_SECRET; NULL: they are not signed
  ttl INTEGER NOT NULL,                 -- milliseconds that it lives without a heartbeat
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  expire_time TEXT NOT NULL,            -- UTC; no task is posted from then on; a heartbeat moves it
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')), -- UTC
  UNIQUE (app, address_hash)
);

-- +goose Down
DROP VIEW IF EXISTS delay_task_lateness;

DROP TABLE IF EXISTS delay_task_message;
DROP TABLE IF EXISTS delay_task_node;
DROP TABLE IF EXISTS delay_task_process;
DROP TABLE IF EXISTS delay_task_tag;
DROP TABLE IF EXISTS delay_task_schedule;
DROP TABLE IF EXISTS delay_task_schedule_run;
DROP TABLE IF EXISTS delay_task_rollup;
DROP TABLE IF EXISTS delay_task_audit;
DROP TABLE IF EXISTS delay_task_request;
DROP TABLE IF EXISTS delay_task_token;
DROP TABLE IF EXISTS delay_task_session;
DROP TABLE IF EXISTS delay_task_worker;
