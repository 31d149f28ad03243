-- +goose Up
DROP VIEW IF EXISTS delay_task_lateness;

-- +goose StatementBegin
CREATE VIEW delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  round((julianday(execution_time) - julianday(expected_time)) * 86400000.0, 3) AS lateness_ms,
  attempt, status,
  CASE late_reason WHEN 1 THEN 'slot' WHEN 2 THEN 'tag_limit' WHEN 3 THEN 'retry' WHEN 4 THEN 'paused'
    WHEN 5 THEN 'unserved' WHEN 6 THEN 'database' WHEN 7 THEN 'clock' WHEN 8 THEN 'locked' WHEN 9 THEN 'found_late'
    WHEN 10 THEN 'receiver' WHEN 11 THEN 'process' END AS late_reason
FROM delay_task_message
WHERE execution_time IS NOT NULL;
-- +goose StatementEnd

-- +goose Down
DROP VIEW IF EXISTS delay_task_lateness;

-- +goose StatementBegin
CREATE VIEW delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  round((julianday(execution_time) - julianday(expected_time)) * 86400000.0, 3) AS lateness_ms,
  attempt, status
FROM delay_task_message
WHERE execution_time IS NOT NULL;
-- +goose StatementEnd
