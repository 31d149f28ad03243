CREATE TABLE delay_task_audit(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  create_time TEXT NOT NULL,
  who TEXT NOT NULL DEFAULT '',
  via TEXT NOT NULL DEFAULT '',
  action TEXT NOT NULL,
  target TEXT NOT NULL DEFAULT '',
  tag TEXT NOT NULL DEFAULT '',
  detail TEXT NOT NULL DEFAULT '',
  tasks INTEGER,
  outcome TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  finish_time TEXT,
  bulk TEXT,
  stop_time TEXT,
  seen_time TEXT)

CREATE INDEX delay_task_audit_action ON delay_task_audit(action,id)

CREATE VIEW delay_task_lateness AS SELECT id,tag,expected_time,execution_time,round((julianday(execution_time)- julianday(expected_time))* 86400000.0,3)AS lateness_ms,attempt,status,CASE late_reason WHEN 1 THEN 'slot' WHEN 2 THEN 'tag_limit' WHEN 3 THEN 'retry' WHEN 4 THEN 'paused' WHEN 5 THEN 'unserved' WHEN 6 THEN 'database' WHEN 7 THEN 'clock' WHEN 8 THEN 'locked' WHEN 9 THEN 'found_late' WHEN 10 THEN 'receiver' WHEN 11 THEN 'process' END AS late_reason FROM delay_task_message WHERE execution_time IS NOT NULL

CREATE TRIGGER delay_task_message_times AFTER INSERT ON delay_task_message WHEN NEW.expected_time = '' OR NEW.due_time = '' BEGIN UPDATE delay_task_message SET expected_time = CASE WHEN expected_time = '' THEN strftime('%Y-%m-%d %H:%M:%f000','now',(delay_time / 1000.0)|| ' seconds')ELSE expected_time END WHERE id = NEW.id; UPDATE delay_task_message SET due_time = expected_time WHERE id = NEW.id AND due_time = ''; END

CREATE TABLE delay_task_message(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tag TEXT NOT NULL,
  task_key TEXT,
  active_key BLOB GENERATED ALWAYS AS(CASE WHEN status IN(0,3)AND task_key IS NOT NULL THEN CAST(CASE WHEN substr(task_key,1,3)= 's3:' THEN '' ELSE tag END || char(0)|| task_key AS BLOB)END)STORED UNIQUE,
  message_body TEXT,
  status INTEGER NOT NULL DEFAULT 0 CHECK(typeof(status)= 'integer' AND status BETWEEN 0 AND 255),
  version INTEGER NOT NULL DEFAULT 0 CHECK(typeof(version)= 'integer' AND version >= 0),
  attempt INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER DEFAULT 20,
  crash_count INTEGER NOT NULL DEFAULT 0,
  ttr INTEGER NOT NULL DEFAULT 15000,
  priority INTEGER NOT NULL DEFAULT 0,
  headers TEXT,
  max_late_ms INTEGER NOT NULL DEFAULT 0,
  late_policy INTEGER NOT NULL DEFAULT 0,
  ip_address INTEGER DEFAULT 0,
  process INTEGER NOT NULL DEFAULT 0,
  claim INTEGER NOT NULL DEFAULT 0,
  delay_time INTEGER NOT NULL DEFAULT 0,
  expected_time TEXT NOT NULL DEFAULT '',
  start_time TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  execution_time TEXT GENERATED ALWAYS AS(CASE WHEN start_time > '1970-01-01 00:00:00.000000' THEN start_time END)VIRTUAL,
  due_time TEXT DEFAULT '',
  finish_time TEXT GENERATED ALWAYS AS(CASE WHEN status IN(1,2,4)THEN due_time END)VIRTUAL,
  error_stack TEXT,
  errors TEXT,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  update_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  late_reason INTEGER NOT NULL DEFAULT 0,
  schedule TEXT,
  tick TEXT,
  cause INTEGER,
  retry_before TEXT,
  tick_context TEXT)

CREATE INDEX delay_task_message_due ON delay_task_message(tag,status,due_time)

CREATE INDEX delay_task_message_expected ON delay_task_message(expected_time)

CREATE TABLE delay_task_node(
  number INTEGER PRIMARY KEY,
  token TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  host TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL DEFAULT 0,
  address TEXT NOT NULL DEFAULT '',
  version TEXT NOT NULL DEFAULT '',
  tags TEXT NOT NULL,
  leaving INTEGER NOT NULL DEFAULT 0,
  heartbeat TEXT NOT NULL,
  wake TEXT,
  schedules TEXT)

CREATE TABLE delay_task_process(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL DEFAULT 0,
  seen_time TEXT NOT NULL)

