-- +goose Up
-- What programs insert that give every column a value: no executor yet, no body.
-- +goose StatementBegin
ALTER TABLE delay_task_message
  MODIFY message_body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL
    COMMENT 'what the processor is handed; NULL: nothing',
  MODIFY ip_address BIGINT UNSIGNED NULL DEFAULT 0
    COMMENT 'IPv4 address of the last executor; INET_NTOA shows it; 0 or NULL: none yet';
-- +goose StatementEnd

-- +goose Down
-- The columns stay as they are: rows may hold NULL by now, and versions before read them.
SELECT 1;
