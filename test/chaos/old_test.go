package main

import (
	"strings"
	"testing"
)

func TestOlderProgramIsOfACommitThatIsThere(t *testing.T) {
	t.Parallel()
	s := &stage{opts: options{old: "no-such-commit"}, dir: t.TempDir()}
	if err := s.setOld(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-commit") {
		t.Errorf("got %v, want the commit's name", err)
	}
	s = &stage{dir: t.TempDir()}
	if err := s.setOld(t.Context()); err != nil || s.old != (older{}) {
		t.Errorf("got %+v, %v, where nobody asked for one", s.old, err)
	}
}
