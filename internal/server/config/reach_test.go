package config

import (
	"os"
	"testing"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
)

func TestACommandReachesTheSameDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dsn, from, want string }{
		{"sqlite:delaytask.db", "", " --dsn sqlite:delaytask.db"},
		{"sqlite:it's here.db", "--dsn", ` --dsn 'sqlite:it'\''s here.db'`},
		{"shop:secret@tcp(db:3306)/shop", "--dsn", " --dsn 'shop:***@tcp(db:3306)/shop'"},
		{"shop:secret@tcp(db:3306)/shop", "DELAYTASK_DSN", ""},
		{"shop:secret@tcp(db:3306)/shop", "config.yaml: dsn", ""},
		{"shop:secret@tcp(db:3306)/shop", "/etc/my shop.yaml: dsn", " --config '/etc/my shop.yaml'"},
	} {
		c := Config{DSN: tt.dsn, DSNFrom: tt.from}
		if got := c.Reach(); got != tt.want {
			t.Errorf("%s from %s: %q, want %q", tt.dsn, tt.from, got, tt.want)
		}
	}
}

// The sources are written as Load writes them.
func TestReachKnowsTheSourcesOfLoad(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{Environ: []string{"DELAYTASK_DSN=sqlite:a.db"}})
	if err != nil || c.Reach() != "" {
		t.Errorf("by the environment: %q, %v", c.Reach(), err)
	}
	path := t.TempDir() + "/other.yaml"
	if err := os.WriteFile(path, []byte("dsn: sqlite:a.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(Source{Path: path}); err != nil || c.Reach() != " --config "+sentence.Word(path) {
		t.Errorf("by a file: %q, %v", c.Reach(), err)
	}
}
