-- +goose Up
-- MySQL has no ADD COLUMN IF NOT EXISTS.
-- +goose StatementBegin
SET @add_late_reason = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_message' AND column_name = 'late_reason'),
  'DO 0',
  'ALTER TABLE delay_task_message ADD COLUMN late_reason TINYINT UNSIGNED NOT NULL DEFAULT 0
    COMMENT ''why the first start was over 100 ms late; the view delay_task_lateness has the names''');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_late_reason FROM @add_late_reason;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_late_reason;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_late_reason;
-- +goose StatementEnd

-- +goose Down
-- The column stays: versions that know it do not start without it.
SELECT 1;
