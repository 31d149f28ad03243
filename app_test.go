package delaytask_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

// TestNoKeyMeetsThatOfAnotherApp saves pairs of app and key that a careless encoding would confuse.
func TestNoKeyMeetsThatOfAnotherApp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		f, _ := onDatabase(t, db)
		longest := strings.Repeat("é", 255-len(row.AppKey)-len("|")-128)
		pairs := [][2]string{
			{"", "k"}, {"a", "k"}, {"A", "k"}, {"a:b", "k"}, {"a", "b|k"}, {"a", "b:k"}, {"", "a|k"}, {"", "a:k"},
			{"a:b", "|k"}, {"a", ":b|k"},
			{"a", "k "}, {"", "delaytask-app"}, {strings.Repeat("a", 128), longest},
		}
		for _, pair := range pairs {
			inApp, withKey := delaytask.WithApp(pair[0]), delaytask.WithKey(pair[1])
			if _, err := f.SaveDelayTask(t.Context(), "t", pair[0], time.Hour, inApp, withKey); err != nil {
				t.Errorf("%q: %v", pair, err)
			}
		}
		for _, pair := range pairs {
			task, err := f.Get(t.Context(), delaytask.Key("t", pair[1]).InApp(pair[0]))
			if err != nil || string(task.Body) != pair[0] || task.App() != pair[0] || task.Key != pair[1] {
				t.Errorf("%q: got %+v, %v", pair, task, err)
			}
		}
		for _, refused := range []struct {
			app, key string
			want     error
		}{
			{"", row.AppKey + "a|k", delaytask.ErrInvalidKey},
			{"b", row.AppKey + "a|k", delaytask.ErrInvalidKey},
			{"a", "s3:k", delaytask.ErrInvalidKey},
			{"a b", "k", delaytask.ErrInvalidOption},
			{"a|", "k", delaytask.ErrInvalidOption},
			{strings.Repeat("a", 129), "k", delaytask.ErrInvalidOption},
			{strings.Repeat("a", 128), longest + "x", delaytask.ErrInvalidKey},
		} {
			_, err := f.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithApp(refused.app), delaytask.WithKey(refused.key))
			if !errors.Is(err, refused.want) {
				t.Errorf("save of %q in %q: %v, want %v", refused.key, refused.app, err, refused.want)
			}
			if _, err := f.Get(t.Context(), delaytask.Key("t", refused.key).InApp(refused.app)); err == nil {
				t.Errorf("%q in %q finds a task", refused.key, refused.app)
			}
		}
	})
}

// TestRowsOfOtherHandsKeepTheirKeys looks at rows of an older version, and of plain SQL.
func TestRowsOfOtherHandsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		f, pool := onDatabase(t, db)
		for _, key := range []string{"old", row.ScopedKey("shop", "plain")} {
			_, err := pool.ExecContext(t.Context(), "INSERT INTO delay_task_message"+
				" (tag, task_key, message_body, delay_time, headers) VALUES ('t', '"+key+"', '1', 3600000, '{\"delaytask-app\": \"shop\"}')")
			if err != nil {
				t.Fatal(err)
			}
		}
		if task, err := f.Get(t.Context(), delaytask.Key("t", "old")); err != nil || task.Key != "old" || task.App() != "shop" {
			t.Errorf("a key outside of its app: %+v, %v", task, err)
		}
		if task, err := f.Get(t.Context(), delaytask.Key("t", "plain").InApp("shop")); err != nil || task.Key != "plain" {
			t.Errorf("a key within its app: %+v, %v", task, err)
		}
		_, err := f.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithKey("plain"), delaytask.WithApp("shop"))
		if !errors.Is(err, delaytask.ErrDuplicate) {
			t.Errorf("the same key: %v, want a duplicate", err)
		}
	})
}
