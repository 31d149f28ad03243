package clock

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// pace is a clock whose rate changes: 1.05 is fast by 5 %. The bubble's clock is the true time.
type pace struct {
	at, shows time.Time
	rate      float64
}

func (p *pace) now() time.Time {
	return p.shows.Add(time.Duration(math.Floor(float64(time.Since(p.at)) * p.rate)))
}

func (p *pace) set(rate float64) { p.shows, p.at, p.rate = p.now(), time.Now(), rate }

// site is a process and its database, each with a clock of its own.
type site struct {
	*Clock
	mono, raw, db pace
	answered      time.Time // the last reading
}

// newSite makes the clock as an engine does.
func newSite() *site {
	start := time.Now()
	sound := pace{at: start, shows: start, rate: 1}
	s := &site{mono: sound, raw: sound, db: sound}
	raw := func() time.Duration { return s.raw.now().Sub(start) }
	s.Clock = New(Source(s.mono.now), On(Machine{Raw: raw}), Drift(1000), Slew(100_000))
	return s
}

func (s *site) read(request, reply time.Duration) bool { return s.readOf("a", request, reply) }

func (s *site) readOf(server string, request, reply time.Duration) bool {
	sent := s.mono.now()
	time.Sleep(request)
	r := row.Reading{Server: server, Time: row.Time(s.db.now().UnixMicro())}
	s.answered = time.Now()
	time.Sleep(reply)
	received := s.mono.now()
	time.Sleep(100 * time.Microsecond) // for a processor
	return s.Add(r, sent, received)
}

// wrong returns by how much the lower bound is past the database's clock, and the upper one short of it.
func (s *site) wrong() (early, short time.Duration) {
	least, _ := s.AtLeast()
	most, _ := s.AtMost()
	truth := s.db.now()
	return least.Std().Sub(truth), truth.Sub(most.Std())
}

// A phase is how the clocks run until the next reading, and how long that takes.
type phase struct {
	mono, db, raw         float64
	pause, request, reply time.Duration
}

const leg = 350 * time.Microsecond // of a reading, at most

func drawPhases(t *rapid.T, local, remote float64) []phase {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) phase {
		rate := func(what string, limit float64) float64 {
			return 1 + rapid.OneOf(rapid.Just(0.), rapid.SampledFrom([]float64{-limit, limit}),
				rapid.Float64Range(-limit, limit)).Draw(t, what)
		}
		return phase{
			mono: rate("mono", local), db: rate("db", remote), raw: rate("raw", 200e-6),
			pause:   drawDuration(t, 100*time.Millisecond, "pause"),
			request: drawDuration(t, leg, "request"), reply: drawDuration(t, leg, "reply"),
		}
	}), 1, 40).Draw(t, "phases")
}

// drive reads the clock after each phase, and calls check often.
func (s *site) drive(phases []phase, check func(age time.Duration) error) error {
	s.read(leg, leg)
	for n, p := range phases {
		s.mono.set(p.mono)
		s.db.set(p.db)
		s.raw.set(p.raw)
		for range 4 {
			time.Sleep(p.pause / 4)
			if err := check(time.Since(s.answered)); err != nil {
				return fmt.Errorf("before reading %d: %w", n, err)
			}
		}
		if !s.read(p.request, p.reply) {
			return fmt.Errorf("reading %d was taken for another clock", n)
		}
		if err := check(time.Since(s.answered)); err != nil {
			return fmt.Errorf("after reading %d: %w", n, err)
		}
	}
	return nil
}

func TestBoundsHoldTheTruthWhateverTheSlewOfThisMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		phases := drawPhases(rt, .1, 500e-6)
		if rapid.Bool().Draw(rt, "one machine") { // which the database runs on, too
			for i := range phases {
				phases[i].db = phases[i].mono
			}
		}
		var err error
		synctest.Test(t, func(*testing.T) {
			s := newSite()
			err = s.drive(phases, func(time.Duration) error {
				if early, short := s.wrong(); early > 0 || short > 0 {
					return fmt.Errorf("AtLeast is %v past the truth, AtMost %v short of it", early, short)
				}
				return nil
			})
			if err == nil && s.ServerSlewed() {
				err = fmt.Errorf("the machine's slew was taken for the server's")
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestAtMostIsLittleAheadBetweenReadsOfTheRawClock: a save that names no time is due at this bound.
func TestAtMostIsLittleAheadBetweenReadsOfTheRawClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.read(0, 0)
		for range 40 {
			if _, short := s.wrong(); short < -100*time.Microsecond {
				t.Fatalf("%v after the reading AtMost is %v ahead", time.Since(s.answered), -short)
			}
			time.Sleep(rawHold / 5)
		}
	})
}

