package integration

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// canary is in all that must never be logged: the password, bodies and headers.
const canary = "C4nary"

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestLogShowsNoSecret(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		db := pool(t, d)
		dsn := d.DSN
		if d.Kind != dbtest.SQLite {
			dsn = withPassword(t, d)
		}
		var log journal
		verbose := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
		s := open(t, dbtest.Database{Kind: d.Kind, DSN: dsn}, func(cfg *delaytask.Config) {
			cfg.Logger = verbose
			cfg.StopGrace = 50 * time.Millisecond
		})
		running := make(chan int64, 10)
		serve(t, s, "t", func(ctx context.Context, task *processor.Task) error {
			switch task.Headers["do"] {
			case "fail":
				return errors.New("an ordinary error")
			case "panic":
				panic("a panic")
			case "forbid":
				return processor.Permanent(errors.New("for good"))
			case "hold":
				running <- task.ID
				<-ctx.Done()
			}
			return nil
		}, processor.Use(processor.Logging(verbose)))
		saveTask := func(do string, delay time.Duration) int64 {
			t.Helper()
			id, err := s.SaveDelayTask(t.Context(), "t", "body "+canary, delay, delaytask.WithHeader("do", do),
				delaytask.WithHeader("secret", canary), delaytask.WithMaxAttempts(2))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		for _, do := range []string{"fail", "panic", "forbid"} {
			reaches(t, s, saveTask(do, 0), delaytask.Failed)
		}
		broken := saveTask("nothing", time.Hour)
		execute(t, db, "UPDATE delay_task_message SET errors = '"+canary+"', due_time = create_time WHERE id = ?", broken)
		eventually(t, "the undecodable task is failed", func() bool { return columns(t, db, broken)["status"] == "2" })
		lost := saveTask("hold", 0)
		receive(t, running, "task runs")
		execute(t, db, "DELETE FROM delay_task_message WHERE id = ?", lost)
		reaches(t, s, saveTask("fail", 0), delaytask.Failed)
		if d.Kind != dbtest.SQLite {
			for range 10 {
				killAll(t, d, outside(t, d))
				reaches(t, s, saveTask("nothing", 0), delaytask.Completed)
			}
			execute(t, db, "ALTER TABLE delay_task_message RENAME COLUMN message_body TO gone")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := s.SaveDelayTask(ctx, "t", canary, 0, delaytask.WithHeader("h", canary))
			if err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("save without a table: %v", err)
			}
			execute(t, db, "ALTER TABLE delay_task_message RENAME COLUMN gone TO message_body")
			wrong := strings.Replace(dsn, canary, canary+"X", 1)
			_, err = delaytask.Open(t.Context(), wrong, delaytask.Config{Logger: verbose})
			if err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("open with a wrong password: %v", err)
			}
		}
		saveTask("hold", 0)
		receive(t, running, "task runs")
		_ = s.Stop(t.Context()) // interrupts it
		logged := log.String()
		for line := range strings.Lines(logged) {
			if strings.Contains(line, canary) {
				t.Errorf("logged: %s", line)
			}
		}
		for _, level := range []string{"INFO", "WARN", "ERROR"} {
			if !strings.Contains(logged, `"level":"`+level+`"`) {
				t.Errorf("nothing was logged at level %s, so the test shows little", level)
			}
		}
	})
}

// withPassword makes a user with a password and returns its DSN.
func withPassword(t *testing.T, d dbtest.Database) string {
	t.Helper()
	cfg, server := mysqlConfig(t, d), outside(t, d)
	user := "canary" + cfg.DBName[len(cfg.DBName)-12:]
	execute(t, server, "CREATE USER '"+user+"'@'%' IDENTIFIED BY '"+canary+"'")
	t.Cleanup(func() { _, _ = server.ExecContext(context.Background(), "DROP USER '"+user+"'@'%'") })
	execute(t, server, "GRANT ALL ON `"+cfg.DBName+"`.* TO '"+user+"'@'%'")
	cfg.User, cfg.Passwd = user, canary
	return cfg.FormatDSN()
}
