-- +goose Up
-- One statement for all columns, so that none is missing where one is there. MySQL has no ADD COLUMN IF NOT EXISTS.
-- +goose StatementBegin
SET @add_bulk = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_audit' AND column_name = 'seen_time'),
  'DO 0',
  'ALTER TABLE delay_task_audit
    ADD COLUMN bulk TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
      COMMENT ''what a bulk change is, in JSON; NULL: its process does not tell'',
    ADD COLUMN stop_time DATETIME(6) NULL
      COMMENT ''UTC; when a caller has asked to stop a bulk change'',
    ADD COLUMN seen_time DATETIME(6) NULL
      COMMENT ''UTC; when the process of a bulk change was last seen at it; NULL: it does not tell''');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_bulk FROM @add_bulk;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_bulk;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_bulk;
-- +goose StatementEnd

-- delaytask doctor prints a statement that adds a missing index, so it may be there before the columns.
-- +goose StatementBegin
SET @add_action = IF(
  EXISTS (SELECT 1 FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'delay_task_audit' AND index_name = 'delay_task_audit_action'),
  'DO 0',
  'ALTER TABLE delay_task_audit ADD KEY delay_task_audit_action (action, id)');
-- +goose StatementEnd
-- +goose StatementBegin
PREPARE add_action FROM @add_action;
-- +goose StatementEnd
-- +goose StatementBegin
EXECUTE add_action;
-- +goose StatementEnd
-- +goose StatementBegin
DEALLOCATE PREPARE add_action;
-- +goose StatementEnd

-- +goose Down
-- The columns stay: versions that know them read them.
SELECT 1;
