-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  create_time TEXT NOT NULL,        -- UTC; when the act was about to begin
  who TEXT NOT NULL DEFAULT '',     -- name of the access token, or user@host of the command
  via TEXT NOT NULL DEFAULT '',     -- api, command, dashboard or library
  action TEXT NOT NULL,             -- task.cancel, bulk.retry, tag.pause and others
  target TEXT NOT NULL DEFAULT '',  -- id of the task, or name of the tag, schedule, receiver or token
  tag TEXT NOT NULL DEFAULT '',     -- empty: all tags, several, or none
  detail TEXT NOT NULL DEFAULT '',  -- filter of a bulk change with its moment; what else was asked for
  tasks INTEGER NULL,               -- how many were changed; NULL until the act has ended
  outcome TEXT NOT NULL DEFAULT '', -- done, refused, failed or unknown; empty: under way, or its process died
  error TEXT NOT NULL DEFAULT '',   -- why it was not done
  finish_time TEXT NULL             -- UTC; when it ended
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_audit;
