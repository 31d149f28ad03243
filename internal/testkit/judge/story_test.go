package judge

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a moment of a story, in seconds.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

var rules = Rules{
	MaxAttempts: 3, Quarantine: 5, TTR: 4 * time.Second, Settle: time.Second, CaughtUp: 6 * time.Second,
	Rescue: 5 * time.Second, Hold: 2 * time.Second, Killers: []string{"kill"},
	Many: 25, CaughtUpByMany: 10 * time.Second,
}

// story writes a journal.
type story struct {
	events []journal.Event
	keys   map[string]string // by body
}

func tell() *story { return &story{} }

func (s *story) add(seconds float64, node string, kind journal.Kind, e journal.Event) *story {
	e.At, e.Node, e.Kind = at(seconds), node, kind
	s.events = append(s.events, e)
	return s
}

// save is an accepted save that is due after two seconds.
func (s *story) save(seconds float64, id int64, body string) *story {
	return s.saveKey(seconds, id, body, "")
}

func (s *story) saveKey(seconds float64, id int64, body, key string) *story {
	return s.call(seconds, body, key, 0).insert(seconds+.01, id, body, key).answer(seconds+.02, body, id, journal.OK)
}

func (s *story) call(seconds float64, body, key string, id int64) *story {
	if s.keys == nil {
		s.keys = map[string]string{}
	}
	s.keys[body] = key
	s.add(seconds, "n", journal.CallSave,
		journal.Event{Op: "save " + body, ID: id, Tag: "t", Key: key, Body: body, Expected: at(seconds + 2)})
	return s
}

func (s *story) answer(seconds float64, body string, id int64, class journal.Class) *story {
	return s.add(seconds, "n", journal.ReturnSave, journal.Event{Op: "save " + body, ID: id, Error: class})
}

func (s *story) insert(seconds float64, id int64, body, key string) *story {
	return s.add(seconds, "db", journal.Write, journal.Event{
		ID: id, Tag: "t", Key: key, Body: body, Status: pending, Due: at(seconds + 2), Expected: at(seconds + 2),
	})
}

// saveOver saves with a delay of two seconds, at the moment 0 of a server whose clock is so far ahead. The next server
// stores the task at 0.1, expected at the given second.
func (s *story) saveOver(ahead, expected float64) *story {
	s.add(0, "n", journal.CallSave,
		journal.Event{Op: "save a", Tag: "t", Body: "a", Clock: at(ahead), Expected: at(ahead + 2)})
	s.add(.1, "db", journal.Write, journal.Event{
		ID: 1, Tag: "t", Body: "a", Status: pending, Due: at(expected), Expected: at(expected), Clock: at(.1),
	})
	s.answer(.2, "a", 1, journal.OK)
	return s
}

// nodes are so many processes that live from the beginning on, after one that has crashed.
func (s *story) nodes(n int) *story {
	s.add(0, "gone", journal.NodeStart, journal.Event{Detail: "t"}).add(0, "gone", journal.NodeCrash, journal.Event{})
	for i := range n {
		s.add(0, fmt.Sprint("n", i), journal.NodeStart, journal.Event{Detail: "t"})
	}
	return s
}

// write is a transition, due at the given second.
func (s *story) write(seconds float64, id, version int64, status string, attempt, crashes int, due float64) *story {
	return s.add(seconds, "db", journal.Write, journal.Event{
		ID: id, Version: version, Status: status, Attempt: attempt, CrashCount: crashes, Due: at(due),
		Executor: "h:1:token:1",
	})
}

func (s *story) start(seconds float64, node string, id, version int64, body string) *story {
	return s.add(seconds, node, journal.RunStart, journal.Event{
		Op: node + body + string(rune('0'+version)), ID: id, Version: version, Tag: "t", Key: s.keys[body], Body: body,
		Attempt: 1, Due: at(2.01), Expected: at(2.01),
	})
}

func (s *story) end(seconds float64, node string, id, version int64, body string, class journal.Class) *story {
	return s.add(seconds, node, journal.RunEnd,
		journal.Event{Op: node + body + string(rune('0'+version)), ID: id, Version: version, Error: class})
}

// startBehind is the first execution of task 1, on a server whose clock is behind: due there, and before the expected
// time.
func (s *story) startBehind() *story {
	s.write(6.1, 1, 2, pending, 0, 1, 1.5)
	s.write(6.5, 1, 3, executing, 1, 1, 10)
	s.add(6.6, "o", journal.RunStart, journal.Event{
		Op: "o", ID: 1, Version: 3, Tag: "t", Body: "a", Attempt: 1, Due: at(1.5), Expected: at(2.01), Clock: at(1.8),
	})
	return s
}

// dueAt2 is an execution of task 1, due at 2.01, that starts at the given second of the database's clock.
func (s *story) dueAt2(seconds, clock float64) *story {
	return s.add(seconds, "n", journal.RunStart,
		journal.Event{ID: 1, Version: 1, Tag: "t", Body: "a", Due: at(2.01), Clock: at(clock)})
}

func (s *story) cancel(seconds float64, class journal.Class) *story {
	return s.op(seconds, journal.CallCancel, journal.ReturnCancel, class)
}

func (s *story) reschedule(seconds float64, class journal.Class) *story {
	return s.op(seconds, journal.CallReschedule, journal.ReturnReschedule, class)
}

// op is an operation of an operator on task 1.
func (s *story) op(seconds float64, kind, answer journal.Kind, class journal.Class) *story {
	s.add(seconds, "n", kind, journal.Event{Op: string(kind), ID: 1})
	s.add(seconds+.1, "n", answer, journal.Event{Op: string(kind), ID: 1, Error: class})
	return s
}

