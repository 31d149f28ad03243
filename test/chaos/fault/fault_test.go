package fault

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/ledger"
)

func TestEveryKindCanHappenAndBeShown(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, k := range Kinds {
		if names[k.Name] || k.Shows == nil || k.Lasts[0] > k.Lasts[1] || (k.Lane == "") != (k.New == nil) || k.Lane != "" && k.Weight == 0 {
			t.Errorf("%s: %+v", k.Name, k)
		}
		names[k.Name] = true
	}
	for _, name := range ledger.AimedKinds() {
		if !names[name] {
			t.Errorf("the record counts a fault %q that never happens", name)
		}
	}
}

// scripted notes that it was ended.
type scripted struct {
	err   error
	ended *int
}

func (s scripted) Begin(context.Context, *World, *rand.Rand) (Scar, error) {
	return Scar{Target: "w", IDs: []int64{7, 8}}, s.err
}

func (s scripted) End(context.Context, *World) error {
	*s.ended++
	return nil
}

func TestWhatHasBegunIsEndedAndCountsOnlyIfItMetSomething(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("the injector is broken")
	for _, tt := range []struct {
		err, want error
		episodes  bool
	}{{nil, nil, true}, {ErrNothing, nil, false}, {errBroken, errBroken, false}} {
		path := filepath.Join(t.TempDir(), "journal")
		file, err := journal.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := 0
		s := &Storm{
			World: &World{Fleet: &fleet.Fleet{Journal: file}},
			Kinds: []Kind{{Name: "k", Lane: Networks, Weight: 1, Lasts: between(time.Hour, time.Hour), New: func() Fault {
				if tt.want == nil {
					time.AfterFunc(20*time.Millisecond, cancel) // which shortens a fault
				}
				return scripted{tt.err, &ended}
			}}},
			Pause: map[Lane]time.Duration{Networks: time.Millisecond},
			Say:   t.Logf,
		}
		if err := s.Blow(ctx); !errors.Is(err, tt.want) {
			t.Errorf("%v: got %v", tt.err, err)
		}
		cancel()
		events, err := journal.ReadFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		found := evidence.New(events).Episodes
		if ended == 0 || (len(found) > 0) != tt.episodes {
			t.Errorf("%v: ended %d times, %d episodes", tt.err, ended, len(found))
		}
		if tt.episodes && (found[0].Target != "w" || len(found[0].IDs) != 2 || found[0].Kind != "k") {
			t.Errorf("got %+v", found[0])
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An injector that does not work leaves no verdict: nobody waits for the end of the span then.
func TestOneLaneThatFailsEndsTheStorm(t *testing.T) {
	t.Parallel()
	file, err := journal.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	errBroken, ended, long := errors.New("the injector is broken"), 0, 0
	s := &Storm{
		World: &World{Fleet: &fleet.Fleet{Journal: file}},
		Kinds: []Kind{
			{Name: "broken", Lane: Networks, Weight: 1, New: fresh(scripted{errBroken, &ended})},
			{Name: "long", Lane: Processes, Weight: 1, Lasts: between(time.Hour, time.Hour), New: fresh(scripted{nil, &long})},
		},
		Pause: map[Lane]time.Duration{Networks: time.Millisecond, Processes: time.Millisecond},
		Say:   t.Logf,
	}
	if err := s.Blow(t.Context()); !errors.Is(err, errBroken) || ended != 1 {
		t.Errorf("got %v, ended %d times", err, ended)
	}
}

// dying sees the end of the storm while it begins.
type dying struct {
	momentary
	end context.CancelFunc
}

func (d dying) Begin(ctx context.Context, _ *World, _ *rand.Rand) (Scar, error) {
	d.end()
	return Scar{}, ctx.Err()
}

func TestEndOfTheStormBreaksOffNoBegin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	file, err := journal.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Storm{
		World: &World{Fleet: &fleet.Fleet{Journal: file}},
		Kinds: []Kind{{Name: "k", Lane: Networks, Weight: 1, New: fresh(dying{end: cancel})}},
		Pause: map[Lane]time.Duration{Networks: time.Millisecond},
		Say:   t.Logf,
	}
	if err := s.Blow(ctx); err != nil {
		t.Errorf("got %v", err)
	}
	events, err := journal.ReadFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	if found := evidence.New(events).Episodes; len(found) != 1 {
		t.Errorf("got %d episodes, want the one that began", len(found))
	}
}
