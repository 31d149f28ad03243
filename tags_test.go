package delaytask_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

func TestTagsAreThoseThatAreServedOrPaused(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	if tags, err := s.Tags(t.Context()); len(tags) != 0 || tags == nil || err != nil {
		t.Errorf("of none: got %v, %v", tags, err)
	}
	for _, tag := range []string{"served", "both"} {
		if err := s.Register(tag, processor.Func(func(context.Context, *processor.Task) error { return nil })); err != nil {
			t.Fatal(err)
		}
	}
	for _, tag := range []string{"paused", "both", "resumed"} {
		if err := s.Pause(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Resume(t.Context(), "resumed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveDelayTask(t.Context(), "unserved", nil, 0); err != nil {
		t.Fatal(err)
	}
	s.Advance(2 * time.Second)
	got, err := s.Tags(t.Context())
	want := []delaytask.TagState{
		{Tag: "both", Served: true, Paused: true}, {Tag: "paused", Paused: true}, {Tag: "served", Served: true},
	}
	if !slices.Equal(got, want) || err != nil {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	if w := wire.Tag(got[0]); w.Tag != "both" || !w.Served || !w.Paused {
		t.Errorf("in JSON it is %+v", w)
	}
}
