package fault

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/evidence"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/ledger"
)

func TestEveryKindCanHappenAndBeShown(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, k := range Kinds {
		happens := k.Lane != ""
		if names[k.Name] || k.Shows == nil || k.Lasts[0] > k.Lasts[1] || happens != (k.Begin != nil) ||
			happens && k.Weight == 0 {
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

// run lets faults happen until ctx ends, and returns what the journal has of them.
func run(ctx context.Context, t *testing.T, kinds ...Kind) ([]evidence.Episode, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	file, err := journal.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := &Injector{
		World: &World{Fleet: &fleet.Fleet{Journal: file}, Say: t.Logf}, Kinds: kinds,
		Pause: map[Lane]time.Duration{Networks: time.Millisecond, Processes: time.Millisecond},
	}
	ran := s.Run(ctx)
	events, err := journal.ReadFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	return evidence.New(events).Episodes, ran
}

// scripted is a fault that begins with the error and counts its ends.
func scripted(err error, ended *int) Begin {
	return func(context.Context, *World, *rand.Rand) (Residue, End, error) {
		return Residue{Target: "w", IDs: []int64{7, 8}}, func(context.Context) error {
			*ended++
			return nil
		}, err
	}
}

var (
	errBroken = errors.New("the injector is broken")
	anHour    = span{time.Hour, time.Hour}
)

func TestFaultsAreEndedAndCountWithAnEffectOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err, want error
		episodes  bool
	}{{nil, nil, true}, {ErrNothing, nil, false}, {errBroken, errBroken, false}} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := 0
		begin := func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
			time.AfterFunc(20*time.Millisecond, cancel) // which shortens a fault
			return scripted(tt.err, &ended)(ctx, w, r)
		}
		found, err := run(ctx, t, Kind{Name: "k", Lane: Networks, Weight: 1, Lasts: anHour, Begin: begin})
		cancel()
		if !errors.Is(err, tt.want) || ended == 0 || (len(found) > 0) != tt.episodes {
			t.Errorf("%v: got %v, ended %d times, %d episodes", tt.err, err, ended, len(found))
		}
		if tt.episodes && (found[0].Target != "w" || len(found[0].IDs) != 2 || found[0].Kind != "k") {
			t.Errorf("got %+v", found[0])
		}
	}
}

// An injector that does not work leaves no verdict, so the other lanes end at once.
func TestOneLaneThatFailsEndsAll(t *testing.T) {
	t.Parallel()
	ended, long := 0, 0
	_, err := run(t.Context(), t,
		Kind{Name: "broken", Lane: Networks, Weight: 1, Begin: scripted(errBroken, &ended)},
		Kind{Name: "long", Lane: Processes, Weight: 1, Lasts: anHour, Begin: scripted(nil, &long)})
	if !errors.Is(err, errBroken) || ended != 1 {
		t.Errorf("got %v, ended %d times", err, ended)
	}
}

func TestEndOfTheFaultsInterruptsNoBegin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := run(ctx, t, Kind{Name: "k", Lane: Networks, Weight: 1,
		Begin: func(ctx context.Context, _ *World, _ *rand.Rand) (Residue, End, error) {
			cancel()
			return Residue{}, nil, ctx.Err()
		}})
	if err != nil || len(found) != 1 {
		t.Errorf("got %v, %d episodes, want the one that began", err, len(found))
	}
}