// claimed is task 1, which is saved and claimed for its first run, until second 6.
func (s *story) claimed(attempt int) *story {
	return s.save(0, 1, "a").write(2.01, 1, 1, executing, attempt, 0, 6)
}

// running is the same when its processor has started, on n.
func (s *story) running(attempt int) *story {
	return s.claimed(attempt).start(2.01, "n", 1, 1, "a")
}

// ends is how that run ends.
func (s *story) ends(class journal.Class) *story { return s.end(2.1, "n", 1, 1, "a", class) }

// completes is a run of task 1 on a node, under a later version.
func (s *story) completes(from, to float64, node string, version int64, crashes int) *story {
	return s.write(from, 1, version, executing, 1, crashes, from+4).start(from, node, 1, version, "a").
		end(to, node, 1, version, "a", journal.OK).write(to, 1, version+1, completed, 1, crashes, to)
}

// run is a task's first execution, as it should be.
func (s *story) run(id int64, body string) *story {
	return s.write(2.01, id, 1, executing, 1, 0, 6).start(2.01, "n", id, 1, body).
		end(2.5, "n", id, 1, body, journal.OK).write(2.51, id, 2, completed, 1, 0, 2.51)
}

// quarantine is task 1, which loses the processes n2, n3 and n4 after two others: each claims it and
// crashes half a second later. The processor may have returned by then.
func (s *story) quarantine(returned bool) *story {
	s.save(0, 1, "a")
	for n := range 3 {
		crashes, node := 2+n, fmt.Sprintf("n%d", 2+n)
		at, version := 3+2*float64(n), int64(1+2*n)
		s.claim(at, 1, version, crashes, node)
		s.start(at, node, 1, version, "a")
		if returned {
			s.end(at+.1, node, 1, version, "a", journal.OK)
		}
		s.add(at+.5, node, journal.NodeCrash, journal.Event{})
		status := pending
		if n == 2 {
			status = failed
		}
		s.write(at+1, 1, version+1, status, 0, crashes+1, at+1)
	}
	return s
}

// neighbour is task 2, which the process n2 or n3 has from its beginning until its row is changed.
func (s *story) neighbour(node string, crashes int, until float64) *story {
	return s.save(0, 2, "b").claim(map[string]float64{"n2": 3.1, "n3": 5.1}[node], 2, 1, crashes, node).
		write(until, 2, 2, pending, 0, crashes, until)
}

// outlasted is task 2, whose result the process n3 could not store before the lease ended, as it was moved to the given
// second.
func (s *story) outlasted(returned bool, lease float64) *story {
	s.save(0, 2, "b")
	s.claim(4.2, 2, 1, 2, "n3")
	s.start(4.2, "n3", 2, 1, "b")
	if returned {
		s.end(4.3, "n3", 2, 1, "b", journal.Failed)
	}
	if lease > 0 {
		s.add(4.4, "db", journal.Lease, journal.Event{ID: 2, Version: 1, Due: at(lease)})
	}
	s.write(8, 2, 2, pending, 0, 3, 8)
	return s
}

// outlives lets the process crash later than it did.
func (s *story) outlives(node string, seconds float64) *story {
	for i := range s.events {
		if e := &s.events[i]; e.Kind == journal.NodeCrash && e.Node == node {
			e.At = at(seconds)
		}
	}
	return s
}

// moveLate has task 1 executed by a process that moves the lease when that is long over.
func (s *story) moveLate(seconds float64) *story {
	return s.save(0, 1, "a").write(2.01, 1, 1, executing, 1, 0, 6).start(2.01, "n", 1, 1, "a").
		add(seconds, "db", journal.Lease, journal.Event{ID: 1, Version: 1, Status: executing, Due: at(seconds + 4)}).
		end(seconds+1, "n", 1, 1, "a", journal.OK).write(seconds+1, 1, 2, completed, 1, 0, seconds+1).over()
}

// hurt is a fault that is done to a process as the second one of a quarantine crashes.
func (s *story) hurt(node, fault string, met journal.Class) *story {
	s.add(5.4, "injector", journal.FaultBegin, journal.Event{Op: "fault/0", Detail: fault})
	s.add(5.6, "injector", journal.FaultEnd, journal.Event{Op: "fault/0", Detail: fault, Key: node, Error: met})
	return s
}

// claim is one of a process, for half a second.
func (s *story) claim(seconds float64, id, version int64, crashes int, node string) *story {
	s.write(seconds, id, version, executing, 1, crashes, seconds+.5)
	s.events[len(s.events)-1].Executor = "h:1:" + node + ":1"
	return s
}

// holdKey is a task with a key that is interrupted, waits until second 4 and is cancelled at 5. Another one is saved
// with its key.
func (s *story) holdKey(again float64) *story {
	return s.saveKey(0, 1, "a", "k").write(2.1, 1, 1, executing, 1, 0, 5).write(3, 1, 2, pending, 0, 0, 4).
		write(4.1, 1, 3, executing, 1, 0, 8).cancel(4.95, journal.OK).write(5, 1, 4, cancelled, 1, 0, 5).
		saveKey(again, 2, "b", "k")
}

// over ends the story after a quiet time.
func (s *story) over() *story {
	s.add(20, "sim", journal.Phase, journal.Event{Detail: journal.PhaseDrain})
	s.add(60, "sim", journal.Phase, journal.Event{Detail: journal.PhaseDone})
	return s
}

func (s *story) row(id, version int64, status, body string) *story {
	return s.add(60, "db", journal.Row, journal.Event{ID: id, Version: version, Status: status, Tag: "t", Body: body})
}
