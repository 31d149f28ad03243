package sqlstore

import (
	"context"
	"database/sql"

	"github.com/delaytask/delaytask/internal/row"
)

const tagTable = "delay_task_tag"

// Tags implements [store.Nodes].
func (s *Store) Tags(ctx context.Context) ([]row.TagState, error) {
	var tags []row.TagState
	query := "SELECT " + s.dialect.text("tag") + ", paused FROM " + tagTable + " ORDER BY " + tagTable + ".tag"
	err := scan(ctx, s.db, query, nil, func(r *struct {
		Tag    string `db:"tag"`
		Paused bool   `db:"paused"`
	}) error {
		tags = append(tags, row.TagState{Tag: r.Tag, Paused: r.Paused})
		return nil
	})
	return tags, classify("read tags", err)
}

// SetTag implements [store.Nodes].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	d := s.dialect
	query := "INSERT INTO " + tagTable + " (tag, paused, update_time) VALUES (" + d.bindText + ", ?, " + d.now + ")" +
		d.upsert + "paused = ?, update_time = " + d.now
	return s.keep.do(ctx, "store a tag", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, t.Tag, t.Paused, t.Paused)
		return err
	})
}
