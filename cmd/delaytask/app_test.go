package main

import (
	"io"
	"log/slog"
	"testing"

	"github.com/delaytask/delaytask/internal/config"
)

func TestLogLevelMeansWhatItSays(t *testing.T) {
	t.Parallel()
	f := func(setting string, least slog.Level) {
		t.Helper()
		log := (&app{stderr: io.Discard}).logger(config.Log{Level: setting})
		if !log.Enabled(t.Context(), least) || log.Enabled(t.Context(), least-1) {
			t.Errorf("log.level %s does not begin at %v", setting, least)
		}
	}
	f("debug", slog.LevelDebug)
	f("info", slog.LevelInfo)
	f("warn", slog.LevelWarn)
	f("error", slog.LevelError)
}