CREATE INDEX delay_task_process_seen ON delay_task_process(seen_time)

CREATE TABLE delay_task_request(
  hash BLOB PRIMARY KEY NOT NULL,
  content BLOB NOT NULL,
  task_id INTEGER NOT NULL,
  saved INTEGER NOT NULL DEFAULT 0,
  duplicate INTEGER NOT NULL DEFAULT 0,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')))WITHOUT ROWID

CREATE INDEX delay_task_request_created ON delay_task_request(create_time)

CREATE TABLE delay_task_rollup(
  span INTEGER NOT NULL,
  bucket TEXT NOT NULL,
  tag TEXT NOT NULL,
  node TEXT NOT NULL,
  completed INTEGER NOT NULL DEFAULT 0,
  retried INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  lost INTEGER NOT NULL DEFAULT 0,
  late TEXT NOT NULL DEFAULT '',
  late_max INTEGER NOT NULL DEFAULT 0,
  mark TEXT NOT NULL DEFAULT '',PRIMARY KEY(span,bucket,tag,node))WITHOUT ROWID

CREATE TABLE delay_task_schedule(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  owner TEXT NOT NULL DEFAULT '',
  parent TEXT NOT NULL DEFAULT '',
  revision TEXT,
  definition BLOB NOT NULL,
  grammar INTEGER NOT NULL DEFAULT 1,
  spec TEXT NOT NULL,
  tag TEXT NOT NULL,
  message_body TEXT,
  headers TEXT,
  max_attempts INTEGER,
  ttr INTEGER NOT NULL DEFAULT 15000,
  priority INTEGER NOT NULL DEFAULT 0,
  overlap INTEGER NOT NULL DEFAULT 0,
  missed INTEGER NOT NULL DEFAULT 0,
  max_open INTEGER NOT NULL DEFAULT 1,
  start_within INTEGER NOT NULL DEFAULT 0,
  jitter INTEGER NOT NULL DEFAULT 0,
  pause_after INTEGER NOT NULL DEFAULT 0,
  max_runs INTEGER,
  keep_runs INTEGER NOT NULL DEFAULT 100,
  retry_past_next INTEGER NOT NULL DEFAULT 0,
  state INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  state_time TEXT,
  state_by TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 0,
  definition_version INTEGER NOT NULL DEFAULT 0,
  zone_data TEXT NOT NULL DEFAULT '',
  next_time TEXT,
  look_time TEXT,
  last_time TEXT,
  run_id INTEGER,
  runs INTEGER NOT NULL DEFAULT 0,
  missed_ticks INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  success_time TEXT,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  update_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')))

CREATE INDEX delay_task_schedule_look ON delay_task_schedule(look_time,id)

CREATE UNIQUE INDEX delay_task_schedule_name ON delay_task_schedule(name)

CREATE TABLE delay_task_schedule_run(
  schedule_id INTEGER NOT NULL,
  tick TEXT NOT NULL,
  cause INTEGER NOT NULL,
  until_tick TEXT NOT NULL,
  ticks INTEGER NOT NULL DEFAULT 1,
  outcome INTEGER NOT NULL DEFAULT 0,
  task_id INTEGER,
  note TEXT,
  start_time TEXT,
  finish_time TEXT,PRIMARY KEY(schedule_id,tick,cause))WITHOUT ROWID

CREATE INDEX delay_task_schedule_run_outcome ON delay_task_schedule_run(outcome,schedule_id)

CREATE TABLE delay_task_session(
  hash BLOB PRIMARY KEY NOT NULL,
  token TEXT NOT NULL,
  token_hash BLOB NOT NULL,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  expire_time TEXT NOT NULL)WITHOUT ROWID

CREATE INDEX delay_task_session_expires ON delay_task_session(expire_time)

CREATE TABLE delay_task_tag(
  tag TEXT PRIMARY KEY NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  update_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')))

CREATE TABLE delay_task_token(
  name TEXT PRIMARY KEY NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  tags TEXT NOT NULL,
  verbs TEXT NOT NULL,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  expire_time TEXT)WITHOUT ROWID

CREATE TABLE delay_task_worker(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app TEXT NOT NULL,
  address TEXT NOT NULL,
  address_hash BLOB NOT NULL,
  tags TEXT NOT NULL,
  secret BLOB,
  ttl INTEGER NOT NULL,
  create_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),
  expire_time TEXT NOT NULL,
  update_time TEXT NOT NULL DEFAULT(strftime('%Y-%m-%d %H:%M:%f000','now')),UNIQUE(app,address_hash))
