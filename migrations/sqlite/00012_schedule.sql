-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_schedule (
  id INTEGER PRIMARY KEY,               -- made by delaytask
  name TEXT NOT NULL,                   -- by which people and programs name the schedule; letter case counts
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
  version INTEGER NOT NULL DEFAULT 0,   -- grows by 1 at every change, and guards it
  zone_data TEXT NOT NULL DEFAULT '',   -- version of the time zone data that next_time was computed by
  -- All times are UTC, written like 2006-01-02 15:04:05.000000.
  next_time TEXT NULL,                  -- the first tick that is not decided; NULL: there is none
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
-- +goose StatementEnd

CREATE UNIQUE INDEX IF NOT EXISTS delay_task_schedule_name ON delay_task_schedule (name);

CREATE INDEX IF NOT EXISTS delay_task_schedule_look ON delay_task_schedule (look_time, id);

-- +goose StatementBegin
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
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS delay_task_schedule_run_outcome ON delay_task_schedule_run (outcome, schedule_id);

-- SQLite has no ADD COLUMN IF NOT EXISTS. Its manual allows to append columns that are NULL in this way, too.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) ||
  ', schedule TEXT, tick TEXT, cause INTEGER, retry_before TEXT, tick_context TEXT)'
WHERE type = 'table' AND name = 'delay_task_message' AND instr(sql, 'tick_context') = 0;

UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - 1) || ', schedules TEXT)'
WHERE type = 'table' AND name = 'delay_task_node' AND instr(sql, ', schedules TEXT') = 0;

PRAGMA writable_schema = RESET;

-- Connections that are open read the schema anew when something was created, and not because of the update above.
CREATE VIEW delay_task_schema AS SELECT 1;
DROP VIEW delay_task_schema;

-- +goose Down
-- The columns stay: versions that know them do not start without them.
DROP TABLE IF EXISTS delay_task_schedule_run;

DROP TABLE IF EXISTS delay_task_schedule;
