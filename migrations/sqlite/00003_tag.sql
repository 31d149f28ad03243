-- +goose Up
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS delay_task_tag (
  tag TEXT PRIMARY KEY NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,    -- 1: no task of the tag starts
  update_time TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) -- UTC
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS delay_task_tag;
