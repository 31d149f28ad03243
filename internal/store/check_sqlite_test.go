package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/migrations"
)

func TestCheckWarnsAboutTheCallersSQLitePool(t *testing.T) {
	tests := []struct {
		name, pragmas, want string
	}{
		{"safe", "_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)", ""},
		{"safer", "_pragma=busy_timeout(1)&_pragma=synchronous(EXTRA)", ""},
		{"not synced at every commit", "_pragma=busy_timeout(5000)&_pragma=synchronous(NORMAL)", "_pragma=synchronous(FULL)"},
		{"waits for nobody", "_pragma=busy_timeout(0)&_pragma=synchronous(FULL)", "_pragma=busy_timeout(5000)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "callers.db")+"?"+tt.pragmas)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if err := migrations.Up(t.Context(), pool.DB, store.SQLite); err != nil {
				t.Fatal(err)
			}
			warnings, err := store.New(pool, store.SQLite).Check(t.Context(), bodyLimit)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(warnings) == 0:
			case tt.want != "" && len(warnings) == 1 && strings.Contains(string(warnings[0]), tt.want):
			default:
				t.Errorf("warnings %q, want %q", warnings, tt.want)
			}
		})
	}
}
