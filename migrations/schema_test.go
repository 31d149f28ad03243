package migrations_test

import (
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/migrations"
)

// Connections that are open keep the schema that they have read.
func TestProgramsThatAreConnectedMeetTheNewSchema(t *testing.T) {
	d := dbtest.New(t, dbtest.SQLite)
	db, kind := connect(t, d)
	if err := migrations.Up(t.Context(), db.DB, kind); err != nil {
		t.Fatal(err)
	}
	db.MustExec("PRAGMA writable_schema = ON")
	db.MustExec("UPDATE sqlite_schema SET sql = replace(sql, 'message_body TEXT NULL', 'message_body TEXT NOT NULL')")
	db.MustExec("PRAGMA writable_schema = RESET")
	db.MustExec("DELETE FROM delay_task_goose_version WHERE version_id = 8")
	_ = db.Close()

	db, kind = connect(t, d)
	program, _ := connect(t, d)
	const insert = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES ('t', NULL, 0)"
	if _, err := program.Exec(insert); err == nil {
		t.Fatal("the table takes a task without a body before the migration")
	}
	if err := migrations.Up(t.Context(), db.DB, kind); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Exec(insert); err != nil {
		t.Error(err)
	}
}
