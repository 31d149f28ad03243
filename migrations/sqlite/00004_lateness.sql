-- +goose Up
-- +goose StatementBegin
CREATE VIEW IF NOT EXISTS delay_task_lateness AS
SELECT id, tag, expected_time, execution_time,
  round((julianday(execution_time) - julianday(expected_time)) * 86400000.0, 3) AS lateness_ms,
  attempt, status
FROM delay_task_message
WHERE execution_time IS NOT NULL;
-- +goose StatementEnd

-- +goose Down
DROP VIEW IF EXISTS delay_task_lateness;