// TestASlewOfTheDatabaseCostsWhatTheLastReadingDidNotShow lets both clocks be slewed. A slew shows in the next reading,
// but for what is lost in its request.
func TestASlewOfTheDatabaseCostsWhatTheLastReadingDidNotShow(t *testing.T) {
	const unseen = 500 * time.Microsecond
	rapid.Check(t, func(rt *rapid.T) {
		phases := drawPhases(rt, .1, .1)
		var err error
		synctest.Test(t, func(*testing.T) {
			s := newSite()
			err = s.drive(phases, func(age time.Duration) error {
				allowed := unseen
				if !s.ServerSlewed() {
					allowed += age / 10
				}
				if early, short := s.wrong(); early > allowed || short > allowed+age/10 {
					return fmt.Errorf("a reading %v old, slew seen %v: AtLeast %v past the truth, AtMost %v short",
						age, s.ServerSlewed(), early, short)
				}
				return nil
			})
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestASlewIsCountedFromTheLastReading slews the process's clock one way and then the other, and the database's as at
// first. What the process's clock has counted wrongly at first hides the second slew from a slow reading.
func TestASlewIsCountedFromTheLastReading(t *testing.T) {
	const leg = 6 * time.Millisecond
	for bound, first := range map[string]float64{"AtMost": .1, "AtLeast": -.1} {
		t.Run(bound, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				s.read(0, 0)
				s.mono.set(1 + first)
				s.db.set(1 + first)
				for range 8 {
					time.Sleep(100 * time.Millisecond)
					s.read(leg, leg)
				}
				s.mono.set(1 - first)
				time.Sleep(20 * time.Millisecond)
				s.read(leg, leg)
				time.Sleep(400 * time.Millisecond)
				age := time.Since(s.answered)
				early, short := s.wrong()
				if allowed := age/10 + 2*leg; s.ServerSlewed() || early > allowed || short > allowed {
					t.Errorf("%v after a reading AtLeast is %v past the truth, AtMost %v short of it, want %v at most",
						age, early, short, allowed)
				}
			})
		})
	}
}

func TestAServerThatIsSlewedStaysTheSameClock(t *testing.T) {
	for _, rate := range []float64{.9, .95, .98, .995, 1.005, 1.02, 1.05, 1.1} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				s.read(0, 0)
				s.db.set(rate)
				for n := range 1000 {
					pause := 10 * time.Millisecond
					if n%100 == 0 {
						pause = time.Second
					}
					time.Sleep(pause)
					if early, short := s.wrong(); n > 0 && (early > 0 || short > 0) {
						t.Fatalf("reading %d: AtLeast is %v past the truth, AtMost %v short of it", n, early, short)
					}
					if !s.read(50*time.Microsecond, 50*time.Microsecond) || s.RescueHeld() || !s.ServerSlewed() {
						t.Fatalf("reading %d: rescue held %v, slew seen %v", n, s.RescueHeld(), s.ServerSlewed())
					}
				}
				if w, _ := s.Width(); w > 5*time.Millisecond {
					t.Errorf("the bounds have run %v apart", w)
				}
			})
		})
	}
}

func TestAMinuteAfterTheLastSlewTheBoundsAreNarrowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.read(0, 0)
		s.db.set(.95)
		time.Sleep(time.Second)
		s.read(0, 0)
		s.db.set(1)
		for range 60 {
			if !s.ServerSlewed() {
				t.Error("it was forgotten too early")
			}
			time.Sleep(time.Second)
			s.read(0, 0)
		}
		time.Sleep(time.Second)
		if w, _ := s.Width(); s.ServerSlewed() || w > 3*time.Millisecond {
			t.Errorf("after a minute: slew seen %v, the bounds are %v apart", s.ServerSlewed(), w)
		}
	})
}

// TestAStepThatASlewExplainsIsBelievedOnlyByItsWiderSide has a reply of the replaced server arrive after one of the
// server that took over under its name.
// The bounds of the server before the failover move apart by a tenth of the time that passes.
func TestAFailoverDelaysNothingForLongWhileTheClockIsSlewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.read(0, 0)
		s.db.set(1.05)
		time.Sleep(time.Second)
		s.read(0, 0)
		s.db.set(1)
		for after := time.Duration(0); after < 30*time.Second; after += time.Second {
			time.Sleep(time.Second)
			if !s.readOf("b", 0, 0) {
				t.Fatalf("%v after the failover the clock is lost", after)
			}
			late, _ := s.wrong()
			if late = -late; late > maxSkew+100*time.Millisecond ||
				after > 6*time.Second && late > 10*time.Millisecond {
				t.Errorf("%v after the failover starts are late by %v", after, late)
			}
			if !s.ServerSlewed() {
				t.Fatal("no slew is seen")
			}
		}
	})
}

func TestAStepThatASlewExplainsIsBelievedOnlyByItsWiderSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.read(0, 0)
		time.Sleep(time.Second)
		old, sent := row.Reading{Server: "a", Time: row.Time(s.db.now().UnixMicro())}, time.Now()
		s.db.shows = s.db.shows.Add(-50 * time.Millisecond)
		time.Sleep(time.Millisecond)
		if !s.read(0, 0) {
			t.Error("a step that a slew explains is another clock")
		}
		s.Add(old, sent, time.Now())
		if early, _ := s.wrong(); early > 0 {
			t.Errorf("AtLeast is %v past the clock that took over", early)
		}
		s = newSite()
		s.read(0, 0)
		before := s.db
		s.db.shows = s.db.shows.Add(20 * time.Millisecond)
		time.Sleep(time.Second)
		s.read(0, 0)
		if least, _ := s.AtLeast(); least.Std().After(before.now()) {
			t.Errorf("AtLeast is %v past the clock from before", least.Std().Sub(before.now()))
		}
		s.db.shows = s.db.shows.Add(-time.Second)
		if s.read(0, 0) {
			t.Error("a step of a second was taken for a slew")
		}
	})
}

func TestSlewedGoesByTheWordOfTheKernel(t *testing.T) {
	rate := 1.0
	c := New(Drift(1000), On(Machine{Rate: func() float64 { return rate }}))
	for r, want := range map[float64]bool{1: false, 1.0009: false, .9991: false, 1.0011: true, .9: true, 1.1: true} {
		if rate = r; c.Slewed() != want {
			t.Errorf("at the rate %v: slewed %v", r, !want)
		}
	}
}
