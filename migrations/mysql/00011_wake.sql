-- +goose Up
-- MySQL has no ADD COLUMN IF NOT EXISTS.
-- +goose StatementBegin
SET @add_wake = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_node' AND column_name = 'wake'),
  'DO 0',
  'ALTER TABLE delay_task_node ADD COLUMN wake LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT ''JSON object: where the process is told of new tasks, and by which key''');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_wake FROM @add_wake;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_wake;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_wake;
-- +goose StatementEnd

-- +goose Down
-- The column stays: versions that know it do not start without it.
SELECT 1;
