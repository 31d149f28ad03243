-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE SQL SECURITY INVOKER VIEW delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) / 1000 AS lateness_ms,
  attempt, status,
  ELT(late_reason, 'slot', 'tag_limit', 'retry', 'paused', 'unserved', 'database', 'clock', 'locked', 'found_late',
    'receiver', 'process') AS late_reason
FROM delay_task_message
WHERE execution_time IS NOT NULL;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE SQL SECURITY INVOKER VIEW delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  TIMESTAMPDIFF(MICROSECOND, expected_time, execution_time) / 1000 AS lateness_ms,
  attempt, status
FROM delay_task_message
WHERE execution_time IS NOT NULL;
-- +goose StatementEnd
