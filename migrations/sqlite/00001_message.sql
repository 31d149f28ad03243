-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- made by delaytask; a plain INSERT leaves it out
  tag TEXT NOT NULL,                    -- which processor runs the task; letter case counts
  task_key TEXT NULL,                   -- the caller's own name for the task: at most one unfinished task per tag and key
  -- Tag, NUL and key while pending or executing, else NULL; the tag is left out when the key begins with s3:
  active_key BLOB GENERATED ALWAYS AS (
    CASE WHEN status IN (0, 3) AND task_key IS NOT NULL THEN CAST(
      CASE WHEN substr(task_key, 1, 3) = 's3:' THEN '' ELSE tag END || char(0) || task_key AS BLOB) END) STORED UNIQUE,
  message_body TEXT NOT NULL,                  -- what the processor is handed
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
  ip_address INTEGER NOT NULL DEFAULT 0,       -- IPv4 address of the last executor
  executor TEXT NOT NULL DEFAULT '',           -- host:pid:process token:claim number of the last claim
  delay_time INTEGER NOT NULL DEFAULT 0,       -- the delay asked for, in milliseconds
  -- All times are UTC, written like 2006-01-02 15:04:05.000000. An empty one is filled by the trigger below.
  expected_time TEXT NOT NULL DEFAULT '',      -- when the task was promised to start; changes only by reschedule
  execution_time TEXT NULL,                    -- when the processor of the first attempt really started
  finish_time TEXT NULL,                       -- when a final status was reached
  due_time TEXT NULL DEFAULT '',               -- next attempt if pending, end of the lease if executing, finish time if final
  error_stack TEXT NULL,                       -- the last error, with the stack of a panic
  errors TEXT NULL,                            -- JSON array: the last 10 unsuccessful attempts
  create_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')),
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now'))
);
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS delay_task_message_due ON delay_task_message (status, tag, due_time);

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

-- +goose Down
DROP TABLE IF EXISTS delay_task_message;
